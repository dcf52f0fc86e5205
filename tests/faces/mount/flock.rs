//! `--flock-as-share-mode`: what .NET does on Linux for `FileShare.None` is enforced.

use std::fs::File;
use std::thread;

use rustix::fs::{FlockOperation, flock};

use crate::mount::fixture::Fixture;
use crate::mount::program::Program;

fn start(option: bool) -> Option<(Fixture, Program, Program)> {
    let at = Fixture::with(|options| options.flock_as_share_mode = option)?;
    at.make("f", "");
    let (one, other) = (Program::start(&at.mnt)?, Program::start(&at.mnt)?);
    Some((at, one, other))
}

const OPEN: &str = "os.close(os.open('f', os.O_RDWR))";

#[test]
fn an_exclusive_flock_lets_nobody_else_open() {
    let Some((_at, mut one, mut other)) = start(true) else { return };
    one.ok("fd = os.open('f', os.O_RDWR)");
    other.ok(OPEN);
    one.ok("fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)");
    assert_eq!(other.fails(OPEN), libc::EBUSY);
    assert_eq!(one.fails(OPEN), libc::EBUSY);
    one.ok("fcntl.flock(fd, fcntl.LOCK_UN)");
    other.ok(OPEN);
    one.ok("fcntl.flock(fd, fcntl.LOCK_EX)");
    assert_eq!(other.fails(OPEN), libc::EBUSY);
    one.ok("os.close(fd)");
    other.ok(OPEN);
}

#[test]
fn a_shared_flock_lets_others_open() {
    let Some((_at, mut one, mut other)) = start(true) else { return };
    one.ok("fd = os.open('f', os.O_RDWR)");
    one.ok("fcntl.flock(fd, fcntl.LOCK_SH)");
    other.ok(OPEN);
    other.ok("fd = os.open('f', os.O_RDWR)");
    other.ok("fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)");
    let refused = other.fails("fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)");
    assert_eq!(refused, libc::EAGAIN);
}

#[test]
fn a_refused_flock_changes_nothing() {
    let Some((_at, mut one, mut other)) = start(true) else { return };
    one.ok("fd = os.open('f', os.O_RDWR)");
    other.ok("fd = os.open('f', os.O_RDWR)");
    one.ok("fcntl.flock(fd, fcntl.LOCK_SH)");
    assert_eq!(other.fails("fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)"), libc::EAGAIN);
    one.ok(OPEN);
    assert_eq!(one.fails("fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)"), libc::EAGAIN);
    one.ok(OPEN);
}

#[test]
fn unlocking_restores_the_share_mode_the_open_had() {
    let Some(at) = Fixture::with(|options| {
        options.flock_as_share_mode = true;
        options.default_share = latchfs::file::rules::ShareMode::R;
    }) else {
        return;
    };
    let Some(mut one) = Program::start(&at.mnt) else { return };
    at.make("f", "");
    one.ok("fd = os.open('f', os.O_RDONLY)");
    one.ok("fcntl.flock(fd, fcntl.LOCK_SH)");
    one.ok("fcntl.flock(fd, fcntl.LOCK_UN)");
    assert_eq!(one.fails(OPEN), libc::EBUSY);
    one.ok("os.close(os.open('f', os.O_RDONLY))");
}

#[test]
fn without_the_option_flock_stays_with_the_kernel() {
    let Some((_at, mut one, mut other)) = start(false) else { return };
    one.ok("fd = os.open('f', os.O_RDWR)");
    one.ok("fcntl.flock(fd, fcntl.LOCK_EX)");
    other.ok("fd = os.open('f', os.O_RDWR)");
    assert_eq!(other.fails("fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)"), libc::EAGAIN);
    one.ok("os.close(fd)");
    other.ok("fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)");
}

#[test]
fn threads_that_flock_one_description_leave_no_share_mode_behind() {
    let Some((at, _one, mut other)) = start(true) else { return };
    let file = File::options().read(true).write(true).open(at.path("f")).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    flock(&file, FlockOperation::LockExclusive).unwrap();
                    flock(&file, FlockOperation::Unlock).unwrap();
                }
            });
        }
    });
    flock(&file, FlockOperation::Unlock).unwrap();
    other.ok(OPEN);
}
