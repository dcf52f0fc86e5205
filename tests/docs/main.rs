//! The README and the pages in `docs/` tell the truth.
//!
//! - [`sessions`]: what is shown as a terminal happens in one ([`terminal`]), as shown ([`shown`]);
//! - [`commands`]: every `latchfs` command, option and variable that a page names is there;
//! - [`pages`]: the messages on the page about trouble are the program's own, the picture of the
//!   source has every module, and the README leads to every page.
//!
//! What single pages say is held where it belongs: `tests/play`, `tests/replay`, `tests/mixed`,
//! `tests/article`, and `cli::reference` and `rest::coverage` in the library. That links lead
//! somewhere is for `tests/tidy`.
#![allow(clippy::unwrap_used, reason = "a test whose scene cannot be set fails there")]

#[path = "../common/mod.rs"]
mod common;

mod blocks;
mod commands;
mod pages;
mod sessions;
mod shown;
mod terminal;
