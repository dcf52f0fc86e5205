//! Work on a thread that may block, if one is free in time.
//!
//! Decides what happens to work that no thread has begun when the wait is over: it is never
//! begun, and the caller is told at once. tokio's `abort` does not do this: work that waits in
//! the queue of its pool stays there until a thread takes it out, and a caller that awaits it
//! waits as long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Undone {
    /// No thread was free in time; nothing was done.
    NoThread,
    Panicked,
}

/// Does `work` on a thread that may block. Work that has begun within `wait` is waited for.
pub async fn on_a_thread<T: Send + 'static>(
    wait: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Undone> {
    // Taken by the thread that begins the work, or by the caller that gives it up.
    let taken = Arc::new(AtomicBool::new(false));
    let mut task = spawn_blocking({
        let taken = Arc::clone(&taken);
        move || (!taken.swap(true, Ordering::AcqRel)).then(work)
    });
    let done = match timeout(wait, &mut task).await {
        Ok(done) => done,
        Err(_) if !taken.swap(true, Ordering::AcqRel) => return Err(Undone::NoThread),
        Err(_) => task.await,
    };
    match done {
        Ok(done) => done.ok_or(Undone::NoThread),
        Err(_) => Err(Undone::Panicked),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn work_that_finds_no_thread_is_never_begun_and_work_that_has_begun_is_waited_for() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let long = runtime.spawn(on_a_thread(SHORT, move || {
            begun.send(()).unwrap();
            held.recv().unwrap();
            7
        }));
        has_begun.recv().unwrap();
        let (started, was_started) = mpsc::channel::<()>();
        let second = runtime.block_on(on_a_thread(SHORT, move || started.send(()).is_ok()));
        assert_eq!(second, Err(Undone::NoThread), "while the only thread is busy");
        release.send(()).unwrap();
        assert_eq!(runtime.block_on(long).unwrap(), Ok(7), "longer than the wait");
        // The pool takes the second out of its queue, and drops it.
        assert!(was_started.recv().is_err(), "it was begun after its caller gave it up");
    }

    #[test]
    fn a_panic_is_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let done = runtime.block_on(on_a_thread(Duration::from_mins(1), || panic!("of a test")));
        assert_eq!(done, Err::<(), _>(Undone::Panicked));
    }
}
