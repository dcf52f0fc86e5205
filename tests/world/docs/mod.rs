//! The README and the pages in `docs/` tell the truth.
//!
//! - [`sessions`]: what is shown as a terminal happens in one ([`terminal`]), as shown ([`shown`]);
//! - [`commands`]: every `latchfs` command, option and variable that a page names is there;
//! - [`front`]: the test on the front of the README, and its picture;
//! - [`workflows`]: the jobs of the section about CI run;
//! - [`pages`]: the messages on the page about trouble are the program's own, the picture of the
//!   source has every module, and the README leads to every page.
//!
//! What single pages say is held where it belongs: `tests/rules/replay`,
//! `tests/faces/mixed`, `tests/faces/article`, and `cli::reference` and `file::rest::coverage` in
//! the library. That links lead
//! somewhere is for `tests/rules/tidy`.

pub mod blocks;
mod commands;
mod front;
mod pages;
mod sessions;
mod shown;
mod terminal;
mod workflows;
