//! What a lease means to programs on the mount beyond the plain open, and a race.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::client;
use latchfs::file::rules::ShareMode;

use crate::common::calls::{Call, LEASE, lease};
use crate::common::meeting::{BYTES, Meeting, errno};

const BUSY: i32 = libc::EBUSY;

#[test]
fn a_leased_file_is_not_replaced_linked_over_or_marked_on_the_mount() {
    let Some(at) = Meeting::start() else { return };
    let (file, other) = (at.file("lease-kept"), at.file_of("lease-other", b"other"));
    let reader = file.open("r", "rwd");
    file.call(Call::Acquire).is(201);
    assert_eq!(errno(client::set_delete(reader.file(), true)), BUSY);
    reader.close();
    assert_eq!(errno(fs::rename(other.path(), file.path())), BUSY);
    assert_eq!(file.delete_on_close("rwd").err(), Some(BUSY));
    assert_eq!(errno(fs::File::options().append(true).open(file.path())), BUSY);
    assert_eq!(errno(fs::write(file.path(), "new")), BUSY);
    assert_eq!(file.bytes(), BYTES);
    assert_eq!(other.bytes(), b"other");
}

#[test]
fn the_holder_of_the_lease_does_through_rest_what_the_mount_is_refused() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("lease-holder");
    file.call(Call::Acquire).is(201);
    let reader = file.descriptor("r").unwrap();
    file.answers_to(Call::Put, &[lease(LEASE)], "ok");
    let mut seen = [0; 2];
    std::os::unix::fs::FileExt::read_exact_at(&reader, &mut seen, 0).unwrap();
    assert_eq!(&seen, b"AB");
    file.answers_to(Call::Delete, &[lease(LEASE)], "SharingViolation");
    drop(reader);
    at.wait_idle("lease-holder");
    file.answers_to(Call::Delete, &[lease(LEASE)], "ok");
    assert!(!file.path().exists());
}

#[test]
fn a_lease_follows_its_file_to_a_new_name() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("lease-moved");
    file.call(Call::Acquire).is(201);
    file.answers_to(Call::RenameFrom, &[("x-ms-source-lease-id", LEASE)], "ok");
    let moved = file.beside(".target");
    assert_eq!(moved.shown("x-ms-lease-state"), "leased");
    assert_eq!(errno(moved.descriptor("w")), BUSY);
    moved.answers("ok", &[Call::Release]);
    assert_eq!(errno(moved.descriptor("w")), 0);
}

#[test]
fn a_reader_that_narrows_its_share_mode_narrows_it_against_the_next_lease() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("lease-narrow");
    let reader = file.open("r", "rwd");
    file.answers("ok", &[Call::Acquire, Call::Release]);
    client::set_share(reader.file(), ShareMode::RW).unwrap();
    file.answers("SharingViolation", &[Call::Acquire]);
}

#[test]
fn a_lease_and_a_writer_never_have_the_file_at_once() {
    const LEASES: usize = 60;
    let Some(at) = Meeting::start() else { return };
    let file = at.file("lease-race");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut granted = 0_usize;
            while !done.load(Ordering::Relaxed) {
                match file.descriptor("w") {
                    Ok(writer) => {
                        assert_eq!(file.shown("x-ms-lease-state"), "available");
                        granted += 1;
                        drop(writer);
                    }
                    Err(error) => assert_eq!(error.raw_os_error(), Some(BUSY)),
                }
            }
            granted
        });
        let mut leased = 0;
        while leased < LEASES {
            let got = file.call(Call::Acquire);
            if got.status == 201 {
                let writers = file.handles();
                assert!(writers.is_empty(), "{writers:?}");
                leased += 1;
                file.answers("ok", &[Call::Release]);
            } else {
                got.refused(409, "SharingViolation");
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(writing.join().unwrap() > 0, "nobody ever wrote");
    });
}
