//! Where mount and REST meet: one running latchfs, a program on its mount, a caller of its REST
//! interface, and the same file between them.
//!
//! The numbered tests are one behaviour each, which the name tells: `b017_` is number 17, and
//! [`numbers`] holds that none is missing. "open(A; S)" in their names and comments is an open on
//! the mount side with access A and share mode S. A comment says where an answer is a choice that
//! the service leaves open.

mod inside;
mod numbers;
use crate::common::random;

mod coherence;
mod errors;
mod force_close;
mod handles;
mod lease_meets_mount;
mod leased_opens;
mod leases;
mod life_of_a_mark;
mod links;
mod matrix;
mod one_handle;
mod opens;
mod pending;
mod pending_directories;
mod programs;
mod ranges;
mod read_only;
mod renames;
mod sdk;
mod semantics;
mod share_deletion;
mod share_leases;
mod stamps;
mod traffic;
