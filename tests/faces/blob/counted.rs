//! Counts the behaviours B1 to B170: each has one test of its own, whose name begins with its
//! number and names no other, or is shown by rows of a table.

use std::collections::BTreeMap;

const SOURCES: [&str; 12] = [
    include_str!("access.rs"),
    include_str!("bad_input.rs"),
    include_str!("blocks.rs"),
    include_str!("conditions.rs"),
    include_str!("container_rules.rs"),
    include_str!("leases.rs"),
    include_str!("lists.rs"),
    include_str!("mod.rs"),
    include_str!("pages.rs"),
    include_str!("races.rs"),
    include_str!("states.rs"),
    include_str!("writes.rs"),
];

const BEHAVIOURS: std::ops::RangeInclusive<u32> = 1..=170;

/// The behaviours that tables show, with the tests that run the tables.
const BY_TABLE: [(&str, &[u32]); 4] = [
    (
        "the tables of conditions, in `conditions`",
        &[
            4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28,
            29, 31, 33, 34, 35, 49, 50, 51, 52,
        ],
    ),
    (
        "the tables of leases, in `leases`",
        &[
            38, 59, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80,
            81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 101, 104, 112, 113,
            114, 115, 116, 117, 118, 120,
        ],
    ),
    ("the tables of docs/blob.md, in `page`", &[30, 32, 36, 39, 100]),
    ("the statements of the article", &[1, 3, 6, 37, 40, 48, 53, 58]),
];

/// The number of a word like `b042`.
fn number(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('b').filter(|digits| digits.len() == 3)?;
    digits.parse().ok()
}

/// The name of a test in a line of source: of a function, or of a row of a table of tests.
fn name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("fn ").unwrap_or(line);
    let name = rest.split(['(', ' ']).next()?;
    number(name.split('_').next()?).map(|_| name)
}

#[test]
fn every_behaviour_has_one_test_of_its_own() {
    let mut shown: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for name in SOURCES.iter().flat_map(|source| source.lines()).filter_map(name) {
        let numbers: Vec<u32> = name.split('_').filter_map(number).collect();
        assert_eq!(numbers.len(), 1, "{name} names more than one behaviour");
        shown.entry(numbers[0]).or_default().push(name);
    }
    for (table, numbers) in BY_TABLE {
        for number in numbers {
            shown.entry(*number).or_default().push(table);
        }
    }
    let missing: Vec<u32> = BEHAVIOURS.filter(|number| !shown.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test shows {missing:?}");
    let unknown: Vec<_> = shown.keys().filter(|number| !BEHAVIOURS.contains(number)).collect();
    assert!(unknown.is_empty(), "there are no behaviours {unknown:?}");
    let twice: Vec<_> = shown.values().filter(|names| names.len() > 1).collect();
    assert!(twice.is_empty(), "more than one test each: {twice:?}");
}
