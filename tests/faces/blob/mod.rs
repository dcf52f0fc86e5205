//! The Blob service over HTTP, behaviour by behaviour. Each of B1 to B170 has one test, named after
//! its number, or is shown by rows of a table; [`counted`] fails where one is missing.

mod access;
mod bad_input;
mod batches;
mod blocks;
mod conditions;
mod container_rules;
mod counted;
mod delegated;
mod elsewhere;
pub mod fixture;
mod full_disk;
mod keys;
mod leases;
mod lists;
mod memory;
mod names;
mod options;
mod page;
mod pages;
mod policies;
mod properties;
mod races;
pub mod requests;
mod restricted;
mod sources;
mod states;
mod wire;
mod writes;
