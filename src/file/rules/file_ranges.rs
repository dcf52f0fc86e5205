//! Byte ranges of one file, seen from its opens: who may lock, read and write.
//!
//! Which locks exclude which is decided in [`super::ranges`]; here a handle's rights are checked
//! first, and a conflict gets the name of the open behind it.

use super::file::FileState;
use super::opens::{Open, OpenSlot};
use super::ranges::{ByteRange, LockConflict, LockKind, LockOwner, RangeLock, RangeTable, Ticket};
use super::{Access, Denial, Rights};
use crate::rules::id::HandleId;

/// The answer to a lock request that may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockAnswer {
    /// The lock is held now.
    Granted,
    /// The request waits under its ticket.
    Waiting,
}

impl FileState {
    /// Takes all ranges or none, for the handle (br24). A handle without read or write access
    /// locks nothing.
    pub fn lock(
        &mut self,
        slot: OpenSlot,
        id: HandleId,
        wanted: &[(ByteRange, LockKind)],
    ) -> Result<(), Denial> {
        let pid = self.lockable(slot, id)?.owner.pid;
        let taken = self.range_table().locks.lock_all(id, pid, wanted);
        self.after_ranges(taken)
    }

    /// Takes a lock, or lets the request wait for it under `ticket`. SMB and `fcntl` alike.
    pub fn lock_or_wait(
        &mut self,
        slot: OpenSlot,
        lock: RangeLock,
        ticket: Ticket,
    ) -> Result<LockAnswer, Denial> {
        self.lockable(slot, lock.handle)?;
        let table = self.range_table();
        if table.locks.lock(lock).is_ok() {
            self.seq += 1;
            return Ok(LockAnswer::Granted);
        }
        table.waiters.wait(ticket, lock).map_err(|_| Denial::TooManyWaiting)?;
        self.seq += 1;
        Ok(LockAnswer::Waiting)
    }

    /// Ends the wait of a request; false if it has its answer already (br29).
    pub fn cancel_lock(&mut self, ticket: Ticket) -> bool {
        let cancelled = self.ranges.as_mut().is_some_and(|table| table.waiters.cancel(ticket));
        self.drop_empty_ranges();
        cancelled
    }

    /// Gives ranges back one by one; stops at the first that is not locked just so, and keeps
    /// what went before (br25).
    pub fn unlock(
        &mut self,
        slot: OpenSlot,
        id: HandleId,
        ranges: &[ByteRange],
    ) -> Result<(), Denial> {
        self.get(slot, id)?;
        let table = self.range_table();
        let unlocked = ranges.iter().try_for_each(|range| table.locks.unlock(id, *range).map(drop));
        self.seq += 1;
        self.drop_empty_ranges();
        unlocked.map_err(|_| Denial::RangeNotLocked)
    }

    /// An `fcntl` lock that does not wait (`F_SETLK`).
    pub fn posix_lock(&mut self, slot: OpenSlot, lock: RangeLock) -> Result<(), Denial> {
        self.lockable(slot, lock.handle)?;
        let taken = self.range_table().locks.lock(lock);
        self.after_ranges(taken)
    }

    /// Gives back what the `fcntl` owner holds of the range (`F_UNLCK`).
    pub fn posix_unlock(&mut self, owner: u64, range: ByteRange) {
        if let Some(table) = &mut self.ranges {
            table.locks.posix_unlock(owner, range);
            self.seq += 1;
        }
        self.drop_empty_ranges();
    }

    /// The lock that would refuse such a lock to the `fcntl` owner (`F_GETLK`), if there is one.
    pub fn posix_test(&self, owner: u64, kind: LockKind, range: ByteRange) -> Option<RangeLock> {
        self.ranges.as_ref()?.locks.posix_test(owner, kind, range)
    }

    /// A process closed a descriptor: all its `fcntl` locks on the file go, as POSIX says.
    pub fn posix_release(&mut self, owner: u64) {
        if let Some(table) = &mut self.ranges {
            table.locks.release_posix(owner);
            self.seq += 1;
        }
        self.drop_empty_ranges();
    }

    /// An open ended: its locks go (br11, br12), and its waiting requests, whose tickets are
    /// returned (br30).
    pub fn release_ranges(&mut self, id: HandleId) -> Vec<Ticket> {
        let Some(table) = &mut self.ranges else { return Vec::new() };
        table.locks.release_taken_through(id);
        let ended = table.waiters.drop_handle(id);
        self.drop_empty_ranges();
        ended
    }

