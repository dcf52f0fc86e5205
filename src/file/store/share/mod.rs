//! A directory that is served as a share: its names, its bytes, and the records of its files.
//!
//! Knows nothing of opens, share modes or leases. All paths are resolved beneath the share's root.
//!
//! ```text
//!   share_dir    names and their files; beneath, name_cache, listing
//!   record       properties that have no place in an inode; etag
//!   data         the bytes of a file; difference: two files compared; pages: which hold data
//!   snapshot     copies of a share; clone
//!   stat         the attributes of an inode
//!   usage        how much a share holds
//! ```

mod beneath;
pub mod clone;
pub mod data;
pub mod difference;
mod etag;
mod kept_dirs;
mod listing;
mod name_cache;
pub mod pages;
mod proc_path;
mod record;
mod share_dir;
pub mod snapshot;
mod stat;
pub mod usage;

pub use clone::{CloneProgress, Control};
pub use etag::{ETag, Granularity};
pub use listing::ListedName;
pub use proc_path::proc_path;
pub use record::{
    CopyProgress, CopyState, HttpHeaders, Metadata, RangeAccount, Record, Records, Touch,
    splits_a_block,
};
pub use share_dir::{Case, FoundFile, FoundPlace, OpenDirectory, OpenFor, RenameHow, ShareDir};
pub use snapshot::{SNAPSHOTS_MAX, SnapshotError, SnapshotName, Snapshots};
pub use stat::{Births, FileKind, Stat};
pub use usage::Usage;
