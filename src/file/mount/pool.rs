//! Threads for calls that take long by their kind: flushes, allocations and copies. The workers
//! serve everything else.
//!
//! Decides how many calls run and wait at once. Past the bound the worker that took the call from
//! the kernel makes it itself: the callers that follow wait in the kernel's queue.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// The most calls that run at once.
const THREADS_MAX: usize = 8;
/// The most calls that run or wait for a thread.
const CALLS_MAX: usize = 1024;
/// How long a thread without work stays.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The pool of one mount.
#[derive(Debug)]
pub struct Pool {
    /// Its threads; none once the pool is stopped.
    threads: RwLock<Option<Runtime>>,
    /// True once the pool is stopped. Each call has a reference.
    stopped: Arc<AtomicBool>,
}

impl Pool {
    pub fn start() -> io::Result<Self> {
        let mut threads = Builder::new_current_thread();
        threads.thread_name("latchfs-pool").max_blocking_threads(THREADS_MAX);
        let threads = threads.thread_keep_alive(IDLE_MAX).build()?;
        Ok(Self { threads: RwLock::new(Some(threads)), stopped: Arc::default() })
    }

    /// Calls `job` on a thread of the pool, or here if too many wait. Drops it once the pool is
    /// stopped. The reply of a call that panics is dropped, which answers `EIO`.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        if Arc::strong_count(&self.stopped) > CALLS_MAX {
            return job();
        }
        let stopped = Arc::clone(&self.stopped);
        if let Some(threads) = &*self.threads.read().unwrap_or_else(PoisonError::into_inner) {
            threads.spawn_blocking(move || {
                if !stopped.load(Ordering::Acquire) {
                    job();
                }
            });
        }
    }

    /// Drops what waits and what comes; what runs goes on.
    pub fn stop(&self) {
        // The runtime carries out what waits for a busy thread.
        self.stopped.store(true, Ordering::Release);
        let threads = self.threads.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(threads) = threads {
            threads.shutdown_background();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, mpsc};
    use std::thread::{self, ThreadId};

    /// Has a pool run calls that end with the gate, and tell the thread that made them.
    fn blocked(pool: &Pool, calls: usize) -> (mpsc::Sender<()>, mpsc::Receiver<ThreadId>) {
        let (gate, opened) = mpsc::channel::<()>();
        let opened = Arc::new(Mutex::new(opened));
        let (made, makers) = mpsc::channel();
        for _ in 0..calls {
            let (made, opened) = (made.clone(), Arc::clone(&opened));
            pool.run(move || {
                let _ = opened.lock().unwrap().recv();
                made.send(thread::current().id()).unwrap();
            });
        }
        (gate, makers)
    }

    #[test]
    fn a_call_past_the_bound_is_made_by_the_worker_that_took_it() {
        let pool = Pool::start().unwrap();
        let (gate, makers) = blocked(&pool, THREADS_MAX);
        let (made, makers_of_more) = mpsc::channel();
        for _ in THREADS_MAX..=CALLS_MAX {
            let made = made.clone();
            pool.run(move || made.send(thread::current().id()).unwrap());
        }
        let worker = thread::current().id();
        assert_eq!(makers_of_more.try_iter().collect::<Vec<_>>(), [worker]);
        drop((gate, made));
        let long = Duration::from_secs(20);
        for _ in 0..THREADS_MAX {
            assert_ne!(makers.recv_timeout(long).unwrap(), worker);
        }
        for _ in THREADS_MAX..CALLS_MAX {
            assert_ne!(makers_of_more.recv_timeout(long).unwrap(), worker);
        }
    }

    #[test]
    fn a_pool_that_was_stopped_drops_what_waits_and_what_comes() {
        let pool = Pool::start().unwrap();
        // The calls that no thread has taken yet are dropped with those that wait.
        let (gate, makers) = blocked(&pool, 2 * THREADS_MAX);
        pool.stop();
        let (made, late) = mpsc::channel::<()>();
        pool.run(move || made.send(()).unwrap());
        assert!(late.recv().is_err());
        drop(gate);
        assert!(makers.iter().count() <= THREADS_MAX);
    }
}
