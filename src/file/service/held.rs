//! What is held now: byte-range locks, delete-pending names, leases; how much in all, for metrics;
//! and what could refuse the next request on a file.
//!
//! Nothing is kept up to date for this: a report takes one file's lock at a time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::error::Result;
use super::opens::handles::{ListedHandle, describe};
use super::share::Share;
use super::shares::{FileService, FileServiceResult, ListOptions};
use crate::file::rules::ranges::RangeLock;
use crate::file::rules::{Attributes, SharePath};
use crate::file::store::share::CopyState;
use crate::rules::Owner;
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::{FileLease, LeaseStatus};

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

/// The number of opens, locks, leases and marks in one share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Opens of files and directories.
    pub opens: u64,
    pub locks: u64,
    /// Leases in force: of files, of the share and of its snapshots.
    pub leases: u64,
    /// Names that are delete pending.
    pub pending: u64,
}

impl Share {
    /// Adds what is held of its files.
    fn add_to(&self, tally: &mut Tally) {
        for cell in self.table().cells() {
            let latched = cell.latch();
            let state = &latched.state;
            tally.opens += state.open_count() as u64;
            tally.locks += state.locks().count() as u64;
            tally.leases += u64::from(matches!(state.lease(), FileLease::Leased(_)));
            tally.pending += state.names().filter(|(_, pending)| *pending).count() as u64;
        }
    }
}

impl FileService {
    /// The number of opens, locks, leases and marks in each share that is served.
    pub fn tallies(&self) -> FileServiceResult<BTreeMap<Arc<str>, Tally>> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for info in self.every_share(&ListOptions { snapshots: true, ..ListOptions::default() })? {
            let tally = tallies.entry(Arc::clone(&info.name)).or_default();
            tally.leases += u64::from(info.lease.status == LeaseStatus::Locked);
            // One that was deleted meanwhile holds nothing.
            if info.snapshot.is_none()
                && let Ok(share) = self.share(&info.name)
            {
                share.add_to(tally);
            }
        }
        Ok(tallies)
    }
}

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
