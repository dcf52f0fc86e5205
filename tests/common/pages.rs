//! The pages of the repository, and the blocks of code in them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;

/// The text of a page.
pub fn page(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// What stands below a heading of the second level, up to the next one.
pub fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = format!("\n## {heading}\n");
    let (_, below) = page.split_once(&start).unwrap_or_else(|| panic!("no heading '{heading}'"));
    below.split("\n## ").next().unwrap()
}

/// The code blocks of that language.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}
