//! Names in any case: the kernel remembers each spelling, and none outlives the file's name.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;

use crate::mount::fixture::{Fixture, errno, rounds};

const SPELLINGS: [&str; 4] = ["file.txt", "FILE.TXT", "File.Txt", "fILE.tXT"];

/// The kernel has them all in its caches.
fn look_at_all(at: &Fixture) {
    for name in SPELLINGS {
        assert_eq!(errno(fs::metadata(at.path(name))), 0, "{name}");
    }
}

/// None is left, to `stat`, to `open` or in the listing.
fn none_is_left(at: &Fixture, round: usize) {
    for name in SPELLINGS {
        assert_eq!(errno(fs::metadata(at.path(name))), libc::ENOENT, "{name}, round {round}");
        assert_eq!(errno(File::open(at.path(name))), libc::ENOENT, "{name}, round {round}");
    }
}

#[test]
fn a_file_is_one_in_every_spelling() {
    let Some(at) = Fixture::start() else { return };
    at.make("File.Txt", "one");
    for name in SPELLINGS {
        assert_eq!(fs::read_to_string(at.path(name)).unwrap(), "one");
    }
    fs::write(at.path("FILE.TXT"), "longer").unwrap();
    for name in SPELLINGS {
        assert_eq!(fs::read_to_string(at.path(name)).unwrap(), "longer");
    }
    let listed: Vec<_> =
        fs::read_dir(&at.mnt).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(listed, ["File.Txt"]);
}

#[test]
fn a_size_changed_through_one_spelling_is_seen_through_the_others() {
    let Some(at) = Fixture::start() else { return };
    at.make("file.txt", "");
    for size in 1..50 {
        look_at_all(&at);
        let name = SPELLINGS[usize::try_from(size).unwrap() % 4];
        let file = fs::OpenOptions::new().write(true).open(at.path(name)).unwrap();
        file.set_len(size).unwrap();
        for name in SPELLINGS {
            assert_eq!(fs::metadata(at.path(name)).unwrap().size(), size, "{name}");
        }
    }
}

#[test]
fn no_spelling_survives_the_removal() {
    let Some(at) = Fixture::start() else { return };
    for round in 0..rounds(300) {
        fs::write(at.path("file.txt"), "").unwrap();
        look_at_all(&at);
        fs::remove_file(at.path(SPELLINGS[round % 4])).unwrap();
        none_is_left(&at, round);
    }
}

#[test]
fn no_spelling_survives_a_rename() {
    let Some(at) = Fixture::start() else { return };
    fs::write(at.path("file.txt"), "").unwrap();
    for round in 0..rounds(300) {
        look_at_all(&at);
        fs::rename(at.path(SPELLINGS[round % 4]), at.path("moved")).unwrap();
        none_is_left(&at, round);
        fs::rename(at.path("MOVED"), at.path("file.txt")).unwrap();
    }
}

#[test]
fn no_spelling_survives_the_end_of_a_pending_file() {
    let Some(at) = Fixture::start() else { return };
    for round in 0..rounds(300) {
        let held = File::create(at.path("file.txt")).unwrap();
        look_at_all(&at);
        fs::remove_file(at.path(SPELLINGS[round % 4])).unwrap();
        look_at_all(&at);
        drop(held);
        none_is_left(&at, round);
        assert_eq!(fs::read_dir(&at.mnt).unwrap().count(), 0, "round {round}");
    }
}

#[test]
fn no_spelling_of_a_directory_survives_its_rename() {
    let Some(at) = Fixture::start() else { return };
    fs::create_dir(at.path("dir")).unwrap();
    fs::write(at.path("dir/f"), "").unwrap();
    for round in 0..rounds(100) {
        for dir in ["dir", "DIR", "Dir"] {
            assert_eq!(errno(fs::metadata(at.path(dir).join("f"))), 0);
        }
        fs::rename(at.path("Dir"), at.path("moved")).unwrap();
        for dir in ["dir", "DIR", "Dir"] {
            assert_eq!(errno(fs::metadata(at.path(dir))), libc::ENOENT, "round {round}");
            assert_eq!(errno(fs::metadata(at.path(dir).join("f"))), libc::ENOENT, "{round}");
        }
        fs::rename(at.path("moved"), at.path("dir")).unwrap();
    }
}

#[test]
fn what_replaces_a_file_is_seen_in_every_spelling() {
    let Some(at) = Fixture::start() else { return };
    for round in 0..rounds(200) {
        let text = round.to_string();
        fs::write(at.path("new"), &text).unwrap();
        if round > 0 {
            look_at_all(&at);
        }
        fs::rename(at.path("new"), at.path(SPELLINGS[round % 4])).unwrap();
        for name in SPELLINGS {
            assert_eq!(fs::read_to_string(at.path(name)).unwrap(), text, "{name}");
        }
    }
}
