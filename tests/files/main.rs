//! REST's operations on files against opens, leases, byte-range locks and delete pending, through
//! the engine alone. A test named `bNNN_...` holds the behaviour of that number in LOCKING
//! section 10; the others hold what the operations themselves promise.

#![allow(clippy::unwrap_used, reason = "the fixture is part of the tests")]

mod create;
mod delete_pending;
mod fixture;
mod lease_against_opens;
mod leases;
mod matrix;
mod properties;
mod range_locks;
mod read_only;
mod reading;
mod stamps;
mod writing;
