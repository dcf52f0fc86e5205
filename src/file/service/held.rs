//! Lists what is held now: byte-range locks, delete-pending files, leases.
//!
//! For people and the page. Nothing is kept up to date for this: a report takes one file's lock at
//! a time. How much is held in all is counted in [`super::tally`].

use super::error::Result;
use super::opens::ListedHandle;
use super::opens::handles::describe;
use super::share::Share;
use crate::file::rules::SharePath;
use crate::file::rules::ranges::RangeLock;
use crate::rules::Owner;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldLock {
    /// The file, by the name that its holder opened.
    pub path: SharePath,
    pub lock: RangeLock,
    pub owner: Owner,
}

/// A name that is delete pending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingName {
    pub path: SharePath,
    /// The handles that keep it.
    pub handles: Vec<ListedHandle>,
}

impl Share {
    /// All byte-range locks, or those of one file, by path and first byte.
    pub fn held_locks(&self, path: Option<&SharePath>) -> Result<Vec<HeldLock>> {
        let _names = self.names()?;
        let cells = match path {
            Some(path) => self.table().get(self.disk().lookup(path)?.stat.id).into_iter().collect(),
            None => self.table().cells(),
        };
        let mut locks = Vec::new();
        for cell in cells {
            let latched = cell.latch();
            let state = &latched.state;
            for lock in state.locks() {
                let open = state.opens().find(|(_, open, _)| open.id == lock.handle);
                locks.extend(open.map(|(_, open, path)| HeldLock {
                    path: path.clone(),
                    lock: *lock,
                    owner: open.owner.clone(),
                }));
            }
        }
        locks.sort_by(|one, other| {
            let place = |held: &HeldLock| (held.lock.range.start(), held.lock.handle);
            one.path.as_str().cmp(other.path.as_str()).then(place(one).cmp(&place(other)))
        });
        Ok(locks)
    }

    /// The names that are delete pending, with the handles that keep them.
    pub fn pending_names(&self) -> Result<Vec<PendingName>> {
        let _names = self.names()?;
        let mut pending = Vec::new();
        for cell in self.table().cells() {
            let latched = cell.latch();
            let state = &latched.state;
            for (path, _) in state.names().filter(|(_, pending)| *pending) {
                let opens = state.opens().filter(|(_, _, opened)| *opened == path);
                let handles =
                    opens.map(|(_, open, path)| describe(cell.id, (open, path), true)).collect();
                pending.push(PendingName { path: path.clone(), handles });
            }
        }
        pending.sort_by(|one, other| one.path.as_str().cmp(other.path.as_str()));
        Ok(pending)
    }
}
