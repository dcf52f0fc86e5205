//! How much is held just now: opens, locks, leases, marks. For those who watch from outside.
//!
//! Nothing is kept up to date for this: whoever asks pays, one file's lock at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::{AccountResult, Engine, ListOptions};
use super::share::Share;
use crate::core::lease::{FileLease, LeaseStatus};

/// What is held in one share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Opens of files and directories.
    pub opens: u64,
    /// Byte-range locks.
    pub locks: u64,
    /// Leases in force: of files, of the share and of its snapshots.
    pub leases: u64,
    /// Names that are delete pending.
    pub pending: u64,
}

impl Share {
    /// What is held of its files.
    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for cell in self.table.cells() {
            let latched = cell.latch();
            let state = &latched.state;
            tally.opens += state.open_count() as u64;
            tally.locks += state.locks().count() as u64;
            tally.leases += u64::from(matches!(state.lease(), FileLease::Leased(_)));
            tally.pending += state.names().filter(|(_, pending)| *pending).count() as u64;
        }
        tally
    }
}

impl Engine {
    /// What is held in each share that is served.
    pub fn tallies(&self) -> AccountResult<BTreeMap<Arc<str>, Tally>> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for info in self.every_share(&ListOptions { snapshots: true, ..ListOptions::default() })? {
            // One that was deleted meanwhile holds nothing.
            let share = if info.snapshot.is_none() { self.share(&info.name).ok() } else { None };
            let files = share.map(|share| share.tally()).unwrap_or_default();
            let tally = tallies.entry(info.name).or_default();
            let leases = tally.leases + u64::from(info.lease.status == LeaseStatus::Locked);
            *tally = Tally { leases: leases + files.leases, ..files };
        }
        Ok(tallies)
    }
}
