//! The mount, call by call, through a real FUSE mount.
//!
//! The programs under test are this process and a Python partner ([`common::program`]); what the
//! kernel does between them and the driver is part of what is tested. One file a subject.

pub mod fixture;

use crate::common::program;

mod attributes;
mod beside;
mod blocking;
mod case;
mod controlled;
mod cut_off;
mod data;
mod directories;
mod flock;
mod ioctls;
mod killed;
mod locks;
mod lookup;
mod mandatory;
mod names;
mod not_root;
mod opening;
mod owners;
mod pending;
mod posix;
mod releases;
mod replaced;
mod requests;
mod rest;
mod share_modes;
mod xattrs;
