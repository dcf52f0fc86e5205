//! `fcntl` locks between processes: POSIX and OFD, at once and waiting.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::mount::fixture::{Fixture, share_path, somebody, soon};
use crate::mount::program::Program;

/// A waiter that is killed or interrupted is gone within this.
const GONE: Duration = Duration::from_millis(250);

/// Long enough for a request to reach the driver, on a loaded machine too.
const SETTLED: Duration = Duration::from_millis(150);

fn start() -> Option<(Fixture, Program, Program)> {
    let at = Fixture::start()?;
    at.make("f", &"x".repeat(100));
    let (mut one, mut other) = (Program::start(&at.mnt)?, Program::start(&at.mnt)?);
    one.ok("fd = os.open('f', os.O_RDWR)");
    other.ok("fd = os.open('f', os.O_RDWR)");
    Some((at, one, other))
}

/// `l_type` and `l_whence`, `l_start`, `l_len`, `l_pid` as `F_GETLK` answers.
fn seen(program: &mut Program, code: &str) -> (i64, i64, i64, i64) {
    let answer = program.ok(code);
    let at = |n: usize| answer[n].as_i64().unwrap();
    (at(0), at(2), at(3), at(4))
}

#[test]
fn ranges_exclude_each_other_between_processes() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 10, 10)");
    assert_eq!(other.fails("lock(fd, SETLK, fcntl.F_WRLCK, 19, 1)"), libc::EAGAIN);
    assert_eq!(other.fails("lock(fd, SETLK, fcntl.F_RDLCK, 0, 0)"), libc::EAGAIN);
    other.ok("lock(fd, SETLK, fcntl.F_WRLCK, 20, 5)");
    other.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 10)");
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 12, 2)");
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 10, 5)");
    other.ok("lock(fd, SETLK, fcntl.F_RDLCK, 10, 5)");
    assert_eq!(other.fails("lock(fd, SETLK, fcntl.F_RDLCK, 15, 1)"), libc::EAGAIN);
}

#[test]
fn shared_locks_stand_beside_each_other() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_RDLCK, 0, 10)");
    other.ok("lock(fd, SETLK, fcntl.F_RDLCK, 5, 10)");
    assert_eq!(one.fails("lock(fd, SETLK, fcntl.F_WRLCK, 5, 1)"), libc::EAGAIN);
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 5)");
}

#[test]
fn a_process_can_ask_who_is_in_the_way() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 10, 10)");
    let (write, free) = (i64::from(libc::F_WRLCK), i64::from(libc::F_UNLCK));
    let holder = i64::from(one.id());
    assert_eq!(seen(&mut other, "lock(fd, GETLK, fcntl.F_RDLCK, 0, 0)"), (write, 10, 10, holder));
    assert_eq!(seen(&mut other, "lock(fd, GETLK, fcntl.F_WRLCK, 0, 10)").0, free);
    assert_eq!(seen(&mut one, "lock(fd, GETLK, fcntl.F_WRLCK, 0, 0)").0, free);
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 50, 0)");
    assert_eq!(seen(&mut other, "lock(fd, GETLK, fcntl.F_RDLCK, 60, 1)"), (write, 50, 0, holder));
}

#[test]
fn closing_any_descriptor_of_the_file_gives_a_processs_locks_back() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    one.ok("os.close(os.open('f', os.O_RDONLY))");
    other.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_given_back() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    other.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.answer_within(SETTLED), None);
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 0, 0)");
    assert!(other.answer().unwrap().is_ok());
    assert_eq!(one.fails("lock(fd, SETLK, fcntl.F_RDLCK, 0, 0)"), libc::EAGAIN);
}

#[test]
fn a_waiter_gets_the_lock_when_the_holder_ends() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    other.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.answer_within(SETTLED), None);
    one.kill();
    assert!(other.answer().unwrap().is_ok());
}

#[test]
fn a_lock_of_an_open_file_description_belongs_to_it_and_ends_with_it() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("a, b = os.open('f', os.O_RDWR), os.open('f', os.O_RDWR)");
    one.ok("lock(a, OFD_SETLK, fcntl.F_WRLCK, 0, 10)");
    assert_eq!(one.fails("lock(b, OFD_SETLK, fcntl.F_WRLCK, 0, 10)"), libc::EAGAIN);
    assert_eq!(other.fails("lock(fd, SETLK, fcntl.F_WRLCK, 0, 10)"), libc::EAGAIN);
    assert_eq!(seen(&mut other, "lock(fd, OFD_GETLK, fcntl.F_RDLCK, 0, 0)").3, -1);
    one.ok("os.close(b)");
    assert_eq!(other.fails("lock(fd, OFD_SETLK, fcntl.F_WRLCK, 0, 10)"), libc::EAGAIN);
    one.ok("c = os.dup(a)");
    one.ok("os.close(a)");
    assert_eq!(other.fails("lock(fd, OFD_SETLK, fcntl.F_WRLCK, 0, 10)"), libc::EAGAIN);
    other.begin("lock(fd, OFD_SETLKW, fcntl.F_WRLCK, 0, 10)");
    assert_eq!(other.answer_within(SETTLED), None);
    one.ok("os.close(c)");
    assert!(other.answer().unwrap().is_ok());
}

