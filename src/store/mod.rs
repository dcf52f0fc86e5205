//! Bytes and metadata in a plain directory that a person can look into.
//!
//! Knows nothing of opens, share modes or leases: it is told what to do, and does it atomically
//! where the file system can. All paths are resolved beneath the share's root.

mod beneath;
pub mod data;
mod dir_watch;
mod error;
mod etag;
mod folder;
mod listing;
mod name_cache;
mod record;
mod share_dir;
mod stat;
mod state;
#[cfg(test)]
mod testing;
pub mod clone;
mod error;
pub mod root;
pub mod snapshot;
mod stat;
mod tree;
pub mod usage;

pub use clone::{Control, Progress};
pub use error::StoreError;
pub use etag::{ETag, Granularity};
pub use folder::Durability;
pub use listing::Listed;
pub use record::{CopyProgress, CopyState, CopyStatus, HttpHeaders, Metadata, Record, Records};
pub use share_dir::{Case, Found, OpenFor, RenameHow, ShareDir};
pub use root::{DataRoot, DeletedShare, RootError, SingleShare};
pub use snapshot::{SNAPSHOTS_MAX, SnapshotError, SnapshotName, Snapshots};
pub use stat::{Kind, Stat};
pub use state::{Drawer, Entries, StateDir};
pub use usage::Usage;
