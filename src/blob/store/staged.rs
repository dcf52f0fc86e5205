//! Extents of a long block list, written under a number that no row has yet.
//! The commit of the list is decided in [`super::blocks`].

use std::sync::Arc;

use super::extent::{Extent, ROW_MAX};
use super::extents;
use super::janitor::Chore;
use super::remove::{Doomed, is_doomed, note};
use super::shared::Shared;
use super::types::StateId;
use crate::db::{Database, DbError};

/// Blocks that one transaction writes.
const SLICE: usize = 8 * ROW_MAX;

/// The rows. Dropped without a commit, they are removed; after a kill, the next start removes them.
pub(super) struct Staged {
    id: StateId,
    shared: Option<Arc<Shared>>,
}

impl Staged {
    pub(super) fn write(
        database: &Database,
        shared: Arc<Shared>,
        found: &[Extent],
        ids: &[Vec<u8>],
    ) -> Result<Self, DbError> {
        let id = StateId(shared.new_id());
        database.write(move |conn| note(conn, Doomed::Rows(id.0)))?;
        let staged = Self { id, shared: Some(shared) };
        for (found, ids) in found.chunks(SLICE).zip(ids.chunks(SLICE)) {
            let (found, ids) = (found.to_vec(), ids.to_vec());
            database.write(move |conn| {
                if !is_doomed(conn, Doomed::Rows(id.0))? {
                    // All rows were replaced, those of the slices before too.
                    return Err(DbError::Busy("all blobs were replaced; try again".to_owned()));
                }
                extents::insert_blocks(conn, id, &found, ids.iter().map(Vec::as_slice))
            })?;
        }
        Ok(staged)
    }

    pub(super) fn id(&self) -> StateId {
        self.id
    }

    /// The rows belong to a blob now, or the next start decides.
    pub(super) fn leave(&mut self) {
        self.shared = None;
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.chores.add(Chore::Drop(self.id.0));
        }
    }
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Staged").field(&self.id).finish()
    }
}
