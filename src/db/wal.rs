//! The length of the WAL, and when a checkpoint is due. What a checkpoint does is decided in
//! [`super::checkpoint`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::DbError;

/// A page of the WAL, and its header.
const FRAME: u64 = 4096 + 24;
/// A WAL that was never longer than this many pages keeps its file when nothing is written: 1 MiB.
const REST_PAGES: u32 = 256;

pub(super) struct Wal {
    /// Pages in the WAL after the last commit.
    pages: AtomicU32,
    /// The WAL is long after this many pages without a checkpoint.
    threshold: u32,
    orders: Mutex<Orders>,
    changed: Condvar,
    pub(super) counters: Counters,
}

/// What was done since the database was opened, for tests: nothing is decided by these numbers.
#[derive(Default)]
pub(super) struct Counters {
    /// Transactions that changed something.
    pub(super) commits: AtomicU64,
    /// Requests that the writer thread ran.
    pub(super) requests: AtomicU64,
    /// The most requests in one transaction.
    pub(super) largest_group: AtomicU64,
    /// Checkpoint rounds that succeeded.
    pub(super) checkpoints: AtomicU64,
    /// Times a checkpoint held the writer.
    pub(super) holds: AtomicU64,
    /// Times the writer waited for a checkpoint, since the WAL was very long.
    pub(super) waits: AtomicU64,
}

#[derive(Default)]
struct Orders {
    /// Rounds asked for, and rounds done.
    asked: u64,
    done: u64,
    /// The next round is to let the WAL begin again.
    restart: bool,
    /// A commit came after the last checkpoint began.
    dirty: bool,
    /// The length after the last commit.
    pages: u32,
    /// The longest since the file was last cut.
    longest: u32,
    /// The length from which a checkpoint does not wait for the interval.
    long_at: u32,
    last: Option<DbError>,
    closing: bool,
}

/// A checkpoint that is due.
pub(super) struct Round {
    number: u64,
    /// Deletions wait for a WAL that begins again.
    pub(super) restart: bool,
    /// Nothing was written for an interval: the file of the WAL is to be cut.
    pub(super) cut: bool,
}

impl Wal {
    pub(super) fn new(threshold: u32) -> Self {
        let orders = Mutex::new(Orders { long_at: threshold, ..Orders::default() });
        let (changed, counters) = (Condvar::new(), Counters::default());
        Self { pages: AtomicU32::new(0), threshold, orders, changed, counters }
    }

    /// The pages that the opening finds, which a checkpoint is to move, and the length of the file.
    pub(super) fn found(&self, pages: u32, bytes: u64) {
        self.lock().longest = u32::try_from(bytes / FRAME).unwrap_or(u32::MAX);
        if pages > 0 {
            self.set_pages(pages);
            self.committed();
        }
    }

    /// Called by `SQLite` inside COMMIT, and when the WAL begins again.
    pub(super) fn set_pages(&self, pages: u32) {
        self.pages.store(pages, Ordering::Relaxed);
    }

    pub(super) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.pages()) * FRAME
    }

    /// Called after each commit. Wakes the checkpoint thread for the first commit after a
    /// checkpoint and when the WAL has become long.
    pub(super) fn committed(&self) {
        let (mut orders, pages) = (self.lock(), self.pages());
        if pages < orders.pages {
            // The WAL began again.
            orders.long_at = self.threshold;
        }
        orders.pages = pages;
        orders.longest = orders.longest.max(pages);
        let was_dirty = std::mem::replace(&mut orders.dirty, true);
        if !was_dirty || pages >= orders.long_at {
            self.changed.notify_all();
        }
    }

    /// Waits for a reason to run a checkpoint: it was asked for, the WAL is long, there are commits
    /// and `interval` has passed since the first of them, or there are none for an `interval` and
    /// the file of the WAL has a length to give back. `None`: the database closes.
    pub(super) fn wait(&self, interval: Duration) -> Option<Round> {
        let mut orders = self.lock();
        let (mut due, mut idle) = (None, None);
        let mut cut = false;
        loop {
            if orders.closing {
                return None;
            }
            let is_long = orders.dirty && self.pages() >= orders.long_at;
            if orders.asked > orders.done || is_long {
                break;
            }
            if !orders.dirty && orders.longest <= REST_PAGES {
                orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let due = if orders.dirty { &mut due } else { &mut idle };
            let due = *due.get_or_insert_with(|| Instant::now() + interval);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                cut = !orders.dirty;
                break;
            }
            let waited = self.changed.wait_timeout(orders, left);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        // Commits from here on belong to the next round.
        orders.dirty = false;
        Some(Round { number: orders.asked, restart: std::mem::take(&mut orders.restart), cut })
    }

    /// The file of the WAL was cut, while nobody writes.
    pub(super) fn was_cut(&self) {
        self.set_pages(0);
        self.lock().longest = 0;
    }

    /// True if the WAL has more than `most` pages and a round is due or under way. If a reader
    /// keeps the WAL from beginning again, this is false after the round until the next one.
    pub(super) fn outgrows(&self, most: u32) -> bool {
        self.is_outgrown(&self.lock(), most)
    }

    fn is_outgrown(&self, orders: &Orders, most: u32) -> bool {
        self.pages() > most && self.pages() >= orders.long_at
    }

    /// Waits while the WAL outgrows the round under way, for at most `patience`.
    pub(super) fn wait_while_outgrown(&self, most: u32, patience: Duration) {
        let outgrows = |orders: &mut Orders| self.is_outgrown(orders, most) && !orders.closing;
        drop(self.changed.wait_timeout_while(self.lock(), patience, outgrows));
    }

    /// Ends a round. A reader can keep the WAL from being emptied: it counts as long again only
    /// after it has grown by the threshold once more, else one checkpoint would follow the other.
    pub(super) fn finished(&self, round: &Round, result: Result<(), DbError>) {
        let mut orders = self.lock();
        orders.long_at = self.pages().saturating_add(self.threshold);
        orders.dirty |= result.is_err();
        orders.done = round.number;
        orders.last = result.err();
        self.changed.notify_all();
    }

    /// Asks for a checkpoint, and with `restart` for a WAL that begins again.
    pub(super) fn ask(&self, restart: bool) -> u64 {
        let mut orders = self.lock();
        // A round that runs now may have begun before the caller's commit: ask for the next.
        orders.asked += 1;
        orders.restart |= restart;
        self.changed.notify_all();
        orders.asked
    }

    /// Waits until a round that began after [`Wal::ask`] has ended.
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

    /// As [`Wal::wait_for`], for at most `patience`, whatever the outcome.
    pub(super) fn wait_a_while_for(&self, round: u64, patience: Duration) {
        let under_way = |orders: &mut Orders| orders.done < round && !orders.closing;
        drop(self.changed.wait_timeout_while(self.lock(), patience, under_way));
    }

    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
