//! The rules: what may be opened, locked, leased, deleted and renamed, and who stands in the way.
//!
//! Pure: no I/O, no clock, no threads, no async, no logging. Time and facts about the disk are
//! arguments; answers are values. `engine/` asks, under the file's lock, and carries out.

pub mod access;
pub mod attributes;
pub mod id;
pub mod lease;
pub mod operation;
pub mod name;
pub mod path;
pub mod ranges;

pub use access::{Access, Rights, ShareMode};
pub use attributes::Attributes;
pub use id::{Client, FileId, HandleId, Owner, Timestamp};
pub use lease::{FileLease, LeaseDenial, LeaseId, ShareLease};
pub use operation::{Check, Demands, LeaseDemand, Operation, RangeDemand};
pub use name::{NameError, fold, rest_path, same_name};
pub use path::{PathError, SharePath};
pub use ranges::{ByteRange, LockKind, LockOwner, RangeLock, RangeTable};
