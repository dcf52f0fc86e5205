//! Removes the entities of deleted tables, in the background.
//!
//! Decides what one step removes. [`crate::db::sweeper`] decides when a step is taken.

use std::sync::Arc;
use std::time::Duration;

use super::TableResult;
use crate::db::DbError;
use crate::db::sweeper::Sweeper;
use crate::rules::service::ServiceKind;
use crate::sync::bell::Bell;
use crate::table::store::TableStore;

/// Entities that one transaction removes.
const SLICE: usize = 500;
/// The longest sleep when nothing is left. The bell ends it earlier.
const IDLE: Duration = Duration::from_hours(24);

/// Starts the sweeper of a Table service. It looks when `bell` rings.
pub(super) fn start(store: Arc<TableStore>, bell: Arc<Bell>) -> TableResult<Sweeper> {
    let step = move || {
        let is_left = store.delete(|tx| tx.sweep_deleted(SLICE))?;
        Ok::<_, DbError>(if is_left { Duration::ZERO } else { IDLE })
    };
    Ok(Sweeper::start(ServiceKind::Table, bell, step)?)
}
