//! The byte-range locks of one file: SMB locks, and what locks mean for reads and writes.
//!
//! | overlapping lock | SH lock | EX lock | read | write |
//! |---|---|---|---|---|
//! | EX, own | granted | refused | ok | ok |
//! | EX, another's | refused | refused | refused | refused |
//! | SH, own or another's | granted | refused | ok | refused, to its owner too |
//!
//! `fcntl` locks have rules of their own only among each other ([`super::posix`]); toward other
//! callers they count as another's SMB lock. Whether a handle may lock at all, and whether a mount
//! applies the I/O checks to its own users, is decided by the caller.

use std::collections::BTreeMap;

use super::index::Index;
use super::lock::{LockConflict, LockKind, LockOwner, RangeLock, RangeNotLocked};
use super::range::ByteRange;
use crate::rules::id::HandleId;

/// The table of one file.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    /// All locks by number, in the order they were taken.
    locks: BTreeMap<u64, RangeLock>,
    /// The number of the next lock.
    next: u64,
    all: ByKind,
    /// Each owner's own locks, so that its unlock and close do not search everybody's.
    owned: BTreeMap<LockOwner, ByKind>,
    /// How many locks each owner took through each open.
    through: BTreeMap<(HandleId, LockOwner), usize>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ByKind {
    shared: Index,
    exclusive: Index,
}

impl ByKind {
    pub(super) fn of(&self, kind: LockKind) -> &Index {
        match kind {
            LockKind::Shared => &self.shared,
            LockKind::Exclusive => &self.exclusive,
        }
    }

    fn of_mut(&mut self, kind: LockKind) -> &mut Index {
        match kind {
            LockKind::Shared => &mut self.shared,
            LockKind::Exclusive => &mut self.exclusive,
        }
    }

    fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.exclusive.is_empty()
    }

    /// The numbers of all locks, exclusive ones first.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.exclusive.numbers().chain(self.shared.numbers())
    }
}

impl RangeLocks {
    /// Takes the lock, or names one in the way. An SMB lock follows the table above and stacks; an
    /// `fcntl` lock replaces what its owner held there ([`super::posix`]).
    ///
    /// An `fcntl` lock may turn an exclusive lock of its owner into a shared one, so requests that
    /// wait are to be tried again after it too.
    pub fn lock(&mut self, lock: RangeLock) -> Result<(), LockConflict> {
        match lock.owner {
            LockOwner::Handle(_) => self.lock_stacking(lock).map(drop),
            LockOwner::Posix(_) => self.lock_replacing(lock),
        }
    }

    /// Takes several SMB locks of one open, in the order given, all or none.
    pub fn lock_all(
        &mut self,
        handle: HandleId,
        pid: u32,
        wanted: &[(ByteRange, LockKind)],
    ) -> Result<(), LockConflict> {
        let mut taken = Vec::with_capacity(wanted.len());
        for &(range, kind) in wanted {
            match self.lock_stacking(RangeLock::smb(handle, kind, range, pid)) {
                Ok(number) => taken.push(number),
                Err(conflict) => {
                    self.remove_all(taken);
                    return Err(conflict);
                }
            }
        }
        Ok(())
    }

    /// An exclusive lock suffers no overlap, its owner's included; a shared one only none with
    /// another's exclusive lock.
    fn lock_stacking(&mut self, lock: RangeLock) -> Result<u64, LockConflict> {
        match lock.kind {
            LockKind::Exclusive => self
                .refuse(LockKind::Exclusive, lock.range, None)
                .and_then(|()| self.refuse(LockKind::Shared, lock.range, None))?,
            LockKind::Shared => self.refuse(LockKind::Exclusive, lock.range, Some(lock.owner))?,
        }
        Ok(self.insert(lock))
    }

    /// Gives back one SMB lock of exactly this range, an exclusive one before shared ones.
    pub fn unlock(
        &mut self,
        handle: HandleId,
        range: ByteRange,
    ) -> Result<RangeLock, RangeNotLocked> {
        let own = self.owned.get(&LockOwner::Handle(handle)).ok_or(RangeNotLocked)?;
        let number =
            own.exclusive.exact(range).or_else(|| own.shared.exact(range)).ok_or(RangeNotLocked)?;
        Ok(self.remove(number))
    }

    /// Checks whether this range may be read. `by` is the owner of locks that asks, `None` for a
    /// REST caller: an overlapping exclusive lock stops everyone but its owner.
    pub fn check_read(&self, by: Option<LockOwner>, range: ByteRange) -> Result<(), LockConflict> {
        if range.is_empty() {
            return Ok(()); // br38: no bytes move
        }
        self.refuse(LockKind::Exclusive, range, by)
    }

