//! All that stands on a file: what could refuse the next request, and who is behind it.

use super::error::Result;
use super::handles::{HandleInfo, describe};
use super::share::Share;
use crate::core::lease::FileLease;
use crate::core::ranges::RangeLock;
use crate::core::{Attributes, SharePath};
use crate::store::{CopyState, CopyStatus};

/// One thing that stands on a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// A name of it is marked for deletion.
    DeletePending(SharePath),
    /// It is leased, or a lease of it was broken.
    Lease(FileLease),
    /// A copy to it is under way.
    Copy(CopyState),
    /// It has the read-only attribute.
    ReadOnly,
    /// Somebody has it open.
    Open(HandleInfo),
    /// Somebody has locked bytes of it.
    Lock(RangeLock),
}

impl Share {
    /// What stands on the file behind `path`, in the order in which it is asked about (LOCKING
    /// 2.8). Empty for a file that nothing keeps from anybody.
    pub fn why(&self, path: &SharePath) -> Result<Vec<Standing>> {
        let _names = self.names()?;
        let found = self.dir.lookup(path)?;
        let record = self.record(&found.path, found.stat.id)?;
        let read_only = record.attributes.unwrap_or_default().contains(Attributes::READ_ONLY);
        let copy = record.copy.filter(|copy| copy.status == CopyStatus::Pending);
        let mut standing = Vec::new();
        let mut opens = Vec::new();
        let mut locks = Vec::new();
        if let Some(cell) = self.table.get(found.stat.id) {
            let latched = cell.latch();
            let state = &latched.state;
            let pending = state.names().filter(|(_, pending)| *pending);
            standing.extend(pending.map(|(path, _)| Standing::DeletePending(path.clone())));
            if state.lease() != FileLease::default() {
                standing.push(Standing::Lease(state.lease()));
            }
            opens.extend(
                state
                    .opens()
                    .map(|(_, open, path)| describe(cell.id, (open, path), state.is_pending(open))),
            );
            locks.extend(state.locks().copied());
        }
        standing.extend(copy.map(Standing::Copy));
        standing.extend(read_only.then_some(Standing::ReadOnly));
        for mut open in opens {
            open.parent = self.parent_id(&open.path).unwrap_or_default();
            standing.push(Standing::Open(open));
        }
        standing.extend(locks.into_iter().map(Standing::Lock));
        Ok(standing)
    }
}
