//! Bytes and metadata in a plain directory that a person can look into.
//!
//! Knows nothing of opens, share modes or leases: it is told what to do, and does it atomically
//! where the file system can. All paths are resolved beneath the share's root.

mod error;
mod stat;

pub use error::StoreError;
pub use stat::{Kind, Stat};
