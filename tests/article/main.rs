//! The article behind the project, statement by statement: "Managing Concurrency in Microsoft
//! Azure Storage". A test is named after its statement, `s107_` after S107, and goes through a
//! real mount and real HTTP. `docs/article.md` lists them all; [`page`] keeps it true.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test as the test itself would"
)]

#[path = "../common/mod.rs"]
mod common;

mod files;
mod general;
mod page;
