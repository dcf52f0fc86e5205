//! The packages in `clients/`, installed and used as their users do.
//!
//! - [`python`]: the wheel, the class `Server`, the pytest plugin;
//! - [`node`]: the npm package, its fixtures for `node --test` and vitest;
//! - [`rust`]: the example that runs a server in its own process;
//! - [`explore`]: what `docs/explore.md` shows;
//! - [`artefacts`]: what `mount-scripts/dist` makes, on a Debian without Rust;
//! - [`pages`]: what `docs/testing.md` shows.
//!
//! `tests/run` installs what they need beside the packages, pinned; without it they are skipped.

mod artefacts;
mod explore;
mod node;
mod pages;
mod python;
mod rust;
mod sandbox;
