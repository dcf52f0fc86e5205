//! Bytes and metadata in a plain directory that a person can look into.
//!
//! Knows nothing of opens, share modes or leases: it is told what to do, and does it atomically
//! where the file system can. All paths are resolved beneath the share's root.
//!
//! ```text
//!   share_dir    names and what they stand for; beneath, name_cache, dir_watch, listing
//!   record       what has no place in an inode; etag
//!   data         the bytes of a file; difference: two files compared
//!   state        share-level state in small files; folder
//!   root         several shares in one data root
//!   snapshot     copies of a share; clone, tree
//!   usage        how much a share holds
//! ```

mod beneath;
pub mod clone;
pub mod data;
pub mod difference;
mod dir_watch;
mod error;
mod etag;
mod folder;
mod listing;
mod name_cache;
mod proc_path;
mod record;
pub mod root;
mod share_dir;
pub mod snapshot;
mod stat;
mod state;
#[cfg(test)]
mod testing;
mod tree;
pub mod usage;

pub use clone::{Control, Progress};
pub use error::StoreError;
pub use etag::{ETag, Granularity};
pub use folder::Durability;
pub use listing::Listed;
pub use proc_path::proc_path;
pub use record::{CopyProgress, CopyState, CopyStatus, HttpHeaders, Metadata, Record, Records};
pub use root::{DataRoot, DeletedShare, RootError, SingleShare};
pub use share_dir::{Case, Found, OpenDirectory, OpenFor, RenameHow, ShareDir};
pub use snapshot::{SNAPSHOTS_MAX, SnapshotError, SnapshotName, Snapshots};
pub use stat::{Kind, Stat};
pub use state::{Drawer, Entries, StateDir};
pub use usage::Usage;
