//! `fcntl` locks of programs on the mount against REST (behaviours 119-125).
//!
//! That advisory locks bind REST is a choice of the mount: it is the point of it.

use crate::common::calls::Call;
use crate::common::http::Got;
use crate::common::meeting::{Meeting, Subject};
use crate::common::program::Program;

const CONFLICT: &str = "FileLockConflict";

/// A file of 2,000 bytes, and a program that has locked its first ten.
fn locked<'a>(at: &'a Meeting, name: &str, kind: &str) -> Option<(Subject<'a>, Program)> {
    let mut program = Program::start(&at.served().mount())?;
    let file = at.file_of(name, &[7; 2_000]);
    program.ok(&format!("fd = os.open('{name}', os.O_RDWR)"));
    program.ok(&format!("lock(fd, SETLK, fcntl.{kind}, 0, 10)"));
    Some((file, program))
}

fn read(file: &Subject<'_>, range: &str) -> Got {
    file.call_with(Call::Get, &[("x-ms-range", range)])
}

#[test]
fn b119_a_lock_anywhere_refuses_a_write_everywhere() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, _program)) = locked(&at, "b119", "F_WRLCK") else { return };
    at.put_range(&file.target(), 1_000, &[1; 100], &[]).refused(409, CONFLICT);
    file.answers(CONFLICT, &[Call::Clear, Call::Create, Call::PutOnto, Call::CopyOnto]);
}

// A choice: only an exclusive lock on the very bytes stops a read.
#[test]
fn b120_an_exclusive_lock_refuses_reads_of_its_own_bytes() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, _program)) = locked(&at, "b120", "F_WRLCK") else { return };
    assert_eq!(read(&file, "bytes=1000-1099").is(206).body, [7; 100]);
    for range in ["bytes=0-99", "bytes=9-9"] {
        read(&file, range).refused(409, CONFLICT);
    }
    file.answers(CONFLICT, &[Call::Get]);
    file.answers("ok", &[Call::Ranges, Call::Head]);
}

#[test]
fn b121_a_shared_lock_lets_reads_through_and_no_writes() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, _program)) = locked(&at, "b121", "F_RDLCK") else { return };
    file.answers("ok", &[Call::Get]);
    file.answers(CONFLICT, &[Call::Put]);
}

#[test]
fn b122_a_lock_that_is_gone_refuses_nothing() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, mut program)) = locked(&at, "b122", "F_WRLCK") else { return };
    program.ok("lock(fd, SETLK, fcntl.F_UNLCK, 0, 10)");
    file.answers("ok", &[Call::Put]);
    for kind in ["SETLK", "OFD_SETLK"] {
        program.ok(&format!("lock(fd, {kind}, fcntl.F_WRLCK, 0, 10)"));
        file.answers(CONFLICT, &[Call::Put]);
        program.ok("os.close(fd)");
        at.wait_idle("b122");
        file.answers("ok", &[Call::Put]);
        program.ok("fd = os.open('b122', os.O_RDWR)");
    }
}

#[test]
fn b123_the_share_mode_is_asked_before_the_lock() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, mut program)) = locked(&at, "b123", "F_WRLCK") else { return };
    program.ok("fcntl.ioctl(fd, 0x40044C01, struct.pack('<I', 0))");
    file.answers("SharingViolation", &[Call::Put, Call::Get]);
}

// A choice: what moves no content asks no lock.
#[test]
fn b124_a_resize_meets_the_lock_and_metadata_does_not() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, _program)) = locked(&at, "b124", "F_WRLCK") else { return };
    file.answers(CONFLICT, &[Call::Resize]);
    file.answers("ok", &[Call::SetMetadata, Call::SetHeaders]);
}

#[test]
fn b125_programs_on_the_mount_exclude_each_other_by_ranges() {
    let Some(at) = Meeting::start() else { return };
    let Some((file, mut one)) = locked(&at, "b125", "F_WRLCK") else { return };
    let Some(mut other) = Program::start(&at.served().mount()) else { return };
    other.ok("fd = os.open('b125', os.O_RDWR)");
    assert_eq!(other.fails("lock(fd, SETLK, fcntl.F_WRLCK, 9, 1)"), libc::EAGAIN);
    assert_eq!(other.fails("lock(fd, SETLK, fcntl.F_RDLCK, 0, 0)"), libc::EAGAIN);
    other.ok("lock(fd, SETLK, fcntl.F_WRLCK, 10, 10)");
    one.ok("lock(fd, SETLK, fcntl.F_RDLCK, 100, 10)");
    other.ok("lock(fd, SETLK, fcntl.F_RDLCK, 105, 10)");
    file.answers(CONFLICT, &[Call::Put]);
}
