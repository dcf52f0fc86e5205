//! The rules of the File service: what may be opened, locked, deleted and renamed, and which open,
//! lock or lease refuses it. The state of one file is a value; `file/service` keeps it and carries
//! out what the rules grant.
//!
//! ```text
//!   access, share     the rights that an open asks for, the share check
//!   create            what an open asks for: dispositions, options
//!   opens, links      the opens of a file, and the names they were opened by
//!   file              the state of one file: opening, closing, delete pending
//!   ranges            byte-range locks; file_ranges: seen from the opens
//!   operation         what each REST operation demands; momentary: the check
//!   denial            the refusals; rule: which are conflicts; ntstatus: their SMB names
//!   footprint         what an operation reads and writes, for explorations
//!   name, path        names, and paths within a share
//!   attributes        the attributes of a file
//! ```

pub mod access;
pub mod attributes;
pub mod create;
pub mod denial;
pub mod file;
pub mod file_ranges;
pub mod footprint;
pub mod links;
pub mod momentary;
pub mod name;
pub mod ntstatus;
pub mod opens;
pub mod operation;
pub mod path;
pub mod ranges;
pub mod rule;
pub mod share;
#[cfg(test)]
mod testing;

pub use access::Rights;
pub use attributes::Attributes;
pub use denial::Denial;
pub use name::{FileNameError, fold, same_name};
pub use operation::{Check, Demands, FileOperation, LeaseDemand, RangeDemand};
pub use path::{PathError, SharePath};

// The values that a refusal names.
pub use crate::rules::{Access, Holder, Rule, ShareMode};
