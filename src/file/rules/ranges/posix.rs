//! `fcntl` locks, of processes and of open file descriptions.
//!
//! They refuse only other owners, where one of the two is exclusive; an SMB lock is always
//! another's, also one of the open they are taken through. An owner holds at most one lock on a
//! byte: a new one replaces the old, splitting and joining as `fcntl(2)` does.
//!
//! Pieces join only if they were taken through the same open, so that closing one open by force
//! ends exactly its locks. Deadlocks among waiting owners are not looked for.

use super::lock::{LockConflict, LockKind, LockOwner, RangeLock};
use super::locks::RangeLocks;
use super::range::ByteRange;

impl RangeLocks {
    /// The lock that would refuse such a lock to the owner, if there is one; of several, the one
    /// that starts first (`F_GETLK`).
    pub fn posix_test(&self, owner: u64, kind: LockKind, range: ByteRange) -> Option<RangeLock> {
        let owner = Some(LockOwner::Posix(owner));
        let refusal = |held| self.refuse(held, range, owner).err().map(|conflict| conflict.holder);
        let exclusive = refusal(LockKind::Exclusive);
        let shared = (kind == LockKind::Exclusive).then(|| refusal(LockKind::Shared)).flatten();
        exclusive.into_iter().chain(shared).min_by_key(|lock| lock.range.start())
    }

    /// Unlocks the range for this lock owner, whatever of it was locked; what lies outside stays
    /// (`F_UNLCK`). True if anything was.
    pub fn posix_unlock(&mut self, owner: u64, range: ByteRange) -> bool {
        self.carve(LockOwner::Posix(owner), range)
    }

    /// The other half of [`RangeLocks::lock`]. A range without bytes, which `fcntl` cannot name,
    /// is granted and locks nothing.
    pub(super) fn lock_replacing(&mut self, lock: RangeLock) -> Result<(), LockConflict> {
        if lock.range.is_empty() {
            return Ok(());
        }
        self.check_posix(lock.owner, lock.kind, lock.range)?;
        self.carve(lock.owner, lock.range);
        let range = self.absorb_neighbours(&lock);
        self.insert(RangeLock { range, ..lock });
        Ok(())
    }

    fn check_posix(
        &self,
        owner: LockOwner,
        kind: LockKind,
        range: ByteRange,
    ) -> Result<(), LockConflict> {
        self.refuse(LockKind::Exclusive, range, Some(owner))?;
        match kind {
            LockKind::Exclusive => self.refuse(LockKind::Shared, range, Some(owner)),
            LockKind::Shared => Ok(()),
        }
    }

    /// Takes the range out of the owner's locks, keeping what sticks out on either side.
    fn carve(&mut self, owner: LockOwner, range: ByteRange) -> bool {
        let Some(last) = range.last() else {
            return false;
        };
        let mut cut = self.own_overlapping(owner, LockKind::Exclusive, range);
        cut.extend(self.own_overlapping(owner, LockKind::Shared, range));
        for &number in &cut {
            let old = self.remove(number);
            let Some(old_last) = old.range.last() else {
                continue;
            };
            if old.range.start() < range.start() {
                let left = ByteRange::from_bounds(old.range.start(), range.start() - 1);
                self.insert(RangeLock { range: left, ..old });
            }
            if old_last > last {
                let right = ByteRange::from_bounds(last + 1, old_last);
                self.insert(RangeLock { range: right, ..old });
            }
        }
        !cut.is_empty()
    }

    /// Removes the owner's locks that touch the new one and are like it, and gives the range of
    /// them all. The range itself has been carved out before, so nothing overlaps it.
    fn absorb_neighbours(&mut self, lock: &RangeLock) -> ByteRange {
        let first = lock.range.start();
        let last = lock.range.last().unwrap_or(first);
        let widened = ByteRange::from_bounds(first.saturating_sub(1), last.saturating_add(1));
        let (mut joined_first, mut joined_last) = (first, last);
        for number in self.own_overlapping(lock.owner, lock.kind, widened) {
            let neighbour = self.get(number);
            if neighbour.handle == lock.handle {
                self.remove(number);
                joined_first = joined_first.min(neighbour.range.start());
                joined_last = joined_last.max(neighbour.range.last().unwrap_or(last));
            }
        }
        ByteRange::from_bounds(joined_first, joined_last)
    }
}
