//! Looking names up and forgetting them, odd and long names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use crate::mount::fixture::{Fixture, errno};

const MANY: usize = 10_000;

#[test]
fn ten_thousand_files_are_made_found_dropped_from_the_cache_and_found_again() {
    let Some(at) = Fixture::start() else { return };
    let dir = at.path("many");
    fs::create_dir(&dir).unwrap();
    for n in 0..MANY {
        fs::write(dir.join(n.to_string()), "").unwrap();
    }
    // The kernel forgets its nodes with its caches, where this process may empty them.
    let emptied = fs::write("/proc/sys/vm/drop_caches", "2").is_ok();
    for n in (0..MANY).step_by(7) {
        assert!(fs::metadata(dir.join(n.to_string())).unwrap().is_file());
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), MANY);
    for n in 0..MANY {
        fs::remove_file(dir.join(n.to_string())).unwrap();
    }
    fs::remove_dir(&dir).unwrap();
    at.idle();
    assert!(emptied || fs::metadata(&dir).is_err());
}

#[test]
fn a_name_that_is_not_utf8_cannot_be_on_a_share() {
    let Some(at) = Fixture::start() else { return };
    let path = at.mnt.join(OsStr::from_bytes(b"caf\xe9"));
    assert_eq!(errno(fs::write(&path, "")), libc::EILSEQ);
    assert_eq!(errno(fs::metadata(&path)), libc::EILSEQ);
    assert_eq!(errno(fs::create_dir(&path)), libc::EILSEQ);
}

#[test]
fn a_name_has_at_most_255_bytes() {
    let Some(at) = Fixture::start() else { return };
    let longest = "x".repeat(255);
    at.make(&longest, "long");
    assert_eq!(fs::read_to_string(at.path(&longest)).unwrap(), "long");
    let too_long = at.path(&"x".repeat(256));
    assert_eq!(errno(fs::write(&too_long, "")), libc::ENAMETOOLONG);
    assert_eq!(errno(fs::metadata(&too_long)), libc::ENAMETOOLONG);
}

#[test]
fn names_that_smb_could_not_hold_are_names_on_the_mount() {
    let Some(at) = Fixture::start() else { return };
    for name in ["a:b", "what?", "*", "back\\slash", " space ", "dot.", "\u{1f512}", "con"] {
        at.make(name, name);
        assert_eq!(fs::read_to_string(at.path(name)).unwrap(), name);
        assert!(at.root.join(name).exists());
    }
}

#[test]
fn a_path_may_be_deep() {
    let Some(at) = Fixture::start() else { return };
    let mut dir = at.mnt.clone();
    for depth in 0..60 {
        dir = dir.join(format!("level-{depth:02}-{}", "d".repeat(40)));
        fs::create_dir(&dir).unwrap();
    }
    fs::write(dir.join("leaf"), "deep").unwrap();
    assert_eq!(fs::read_to_string(dir.join("leaf")).unwrap(), "deep");
    fs::remove_file(dir.join("leaf")).unwrap();
    fs::remove_dir_all(at.path(&format!("level-00-{}", "d".repeat(40)))).unwrap();
}

#[test]
fn a_missing_name_and_a_file_on_the_way_are_told_apart() {
    let Some(at) = Fixture::start() else { return };
    at.make("file", "");
    assert_eq!(errno(fs::metadata(at.path("none"))), libc::ENOENT);
    assert_eq!(errno(fs::metadata(at.path("none/x"))), libc::ENOENT);
    assert_eq!(errno(fs::metadata(at.path("file/x"))), libc::ENOTDIR);
}

#[test]
fn a_file_dropped_into_the_directory_behind_is_simply_there() {
    let Some(at) = Fixture::start() else { return };
    fs::write(at.root.join("dropped"), "in").unwrap();
    assert_eq!(fs::read_to_string(at.path("dropped")).unwrap(), "in");
    assert_eq!(fs::metadata(at.path("dropped")).unwrap().size(), 2);
}
