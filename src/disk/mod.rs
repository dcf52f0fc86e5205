//! The data directory: its layout, format version and lock, and files that are replaced as a whole.
//!
//! ```text
//!   data_root  the data directory of a server: accounts, format version
//!   state      the state folder of a share or account: state that belongs to no single file
//!   lock       the lock that gives a directory to one server
//!   folder     a folder of small files, each replaced as a whole
//!   part       what a service implements so that its data is saved and replaced with all other
//!   steps      points of a save or a replacement at which tests end the process
//!   tree       walks and removes whole directory trees
//!   synced     syncs of database and content files
//!   fnv        the hash in names of files that this program makes
//!   error      the errors of the disk
//!   testing    file systems of different kinds for tests
//! ```

pub(crate) mod data_root;
pub(crate) mod error;
pub(crate) mod fnv;
pub(crate) mod folder;
pub(crate) mod lock;
pub mod part;
pub(crate) mod state;
pub(crate) mod steps;
pub(crate) mod synced;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tree;

pub use data_root::{DataRoot, DataRootError, FORMAT, HIDDEN, OldLayout};
pub use error::StoreError;
pub(crate) use fnv::fnv1a;
pub use folder::Durability;
pub use lock::{OtherServer, ServedElsewhere};
pub use state::{Drawer, Entries, StateDir, keep_epoch_in, last_epoch_in};
