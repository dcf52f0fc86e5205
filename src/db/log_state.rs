//! State of the log for the checkpoint thread: its length, and whether it has commits that no
//! checkpoint has covered. When a checkpoint runs is decided in [`super::checkpoint`].

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::DbError;

pub(super) struct LogState {
    /// Pages in the log after the last commit.
    pages: AtomicU32,
    /// The length that a checkpoint found and moved as a whole: the log begins again with the next
    /// commit, unless a reader still needs it. 0 after each commit, and where it is not known.
    moved: AtomicU32,
    /// The log is long after this many pages without a checkpoint.
    threshold: u32,
    /// Length at which the log counts as long: do not wait for the interval then.
    long_at: AtomicU32,
    /// A commit came after the last checkpoint began.
    dirty: AtomicBool,
    /// The checkpoint thread was told that the log is long.
    told_long: AtomicBool,
    commits: AtomicU64,
    /// Rises when the log begins again, and when it can.
    begun: AtomicU64,
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Default)]
struct Orders {
    /// Rounds asked for, and rounds done.
    asked: u64,
    done: u64,
    last: Option<DbError>,
    closing: bool,
}

/// Why the checkpoint thread wakes up.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Order {
    Checkpoint {
        /// The number of the round, to be given to [`LogState::finished`].
        round: u64,
    },
    Close,
}

impl LogState {
    pub(super) fn new(threshold: u32) -> Self {
        Self {
            pages: AtomicU32::new(0),
            moved: AtomicU32::new(0),
            threshold,
            long_at: AtomicU32::new(threshold),
            dirty: AtomicBool::new(false),
            told_long: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            orders: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Called at the opening, with the length of the log that is there.
    pub(super) fn found(&self, pages: u32) {
        self.pages.store(pages, Ordering::Relaxed);
    }

    /// Called by `SQLite` inside COMMIT.
    pub(super) fn grew(&self, pages: u32) {
        if pages < self.pages.swap(pages, Ordering::Relaxed) {
            // The log began again.
            self.begun.fetch_add(1, Ordering::Relaxed);
            self.long_at.store(self.threshold, Ordering::Relaxed);
        }
        self.moved.store(0, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// The next commit begins the log again: all of it is moved, and nobody reads it. To be called
    /// by the owner of the turn.
    pub(super) fn begins_again(&self) {
        self.moved(self.pages());
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// A checkpoint has moved all of a log of that length; 0 if that is not known.
    pub(super) fn moved(&self, length: u32) {
        self.moved.store(length, Ordering::Relaxed);
    }

    /// Behind how many pages the next commit is written.
    pub(super) fn next_page(&self) -> u32 {
        let pages = self.pages();
        if self.moved.load(Ordering::Relaxed) == pages { 0 } else { pages }
    }

    /// Called after each commit, when the turn is over. Wakes the checkpoint thread for the first
    /// commit after a checkpoint and when the log has become long; costs two loads otherwise.
    pub(super) fn committed(&self) {
        let first = !self.dirty.load(Ordering::Relaxed) && !self.dirty.swap(true, Ordering::AcqRel);
        let long = self.pages() >= self.long_at.load(Ordering::Relaxed)
            && !self.told_long.load(Ordering::Relaxed)
            && !self.told_long.swap(true, Ordering::AcqRel);
        if first || long {
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    pub(super) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Waits for a reason to run a checkpoint: it was asked for, the log is long, or there are
    /// commits and `interval` has passed since the first of them.
    pub(super) fn wait(&self, interval: Duration) -> Order {
        let mut orders = self.lock();
        let mut due = None;
        loop {
            if orders.closing {
                return Order::Close;
            }
            let long = self.told_long.load(Ordering::Acquire);
            if orders.asked > orders.done || long {
                break;
            }
            if self.dirty.load(Ordering::Acquire) {
                let due = *due.get_or_insert_with(|| Instant::now() + interval);
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = self.changed.wait_timeout(orders, left);
                orders = waited.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
            }
        }
        // Commits from here on belong to the next round.
        self.dirty.store(false, Ordering::Release);
        self.told_long.store(false, Ordering::Release);
        Order::Checkpoint { round: orders.asked }
    }

    /// Ends a round. A reader can keep the log from being emptied: it counts as long again only
    /// after it has grown by the threshold once more, else one checkpoint would follow the other.
    pub(super) fn finished(&self, round: u64, result: Result<(), DbError>) {
        let mut orders = self.lock();
        self.long_at.store(self.pages().saturating_add(self.threshold), Ordering::Relaxed);
        if result.is_err() {
            self.dirty.store(true, Ordering::Release);
        }
        orders.done = round;
        orders.last = result.err();
        self.changed.notify_all();
    }

    pub(super) fn ask(&self) -> u64 {
        let mut orders = self.lock();
        // A round that runs now may have begun before the caller's commit: ask for the next.
        orders.asked += 1;
        self.changed.notify_all();
        orders.asked
    }

    /// Waits until a round that began after [`LogState::ask`] has ended.
    pub(super) fn wait_for(&self, round: u64) -> Result<(), DbError> {
        let mut orders = self.lock();
        while orders.done < round {
            if orders.closing {
                return Err(DbError::Closed);
            }
            orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
        orders.last.clone().map_or(Ok(()), Err)
    }

    /// As [`LogState::wait_for`], for at most `patience`. True if the round ended without an error.
    pub(super) fn wait_a_while_for(&self, round: u64, patience: Duration) -> bool {
        let under_way = |orders: &mut Orders| orders.done < round && !orders.closing;
        let waited = self.changed.wait_timeout_while(self.lock(), patience, under_way);
        let (orders, _) = waited.unwrap_or_else(PoisonError::into_inner);
        orders.done >= round && orders.last.is_none()
    }

    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
