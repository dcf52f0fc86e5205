//! Leases of REST against opens of the mount, both ways (behaviours 99-106).

use std::fs;

use crate::common::calls::{Call, LEASE, lease};
use crate::common::meeting::{Meeting, Subject, errno};
use crate::common::program::Program;

const SV: &str = "SharingViolation";
const WRITERS: [&str; 6] = ["w", "rw", "d", "rd", "wd", "rwd"];

fn leased<'a>(at: &'a Meeting, name: &str) -> Subject<'a> {
    let file = at.file(name);
    file.call(Call::Acquire).is(201);
    file
}

// That Read with Delete is refused too is derived.
#[test]
fn b099_a_leased_file_can_be_opened_for_reading_only() {
    let Some(at) = Meeting::start() else { return };
    let file = leased(&at, "b099");
    for access in ["r", "none"] {
        assert_eq!(file.open_errno(access, "rwd"), 0, "{access}");
    }
    for access in WRITERS {
        assert_eq!(file.open_errno(access, "rwd"), libc::EBUSY, "{access}");
    }
}

#[test]
fn b100_after_the_lease_all_opens_succeed() {
    let Some(at) = Meeting::start() else { return };
    let (broken, released) = (leased(&at, "b100-broken"), leased(&at, "b100-released"));
    broken.answers("ok", &[Call::Break]);
    released.answers("ok", &[Call::Release]);
    for file in [broken, released] {
        for access in WRITERS {
            assert_eq!(file.open_errno(access, "rwd"), 0, "{} {access}", file.name);
        }
    }
}

#[test]
fn b101_a_reader_lets_a_lease_through_a_writer_does_not() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b101");
    for access in WRITERS {
        let writer = file.open(access, "rwd");
        file.answers(SV, &[Call::Acquire]);
        writer.close();
    }
    let _reader = file.open("r", "rwd");
    file.answers("ok", &[Call::Acquire]);
}

#[test]
fn b102_an_open_for_attributes_alone_lets_a_lease_through() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b102");
    let _holder = file.open("none", "none");
    file.answers("ok", &[Call::Acquire]);
}

#[test]
fn b103_a_reader_that_shares_less_than_all_refuses_a_lease() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b103");
    let _reader = file.open("r", "r");
    file.answers(SV, &[Call::Acquire]);
}

// Which errno a violation has is a choice of the mount.
#[test]
fn b104_a_leased_file_is_not_deleted_cut_or_moved_on_the_mount() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = leased(&at, "b104");
    let path = file.path();
    assert_eq!(errno(fs::remove_file(&path)), libc::EBUSY);
    assert_eq!(errno(fs::rename(&path, at.path("b104-away"))), libc::EBUSY);
    assert_eq!(program.fails("os.truncate('b104', 0)"), libc::EBUSY);
    assert_eq!(errno(fs::File::create(&path)), libc::EBUSY);
    assert_eq!(file.bytes().len(), 10);
    file.answers("ok", &[Call::Release]);
    program.ok("os.truncate('b104', 0)");
    assert!(file.bytes().is_empty());
}

// A choice, and a known oddity: the reader gets in by its access, and its share mode then stops
// the holder of the lease.
#[test]
fn b105_a_reader_that_denies_writing_stops_the_holder_of_the_lease() {
    let Some(at) = Meeting::start() else { return };
    let file = leased(&at, "b105");
    let reader = file.open("r", "r");
    file.answers_to(Call::Put, &[lease(LEASE)], SV);
    reader.close();
    file.answers_to(Call::Put, &[lease(LEASE)], "ok");
}

#[test]
fn b106_a_pending_file_is_not_leased() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b106");
    let _keeper = file.pending();
    file.call(Call::Acquire).refused(409, "SMBDeletePending");
}
