//! Names: looking them up, deleting, renaming and linking them.
//!
//! ```text
//!   lookup       looking names up, listing
//!   delete       delete pending, unlink, rmdir, undelete
//!   rename       rename; exchange, link
//! ```

pub(in crate::engine::file) mod delete;
pub(in crate::engine::file) mod exchange;
pub(in crate::engine::file) mod link;
pub(in crate::engine::file) mod lookup;
pub(in crate::engine::file) mod rename;

pub use delete::Unlinked;
pub use lookup::FileSystemSpace;
