//! The state of a server as a whole, replaced while clients are connected and mounts are in use.

mod fixture;
mod full;
mod older;
mod reset;
mod restore;
