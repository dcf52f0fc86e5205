//! Keeps `README.md` beside it true: all 117 statements, each with the tests that show it, and no
//! test that the page does not name.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::pages::page;

/// How many statements the article makes.
const STATEMENTS: u32 = 117;

/// The tests of this crate that are named after a statement, by its number.
fn tests() -> BTreeMap<u32, BTreeSet<String>> {
    let mut found: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    let texts = ["general", "blobs", "blob_leases", "tables", "queues", "files"]
        .map(|file| page(&format!("tests/faces/article/{file}.rs")));
    for line in texts.iter().flat_map(|text| text.lines()) {
        // A function, or a row of `statements`.
        let line = line.trim_start();
        let name = line.strip_prefix("fn ").unwrap_or(line).split(['(', ' ']).next().unwrap();
        let number = name.strip_prefix('s').and_then(|rest| rest.split('_').next());
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.entry(number).or_default().insert(name.to_owned());
        }
    }
    found
}

/// The rows of the page: a statement's number, and the last column.
fn rows() -> Vec<(u32, String)> {
    page("tests/faces/article/README.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| S"))
        .map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            let shown = cells.last().unwrap().trim_end_matches(" |");
            (cells[0].parse().unwrap(), shown.to_owned())
        })
        .collect()
}

#[test]
fn the_page_lists_every_statement_once_and_in_order() {
    let numbers: Vec<_> = rows().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..=STATEMENTS).collect::<Vec<_>>());
}

#[test]
fn the_page_names_for_each_statement_the_tests_there_are() {
    let tests = tests();
    for (number, shown) in rows() {
        let named: BTreeSet<_> = shown.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let known = tests.get(&number).cloned().unwrap_or_default();
        assert_eq!(named, known, "S{number}");
    }
}

#[test]
fn all_117_statements_are_shown() {
    let shown = tests().into_keys().collect::<Vec<_>>();
    assert_eq!(shown, (1..=STATEMENTS).collect::<Vec<_>>());
}
