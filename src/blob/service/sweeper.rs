//! Removes unreachable states in the background: deleted blobs, snapshots, versions and containers
//! whose retention has ended, and blocks that were not committed for a week.
//!
//! Decides what one step removes. [`crate::db::sweeper`] decides when a step is taken.

use std::sync::Arc;
use std::time::Duration;

use super::BlobResult;
use crate::blob::rules::BlobState;
use crate::blob::store::{BlobStore, StateKey, WriteTx};
use crate::clock::TimeSource;
use crate::db::sweeper::{Sweeper, sleep_until};
use crate::db::{DbError, Purpose};
use crate::rules::Timestamp;
use crate::rules::service::ServiceKind;

/// States, containers and uploads that one transaction removes.
const BATCH: usize = 64;
/// Blocks that were not committed are kept this long after the last one was put.
pub(super) const UNCOMMITTED_KEPT: Duration = Duration::from_hours(7 * 24);

/// Starts the sweeper of a Blob service.
pub(super) fn start(store: Arc<BlobStore>, clock: Arc<dyn TimeSource>) -> BlobResult<Sweeper> {
    let step = move || sweep_once(&store, &clock);
    Ok(Sweeper::start(ServiceKind::Blob, Arc::default(), step)?)
}

/// One small transaction, if there is anything to remove. Says how long to sleep then.
pub(super) fn sweep_once(store: &BlobStore, clock: &Arc<dyn TimeSource>) -> BlobResult<Duration> {
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
    Ok(sleep_until(next, now))
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
