//! Counts the behaviours: every number from 1 to 84 is in the name of a test, or rows of a table
//! show it.

use std::collections::BTreeSet;

use crate::common::pages::page;

/// Behaviours of the Table service.
const BEHAVIOURS: u32 = 84;
/// Shown by the rows of `docs/table.md`, which [`super::page`] tries. What they leave out is in the
/// tables beside the rules.
const BY_PAGE: [u32; 20] =
    [6, 7, 8, 11, 17, 19, 24, 25, 26, 27, 28, 29, 35, 37, 38, 39, 53, 54, 55, 65];
/// Shown by the statements S86 and S78 of the article.
const BY_ARTICLE: [u32; 2] = [2, 15];

#[test]
fn every_behaviour_has_a_test_of_its_number() {
    let files = ["entities", "values", "queries", "transactions", "access"];
    let mut paths = files.map(|file| format!("tests/faces/table/{file}.rs")).to_vec();
    // A killed server needs a process of its own.
    paths.push("tests/long/durability/tables.rs".to_owned());
    let texts: Vec<_> = paths.iter().map(|path| page(path)).collect();
    let mut found = BTreeSet::from(BY_PAGE);
    found.extend(BY_ARTICLE);
    for test in texts.iter().flat_map(|text| text.split("#[test]\n").skip(1)) {
        let name = test.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).unwrap();
        let numbers = name.split('_').map_while(|word| word.strip_prefix('t')?.parse::<u32>().ok());
        found.extend(numbers);
    }
    assert_eq!(found, (1..=BEHAVIOURS).collect());
}
