//! Counts what the database did, for metrics and tests.
//! Nothing is decided by these numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a database did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub commits: u64,
    /// Requests that ran on their caller's thread.
    pub inline: u64,
    /// Requests that the writer thread ran.
    pub queued: u64,
    /// The most requests in one transaction.
    pub largest_group: u64,
    /// Checkpoint rounds that succeeded.
    pub checkpoints: u64,
    /// Times a checkpoint held the writer.
    pub holds: u64,
    /// Pages in the log after the last commit.
    pub log_pages: u32,
}

#[derive(Default)]
pub(super) struct Counters {
    inline: AtomicU64,
    queued: AtomicU64,
    largest_group: AtomicU64,
    pub(super) checkpoints: AtomicU64,
    pub(super) holds: AtomicU64,
}

impl Counters {
    pub(super) fn inline(&self) {
        self.inline.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn group(&self, requests: usize) {
        let requests = requests as u64;
        self.queued.fetch_add(requests, Ordering::Relaxed);
        self.largest_group.fetch_max(requests, Ordering::Relaxed);
    }

    pub(super) fn stats(&self, commits: u64, log_pages: u32) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits,
            inline: load(&self.inline),
            queued: load(&self.queued),
            largest_group: load(&self.largest_group),
            checkpoints: load(&self.checkpoints),
            holds: load(&self.holds),
            log_pages,
        }
    }
}
