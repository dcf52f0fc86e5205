//! Threads on which a request may wait for the disk, so that no FUSE worker does.
//!
//! Decides how many requests wait and run at once; past the bound a request is answered with
//! `EINTR`, which programs take as "again". Callers decide what runs here: flushes, allocations,
//! copies, and requests that would have waited in non-blocking mode.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// The most requests that run at once.
const THREADS_MAX: usize = 8;

/// The most requests that wait for a thread.
pub const WAITING_MAX: usize = 1024;

/// How long a thread without work stays.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Whether a request may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// On a thread that may wait.
    Run,
    /// On the submitter's thread, which may not wait: the request must be refused.
    Refused,
}

type Job = Box<dyn FnOnce(Turn) + Send>;

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
    /// Calls `job` once: on a thread of the pool, or at once if too many wait or no thread can be
    /// had.
    pub fn submit(self: &Arc<Self>, job: impl FnOnce(Turn) + Send + 'static) {
        let mut inside = self.lock();
        if inside.stopped || inside.waiting.len() >= WAITING_MAX || !self.has_thread(&mut inside) {
            drop(inside);
            return job(Turn::Refused);
        }
        inside.waiting.push_back(Box::new(job));
        drop(inside);
        self.work.notify_one();
    }

    /// Refuses what waits and what comes; what runs goes on.
    pub fn stop(&self) {
        let waiting = {
            let mut inside = self.lock();
            inside.stopped = true;
            std::mem::take(&mut inside.waiting)
        };
        self.work.notify_all();
        for job in waiting {
            job(Turn::Refused);
        }
    }

    /// Starts a thread if none is idle; false if there is none at all.
    fn has_thread(self: &Arc<Self>, inside: &mut Inside) -> bool {
        if inside.idle > inside.waiting.len() || inside.threads == THREADS_MAX {
            return true;
        }
        let pool = Arc::clone(self);
        match thread::Builder::new().name("latchfs-pool".into()).spawn(move || pool.run()) {
            Ok(_) => inside.threads += 1,
            Err(error) => log::warn!("no thread for a request that waits: {error}"),
        }
        inside.threads > 0
    }

    fn run(&self) {
        let mut inside = self.lock();
        loop {
            if let Some(job) = inside.waiting.pop_front() {
                drop(inside);
                // A request that panics has no answer but the kernel's own; the next ones have.
                if catch_unwind(AssertUnwindSafe(|| job(Turn::Run))).is_err() {
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

    #[test]
    fn so_many_requests_wait_and_the_next_is_refused_at_once() {
        let pool = Arc::new(Pool::default());
        let (turns, taken) = mpsc::channel();
        let (gate, opened) = mpsc::channel::<()>();
        let opened = Arc::new(Mutex::new(opened));
        let submit = || {
            let (turns, opened) = (turns.clone(), Arc::clone(&opened));
            pool.submit(move |turn| {
                if turn == Turn::Run {
                    // Ends with the gate.
                    let _ = opened.lock().unwrap().recv();
                }
                turns.send(turn).unwrap();
            });
        };
        // Whether a thread has taken its first job yet is its own affair.
        for _ in 0..THREADS_MAX + WAITING_MAX {
            submit();
        }
        assert_eq!(taken.try_iter().filter(|turn| *turn == Turn::Run).count(), 0);
        for _ in 0..=THREADS_MAX {
            submit();
        }
        assert_eq!(taken.try_recv(), Ok(Turn::Refused));
        drop(gate);
        drop(turns);
        let runs = || taken.recv_timeout(Duration::from_secs(20));
        for _ in 0..WAITING_MAX {
            runs().unwrap();
        }
    }

    #[test]
    fn a_pool_that_was_stopped_refuses_what_waits_and_what_comes() {
        let pool = Arc::new(Pool::default());
        let (gate, opened) = mpsc::channel::<()>();
        let opened = Arc::new(Mutex::new(opened));
        let (turns, taken) = mpsc::channel();
        for _ in 0..THREADS_MAX {
            let (opened, runs) = (Arc::clone(&opened), turns.clone());
            pool.submit(move |turn| {
                runs.send(turn).unwrap();
                drop(runs);
                if turn == Turn::Run {
                    // Ends with the gate.
                    let _ = opened.lock().unwrap().recv();
                }
            });
        }
        for _ in 0..THREADS_MAX {
            assert_eq!(taken.recv(), Ok(Turn::Run));
        }
        let waits = turns.clone();
        pool.submit(move |turn| waits.send(turn).unwrap());
        pool.stop();
        pool.submit(move |turn| turns.send(turn).unwrap());
        drop(gate);
        assert_eq!(taken.iter().collect::<Vec<_>>(), [Turn::Refused; 2]);
    }
}
