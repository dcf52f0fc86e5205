//! Where mount and REST meet: one running latchfs, a program on its mount, a caller of its REST
//! interface, and the same file between them.
//!
//! The numbered tests are the behaviours of the specification (LOCKING section 10), one each:
//! `b017_` is number 17, and [`numbers`] holds that none is missing. "open(A; S)" in their names
//! and comments is an open on the mount side with access A and share mode S. A comment says where
//! the specification marks an answer as a choice.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test as the test itself would"
)]

#[path = "../common/mod.rs"]
mod common;

mod inside;
mod numbers;
#[path = "../model/random.rs"]
#[allow(dead_code, reason = "the model's tests use all of it")]
mod random;

mod coherence;
mod errors;
mod force_close;
mod handles;
mod lease_meets_mount;
mod leased_opens;
mod leases;
mod life_of_a_mark;
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
mod share_leases;
mod stamps;
mod traffic;
