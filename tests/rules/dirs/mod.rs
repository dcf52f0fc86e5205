//! Directories, listings, renames, copies and handles as REST sees them, on real files: the
//! engine's operations, without HTTP. The numbered behaviours are in `tests/faces/mixed`.
mod copies;
mod directories;
mod elsewhere;
mod fixture;
mod handles;
mod listing;
mod renames;
mod together;
mod unsaved;
