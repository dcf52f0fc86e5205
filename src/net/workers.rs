//! The threads of a listener: event loops that serve connections, and for each of them a bounded
//! pool of threads that may block.
//!
//! Decides which event loop takes a connection: the one with the fewest. The connection stays
//! there, so that an ordinary request wakes no other thread. Which requests run on the pool is
//! decided by the face that serves them. Work that no thread of the pool has begun when the
//! wait is over is never begun, and its caller is told at once. tokio's `abort` does not do this:
//! work that waits in the queue of its pool stays there until a thread takes it out, and a caller
//! that awaits it waits as long.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::sync::front_end;

/// How long a thread that may block is kept without work: as long as the server runs.
const KEPT: Duration = Duration::from_secs(u32::MAX as u64);

/// The threads of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerLimits {
    /// The name of the threads.
    pub name: &'static str,
    /// Threads that serve connections.
    pub workers: usize,
    /// Threads for what may take long; a request that finds none waits for one.
    pub blocking: usize,
    /// How long a stop waits for requests under way. Then they are left to the end of the process.
    pub stop_wait: Duration,
}

/// All of them. They end when dropped.
pub struct Workers(Vec<Worker>);

struct Worker {
    /// Held by each of its connections too: so they are counted.
    counted: Arc<()>,
    tasks: Handle,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Workers {
    pub fn start(limits: &WorkerLimits) -> io::Result<Self> {
        let count = limits.workers.max(1);
        (0..count).map(|_| Worker::start(limits, count)).collect::<io::Result<_>>().map(Self)
    }

    /// Serves a connection, whose socket must not belong to another loop yet.
    pub fn serve(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let fewest = self.0.iter().min_by_key(|worker| Arc::strong_count(&worker.counted));
        let worker = fewest.expect("there is at least one");
        let counted = Arc::clone(&worker.counted);
        worker.tasks.spawn(async move {
            connection.await;
            drop(counted);
        });
    }
}

impl Worker {
    fn start(limits: &WorkerLimits, count: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads((limits.blocking / count).max(1))
            .thread_keep_alive(KEPT)
            .thread_name(limits.name)
            .enable_all()
            .build()?;
        // With one thread at least, work waits for it where the system has no other to give.
        // Without any, the runtime would panic.
        let first = catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(|| ())));
        first.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        let tasks = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let WorkerLimits { name, stop_wait, .. } = *limits;
        let work = move |runtime: Runtime| {
            front_end::mark("event loop");
            // An error says that the sender is gone, which is the same wish.
            let _ = runtime.block_on(stopped);
            // What still blocks is left to the end of the process.
            runtime.shutdown_timeout(stop_wait);
        };
        let thread = thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || work(runtime))?;
        Ok(Self { counted: Arc::default(), tasks, running: Some((stop, thread)) })
    }
}

impl Drop for Workers {
    /// All are told before the first is waited for.
    fn drop(&mut self) {
        let ending = self.0.iter_mut().filter_map(|worker| worker.running.take());
        let threads: Vec<_> = ending
            .map(|(stop, thread)| {
                // It may have ended by itself.
                let _ = stop.send(());
                thread
            })
            .collect();
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread of a listener did not end well");
            }
        }
    }
}

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
