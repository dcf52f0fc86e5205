//! Byte-range locks of one file: which locks, reads and writes are granted, and which requests
//! wait.
//!
//! ```text
//!   range    which ranges exist, when two overlap
//!   lock     a lock: range, kind, owner
//!   index    finding overlaps among many
//!   locks    the table: SMB locks, reads and writes, closing
//!   posix    fcntl locks in the same table
//!   waiting  requests that wait for a range
//! ```
//!
//! Not decided here: whether the file may be opened at all (share modes come first), the codes of a
//! refusal, and waking requests whose wait is over.

mod index;
pub mod lock;
pub mod locks;
pub mod posix;
pub mod range;
pub mod waiting;

#[cfg(test)]
mod tests;

pub use lock::{LockConflict, LockKind, LockOwner, RangeLock, RangeNotLocked};
pub use locks::RangeLocks;
pub use range::{ByteRange, InvalidRange};
pub use waiting::{Ticket, TooManyWaiters, WAITERS_MAX, Waiters};

/// All a file has to do with byte ranges. Most files have nothing: keep it in an
/// `Option<Box<RangeTable>>`, and drop it once it [is empty](RangeTable::is_empty).
#[derive(Clone, Debug, Default)]
pub struct RangeTable {
    pub locks: RangeLocks,
    /// The requests that wait.
    pub waiters: Waiters,
}

impl RangeTable {
    /// Grants what can be granted now; to be called after every unlock, release and `fcntl` lock.
    pub fn grant(&mut self) -> Vec<(Ticket, RangeLock)> {
        self.waiters.grant(&mut self.locks)
    }

    /// True if nothing is locked and no request waits.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.waiters.is_empty()
    }
}
