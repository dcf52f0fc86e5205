//! The rules: what may be opened, locked, leased, deleted and renamed, and who stands in the way.
//!
//! Pure: no I/O, no clock, no threads, no async, no logging. Time and facts about the disk are
//! arguments; answers are values. `engine/` asks, under the file's lock, and carries out.
//!
//! ```text
//!   access, share     access and share modes, the share check
//!   create            what an open asks for: dispositions, options
//!   opens, links      who has the file open, by which name
//!   file              the state of one file: opening, closing, delete pending
//!   ranges            byte-range locks; file_ranges: seen from the opens
//!   lease             leases of files and shares
//!   operation         what each REST operation demands; momentary: the check
//!   denial            why something was refused; rule: the conflicts among that, by name
//!   name, path        names, and paths within a share
//!   metadata          user metadata: legal names, the limit
//! ```

pub mod access;
pub mod attributes;
pub mod create;
pub mod denial;
pub mod file;
pub mod file_ranges;
pub mod id;
pub mod lease;
pub mod links;
pub mod metadata;
pub mod momentary;
pub mod name;
pub mod opens;
pub mod operation;
pub mod path;
pub mod ranges;
pub mod rule;
pub mod share;
pub mod stamp;
#[cfg(test)]
mod testing;

pub use access::{Access, Rights, ShareMode};
pub use attributes::Attributes;
pub use denial::Denial;
pub use id::{Client, FileId, HandleId, Owner, Timestamp};
pub use lease::{FileLease, LeaseDenial, LeaseId, ShareLease};
pub use metadata::{MetadataError, check_metadata};
pub use name::{NameError, fold, rest_path, same_name};
pub use opens::Holder;
pub use operation::{Check, Demands, LeaseDemand, Operation, RangeDemand};
pub use path::{PathError, SharePath};
pub use rule::Rule;
