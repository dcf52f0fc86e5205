//! Names: looking them up, deleting, renaming and linking them.
//!
//! ```text
//!   lookup       looking names up, listing
//!   delete       delete pending, unlink, rmdir, undelete
//!   rename       rename; exchange, link
//! ```

pub(crate) mod delete;
pub(crate) mod exchange;
pub(crate) mod link;
pub(crate) mod lookup;
pub(crate) mod rename;

pub use delete::{NameRules, Unlinked};
pub use lookup::FileSystemSpace;
pub use rename::MoveHow;
