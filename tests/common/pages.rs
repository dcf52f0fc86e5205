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

/// The rows of the table that stands below a heading of a page, without its head.
pub fn rows_of(path: &str, heading: &str) -> Vec<Vec<String>> {
    let page = page(path);
    let lines = section(&page, heading).lines();
    let lines = lines.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = lines.skip(1).map(|line| line.split(" | ").map(str::to_owned).collect());
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 3, "{heading}");
    rows
}

/// The code blocks of that language.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}
