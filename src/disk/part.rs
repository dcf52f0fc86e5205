//! The contract of a part of a server's data, so that all parts are saved and replaced together.
//!
//! A part is the data of one service of one account. Decides which steps a save and a replacement
//! have. In which order the parts are asked, and what the next start does after a kill in between,
//! is decided in `bench/states`; how a part carries a step out is decided by its service.

use std::fmt::Display;
use std::path::Path;

use super::error::StoreError;
use crate::rules::Timestamp;

/// Why a part was not saved or replaced.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct PartError {
    message: String,
    is_full: bool,
}

impl PartError {
    /// The error of a service. `is_full`: the disk is full.
    pub fn new(error: &impl Display, is_full: bool) -> Self {
        Self { message: error.to_string(), is_full }
    }

    /// True if the disk is full.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

impl From<StoreError> for PartError {
    fn from(error: StoreError) -> Self {
        Self::new(&error, matches!(error, StoreError::NoSpace))
    }
}

/// The data that replaces the data of a part.
#[derive(Clone, Copy, Debug)]
pub struct NextData<'a> {
    /// The folder of the part's account in a saved state; `None` leaves the part empty.
    pub saved: Option<&'a Path>,
    /// A folder of the part's account for this replacement, which may not exist yet. Its content
    /// is removed in the background afterwards.
    pub scrap: &'a Path,
    /// The time that the clock will show.
    pub now: Timestamp,
}

/// The data of one service of one account.
pub trait Part {
    /// Refuses a saved state that is damaged, as far as that can be told from its small files.
    fn check(&self, saved: &Path) -> Result<(), PartError> {
        let _ = saved;
        Ok(())
    }

    /// Does what takes long. Clients are served meanwhile.
    fn stage(&self, next: &NextData<'_>) -> Result<(), PartError> {
        let _ = next;
        Ok(())
    }

    /// Ends the use of the data: requests wait, or are refused, until the value is dropped.
    fn hold(&self) -> Result<Box<dyn HeldPart + '_>, PartError>;

    /// Called after a replacement, when no part is held any more.
    fn replaced(&self) {}

    /// Prepares to save the data in `folder`, that of the part's account in a state.
    fn save(&self, folder: &Path) -> Result<Box<dyn SavingPart + '_>, PartError>;
}

/// A part that is held, in the order of its steps. Dropped before [`HeldPart::end`], the old data
/// is served again.
pub trait HeldPart {
    /// Does all that can fail and leaves the old data untouched.
    fn prepare(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        let _ = next;
        Ok(())
    }

    /// The old data is not served again, whatever happens.
    fn end(&mut self) {}

    /// Replaces the data on the disk.
    fn replace(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        let _ = next;
        Ok(())
    }

    /// Has the service use the new data. By now all parts are replaced and the clock is set.
    fn resume(&mut self, next: &NextData<'_>) -> Result<(), PartError>;
}

/// A part that is being saved, in the order of its steps.
pub trait SavingPart {
    /// The data of this moment is saved: changes wait until [`SavingPart::release`]. By default the
    /// data is saved while it changes.
    fn begin(&mut self) -> Result<(), PartError> {
        Ok(())
    }

    fn release(&mut self) {}

    /// Saves the data. Returns the paths in the folder that a restore needs.
    fn finish(self: Box<Self>) -> Result<Vec<String>, PartError>;
}
