//! Counts what the database did, for metrics and tests.
//! Nothing is decided by these numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a database did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that changed something.
    pub commits: u64,
    /// Requests that the writer thread ran.
    pub requests: u64,
    /// The most requests in one transaction.
    pub largest_group: u64,
    /// Checkpoint rounds that succeeded.
    pub checkpoints: u64,
    /// Times a checkpoint held the writer.
    pub holds: u64,
    /// Times the writer waited for a checkpoint, since the WAL was very long.
    pub waits: u64,
    /// Pages in the WAL after the last commit.
    pub log_pages: u32,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    requests: AtomicU64,
    largest_group: AtomicU64,
    pub(super) checkpoints: AtomicU64,
    pub(super) holds: AtomicU64,
    pub(super) waits: AtomicU64,
}

impl Counters {
    pub(super) fn group(&self, requests: usize) {
        let requests = requests as u64;
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.largest_group.fetch_max(requests, Ordering::Relaxed);
    }

    pub(super) fn stats(&self, log_pages: u32) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits: load(&self.commits),
            requests: load(&self.requests),
            largest_group: load(&self.largest_group),
            checkpoints: load(&self.checkpoints),
            holds: load(&self.holds),
            waits: load(&self.waits),
            log_pages,
        }
    }
}
