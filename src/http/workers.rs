//! The threads that serve connections, each with a loop of its own.
//!
//! Decides which thread takes a connection: the one with the fewest. The connection stays there, so
//! that an ordinary request wakes no other thread. Long work runs on further threads, of which each
//! event loop has its share; which requests those are is decided in [`crate::http::frame::handle`].

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::limits::Limits;
use crate::sync::front_end;

/// How long a thread that may block is kept without work: as long as the server runs.
const KEPT: Duration = Duration::from_secs(u32::MAX as u64);

/// All of them. They end when dropped.
pub struct Workers(Vec<Worker>);

struct Worker {
    /// Held by each of its connections too: so they are counted.
    counted: Arc<()>,
    tasks: Handle,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Workers {
    pub fn start(limits: &Limits) -> io::Result<Self> {
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
    fn start(limits: &Limits, count: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads((limits.blocking / count).max(1))
            .thread_keep_alive(KEPT)
            .thread_name("latchfs-rest")
            .enable_all()
            .build()?;
        // With one thread at least, work waits for it where the system has no other to give.
        // Without any, the runtime would panic.
        let first = catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(|| ())));
        first.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        let tasks = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let stop_wait = limits.stop_wait;
        let work = move |runtime: Runtime| {
            front_end::mark("REST event loop");
            // An error says that the sender is gone, which is the same wish.
            let _ = runtime.block_on(stopped);
            // What still blocks is left to the end of the process.
            runtime.shutdown_timeout(stop_wait);
        };
        let thread = thread::Builder::new().name("latchfs-rest".into());
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
                log::error!("a thread of the REST listener did not end well");
            }
        }
    }
}
