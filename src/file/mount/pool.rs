//! Threads for calls that take long by their kind: flushes, allocations and copies. The workers
//! serve everything else.
//!
//! Decides how many calls run and wait at once. Past the bound the worker that took the call from
//! the kernel makes it itself: the callers that follow wait in the kernel's queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// The most calls that run at once.
const THREADS_MAX: usize = 8;

/// The most calls that wait for a thread.
const WAITING_MAX: usize = 1024;

/// How long a thread without work stays.
const IDLE_MAX: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inside {
    waiting: VecDeque<Job>,
    threads: usize,
    idle: usize,
    stopped: bool,
}

/// The pool of one mount.
#[derive(Default)]
pub struct Pool {
    inside: Mutex<Inside>,
    work: Condvar,
}

const POISON: &str = "jobs run without the lock of their pool";

impl Pool {
    /// Calls `job` on a thread of the pool, or here if too many wait or no thread can be had. Drops
    /// it once the pool is stopped.
    pub fn run(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut inside = self.lock();
        if inside.stopped {
            return;
        }
        if inside.waiting.len() >= WAITING_MAX || !self.has_thread(&mut inside) {
            drop(inside);
            return job();
        }
        inside.waiting.push_back(Box::new(job));
        drop(inside);
        self.work.notify_one();
    }

    /// Drops what waits and what comes; what runs goes on.
    pub fn stop(&self) {
        let waiting = {
            let mut inside = self.lock();
            inside.stopped = true;
            std::mem::take(&mut inside.waiting)
        };
        self.work.notify_all();
        drop(waiting);
    }

    /// Starts a thread if none is idle; false if there is none at all.
    fn has_thread(self: &Arc<Self>, inside: &mut Inside) -> bool {
        if inside.idle > inside.waiting.len() || inside.threads == THREADS_MAX {
            return true;
        }
        let pool = Arc::clone(self);
        match thread::Builder::new().name("latchfs-pool".into()).spawn(move || pool.work()) {
            Ok(_) => inside.threads += 1,
            Err(error) => log::warn!("no thread for a call that takes long: {error}"),
        }
        inside.threads > 0
    }

    fn work(&self) {
        let mut inside = self.lock();
        loop {
            if let Some(job) = inside.waiting.pop_front() {
                drop(inside);
                // The reply of a call that panics is dropped, which answers `EIO`.
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    log::error!("a request failed: a thread of the pool panicked");
                }
                inside = self.lock();
                continue;
            }
            if inside.stopped {
                break;
            }
            inside.idle += 1;
            let (back, waited) = self.work.wait_timeout(inside, IDLE_MAX).expect(POISON);
            inside = back;
            inside.idle -= 1;
            if waited.timed_out() && inside.waiting.is_empty() {
                break;
            }
        }
        inside.threads -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect(POISON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    /// Has a pool run calls that end with the gate, and tell the thread that made them.
    fn blocked(pool: &Arc<Pool>, calls: usize) -> (mpsc::Sender<()>, mpsc::Receiver<ThreadId>) {
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
        let pool = Arc::new(Pool::default());
        let (gate, makers) = blocked(&pool, THREADS_MAX);
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while !pool.lock().waiting.is_empty() {
            assert!(std::time::Instant::now() < end, "each has a thread");
            thread::yield_now();
        }
        let (made, makers_of_more) = mpsc::channel();
        for _ in 0..=WAITING_MAX {
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
        for _ in 0..WAITING_MAX {
            assert_ne!(makers_of_more.recv_timeout(long).unwrap(), worker);
        }
    }

    #[test]
    fn a_pool_that_was_stopped_drops_what_waits_and_what_comes() {
        let pool = Arc::new(Pool::default());
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
