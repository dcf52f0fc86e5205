//! Holds that every numbered behaviour of the specification has its test here, and only one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How many numbered behaviours there are.
const BEHAVIOURS: u32 = 136;

#[test]
fn every_behaviour_has_exactly_one_test() {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faces/mixed");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // Only what the harness runs counts.
        for test in text.split("#[test]\n").skip(1) {
            let name = test.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).unwrap();
            let number = name.strip_prefix('b').and_then(|rest| rest.split('_').next());
            if let Some(number) = number.filter(|digits| digits.len() == 3) {
                found.entry(number.parse().unwrap()).or_default().push(name.to_owned());
            }
        }
    }
    let missing: Vec<_> = (1..=BEHAVIOURS).filter(|number| !found.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test for {missing:?}");
    let double: Vec<_> = found.values().filter(|names| names.len() > 1).collect();
    assert!(double.is_empty(), "more than one test for one number: {double:?}");
    assert_eq!(found.keys().copied().max(), Some(BEHAVIOURS), "a number that nobody gave");
}
