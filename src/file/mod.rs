//! The File service: shares of directories and files, through REST, SMB and on a mount.

#[cfg(feature = "fuse")]
pub mod mount;
pub mod rest;
pub mod rules;
pub mod service;
#[cfg(feature = "smb")]
pub mod smb;
pub mod store;
