//! That every numbered behaviour of the Queue service has its test in this folder, or is shown by
//! rows of a table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const LAST: u32 = 44;
/// Shown by the rows of `docs/queue.md`, which [`super::page`] tries.
const BY_PAGE: [u32; 8] = [5, 6, 8, 11, 13, 15, 20, 25];
/// Shown by the statements S96, S99 and S102 of the article.
const BY_ARTICLE: [u32; 3] = [1, 2, 19];
/// Shown without HTTP, in `src/queue/service/tests/life.rs`: a clock that is set back.
const BY_SERVICE: u32 = 44;

#[test]
fn every_number_has_a_test_over_http() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faces/queue");
    let mut found = BTreeSet::from(BY_PAGE);
    found.extend(BY_ARTICLE);
    found.insert(BY_SERVICE);
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
