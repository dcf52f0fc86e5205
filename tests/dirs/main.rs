//! Directories, listings, renames, copies and handles as REST sees them, on real files: the
//! engine's operations, without HTTP. Tests are named after the behaviours of the specification
//! (`bNNN`).
#![allow(clippy::unwrap_used, reason = "the helpers beside the tests are tests too")]

mod copies;
mod directories;
mod elsewhere;
mod fixture;
mod handles;
mod listing;
mod renames;
mod together;
