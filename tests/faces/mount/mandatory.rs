//! `--mandatory-locks`: reads and writes ask the byte-range locks.

use std::fs;

use serde_json::json;

use crate::mount::fixture::Fixture;
use crate::mount::program::Program;

fn start(mandatory: bool) -> Option<(Fixture, Program, Program)> {
    let at = Fixture::with(|options| options.mandatory_locks = mandatory)?;
    at.make("f", "0123456789");
    let (mut one, mut other) = (Program::start(&at.mnt)?, Program::start(&at.mnt)?);
    one.ok("fd = os.open('f', os.O_RDWR)");
    other.ok("fd = os.open('f', os.O_RDWR)");
    Some((at, one, other))
}

#[test]
fn a_range_locked_by_another_process_is_refused() {
    let Some((at, mut one, mut other)) = start(true) else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 2, 3)");
    assert_eq!(other.fails("os.pread(fd, 1, 2)"), libc::EACCES);
    assert_eq!(other.fails("os.pread(fd, 10, 0)"), libc::EACCES);
    assert_eq!(other.fails("os.pwrite(fd, b'x', 4)"), libc::EACCES);
    assert_eq!(other.ok("os.pread(fd, 2, 0)"), json!("01"));
    assert_eq!(other.ok("os.pwrite(fd, b'x', 5)"), json!(1));
    assert_eq!(one.ok("os.pread(fd, 10, 0)"), json!("01234x6789"));
    assert_eq!(one.ok("os.pwrite(fd, b'abc', 2)"), json!(3));
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 2, 3)");
    assert_eq!(other.ok("os.pread(fd, 10, 0)"), json!("01abcx6789"));
    assert_eq!(fs::read_to_string(at.root.join("f")).unwrap(), "01abcx6789");
}

#[test]
fn a_shared_lock_lets_others_read_and_not_write() {
    let Some((_at, mut one, mut other)) = start(true) else { return };
    one.ok("lock(fd, SETLK, fcntl.F_RDLCK, 0, 0)");
    assert_eq!(other.ok("os.pread(fd, 2, 0)"), json!("01"));
    assert_eq!(other.fails("os.pwrite(fd, b'x', 0)"), libc::EACCES);
    one.kill();
    assert_eq!(other.ok("os.pwrite(fd, b'x', 0)"), json!(1));
}

#[test]
fn appending_is_refused_where_the_end_is_locked() {
    let Some((at, mut one, mut other)) = start(true) else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 10, 0)");
    other.ok("end = os.open('f', os.O_WRONLY | os.O_APPEND)");
    assert_eq!(other.fails("os.write(end, b'x')"), libc::EACCES);
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 0, 0)");
    assert_eq!(other.ok("os.write(end, b'x')"), json!(1));
    assert_eq!(fs::read_to_string(at.root.join("f")).unwrap(), "0123456789x");
}

#[test]
fn a_locked_range_can_be_cut_off_and_its_lock_outlives_it() {
    // As on a real share: br32 and br33 of tests/oracle.
    let Some((_at, mut one, mut other)) = start(true) else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 5, 5)");
    other.ok("os.ftruncate(fd, 6)");
    other.ok("os.ftruncate(fd, 10)");
    assert_eq!(other.fails("os.pread(fd, 1, 7)"), libc::EACCES);
    assert_eq!(one.ok("os.pread(fd, 1, 5)"), json!("5"));
}

#[test]
fn without_the_option_locks_are_advice() {
    let Some((_at, mut one, mut other)) = start(false) else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.ok("os.pread(fd, 2, 0)"), json!("01"));
    assert_eq!(other.ok("os.pwrite(fd, b'x', 0)"), json!(1));
}
