//! The mount, call by call, through a real FUSE mount.
//!
//! The programs under test are this process and a Python partner ([`common::program`]); what the
//! kernel does between them and the driver is part of what is tested. One file a subject.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test as the test itself would"
)]

#[path = "../common/mod.rs"]
mod common;

mod fixture;

use common::program;

mod attributes;
mod beside;
mod case;
mod data;
mod directories;
mod flock;
mod ioctls;
mod killed;
mod locks;
mod lookup;
mod mandatory;
mod names;
mod opening;
mod owners;
mod pending;
mod posix;
mod releases;
mod rest;
mod share_modes;
mod xattrs;