    /// Checks whether this range may be written. As for reading, and a shared lock stops everyone,
    /// its owner too; only a shared `fcntl` lock, advisory to its owner, does not.
    ///
    /// A REST write does not ask this but [`RangeLocks::any`].
    pub fn check_write(&self, by: Option<LockOwner>, range: ByteRange) -> Result<(), LockConflict> {
        if range.is_empty() {
            return Ok(()); // br38
        }
        self.refuse(LockKind::Exclusive, range, by)?;
        let exempt = by.filter(|owner| matches!(owner, LockOwner::Posix(_)));
        self.refuse(LockKind::Shared, range, exempt)
    }

    /// A lock of the file, if there is one: it stops a REST write wherever that goes.
    pub fn any(&self) -> Option<&RangeLock> {
        self.locks.values().next()
    }

    /// A process has closed a descriptor of the file (FUSE FLUSH): drops all `fcntl` locks of
    /// that lock owner, through whichever open it took them. True if there were any.
    pub fn release_posix(&mut self, owner: u64) -> bool {
        let doomed = self.owned_numbers(LockOwner::Posix(owner));
        let any = !doomed.is_empty();
        self.remove_all(doomed);
        any
    }

    /// The kernel has released an open (FUSE RELEASE), or it is closed by force: drops every
    /// lock taken through it, of any owner (br11, br12). Locks of open file descriptions end here,
    /// no unlock is sent for them. True if there were any.
    pub fn release_taken_through(&mut self, handle: HandleId) -> bool {
        let every_owner =
            (handle, LockOwner::Handle(HandleId(0)))..=(handle, LockOwner::Posix(u64::MAX));
        let owners: Vec<_> = self.through.range(every_owner).map(|(key, _)| key.1).collect();
        for owner in &owners {
            let doomed = self.owned_numbers(*owner).into_iter();
            let doomed = doomed.filter(|number| self.locks[number].handle == handle);
            self.remove_all(doomed.collect());
        }
        !owners.is_empty()
    }

    /// All locks, in the order they were taken; parts of a split lock count from the split.
    pub fn iter(&self) -> impl Iterator<Item = &RangeLock> {
        self.locks.values()
    }

    /// How many locks there are.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// True if nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Refuses if a lock of this kind, not of the owner `exempt`, overlaps the range.
    ///
    /// Walks past the exempt owner's own locks within the range: an owner that reads across many
    /// of its own while somebody else holds one too pays for each.
    pub(super) fn refuse(
        &self,
        kind: LockKind,
        range: ByteRange,
        exempt: Option<LockOwner>,
    ) -> Result<(), LockConflict> {
        let all = self.all.of(kind);
        let own = exempt.and_then(|owner| self.owned.get(&owner));
        if own.map_or(0, |own| own.of(kind).len()) == all.len() {
            return Ok(()); // spares a lone owner the walk over all its own locks
        }
        let in_the_way = all
            .overlapping(range)
            .map(|number| self.locks[&number])
            .find(|lock| Some(lock.owner) != exempt);
        in_the_way.map_or(Ok(()), |holder| Err(LockConflict { holder }))
    }

    /// The numbers of the owner's locks of this kind that overlap the range.
    pub(super) fn own_overlapping(
        &self,
        owner: LockOwner,
        kind: LockKind,
        range: ByteRange,
    ) -> Vec<u64> {
        let own = self.owned.get(&owner);
        own.map(|own| own.of(kind).overlapping(range).collect()).unwrap_or_default()
    }

    pub(super) fn get(&self, number: u64) -> RangeLock {
        self.locks[&number]
    }

    pub(super) fn insert(&mut self, lock: RangeLock) -> u64 {
        let number = self.next;
        self.next += 1;
        self.locks.insert(number, lock);
        self.all.of_mut(lock.kind).insert(lock.range, number);
        let own = self.owned.entry(lock.owner).or_default();
        own.of_mut(lock.kind).insert(lock.range, number);
        *self.through.entry((lock.handle, lock.owner)).or_default() += 1;
        number
    }

    pub(super) fn remove(&mut self, number: u64) -> RangeLock {
        let lock =
            self.locks.remove(&number).expect("an index only holds numbers of locks in the table");
        self.all.of_mut(lock.kind).remove(lock.range, number);
        if let Some(own) = self.owned.get_mut(&lock.owner) {
            own.of_mut(lock.kind).remove(lock.range, number);
            if own.is_empty() {
                self.owned.remove(&lock.owner);
            }
        }
        if let Some(count) = self.through.get_mut(&(lock.handle, lock.owner)) {
            *count -= 1;
            if *count == 0 {
                self.through.remove(&(lock.handle, lock.owner));
            }
        }
        lock
    }

    fn remove_all(&mut self, numbers: Vec<u64>) {
        for number in numbers {
            self.remove(number);
        }
    }

    fn owned_numbers(&self, owner: LockOwner) -> Vec<u64> {
        let own = self.owned.get(&owner);
        own.map(|own| own.numbers().collect()).unwrap_or_default()
    }
}
