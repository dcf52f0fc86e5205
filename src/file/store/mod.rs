//! The bytes of shares: directories served as they are, with what an inode cannot hold beside them.
//!
//! ```text
//!   root    the shares of an account, where they are on disk
//!   share   one share: paths, files, records, snapshots
//! ```

pub mod root;
pub mod share;
