//! REST operations on files and directories. Each is a momentary open: it asks the rules under the
//! file's lock, does its step, and leaves no handle behind.
//!
//! ```text
//!   momentary    the way every operation enters a file
//!   files        operations on files; directories, listing, links, rename, copy
//!   file_properties   the properties that answers show
//!   property_changes  those that a request sets
//! ```

pub(crate) mod copy;
pub(crate) mod directories;
pub(crate) mod file_properties;
pub(crate) mod files;
pub(crate) mod links;
pub(crate) mod listing;
pub(crate) mod momentary;
mod property_changes;
pub(crate) mod rename;

pub use copy::{
    Awaiting, CopyOptions, CopyProperty, PendingFileCopy, RemoteSource, Started, StartedRemote,
};
pub use file_properties::{FileProperties, SmbProperties};
pub use files::{DiffOptions, FileReader, RangeChanges, RangeList};
pub use listing::{DirectoryEntry, DirectoryPage, PAGE_MAX, PageOptions};
pub use momentary::Asking;
pub use property_changes::{
    FILE_SIZE_MAX, FileChanges, NewProperties, PropertyChanges, Semantics, TimeChange,
};
pub use rename::RestRename;