    /// Grants the waiting requests that can be granted now, in the order they came.
    pub fn grant_waiting(&mut self) -> Vec<Ticket> {
        let Some(table) = &mut self.ranges else { return Vec::new() };
        table.grant().into_iter().map(|(ticket, _)| ticket).collect()
    }

    /// May the handle read the range? The file's end is not asked about here.
    pub fn check_read(&self, slot: OpenSlot, id: HandleId, range: ByteRange) -> Result<(), Denial> {
        let open = self.opened_for(slot, id, Access::R)?;
        self.check_range(range, Some(LockOwner::Handle(open.id)), RangeUse::Read)
    }

    /// May the handle write the range?
    pub fn check_write(
        &self,
        slot: OpenSlot,
        id: HandleId,
        range: ByteRange,
    ) -> Result<(), Denial> {
        let open = self.opened_for(slot, id, Access::W)?;
        self.check_range(range, Some(LockOwner::Handle(open.id)), RangeUse::Write)
    }

    /// May the handle set the file's length? That needs the right to write, not just to append
    /// (di15); byte-range locks do not stop it (br32, br45).
    pub fn check_resize(&self, slot: OpenSlot, id: HandleId) -> Result<(), Denial> {
        let (open, _) = self.get(slot, id)?;
        if open.rights.contains(Rights::WRITE_DATA) { Ok(()) } else { Err(Denial::AccessDenied) }
    }

    /// Checks whether `by` may use the range in this way. `by` is `None` for a caller that cannot
    /// own locks.
    pub fn check_range(
        &self,
        range: ByteRange,
        by: Option<LockOwner>,
        using: RangeUse,
    ) -> Result<(), Denial> {
        let Some(table) = &self.ranges else { return Ok(()) };
        let answer = match using {
            RangeUse::Read => table.locks.check_read(by, range),
            RangeUse::Write => table.locks.check_write(by, range),
        };
        answer.map_err(|conflict| self.range_locked(conflict.holder))
    }

    /// Refuses while any byte of the file is locked.
    pub fn check_no_lock(&self) -> Result<(), Denial> {
        match self.ranges.as_ref().and_then(|table| table.locks.any()) {
            Some(lock) => Err(self.range_locked(*lock)),
            None => Ok(()),
        }
    }

    /// The byte-range locks held.
    pub fn locks(&self) -> impl Iterator<Item = &RangeLock> {
        self.ranges.iter().flat_map(|table| table.locks.iter())
    }

    fn lockable(&self, slot: OpenSlot, id: HandleId) -> Result<&Open, Denial> {
        let (open, _) = self.get(slot, id)?;
        if open.directory {
            return Err(Denial::NotOnDirectory); // br40
        }
        if !open.access().intersects(Access::R | Access::W) {
            return Err(Denial::AccessDenied); // br22, br46, br47
        }
        Ok(open)
    }

    fn opened_for(&self, slot: OpenSlot, id: HandleId, access: Access) -> Result<&Open, Denial> {
        let (open, _) = self.get(slot, id)?;
        if open.directory {
            return Err(Denial::NotOnDirectory);
        }
        if open.access().contains(access) { Ok(open) } else { Err(Denial::AccessDenied) }
    }

    fn range_table(&mut self) -> &mut RangeTable {
        self.ranges.get_or_insert_default()
    }

    fn after_ranges(&mut self, taken: Result<(), LockConflict>) -> Result<(), Denial> {
        self.seq += u64::from(taken.is_ok());
        self.drop_empty_ranges();
        taken.map_err(|LockConflict { holder: lock }| {
            let holder = self.holder_of(&lock);
            Denial::LockNotGranted { lock, holder }
        })
    }

    fn drop_empty_ranges(&mut self) {
        if self.ranges.as_ref().is_some_and(|table| table.is_empty()) {
            self.ranges = None;
        }
    }

    fn range_locked(&self, lock: RangeLock) -> Denial {
        Denial::RangeLocked { lock, holder: self.holder_of(&lock) }
    }

    fn holder_of(&self, lock: &RangeLock) -> Option<Box<super::Holder>> {
        let slot = self.find(lock.handle)?;
        let (open, _) = self.get(slot, lock.handle).ok()?;
        Some(Box::new(open.holder()))
    }
}

/// The intended use of the bytes of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeUse {
    Read,
    Write,
}
