//! Looking into the table: who has what open, and what stands in the way of a name.
//!
//! Takes part in no rule and changes nothing. Each file is looked at under its own lock, one
//! after the other: the whole is no picture of a single moment.

use super::error::Result;
use super::share::Share;
use crate::core::opens::Open;
use crate::core::ranges::RangeLock;
use crate::core::{Access, HandleId, Owner, ShareMode, SharePath, Timestamp};
use crate::store::Kind;

/// One open, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenOpen {
    /// Its identity.
    pub id: HandleId,
    /// The name it was opened by, as it is now.
    pub path: SharePath,
    /// What it may do.
    pub access: Access,
    /// What it tolerates.
    pub share: ShareMode,
    /// It marks the name when it closes.
    pub delete_on_close: bool,
    /// The name is marked.
    pub delete_pending: bool,
    /// Who holds it.
    pub owner: Owner,
    /// Since when.
    pub since: Timestamp,
}

/// All that could stand in the way of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct SeenFile {
    /// As spelled on disk.
    pub path: SharePath,
    /// It is a directory.
    pub directory: bool,
    /// It has the read-only attribute.
    pub read_only: bool,
    /// The name is marked for deletion.
    pub delete_pending: bool,
    /// A lease keeps writers and deleters out.
    pub leased: bool,
    /// Its opens.
    pub opens: Vec<SeenOpen>,
    /// Its byte-range locks.
    pub locks: Vec<RangeLock>,
    /// How many opens there are below it, if it is a directory.
    pub opens_below: usize,
}

impl Share {
    /// The opens of a name's file, or with `recursive` of all below it too, by identity.
    pub fn seen_opens(&self, path: &SharePath, recursive: bool) -> Result<Vec<SeenOpen>> {
        let found = self.lookup(path)?;
        let mut seen = Vec::new();
        for cell in self.table.cells() {
            let latched = cell.latch();
            for (_, open, path) in latched.state.opens() {
                if cell.id == found.stat.id || recursive && path.is_below(&found.path) {
                    seen.push(seen_open(open, path, latched.state.is_pending(open)));
                }
            }
        }
        seen.sort_unstable_by_key(|open| open.id);
        Ok(seen)
    }

    /// What could stand in the way of a name.
    pub fn see(&self, path: &SharePath) -> Result<SeenFile> {
        let found = self.lookup(path)?;
        let directory = found.stat.kind == Kind::Directory;
        let mut seen = SeenFile {
            directory,
            read_only: self.is_read_only(&found.path, found.stat.id)?,
            delete_pending: false,
            leased: false,
            opens: self.seen_opens(&found.path, false)?,
            locks: Vec::new(),
            opens_below: 0,
            path: found.path,
        };
        if let Some(cell) = self.table.get(found.stat.id) {
            let latched = cell.latch();
            seen.delete_pending = latched.state.pending_holder(&seen.path).is_some();
            seen.leased = matches!(latched.state.lease(), crate::core::FileLease::Leased(_));
            seen.locks = latched.state.locks().copied().collect();
        }
        if directory {
            let all = self.seen_opens(&seen.path, true)?.len();
            // Saturating: opens come and go between the two looks.
            seen.opens_below = all.saturating_sub(seen.opens.len());
        }
        Ok(seen)
    }
}

fn seen_open(open: &Open, path: &SharePath, delete_pending: bool) -> SeenOpen {
    SeenOpen {
        id: open.id,
        path: path.clone(),
        access: open.access(),
        share: open.share,
        delete_on_close: open.delete_on_close,
        delete_pending,
        owner: open.owner.clone(),
        since: open.since,
    }
}
