//! `docs/testing.md` and the READMEs of the packages show what the tests run.

use std::path::Path;

use super::{node, python};
use crate::common::pages::{blocks, page};

#[test]
fn the_tests_that_the_pages_show_are_the_ones_that_are_run() {
    let shown = |path: &str, language: &str, code: &str| {
        let page = page(path);
        let found = blocks(&page, language).iter().any(|block| *block == code.trim_end());
        assert!(found, "{path} does not show\n{code}");
    };
    for path in ["docs/testing.md", "clients/python/README.md"] {
        shown(path, "python", python::FIVE_LINES);
    }
    for path in ["docs/testing.md", "clients/node/README.md"] {
        shown(path, "js", node::FIVE_LINES);
        shown(path, "js", node::FIVE_LINES_OF_VITEST);
    }
    let example = Path::new("clients/rust/tests/busy.rs");
    shown("docs/testing.md", "rust", &page(example.to_str().unwrap()));
}
