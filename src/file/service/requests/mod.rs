//! REST operations on files and directories. Each is a momentary open: it asks the rules under the
//! file's lock, does its step, and leaves no handle behind.
//!
//! ```text
//!   momentary    the way every operation enters a file
//!   files        operations on files; directories, listing, links, rename, copy
//!   smb_properties    the properties that REST shows
//!   property_changes  those that a request sets
//! ```

pub(crate) mod copy;
pub(crate) mod directories;
pub(crate) mod files;
pub(crate) mod links;
pub(crate) mod listing;
pub(crate) mod momentary;
mod property_changes;
pub(crate) mod rename;
mod smb_properties;

pub use copy::{
    Awaiting, CopiedFile, CopyOptions, CopyProperty, PendingFileCopy, RemoteSource, Started,
    StartedRemote,
};
pub use directories::DirectoryProperties;
pub use files::{DiffOptions, FileProperties, FileReader, LeasedFile, RangeChanges, RangeList};
pub use links::LinkProperties;
pub use listing::{DirectoryEntry, DirectoryPage, PAGE_MAX, PageOptions};
pub use momentary::Asking;
pub use property_changes::{
    FILE_SIZE_MAX, FileChanges, NewProperties, PropertyChanges, Semantics, TimeChange,
};
pub use rename::{Renamed, RestRename};
pub use smb_properties::SmbProperties;
