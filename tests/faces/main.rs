//! The front ends, alone and where they meet: mount, REST, control socket, commands.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod article;
mod bench;
mod blob;
mod control;
mod events;
mod ground;
mod leases;
mod mixed;
mod mount;
mod mount_model;
mod queue;
mod rest;
mod service;
#[cfg(feature = "smb")]
mod smb;
mod states;
mod table;
