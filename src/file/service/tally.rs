//! Counts of what is held: opens, locks, leases, marks. For metrics.
//!
//! No counter is maintained: a request for the counts takes the lock of each file in use in turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::share::Share;
use super::shares::{FileService, FileServiceResult, ListOptions};
use crate::rules::lease::{FileLease, LeaseStatus};

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
