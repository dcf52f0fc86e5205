//! `--mandatory-locks`: reads and writes ask the byte-range locks.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use crate::mount::fixture::{Fixture, errno};
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
fn a_locked_range_is_neither_punched_nor_copied_over() {
    let Some((at, mut one, mut other)) = start(true) else { return };
    fs::write(at.path("g"), "abcdefghij").unwrap();
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 8, 2)");
    let reserve = "os.posix_fallocate(fd, 0, 10)";
    assert_eq!(other.fails(reserve), libc::EACCES, "the library looks at the last byte instead");
    other.ok("g = os.open('g', os.O_RDWR)");
    assert_eq!(other.fails("os.copy_file_range(g, fd, 10, 0, 0)"), libc::EACCES);
    assert_eq!(other.fails("os.copy_file_range(fd, g, 10, 0, 0)"), libc::EACCES);
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 8, 2)");
    other.ok(reserve);
    assert_eq!(other.ok("os.copy_file_range(g, fd, 10, 0, 0)"), json!(10));
    assert_eq!(fs::read_to_string(at.root.join("f")).unwrap(), "abcdefghij");
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

#[test]
fn no_write_lands_after_a_lock_was_granted() {
    const LENGTH: usize = 256 << 10;
    let Some((at, mut one, _other)) = start(true) else { return };
    fs::write(at.root.join("f"), vec![0; LENGTH]).unwrap();
    let file = fs::File::options().write(true).open(at.path("f")).unwrap();
    let stop = AtomicBool::new(false);
    let changed = thread::scope(|scope| {
        let write = || {
            for byte in (0..u8::MAX).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                let written = errno(file.write_at(&vec![byte; LENGTH], 0));
                assert!([0, libc::EACCES].contains(&written), "{written}");
            }
        };
        let writers = [scope.spawn(write), scope.spawn(write)];
        let rounds = "def rounds(n):\n    changed = 0\n    for _ in range(n):\n        \
                      try: lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)\n        \
                      except OSError: continue\n        \
                      first = os.pread(fd, 262144, 0)\n        \
                      changed += first != os.pread(fd, 262144, 0)\n        \
                      lock(fd, SETLK, fcntl.F_UNLCK, 0, 0)\n    return changed\n";
        one.ok(rounds);
        let changed = one.ok("rounds(300)");
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
        changed
    });
    assert_eq!(changed, json!(0));
}
