//! Removes expired messages and the rows of cleared and deleted queues, in the background.
//!
//! Decides when and how much at a time: small transactions, so that a request waits a few
//! milliseconds for the writer at most. No answer depends on it: an expired or dropped message is
//! invisible before its row is gone.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::error::QueueResult;
use super::memory::Memory;
use crate::engine::bell::Bell;
use crate::engine::clock::Clock;
use crate::store::db::DbError;
use crate::store::queue::{QueueRows, QueueStore};

/// Rows that one transaction of the sweeper removes.
const BATCH: usize = 256;
/// The longest sleep. The clock may be one that jumps, so it is looked at now and then.
const SLEEP_MAX: Duration = Duration::from_mins(1);
/// The shortest sleep after an error or before an expiry.
const SLEEP_MIN: Duration = Duration::from_millis(100);

/// The sweeper's thread. It ends when this is dropped.
pub(super) struct Sweeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Starts the thread. It looks when the bell of `memory` rings.
    pub fn start(
        store: Arc<QueueStore>,
        memory: Arc<Memory>,
        clock: Arc<dyn Clock>,
    ) -> QueueResult<Self> {
        let bell = Arc::clone(&memory.bell);
        let thread = thread::Builder::new()
            .name("queue-sweeper".to_owned())
            .spawn(move || run(&store, &memory, &clock))
            .map_err(|error| DbError::Io(format!("starting the sweeper: {error}")))?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.bell.end();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the sweeper of a queue service panicked");
        }
    }
}

fn run(store: &QueueStore, memory: &Arc<Memory>, clock: &Arc<dyn Clock>) {
    let mut sleep = Duration::ZERO;
    while memory.bell.wait(sleep) {
        sleep = sweep_once(store, memory, clock).unwrap_or_else(|error| {
            log::warn!("sweeping expired messages: {error}");
            SLEEP_MAX
        });
    }
}

/// One small transaction, if there is anything to remove. Says how long to sleep then.
fn sweep_once(
    store: &QueueStore,
    memory: &Arc<Memory>,
    clock: &Arc<dyn Clock>,
) -> QueueResult<Duration> {
    let now = memory.moment_of_look(clock.now());
    let look = |rows: &QueueRows<'_>| Ok::<_, DbError>((rows.has_gone()?, rows.next_expiry()?));
    let (gone, expiry) = store.read_waiting(look)?;
    let expired = expiry.is_some_and(|expiry| expiry <= now);
    if gone || expired {
        let (memory, clock) = (Arc::clone(memory), Arc::clone(clock));
        store.write_waiting(move |rows: &QueueRows<'_>| {
            // The clock may have been set back, with other messages, before the writer gets here.
            let now = memory.moment_of_look(clock.now());
            let swept = rows.sweep_expired(now, BATCH)?;
            rows.sweep_gone(BATCH.saturating_sub(swept).max(1))
        })?;
        return Ok(Duration::ZERO);
    }
    let until = expiry.map(|expiry| expiry.timestamp().since(now.timestamp()));
    Ok(until.map_or(SLEEP_MAX, |until| until.clamp(SLEEP_MIN, SLEEP_MAX)))
}
