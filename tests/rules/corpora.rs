//! The corpora of `fuzz/`: every file in them is read without a panic.
//!
//! The fuzzers themselves need another toolchain and run for minutes; what they found stays here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use latchfs::api::calls;
use latchfs::file::store::share::Record;
use latchfs::http::frame::any_input;

type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("control", calls::read_any),
    ("entity", any_input::entity),
    ("filter", any_input::filter),
    ("multipart", any_input::multipart),
    ("range", any_input::range),
    ("record", |bytes| drop(Record::from_bytes(bytes))),
    ("request", any_input::request),
    ("structured", any_input::structured),
    ("tag_query", any_input::tag_query),
    ("xml", any_input::xml),
];

fn fuzz(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder)
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_file_of_the_corpora_is_read_without_a_panic() {
    for (name, read) in TARGETS {
        let corpus = fs::read_dir(fuzz("corpus").join(name)).unwrap();
        let mut files = 0;
        for file in corpus {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            files += 1;
            // Cut off and spoilt, too.
            for end in [bytes.len(), bytes.len() / 2, bytes.len() / 3] {
                read(&bytes[..end]);
            }
            for at in 0..bytes.len().min(64) {
                let mut spoilt = bytes.clone();
                spoilt[at] ^= 0x20;
                read(&spoilt);
            }
        }
        assert!(files > 1, "{name} has {files} files");
    }
}

#[test]
fn every_fuzz_target_has_a_corpus_that_is_read_here() {
    let known: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz("fuzz_targets")), known);
    assert_eq!(names(&fuzz("corpus")), known);
}
