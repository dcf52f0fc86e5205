//! All blobs of an account at once: saved, and replaced by a reset or a restore.
//!
//! Decides what the service forgets with its blobs. How rows and content are saved and replaced is
//! decided in [`crate::blob::store`]; when, in `bench/states`.

use std::path::Path;
use std::sync::Arc;

use super::{BlobError, BlobService, fetching};
use crate::blob::store::{HeldBlobs, SavedBlobs};
use crate::clock::TimeSource;
use crate::db::DbError;
use crate::disk::part::{HeldPart, NextData, Part, PartError, SavingPart};

/// All blobs of an account.
pub(crate) struct BlobsPart {
    pub service: Arc<BlobService>,
    pub clock: Arc<dyn TimeSource>,
}

struct ReplacedBlobs<'a> {
    part: &'a BlobsPart,
    held: HeldBlobs<'a>,
}

struct SavingBlobs<'a> {
    part: &'a BlobsPart,
    saved: SavedBlobs<'a>,
    held: Option<HeldBlobs<'a>>,
}

impl BlobService {
    /// An error if the files of the service have lost their names since they were opened.
    pub(crate) fn check_place(&self) -> Result<(), DbError> {
        self.store.check_place()
    }
}

impl Part for BlobsPart {
    fn hold(&self) -> Result<Box<dyn HeldPart + '_>, PartError> {
        Ok(Box::new(ReplacedBlobs { part: self, held: self.service.store.hold() }))
    }

    fn save(&self, folder: &Path) -> Result<Box<dyn SavingPart + '_>, PartError> {
        let saved = self.service.store.save(folder)?;
        Ok(Box::new(SavingBlobs { part: self, saved, held: None }))
    }
}

impl HeldPart for ReplacedBlobs<'_> {
    fn prepare(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        match next.saved.filter(|folder| folder.join("blob.db").exists()) {
            Some(folder) => {
                self.held.restore(folder)?;
                // Here, so that the copies of requests that wait for the writer do not fail.
                fetching::fail_restored(&self.held, next.now)?;
            }
            None => self.held.empty()?,
        }
        Ok(self.held.flush()?)
    }

    fn replace(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
        Ok(self.held.commit()?)
    }

    fn resume(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
        let memory = &self.part.service.memory;
        memory.present.set_back(&self.part.clock);
        memory.history.clear();
        Ok(())
    }
}

impl SavingPart for SavingBlobs<'_> {
    fn begin(&mut self) -> Result<(), PartError> {
        self.held = Some(self.part.service.store.hold());
        Ok(self.saved.begin()?)
    }

    fn release(&mut self) {
        self.held = None;
    }

    fn finish(self: Box<Self>) -> Result<Vec<String>, PartError> {
        self.saved.finish()?;
        Ok(vec!["blob.db".to_owned()])
    }
}

impl From<BlobError> for PartError {
    fn from(error: BlobError) -> Self {
        Self::new(&error, matches!(error, BlobError::Store(DbError::Full { .. })))
    }
}
