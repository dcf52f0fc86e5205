//! Put Range and clear: what they do to the bytes, and whom a refusal names.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::file::service::{ShareOptions, TimeChange};
use latchfs::rules::lease::FileLease;

use crate::files::fixture::{BYTES, Call, Fixture, code, path};

#[test]
fn a_write_never_makes_a_file_longer() {
    let fixture = Fixture::new();
    let file = fixture.file();
    for (offset, bytes) in [(10, &b"x"[..]), (8, b"xyz"), (u64::MAX, b"xyz"), (0, b"")] {
        let answer = fixture.put(&file, offset, bytes);
        assert_eq!(code(&answer), "InvalidRange", "{offset}");
    }
    for range in [8..11, 10..11, 0..u64::MAX, 3..3] {
        let answer =
            fixture.share.clear_range(fixture.rest(), &file, range.clone(), TimeChange::Now);
        assert_eq!(code(&answer), "InvalidRange", "{range:?}");
    }
    assert_eq!(fixture.get(&file, None).unwrap(), BYTES);
    assert_eq!(fixture.put(&file, 9, b"x").unwrap().size(), 10);
}

#[test]
fn a_file_put_in_place_directly_is_the_one_that_is_written() {
    let fixture = Fixture::new();
    let file = fixture.file();
    let (leased, _) = fixture.leased_file();
    let on_disk = |path: &latchfs::file::rules::SharePath| fixture.root.join(path.as_str());
    std::fs::rename(on_disk(&leased), on_disk(&file)).unwrap();
    assert_eq!(code(&fixture.put(&file, 0, b"x")), "LeaseIdMissing");
    std::fs::write(fixture.root.join("plain"), b"plain").unwrap();
    std::fs::rename(fixture.root.join("plain"), on_disk(&file)).unwrap();
    assert_eq!(code(&fixture.put(&file, 0, b"P")), "ok");
    assert_eq!(std::fs::read(on_disk(&file)).unwrap(), b"Plain");
}

#[test]
fn a_leased_file_that_changes_places_with_another_is_never_written() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let fixture = Fixture::new();
    let plain = fixture.file();
    let (leased, id) = fixture.leased_file();
    let (one, other) = (fixture.root.join(plain.as_str()), fixture.root.join(leased.as_str()));
    let done = AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        while written < 2_000 || refused < 2_000 {
            match code(&fixture.put(&plain, 0, b"changed")) {
                "ok" => written += 1,
                "LeaseIdMissing" => refused += 1,
                // It changed places all the while.
                "ResourceNotFound" => {}
                other => panic!("{other}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let is_leased = |path| fixture.head(path).unwrap().lease == FileLease::Leased(id);
    let leased = if is_leased(&leased) { leased } else { plain };
    assert_eq!(fixture.get(&leased, None).unwrap(), BYTES);
}

#[test]
fn flushing_each_write_changes_no_answer() {
    let fixture = Fixture::with(ShareOptions { sync_always: true, ..ShareOptions::default() });
    for call in Call::ALL {
        let file = fixture.file();
        assert_eq!(code(&fixture.call(fixture.rest(), &file, call)), "ok", "{call:?}");
    }
    assert_eq!(code(&fixture.create(&path("new"), 5)), "ok");
}

#[test]
fn a_refusal_names_the_holder_in_the_event_log() {
    use latchfs::journal::Happening;
    let fixture = Fixture::new();
    let path = fixture.file();
    let held = fixture.open(&path, "r", "r");
    for call in Call::WRITES {
        let last = fixture.events.file_events().len();
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), "SharingViolation");
        let events = fixture.events.file_events();
        assert_eq!(events.len(), last + 1, "{call:?}");
        let Happening::Refused { cause, .. } = &events[last].what else { panic!("{events:?}") };
        let holder = cause.holder.as_ref().map(|holder| holder.handle);
        assert_eq!(holder, Some(held.id()), "{call:?}");
    }
}
