//! Recent changes of blobs and containers, and what is known of one blob.
//!
//! The last writer of a blob is in its row and outlives a restart; older changes are in memory
//! only, as many as [`crate::journal::HISTORY_MAX`].

use super::access::BlobAt;
use super::change::{BlobRow, BlobView};
use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::BlobState;
use crate::blob::store::StateKey;
use crate::rules::{Etag, Timestamp, Writer};

/// A change of a blob or a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedBlob {
    pub container: String,
    /// The blob; `None` if the container as a whole was changed.
    pub name: Option<String>,
    /// The `ETag` that the object has since; `None` if the change did not move it.
    pub etag: Option<Etag>,
    pub by: Writer,
}

/// The state of a blob and its latest changes, for `latchfs why`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobExplanation {
    /// Its record; `None` if there is no such blob.
    pub state: Option<BlobState>,
    /// How many snapshots and older versions it has.
    pub older: usize,
    /// Remembered changes, the latest first.
    pub changes: Vec<ChangedBlob>,
}

impl BlobService {
    /// Reports the state of a blob and its latest changes. May wait; not for an event loop.
    pub fn why(&self, now: Timestamp, at: &BlobAt) -> BlobResult<BlobExplanation> {
        let (state, older) = self.store.read::<_, BlobError>(|tx| {
            let look = BlobView { tx, memory: &self.memory, now };
            let place = look.place(at)?;
            let states: Vec<BlobRow> = tx.states(place.container, &at.name)?;
            let older =
                |row: &&BlobRow| matches!(row.key, StateKey::Snapshot(_) | StateKey::Version(_));
            Ok((place.blob().map(|row| row.record.clone()), states.iter().filter(older).count()))
        })?;
        let changes = self.changes(|change| {
            change.container == at.container && change.name.as_ref() == Some(&at.name)
        });
        Ok(BlobExplanation { state, older, changes })
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn changes(&self, wanted: impl Fn(&ChangedBlob) -> bool) -> Vec<ChangedBlob> {
        self.memory.history.latest(wanted)
    }
}
