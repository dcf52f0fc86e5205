//! One byte-range lock: what it covers, how, and whose it is.
//!
//! Two flavours share the table, told apart by the owner: an SMB lock belongs to an open, an
//! `fcntl` lock to a process or an open file description. The rules of each are in
//! [`super::locks`] and [`super::posix`].

use super::range::ByteRange;
use crate::rules::id::HandleId;

/// How a lock holds its range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// For reading: others may read and lock it shared (`F_RDLCK`).
    Shared,
    /// For writing: the range is the owner's alone (`F_WRLCK`).
    Exclusive,
}

/// Whose a lock is; the owner's flavour decides which rules the lock follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum LockOwner {
    /// SMB: the open itself. Two opens of one process are strangers.
    Handle(HandleId),
    /// `fcntl`: the kernel's number for a process or an open file description.
    Posix(u64),
}

/// A lock, held or asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RangeLock {
    /// The bytes that the lock covers.
    pub range: ByteRange,
    pub kind: LockKind,
    pub owner: LockOwner,
    /// The open it was taken through: names the holder, and ends the lock when it closes.
    pub handle: HandleId,
    /// The process that asked, for `F_GETLK`; 0 where there is none.
    pub pid: u32,
}

impl RangeLock {
    /// An SMB lock: its owner is the open it is taken through.
    pub const fn smb(handle: HandleId, kind: LockKind, range: ByteRange, pid: u32) -> Self {
        Self { range, kind, owner: LockOwner::Handle(handle), handle, pid }
    }

    /// An `fcntl` lock of the kernel's lock owner `owner`, taken through `handle`.
    pub const fn posix(
        owner: u64,
        handle: HandleId,
        kind: LockKind,
        range: ByteRange,
        pid: u32,
    ) -> Self {
        Self { range, kind, owner: LockOwner::Posix(owner), handle, pid }
    }
}

/// A lock stands in the way, of another lock (`LOCK_NOT_GRANTED`) or of a read or write
/// (`FILE_LOCK_CONFLICT`); which of the two, the caller knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} {} locked through handle {}", holder.range, holder.range.verb(), holder.handle)]
pub struct LockConflict {
    /// One of the locks in the way.
    pub holder: RangeLock,
}

/// The open holds no lock of exactly that range (`RANGE_NOT_LOCKED`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the range is not locked through this handle")]
pub struct RangeNotLocked;
