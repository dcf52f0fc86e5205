//! All blobs of an account at once: replaced by a reset or a restore, while no other write runs.
//!
//! Decides what the service forgets with its blobs. The rows are replaced in
//! [`crate::blob::store`]; when, is decided in [`crate::bench::states`].

use std::path::Path;
use std::sync::Arc;

use super::{BlobResult, BlobService, Retention, fetching};
use crate::blob::store::{HeldBlobs, SavedBlobs};
use crate::clock::TimeSource;
use crate::db::DbError;
use crate::rules::Timestamp;

impl BlobService {
    /// Holds the writer: requests that write wait until the value is dropped.
    pub(crate) fn hold(&self) -> HeldBlobs<'_> {
        self.store.hold()
    }

    /// Prepares to save all blobs in `folder`.
    pub(crate) fn save(&self, folder: &Path) -> Result<SavedBlobs<'_>, DbError> {
        self.store.save(folder)
    }

    /// An error if the files of the service have lost their names since they were opened.
    pub(crate) fn check_place(&self) -> Result<(), DbError> {
        self.store.check_place()
    }

    /// Replaces all blobs by those saved in `folder`, in a transaction that waits for
    /// [`HeldBlobs::commit`]. Copies among them whose bytes nobody fetches any more fail there, so
    /// that those of requests that wait for the writer do not.
    pub(crate) fn restore(held: &HeldBlobs<'_>, folder: &Path, now: Timestamp) -> BlobResult<()> {
        held.restore(folder)?;
        fetching::fail_restored(held, now)
    }

    /// The rows were replaced, and the clock may have been set back. To be called while the writer
    /// is held.
    pub(crate) fn replaced(&self, clock: &Arc<dyn TimeSource>, retention: Retention) {
        self.memory.present.set_back(clock);
        self.memory.history.clear();
        self.set_retention(retention);
    }
}
