//! Recent changes of blobs and containers, and what is known of one blob.
//!
//! The last writer of a blob is in its row and outlives a restart; older changes are in memory
//! only, in the journal.

use super::access::BlobAt;
use super::change::{BlobRow, BlobView};
use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::BlobState;
use crate::blob::store::StateKey;
use crate::journal::Change;
use crate::rules::Timestamp;
use crate::rules::address::ObjectAddress;

/// The state of a blob and its latest changes, for `latchfs why`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobExplanation {
    /// Its record; `None` if there is no such blob.
    pub state: Option<BlobState>,
    /// How many snapshots and older versions it has.
    pub older: usize,
    /// Remembered changes, the latest first.
    pub changes: Vec<Change>,
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
        let (container, name) = (at.container.clone(), at.name.clone());
        let object = ObjectAddress::Blob { container, name };
        let changes = self.changes(|change| change.object == object);
        Ok(BlobExplanation { state, older, changes })
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn changes(&self, wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        self.memory.history.latest(wanted)
    }
}
