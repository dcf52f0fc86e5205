//! Holds that every numbered behaviour of the specification has its test here, and only one, or is
//! shown by rows of a table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How many numbered behaviours there are.
const BEHAVIOURS: u32 = 136;

/// What tables show: a handle against every operation, in `matrix`; a file lease against every
/// action and use, in `faces/rest/leases`; a pending file against every operation, in
/// `life_of_a_mark`; what moves the `ETag` and what does not, in `coherence`. The last two are S110
/// and S116 of the article.
const BY_TABLE: [(&str, &[u32]); 5] = [
    (
        "matrix",
        &[15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 35, 36, 37, 38],
    ),
    ("the tables of leases", &[80, 81, 82, 83, 84, 85, 86, 89, 90, 91, 92]),
    ("life_of_a_mark", &[46, 47, 48, 51]),
    ("coherence", &[126, 127]),
    ("the article", &[52, 58]),
];

#[test]
fn every_behaviour_has_exactly_one_test() {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (table, numbers) in BY_TABLE {
        for number in numbers {
            found.entry(*number).or_default().push(table.to_owned());
        }
    }
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
