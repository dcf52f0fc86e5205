//! Threads that serve many callers at once: the FUSE workers and REST's event loops.
//!
//! Such a thread must never wait for a flush to the disk, a child process, a walk of a directory
//! or a lock that is held over I/O: everyone it serves would wait too. Decides nothing about files.
//! It marks these threads, panics (in builds with debug assertions, so in every test) where one
//! is about to wait, and runs an operation in non-blocking mode. Where the operation
//! goes instead is the front end's choice.

use std::cell::Cell;

thread_local! {
    static MARK: Cell<Option<&'static str>> = const { Cell::new(None) };
    static MODE: Cell<Mode> = const { Cell::new(Mode::Waits) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// No mode was set: the caller may wait, unless its thread is marked.
    Waits,
    /// The operation ends where it would wait.
    NonBlocking,
    /// The operation has ended for that reason.
    GaveUp,
    /// The operation has begun to change something and goes on to its end, on any thread.
    Committed,
}

/// Marks the calling thread for the rest of its life as a front end of this kind.
pub fn mark(kind: &'static str) {
    if cfg!(debug_assertions) {
        MARK.set(Some(kind));
    }
}

/// Marks the calling thread while `work` runs: for threads that do other work too.
pub fn during<T>(kind: &'static str, work: impl FnOnce() -> T) -> T {
    let _restore = RestoreMark(MARK.replace(Some(kind)));
    work()
}

struct RestoreMark(Option<&'static str>);

impl Drop for RestoreMark {
    fn drop(&mut self) {
        MARK.set(self.0);
    }
}

/// Panics on a marked thread, in builds with debug assertions. To be called by whatever is about
/// to wait; `what` says for what.
#[track_caller]
pub fn assert_may_block(what: &str) {
    if cfg!(debug_assertions)
        && let Some(kind) = MARK.get()
    {
        panic!("a {kind} must not wait for {what}");
    }
}

/// Panics on a marked thread outside non-blocking mode, in builds with debug assertions. To be
/// called by a lock that is held over I/O before it is tried, whether or not it is free, so that a
/// test finds a front end that could wait for it; `what` says which lock.
#[track_caller]
pub fn assert_lock_allowed(what: &str) {
    if MODE.get() == Mode::Waits {
        assert_may_block(what);
    }
}

/// Panics on a marked thread that has not begun to change something, in builds with debug
/// assertions. To be called before a wait for a lock that does not heed non-blocking mode.
#[track_caller]
pub fn assert_committed(what: &str) {
    if MODE.get() != Mode::Committed {
        assert_may_block(what);
    }
}

/// Runs `operation` in non-blocking mode. `None` if it had to give up because it would have
/// waited: then it has changed nothing, and is to be repeated on a thread that may wait.
pub fn without_waiting<T>(operation: impl FnOnce() -> T) -> Option<T> {
    MODE.set(Mode::NonBlocking);
    let _end = EndMode;
    let answer = operation();
    (MODE.get() != Mode::GaveUp).then_some(answer)
}

/// Ends the mode, also when the operation panicked.
struct EndMode;

impl Drop for EndMode {
    fn drop(&mut self) {
        MODE.set(Mode::Waits);
    }
}

/// Runs `work` as if its caller could wait, whatever the mode: for what must not stay undone, such
/// as the end of an open by an operation that has given up. What it waits for must be short.
pub fn to_the_end<T>(work: impl FnOnce() -> T) -> T {
    let _restore = RestoreMode(MODE.replace(Mode::Committed));
    work()
}

struct RestoreMode(Mode);

impl Drop for RestoreMode {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

/// True in non-blocking mode.
pub fn is_non_blocking() -> bool {
    matches!(MODE.get(), Mode::NonBlocking | Mode::GaveUp)
}

/// To be called right before the first change: from here on the operation does not give up, since
/// it could not be repeated. What it still waits for is short. False if it has given up already:
/// it must change nothing, since it is going to be repeated.
#[must_use = "nothing may be changed if this is false"]
pub fn begin_change() -> bool {
    if MODE.get() == Mode::NonBlocking {
        MODE.set(Mode::Committed);
    }
    !has_given_up()
}

/// True if the operation has given up, whether or not its callers noticed.
pub fn has_given_up() -> bool {
    MODE.get() == Mode::GaveUp
}

/// To be asked before a wait, while nothing was changed yet: true in non-blocking mode, where the
/// caller must return instead of waiting.
#[must_use = "the caller must not wait if this is true"]
pub fn gives_up() -> bool {
    let gives_up = is_non_blocking();
    if MODE.get() == Mode::NonBlocking {
        MODE.set(Mode::GaveUp);
    }
    gives_up
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_marked_thread_that_is_about_to_wait_panics_and_others_do_not() {
        assert_may_block("nothing");
        let caught = catch_unwind(|| during("worker", || assert_may_block("a flush")));
        let told = *caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(told, "a worker must not wait for a flush");
        // The mark ended with the panic.
        assert_may_block("nothing");
        let marked = std::thread::spawn(|| {
            mark("worker");
            assert_may_block("a flush");
        });
        assert!(marked.join().is_err());
    }

    #[test]
    fn a_marked_thread_takes_a_lock_in_non_blocking_mode_or_to_end_a_change() {
        let lock = || assert_lock_allowed("a lock");
        let wait = || assert_committed("a lock");
        lock();
        wait();
        during("worker", || {
            let refused = |take: fn()| catch_unwind(take).is_err();
            assert!(refused(|| assert_lock_allowed("a lock")));
            assert!(refused(|| assert_committed("a lock")));
            without_waiting(lock);
            assert!(refused(|| {
                let _ = without_waiting(|| assert_committed("a lock"));
            }));
            let changed = without_waiting(|| {
                assert!(begin_change());
                lock();
                wait();
            });
            assert!(changed.is_some());
            to_the_end(|| {
                lock();
                wait();
            });
        });
    }

    #[test]
    fn an_operation_that_would_wait_gives_up_and_the_mode_ends_with_it() {
        assert_eq!(without_waiting(|| 7), Some(7));
        assert!(!gives_up());
        assert_eq!(without_waiting(gives_up), None);
        assert!(!is_non_blocking());
        let committed = without_waiting(|| {
            assert!(begin_change());
            gives_up()
        });
        assert_eq!(committed, Some(false));
        let too_late = without_waiting(|| assert!(gives_up() && !begin_change()));
        assert_eq!(too_late, None);
        // What must be ended is, and the operation is repeated all the same.
        let ended = without_waiting(|| {
            assert!(gives_up());
            assert!(to_the_end(|| begin_change() && !gives_up()));
        });
        assert_eq!(ended, None);
        assert!(catch_unwind(|| without_waiting(|| panic!("broken"))).is_err());
        assert!(!is_non_blocking());
    }
}
