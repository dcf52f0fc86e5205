//! Removes unreachable states in the background: deleted blobs, snapshots, versions and containers
//! whose retention has ended, and blocks that were not committed for a week.
//!
//! Decides when, and how much at a time: small transactions, so that a request waits a few
//! milliseconds for the writer at most. No answer depends on retained states being removed: they
//! are invisible when their time is over.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::BlobResult;
use crate::core::Timestamp;
use crate::core::blob::BlobState;
use crate::engine::clock::Clock;
use crate::store::blob::{BlobStore, StateKey, WriteTx};
use crate::store::db::{DbError, Purpose};
use crate::sync::{Condvar, Mutex};

/// States, containers and uploads that one transaction removes.
const BATCH: usize = 64;
/// Blocks that were not committed are kept this long after the last one was put.
pub(super) const UNCOMMITTED_KEPT: Duration = Duration::from_hours(7 * 24);
/// The longest sleep. The clock may be one that jumps, so it is looked at now and then.
const SLEEP_MAX: Duration = Duration::from_mins(1);
/// The shortest sleep before a retention ends.
const SLEEP_MIN: Duration = Duration::from_millis(100);

const POISON: &str = "nothing panics while the end of the sweeper is held";

/// The sweeper's thread. It ends when this is dropped.
pub(super) struct Sweeper {
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Starts the thread.
    pub fn start(store: Arc<BlobStore>, clock: Arc<dyn Clock>) -> BlobResult<Self> {
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let ends = Arc::clone(&end);
        let thread = thread::Builder::new()
            .name("blob-sweeper".to_owned())
            .spawn(move || run(&store, &clock, &ends))
            .map_err(|error| DbError::Io(format!("starting the sweeper: {error}")))?;
        Ok(Self { end, thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        *self.end.0.lock().expect(POISON) = true;
        self.end.1.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the sweeper of a blob service panicked");
        }
    }
}

fn run(store: &BlobStore, clock: &Arc<dyn Clock>, (over, ends): &(Mutex<bool>, Condvar)) {
    let mut sleep = Duration::ZERO;
    loop {
        let waiting = ends.wait_timeout_while(over.lock().expect(POISON), sleep, |over| !*over);
        if *waiting.expect(POISON).0 {
            return;
        }
        sleep = sweep_once(store, clock).unwrap_or_else(|error| {
            log::warn!("removing blobs whose retention has ended: {error}");
            SLEEP_MAX
        });
    }
}

/// One small transaction, if there is anything to remove. Says how long to sleep then.
pub(super) fn sweep_once(store: &BlobStore, clock: &Arc<dyn Clock>) -> BlobResult<Duration> {
    let now = clock.now();
    let week_ago = before(now);
    let (next, stale) = store.read(|tx| {
        let stale = !tx.stale_uploads(week_ago, 1)?.is_empty();
        Ok::<_, DbError>((tx.next_retention_end()?, stale))
    })?;
    if stale || next.is_some_and(|next| next <= now) {
        let clock = Arc::clone(clock);
        // The clock may have been set back, with other blobs, before the writer gets here.
        store.write_for(Purpose::Delete, move |tx: &WriteTx<'_>| sweep(tx, clock.now()))?;
        return Ok(Duration::ZERO);
    }
    let until = next.map(|next| Duration::from_nanos(next.0.abs_diff(now.0)));
    Ok(until.map_or(SLEEP_MAX, |until| until.clamp(SLEEP_MIN, SLEEP_MAX)))
}

fn sweep(tx: &WriteTx<'_>, now: Timestamp) -> Result<(), DbError> {
    tx.purge(now, BATCH)?;
    for (container, name) in tx.stale_uploads(before(now), BATCH)? {
        tx.drop_blocks(container, &name)?;
        if let Some(row) = tx.state::<BlobState>(container, &name, StateKey::Uncommitted)? {
            tx.remove(row.id)?;
        }
    }
    Ok(())
}

/// Blocks that were put last before this moment are not kept any more.
fn before(now: Timestamp) -> Timestamp {
    let kept = i64::try_from(UNCOMMITTED_KEPT.as_nanos()).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_sub(kept))
}
