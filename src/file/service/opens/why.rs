//! Lists what could refuse the next request on a file, with the holder of each obstacle.

use std::collections::HashMap;

use super::super::error::Result;
use super::super::share::Share;
use super::handles::{ListedHandle, describe};
use crate::file::rules::ranges::RangeLock;
use crate::file::rules::{Attributes, SharePath};
use crate::file::store::share::CopyState;
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::FileLease;

/// One thing that could refuse a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// A name of the file is marked for deletion.
    DeletePending(SharePath),
    /// The file is leased, or a lease of it was broken.
    Lease(FileLease),
    /// A copy to the file is under way.
    Copy(CopyState),
    /// The file has the read-only attribute.
    ReadOnly,
    /// An open of the file.
    Open(ListedHandle),
    /// A byte-range lock on the file.
    Lock(RangeLock),
}

impl Share {
    /// The obstacles on the file of `path`, in the order of the checks (docs/semantics.md, "Order
    /// of checks"). Empty if nothing could refuse a request.
    pub fn why(&self, path: &SharePath) -> Result<Vec<Obstacle>> {
        let _names = self.names()?;
        let found = self.disk().lookup(path)?;
        let record = self.record(&found.path, found.stat.id)?;
        let read_only = record.attributes.unwrap_or_default().contains(Attributes::READ_ONLY);
        let copy = record.copy.filter(|copy| copy.status == CopyStatus::Pending);
        let mut obstacles = Vec::new();
        let mut opens = Vec::new();
        let mut locks = Vec::new();
        if let Some(cell) = self.table().get(found.stat.id) {
            let latched = cell.latch();
            let state = &latched.state;
            let pending = state.names().filter(|(_, pending)| *pending);
            obstacles.extend(pending.map(|(path, _)| Obstacle::DeletePending(path.clone())));
            if state.lease() != FileLease::default() {
                obstacles.push(Obstacle::Lease(state.lease()));
            }
            opens.extend(
                state
                    .opens()
                    .map(|(_, open, path)| describe(cell.id, (open, path), state.is_pending(open))),
            );
            locks.extend(state.locks().copied());
        }
        obstacles.extend(copy.map(Obstacle::Copy));
        obstacles.extend(read_only.then_some(Obstacle::ReadOnly));
        let mut parents = HashMap::new();
        for mut open in opens {
            // Most opens of a file came by the same name.
            open.parent = *parents
                .entry(open.path.clone())
                .or_insert_with_key(|path| self.parent_id(path).unwrap_or_default());
            obstacles.push(Obstacle::Open(open));
        }
        obstacles.extend(locks.into_iter().map(Obstacle::Lock));
        Ok(obstacles)
    }
}
