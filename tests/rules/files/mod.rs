//! REST's operations on files against opens, leases, byte-range locks and delete pending, through
//! the engine alone. A test named `bNNN_...` holds the behaviour of that number, which
//! its name tells; the others hold what the operations themselves promise.

mod create;
mod delete_pending;
mod fixture;
mod leases;
mod matrix;
mod properties;
mod range_locks;
mod read_only;
mod reading;
mod stamps;
mod writing;
