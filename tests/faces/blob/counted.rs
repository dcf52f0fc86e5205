//! Counts the behaviours B1 to B170: each has one test of its own, whose name begins with its
//! number and names no other.

use std::collections::BTreeMap;

const SOURCES: [&str; 14] = [
    include_str!("access.rs"),
    include_str!("blocks.rs"),
    include_str!("conditions.rs"),
    include_str!("container_leases.rs"),
    include_str!("container_rules.rs"),
    include_str!("lease_actions.rs"),
    include_str!("lease_use.rs"),
    include_str!("lists.rs"),
    include_str!("mod.rs"),
    include_str!("pages.rs"),
    include_str!("races.rs"),
    include_str!("reads.rs"),
    include_str!("states.rs"),
    include_str!("writes.rs"),
];

const BEHAVIOURS: std::ops::RangeInclusive<u32> = 1..=170;

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
    let missing: Vec<u32> = BEHAVIOURS.filter(|number| !shown.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test shows {missing:?}");
    let unknown: Vec<_> = shown.keys().filter(|number| !BEHAVIOURS.contains(number)).collect();
    assert!(unknown.is_empty(), "there are no behaviours {unknown:?}");
    let twice: Vec<_> = shown.values().filter(|names| names.len() > 1).collect();
    assert!(twice.is_empty(), "more than one test each: {twice:?}");
}
