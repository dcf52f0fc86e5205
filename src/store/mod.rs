//! Bytes and records on disk, in forms that a person can inspect. Which changes are allowed is
//! decided in `core/` and `engine/`.
//!
//! ```text
//!   data_root  the data directory of a server: accounts, format version, lock
//!   root       the shares of an account, deleted shares, one directory served as it is
//!   share      a directory that is served as a share
//!   state      the state folder of a share or account: state that belongs to no single file
//!   folder     a folder of small files, each replaced as a whole
//!   db         the embedded database of the Blob, Queue and Table services
//!   counted    databases with a counter that never runs back
//!   blob       containers, blobs, their states and content
//!   queue      queues and messages
//!   table      tables and entities
//!   saved      saved states, and the replacement of a server's data by one of them
//!   synced     syncs of database and content files
//!   fnv        the hash in names of files that this program makes
//!   error      the errors of the store
//!   testing    file systems of different kinds for tests
//! ```

pub mod blob;
pub mod counted;
mod data_root;
pub mod db;
mod error;
mod fnv;
mod folder;
pub mod queue;
pub mod root;
pub mod saved;
pub mod share;
mod state;
mod synced;
pub mod table;
#[cfg(test)]
mod testing;

pub use data_root::{DataRoot, FORMAT, OldLayout};
#[cfg(test)]
pub(crate) use error::NON_BLOCKING_FREED;
pub use error::StoreError;
pub(crate) use error::{begin_change, check_may_change, check_may_free};
pub(crate) use fnv::fnv1a;
pub use folder::Durability;
pub use root::{DeletedShare, RootError, ShareRoot, SingleShare};
pub use state::{Drawer, Entries, StateDir, keep_epoch_in, last_epoch_in};
