//! That every numbered behaviour of the Queue service has its test in this folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const LAST: u32 = 44;

#[test]
fn every_number_has_a_test_over_http() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faces/queue");
    let mut found = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let tests = text.split("#[test]\nfn q").skip(1);
        let numbers = tests.filter_map(|rest| rest.split('_').next()?.parse::<u32>().ok());
        for number in numbers {
            assert!(found.insert(number), "q{number}_ is there twice");
        }
    }
    assert_eq!(found, (1..=LAST).collect());
}
