//! Removes expired messages and the rows of cleared and deleted queues, in the background.
//!
//! Decides what one step removes. [`crate::db::sweeper`] decides when a step is taken.

use std::sync::Arc;
use std::time::Duration;

use super::error::QueueResult;
use super::memory::QueueMemory;
use crate::clock::TimeSource;
use crate::db::DbError;
use crate::db::Store as _;
use crate::db::sweeper::{Sweeper, sleep_until};
use crate::queue::rules::Tick;
use crate::queue::store::{QueueRows, QueueStore};
use crate::rules::service::ServiceKind;

/// Rows that one transaction of the sweeper removes.
const BATCH: usize = 256;

/// Starts the sweeper of a Queue service. It looks when the bell of `memory` rings.
pub(super) fn start(
    store: Arc<QueueStore>,
    memory: Arc<QueueMemory>,
    clock: Arc<dyn TimeSource>,
) -> QueueResult<Sweeper> {
    let bell = Arc::clone(&memory.bell);
    let step = move || sweep_once(&store, &memory, &clock);
    Ok(Sweeper::start(ServiceKind::Queue, bell, step)?)
}

/// One small transaction, if there is anything to remove. Says how long to sleep then.
fn sweep_once(
    store: &QueueStore,
    memory: &Arc<QueueMemory>,
    clock: &Arc<dyn TimeSource>,
) -> QueueResult<Duration> {
    let now = memory.moment_of_look(clock.now());
    let look = |rows: &QueueRows<'_>| Ok::<_, DbError>((rows.has_gone()?, rows.next_expiry()?));
    let (gone, expiry) = store.read(look)?;
    let expired = expiry.is_some_and(|expiry| expiry <= now);
    if gone || expired {
        let (memory, clock) = (Arc::clone(memory), Arc::clone(clock));
        store.delete(move |rows: &QueueRows<'_>| {
            // The clock may have been set back, with other messages, before the writer gets here.
            let now = memory.moment_of_look(clock.now());
            let swept = rows.sweep_expired(now, BATCH)?;
            rows.sweep_gone(BATCH.saturating_sub(swept).max(1))
        })?;
        return Ok(Duration::ZERO);
    }
    Ok(sleep_until(expiry.map(Tick::timestamp), now.timestamp()))
}
