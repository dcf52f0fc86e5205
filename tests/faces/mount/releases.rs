//! Right after `close(2)`: the release is on its way, and nobody must meet the old open.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, ShareMode};
use latchfs::file::service::{Asking, TimeChange};
use latchfs::journal::Happening;
use serde_json::json;

use crate::mount::fixture::{Fixture, errno, open, open_errno, rounds, share_path, somebody, soon};
use crate::mount::program::Program;

/// How long a caller of the engine waits for a release.
const PATIENCE: Duration = Duration::from_millis(500);

#[test]
fn one_process_opens_again_right_after_it_closed() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let accesses = [Access::R, Access::RW, Access::W];
    for round in 0..rounds(10_000) {
        assert_eq!(open_errno(&path, accesses[round % 3]), 0, "round {round}");
    }
    let refused = at.events.file_events();
    assert!(refused.is_empty(), "nobody was refused, but the log says {refused:?}");
}

#[test]
fn two_processes_open_in_turn() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let Some(mut other) = Program::start(&at.mnt) else { return };
    let path = at.make("f", "");
    let mut done = 0;
    // Batches, since each turn costs the way to the other process and back.
    let batch = 25;
    while done < rounds(5000) {
        let theirs =
            other.run(&format!("[os.close(os.open('f', os.O_RDWR)) for _ in range({batch})][:0]"));
        assert_eq!(theirs, Ok(json!([])), "after {done}");
        for _ in 0..batch {
            assert_eq!(open_errno(&path, Access::RW), 0, "after {done}");
        }
        done += batch;
    }
}

#[test]
fn removing_renaming_and_truncating_right_after_the_close() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let Some(mut other) = Program::start(&at.mnt) else { return };
    for round in 0..rounds(300) {
        drop(File::create(at.path("f")).unwrap());
        assert_eq!(errno(fs::rename(at.path("f"), at.path("g"))), 0, "rename, round {round}");
        drop(File::open(at.path("g")).unwrap());
        drop(File::create(at.path("h")).unwrap());
        assert_eq!(errno(fs::rename(at.path("h"), at.path("g"))), 0, "replace, round {round}");
        drop(File::open(at.path("g")).unwrap());
        assert_eq!(errno(fs::remove_file(at.path("g"))), 0, "unlink, round {round}");
    }
    other.ok("os.close(os.open('t', os.O_CREAT | os.O_RDWR))");
    let cut = "os.close(os.open('t', os.O_RDWR)); os.truncate('t', 3)";
    for round in 0..rounds(300) {
        assert_eq!(other.run(cut), Ok(json!(null)), "truncate, round {round}");
    }
}

#[test]
fn a_copied_descriptor_is_a_true_conflict_and_is_told_so_in_bounded_time() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let held = File::open(&path).unwrap();
    let copy = held.try_clone().unwrap();
    drop(held);
    let begun = Instant::now();
    assert_eq!(open_errno(&path, Access::R), libc::EBUSY);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    drop(copy);
    assert_eq!(open_errno(&path, Access::R), 0);
}

#[test]
fn a_holder_that_closed_a_copy_of_its_descriptor_is_told_of_at_once_afterwards() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let held = File::open(&path).unwrap();
    // As the start of a child process does: the release may be on its way, for a moment.
    drop(held.try_clone().unwrap());
    soon("a refusal that does not wait for a release", || {
        let begun = Instant::now();
        assert_eq!(open_errno(&path, Access::R), libc::EBUSY);
        begun.elapsed() < Duration::from_millis(50)
    });
    drop(held);
}

#[test]
fn the_engine_opens_right_after_a_close_on_the_mount() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let (who, name) = (somebody(), share_path("f"));
    let request = OpenRequest::plain(Access::RW, ShareMode::NONE);
    for round in 0..rounds(2000) {
        drop(open(&path, Access::RW).unwrap());
        let opened = at.share.open_waiting(&who, &name, &request, PATIENCE);
        let opened = opened.unwrap_or_else(|error| panic!("round {round}: {error}"));
        at.share.close(&opened.handle).unwrap();
    }
    at.idle();
}

#[test]
fn rest_meets_nobody_right_after_a_close_on_the_mount() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let (path, who, name) = (at.path("f"), somebody(), share_path("f"));
    let asking = Asking { cx: &who, lease_id: None };
    for round in 0..rounds(2000) {
        fs::write(&path, "bytes").unwrap();
        let read = at.share.open_reader(asking, &name, None);
        assert_eq!(read.unwrap_or_else(|e| panic!("round {round}: {e}")).range(), 0..5);
        drop(open(&path, Access::RW).unwrap());
        let put = at.share.put_range(asking, &name, 0, b"BY", TimeChange::Now);
        put.unwrap_or_else(|error| panic!("round {round}: {error}"));
        drop(open(&path, Access::R).unwrap());
        at.share.delete_file(asking, &name).unwrap_or_else(|e| panic!("round {round}: {e}"));
    }
    let refused = at.events.file_events().into_iter();
    let refused: Vec<_> = refused.filter(|e| matches!(e.what, Happening::Refused { .. })).collect();
    assert!(refused.is_empty(), "nobody was refused, but the log says {refused:?}");
}

#[test]
fn the_engine_does_not_wait_for_one_who_keeps_the_file() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let held = open(&path, Access::R).unwrap();
    let request = OpenRequest::plain(Access::R, ShareMode::RWD);
    let ask = |patience| {
        let begun = Instant::now();
        let answer = at.share.open_waiting(&somebody(), &share_path("f"), &request, patience);
        assert!(answer.is_err());
        begun.elapsed()
    };
    assert!(ask(Duration::from_mins(1)) < Duration::from_secs(5), "it is held, not released");
    let copy = held.try_clone().unwrap();
    drop(held);
    let waited = ask(Duration::from_millis(50));
    assert!((50..5000).contains(&waited.as_millis()), "{waited:?}");
    drop(copy);
}
