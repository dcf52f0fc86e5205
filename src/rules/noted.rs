//! How what a request reads and changes gets into its row of the journal: operations note it in a
//! value that the request and its transaction share.
//!
//! What is noted is decided in [`super::given`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::given::Given;

/// What a request under way has read and changed.
#[derive(Debug, Default)]
pub struct Noted(Mutex<Given>);

impl Noted {
    pub fn note(&self, note: impl FnOnce(&mut Given)) {
        note(&mut self.given());
    }

    /// How many changes were noted.
    pub fn changes(&self) -> usize {
        self.given().changed.len()
    }

    /// Forgets all changes but the first ones: those of a transaction that begins anew, or failed.
    pub fn keep_changes(&self, first: usize) {
        self.given().changed.truncate(first);
    }

    /// All that was noted.
    pub fn take(&self) -> Given {
        std::mem::take(&mut *self.given())
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
