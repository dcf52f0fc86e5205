//! Tests of the byte-range locks: each rule by name, the recorded trace, and random runs against
//! a slow reference.

mod model;
mod posix;
mod range;
mod reference;
mod smb;
mod trace;
mod waiting;

use super::*;
use crate::rules::id::HandleId;
use LockKind::{Exclusive, Shared};

const A: HandleId = HandleId(1);
const B: HandleId = HandleId(2);
const C: HandleId = HandleId(3);

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange::new(offset, length).expect("a range within 2^64")
}

/// An SMB lock as the scenarios write it: handle, offset, length, kind.
fn smb(handle: HandleId, offset: u64, length: u64, kind: LockKind) -> RangeLock {
    RangeLock::smb(handle, kind, range(offset, length), 0)
}

/// An `fcntl` lock of an owner who uses the handle of the same number.
fn fcntl(owner: u64, first: u64, last: u64, kind: LockKind) -> RangeLock {
    let bytes = ByteRange::from_posix(first, last).expect("first before last");
    RangeLock::posix(owner, HandleId(owner), kind, bytes, 0)
}

fn of(handle: HandleId) -> LockOwner {
    LockOwner::Handle(handle)
}
