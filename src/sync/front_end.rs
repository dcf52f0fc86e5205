//! Threads that serve many callers at once: the event loops of the HTTP listeners.
//!
//! Such a thread must never wait for a flush to the disk, a child process, a walk of a directory
//! or a lock that is held over I/O: everyone it serves would wait too. Decides nothing about files.
//! It marks these threads, and panics (in builds with debug assertions, so in every test) where one
//! is about to wait.

use std::cell::Cell;

thread_local! {
    static MARK: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Marks the calling thread for the rest of its life as a front end of this kind.
pub fn mark(kind: &'static str) {
    MARK.set(Some(kind));
}

/// True on a marked thread.
pub fn is_marked() -> bool {
    MARK.get().is_some()
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
}
