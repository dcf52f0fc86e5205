//! Bytes and metadata in a plain directory that a person can look into.
//!
//! Knows nothing of opens, share modes or leases: it is told what to do, and does it atomically
//! where the file system can. All paths are resolved beneath the share's root.

mod beneath;
mod dir_watch;
pub mod data;
mod error;
mod listing;
mod name_cache;
mod share_dir;
mod etag;
mod folder;
mod record;
mod stat;
mod state;
#[cfg(test)]
mod testing;

pub use error::StoreError;
pub use listing::Listed;
pub use share_dir::{Case, Found, OpenFor, RenameHow, ShareDir};
pub use etag::{ETag, Granularity};
pub use folder::Durability;
pub use record::{CopyProgress, CopyState, CopyStatus, HttpHeaders, Metadata, Record, Records};
pub use stat::{Kind, Stat};
pub use state::{Drawer, Entries, StateDir};
