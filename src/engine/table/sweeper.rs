//! Removes the entities of deleted tables, in slices, on a thread of its own.
//!
//! Decides how much one transaction removes, so that writers never wait long. The thread ends
//! with the service; what is left goes after the next start.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::TableResult;
use crate::engine::bell::Bell;
use crate::store::db::DbError;
use crate::store::table::TableStore;

/// Entities that one transaction removes.
const SLICE: usize = 500;
/// The time after which a slice that failed is tried again, such as on a full disk.
const RETRY: Duration = Duration::from_mins(1);
/// The longest sleep when nothing is left. The bell ends it earlier.
const IDLE: Duration = Duration::from_hours(24);

pub(super) struct Sweeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Starts the thread. It looks at once, since a killed predecessor may have left something,
    /// and whenever `bell` rings.
    pub(super) fn start(store: &Arc<TableStore>, bell: &Arc<Bell>) -> TableResult<Self> {
        let store = Arc::downgrade(store);
        let rung = Arc::clone(bell);
        let thread = std::thread::Builder::new()
            .name("table-sweeper".into())
            .spawn(move || run(&rung, &store))
            .map_err(|error| DbError::Io(format!("cannot start a thread: {error}")))?;
        Ok(Self { bell: Arc::clone(bell), thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.bell.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged where it happened.
            let _ = thread.join();
        }
    }
}

fn run(bell: &Bell, store: &Weak<TableStore>) {
    let mut sleep = Duration::ZERO;
    while bell.wait(sleep) {
        let Some(store) = store.upgrade() else { return };
        sleep = match store.write(|tx| tx.sweep_deleted(SLICE)) {
            Ok(true) => Duration::ZERO,
            Ok(false) => IDLE,
            Err(error) => {
                log::warn!("entities of a deleted table could not be removed: {error}");
                RETRY
            }
        };
    }
}
