//! Opens against opens (behaviours 1-14), on one mount that REST is served beside.

use std::fs;

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, SETS, errno};
use crate::common::program::Program;

const BUSY: i32 = libc::EBUSY;

/// The errno of the second open of a fresh file.
fn second(at: &Meeting, name: &str, first: (&str, &str), then: (&str, &str)) -> i32 {
    let file = at.file(name);
    let _first = file.open(first.0, first.1);
    file.open_errno(then.0, then.1)
}

#[test]
fn b001_a_reader_that_shares_write_and_a_writer_that_shares_read_get_along() {
    let Some(at) = Meeting::start() else { return };
    assert_eq!(second(&at, "b001", ("r", "w"), ("w", "r")), 0);
}

#[test]
fn b002_a_second_writer_is_refused_for_its_access() {
    let Some(at) = Meeting::start() else { return };
    assert_eq!(second(&at, "b002", ("w", "r"), ("w", "w")), BUSY);
}

#[test]
fn b003_a_second_writer_is_refused_for_its_share_mode() {
    let Some(at) = Meeting::start() else { return };
    assert_eq!(second(&at, "b003", ("w", "w"), ("w", "r")), BUSY);
}

#[test]
fn b004_share_none_refuses_a_reader_until_it_closes() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b004");
    let first = file.open("rw", "none");
    assert_eq!(file.open_errno("r", "rwd"), BUSY);
    first.close();
    assert_eq!(file.open_errno("r", "rwd"), 0);
}

#[test]
fn b005_an_attribute_only_open_does_not_deny() {
    let Some(at) = Meeting::start() else { return };
    assert_eq!(second(&at, "b005", ("none", "none"), ("rwd", "none")), 0);
}

#[test]
fn b006_an_attribute_only_open_is_not_denied() {
    let Some(at) = Meeting::start() else { return };
    assert_eq!(second(&at, "b006", ("r", "none"), ("none", "none")), 0);
}

#[test]
fn b007_readers_that_share_reading_all_get_in() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b007");
    let readers: Vec<_> = (0..11).map(|_| file.open("r", "r")).collect();
    assert_eq!(file.handles().len(), readers.len());
}

#[test]
fn b008_a_reader_that_shares_reading_denies_deleting() {
    let Some(at) = Meeting::start() else { return };
    assert_eq!(second(&at, "b008", ("r", "r"), ("d", "rwd")), BUSY);
}

#[test]
fn b009_an_open_for_deleting_must_be_shared_by_those_who_come() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b009");
    let _deleter = file.open("d", "r");
    assert_eq!(file.open_errno("r", "r"), BUSY);
    assert_eq!(file.open_errno("r", "rd"), 0);
}

/// The formula of share modes, on sets written as letters.
fn violates((access1, share1): (&str, &str), (access2, share2): (&str, &str)) -> bool {
    let counts = |access: &str| access != "none";
    let within = |access: &str, share: &str| access.chars().all(|right| share.contains(right));
    counts(access1) && counts(access2) && !(within(access2, share1) && within(access1, share2))
}

#[test]
fn b010_every_pair_of_opens_follows_the_symmetric_formula() {
    let Some(at) = Meeting::start() else { return };
    at.file("b010");
    let mut holds = at.holds();
    let all = || SETS.iter().flat_map(|access| SETS.map(|share| (*access, share)));
    for first in all() {
        let held = holds.open("b010", first.0, first.1).unwrap();
        for then in all() {
            let opened = holds.open("b010", then.0, then.1);
            let wanted = if violates(first, then) { Err(BUSY) } else { Ok(()) };
            assert_eq!(opened.map(drop), wanted, "{first:?}, then {then:?}");
            if let Ok(handle) = opened {
                holds.close(handle);
            }
        }
        holds.close(held);
    }
    the_pairs_that_open_can_say(&at);
}

/// Plain `open(2)`, the share mode said by a rule for the name: one file, a hard link for each.
fn the_pairs_that_open_can_say(at: &Meeting) {
    let file = at.file("b010.rwd");
    for share in &SETS[..7] {
        fs::hard_link(file.path(), at.path(&format!("b010.{share}"))).unwrap();
    }
    let all = || ["r", "w", "rw"].into_iter().flat_map(|access| SETS.map(|share| (access, share)));
    let open =
        |(access, share): (&str, &str)| at.named(&format!("b010.{share}")).descriptor(access);
    for first in all() {
        let held = open(first).unwrap();
        for then in all() {
            let wanted = if violates(first, then) { BUSY } else { 0 };
            assert_eq!(errno(open(then)), wanted, "{first:?}, then {then:?}");
        }
        drop(held);
    }
}

#[test]
fn b011_a_close_lifts_the_denial_of_that_open_alone() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b011");
    let _denies_writing = file.open("r", "rd");
    let denies_deleting = file.open("r", "rw");
    let _denies_nothing = file.open("r", "rwd");
    assert_eq!([file.open_errno("w", "rwd"), file.open_errno("d", "rwd")], [BUSY; 2]);
    denies_deleting.close();
    assert_eq!(file.open_errno("d", "rwd"), 0);
    assert_eq!(file.open_errno("w", "rwd"), BUSY);
}

#[test]
fn b012_a_path_in_another_case_is_the_same_file() {
    let Some(at) = Meeting::start() else { return };
    at.directory("B012");
    let _first = at.file("B012/File.TXT").open("rw", "none");
    let other = at.named("b012/file.txt");
    assert_eq!(errno(other.descriptor("r")), BUSY);
    other.answers("SharingViolation", &[Call::Get]);
}

#[test]
fn b013_a_read_only_file_is_opened_for_reading_only() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b013");
    file.call_with(Call::SetHeaders, &[("x-ms-file-attributes", "ReadOnly")]).is(200);
    assert_eq!(file.open_errno("w", "rwd"), libc::EACCES);
    assert_eq!(file.open_errno("r", "rwd"), 0);
}

// A choice of the mount: the kernel closes what a dead process had open.
#[test]
fn b014_the_open_of_a_process_that_dies_ends() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.file("b014");
    program.ok("fd = os.open('b014', os.O_WRONLY)");
    program.ok("fcntl.ioctl(fd, 0x40044C01, struct.pack('<I', 0))");
    assert_eq!(errno(file.descriptor("r")), BUSY);
    file.answers("SharingViolation", &[Call::Get]);
    program.kill();
    at.wait_idle("b014");
    assert_eq!(errno(file.descriptor("r")), 0);
    file.answers("ok", &[Call::Get]);
}
