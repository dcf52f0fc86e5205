//! Names: looking them up, deleting, renaming and linking them.
//!
//! ```text
//!   lookup       looking names up, listing
//!   delete       delete pending, unlink, rmdir, undelete
//!   rename       rename; exchange, link
//! ```

pub(in crate::file::service) mod delete;
pub(in crate::file::service) mod exchange;
pub(in crate::file::service) mod link;
pub(in crate::file::service) mod lookup;
pub(in crate::file::service) mod rename;

pub use delete::Unlinked;
pub use lookup::FileSystemSpace;
