//! The File service: shares of directories and files, through REST and on a mount.

#[cfg(feature = "fuse")]
pub mod mount;
pub mod rest;
pub mod rules;
pub mod service;
pub mod store;
