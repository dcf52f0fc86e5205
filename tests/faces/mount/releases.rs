//! Right after `close(2)`: the release is on its way, and nobody must meet the old open.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, ShareMode};
use latchfs::file::service::{Asking, RELEASE_WAIT, TimeChange};
use latchfs::journal::{FileEvent, Happening};
use serde_json::json;

use crate::mount::fixture::{Fixture, errno, open, open_errno, rounds, share_path, somebody, soon};
use crate::mount::program::Program;

/// The refusals that the journal has.
fn refusals(at: &Fixture) -> Vec<FileEvent> {
    let events = at.events.file_events().into_iter();
    events.filter(|event| matches!(event.what, Happening::Refused { .. })).collect()
}

#[test]
fn one_process_opens_again_right_after_it_closed() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let accesses = [Access::R, Access::RW, Access::W];
    for round in 0..rounds(10_000) {
        assert_eq!(open_errno(&path, accesses[round % 3]), 0, "round {round}");
    }
    let refused = refusals(&at);
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
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let refused = refusals(&at);
    assert_eq!(refused.len(), 1, "it is noted once, however often it was tried: {refused:?}");
    drop(copy);
    assert_eq!(open_errno(&path, Access::R), 0);
}

#[test]
fn a_removal_that_a_copied_descriptor_refuses_is_noted_once() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let (path, other) = (at.make("f", ""), at.make("other", ""));
    let held = File::open(&path).unwrap();
    let copy = held.try_clone().unwrap();
    drop(held);
    thread::scope(|scope| {
        let removed = scope.spawn(|| errno(fs::remove_file(&path)));
        // Each close is a reason to try again.
        while !removed.is_finished() {
            assert_eq!(open_errno(&other, Access::R), 0);
        }
        assert_eq!(removed.join().unwrap(), libc::EBUSY);
    });
    let refused = refusals(&at);
    assert_eq!(refused.len(), 1, "{refused:?}");
    drop(copy);
}

#[test]
fn a_lock_of_an_open_file_description_is_free_right_after_the_close() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    at.make("f", "0123456789");
    let round = "fd = os.open('f', os.O_RDWR); lock(fd, OFD_SETLK, fcntl.F_WRLCK); os.close(fd)";
    for number in 0..rounds(3000) {
        assert_eq!(program.run(round), Ok(json!(null)), "round {number}");
    }
}

#[test]
fn what_is_below_a_directory_is_found_while_the_directory_is_renamed() {
    let Some(at) = Fixture::start() else { return };
    fs::create_dir(at.path("d")).unwrap();
    // Made behind the mount: the kernel asks for each of them.
    let files = 5000;
    for number in 0..files {
        fs::write(at.root.join(format!("d/f{number}")), "").unwrap();
    }
    let dir = File::open(at.path("d")).unwrap();
    let below = format!("/proc/self/fd/{}/f", std::os::fd::AsRawFd::as_raw_fd(&dir));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let left = (0..files).take_while(|_| !over.load(Ordering::Relaxed));
            left.map(|number| {
                assert_eq!(errno(fs::metadata(format!("{below}{number}"))), 0, "file {number}");
            })
            .count()
        });
        for round in 0..rounds(1500) {
            let (from, to) = if round % 2 == 0 { ("d", "e") } else { ("e", "d") };
            assert_eq!(errno(fs::rename(at.path(from), at.path(to))), 0, "round {round}");
        }
        over.store(true, Ordering::Relaxed);
        assert!(looks.join().unwrap() > 0);
    });
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
        let opened = at.share.open_waiting(&who, &name, &request);
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
    let refused = refusals(&at);
    assert!(refused.is_empty(), "nobody was refused, but the log says {refused:?}");
}

#[test]
fn the_engine_does_not_wait_for_one_who_keeps_the_file() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "");
    let held = open(&path, Access::R).unwrap();
    let request = OpenRequest::plain(Access::R, ShareMode::RWD);
    let ask = || {
        let begun = Instant::now();
        let answer = at.share.open_waiting(&somebody(), &share_path("f"), &request);
        assert!(answer.is_err());
        begun.elapsed()
    };
    assert!(ask() < RELEASE_WAIT, "it is held, not released");
    let copy = held.try_clone().unwrap();
    drop(held);
    let waited = ask();
    assert!((400..5000).contains(&waited.as_millis()), "{waited:?}");
    drop(copy);
}

#[test]
fn commands_of_a_shell_that_holds_a_deleted_file_do_not_wait_for_each_other() {
    const COMMANDS: u32 = 8;
    let Some(at) = Fixture::start() else { return };
    let Some(mut shell) = Program::start(&at.mnt) else { return };
    at.make("f", "");
    // As the children of a shell do, each command has the descriptor too, and closes it at its end.
    shell.ok("fd = os.open('f', os.O_RDONLY); os.set_inheritable(fd, True)");
    std::fs::remove_file(at.path("f")).unwrap();
    let start = Instant::now();
    for _ in 0..COMMANDS {
        assert_eq!(shell.ok("os.system('ls -l > /dev/null; stat f > /dev/null')"), json!(0));
    }
    // The first two may take the wait for a release; each of the others took it too.
    let took = start.elapsed();
    assert!(took < RELEASE_WAIT * COMMANDS / 2, "{took:?}");
}
