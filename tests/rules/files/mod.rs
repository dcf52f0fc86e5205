//! What REST's operations on files promise by themselves, through the engine alone. The numbered
//! behaviours of a mount and REST together are in `tests/faces/mixed`.

mod create;
mod fixture;
mod leases;
mod properties;
mod range_locks;
mod reading;
mod stamps;
mod writing;