#[test]
fn a_waiter_whose_handle_is_closed_by_force_fails_as_every_use_of_it_does() {
    let Some((at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    other.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.answer_within(SETTLED), None);
    let page = at.share.list_handles(&share_path("f"), false, None, 10).unwrap();
    let waiter = page.handles.iter().find(|handle| handle.owner.pid == other.id()).unwrap();
    assert!(at.share.force_close(&somebody(), waiter.id).unwrap() > 0);
    assert_eq!(other.answer(), Some(Err(libc::EIO)));
}

#[test]
fn a_waiter_that_is_killed_is_gone_at_once() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    other.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.answer_within(SETTLED), None);
    let begun = Instant::now();
    other.kill();
    assert!(begun.elapsed() < GONE, "{:?}", begun.elapsed());
    // Nothing is left of its request: the lock is free for the next.
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 0, 0)");
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
}

#[test]
fn a_waiter_that_is_interrupted_is_told_so() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    // A handler that raises: Python tries again after one that returns.
    other.ok("def stop(*_): raise OSError(errno.EINTR, 'interrupted')\n\
         signal.signal(signal.SIGUSR1, stop)\n");
    other.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.answer_within(SETTLED), None);
    let begun = Instant::now();
    one.ok(&format!("os.kill({}, signal.SIGUSR1)", other.id()));
    assert_eq!(other.answer(), Some(Err(libc::EINTR)));
    assert!(begun.elapsed() < GONE, "{:?}", begun.elapsed());
    one.ok("lock(fd, SETLK, fcntl.F_UNLCK, 0, 0)");
    assert!(other.run("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)").is_ok());
}

#[test]
fn an_ignored_signal_does_not_end_a_wait() {
    let Some((_at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    other.ok("signal.signal(signal.SIGUSR1, signal.SIG_IGN)");
    other.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
    assert_eq!(other.answer_within(SETTLED), None);
    one.ok(&format!("os.kill({}, signal.SIGUSR1)", other.id()));
    assert_eq!(other.answer_within(SETTLED), None);
    one.ok("os.close(fd)");
    assert!(other.answer().unwrap().is_ok());
}

#[test]
fn many_waiters_get_the_lock_in_turn() {
    let Some((at, mut one, _other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 0)");
    let mut waiters: Vec<_> = (0..8).filter_map(|_| Program::start(&at.mnt)).collect();
    for waiter in &mut waiters {
        waiter.ok("fd = os.open('f', os.O_RDWR)");
        waiter.begin("lock(fd, SETLKW, fcntl.F_WRLCK, 0, 0)");
        waiter.begin("os.close(fd)");
    }
    one.ok("os.close(fd)");
    for waiter in &mut waiters {
        assert!(waiter.answer().unwrap().is_ok());
        assert_eq!(waiter.answer(), Some(Ok(json!(null))));
    }
}

#[test]
fn nothing_is_left_when_all_have_closed() {
    let Some((at, mut one, mut other)) = start() else { return };
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 5)");
    other.ok("lock(fd, SETLK, fcntl.F_WRLCK, 5, 5)");
    one.ok("os.close(fd)");
    other.kill();
    soon("all is given back", || at.share.files_in_use() == 0);
}

#[test]
fn of_several_locks_in_the_way_the_first_by_its_start_is_named() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut one) = Program::start(&at.mnt) else { return };
    let Some(mut other) = Program::start(&at.mnt) else { return };
    at.make("f", "0123456789");
    one.ok("fd = os.open('f', os.O_RDWR)");
    one.ok("lock(fd, SETLK, fcntl.F_WRLCK, 50, 10)");
    one.ok("lock(fd, SETLK, fcntl.F_RDLCK, 10, 10)");
    other.ok("fd = os.open('f', os.O_RDWR)");
    let named = "lock(fd, GETLK, fcntl.F_WRLCK, 0, 100)[:4]";
    assert_eq!(other.ok(named), json!([libc::F_RDLCK, 0, 10, 10]));
    let named = "lock(fd, GETLK, fcntl.F_RDLCK, 0, 100)[:4]";
    assert_eq!(other.ok(named), json!([libc::F_WRLCK, 0, 50, 10]));
}
