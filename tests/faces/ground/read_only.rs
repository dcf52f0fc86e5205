//! A backing directory that cannot be written.

use std::fs::{self, File};

use crate::common::ground::Ground;
use crate::common::need;
use crate::common::served::Served;
use crate::ground::{create, errno, rest, start_fails, write};

/// The directory of the share, on its ground.
const SHARE: &str = "data/devstoreaccount1/files/share";

/// What both faces say while the directory is read-only.
fn check_refused(served: &Served) {
    let code = "InsufficientAccountPermissions";
    create(served, "new", 1).refused(403, code);
    write(served, "kept", b"x").refused(403, code);
    rest(served, "DELETE", "/kept", &[]).refused(403, code);
    rest(served, "PUT", "/kept?comp=metadata", &[("x-ms-meta-a", "2")]).refused(403, code);
    rest(served, "PUT", "/d?restype=directory", &[]).refused(403, code);
    let at = |name: &str| served.mount().join(name);
    assert_eq!(errno(File::create(at("new"))), libc::EROFS);
    assert_eq!(errno(fs::remove_file(at("kept"))), libc::EROFS);
    assert_eq!(errno(fs::rename(at("kept"), at("moved"))), libc::EROFS);
    assert_eq!(errno(fs::create_dir(at("d"))), libc::EROFS);
    let opened = File::options().append(true).open(at("kept"));
    let written = opened.and_then(|mut file| std::io::Write::write_all(&mut file, b"x"));
    assert_eq!(errno(written), libc::EROFS);
    // Reading goes on, and nothing was changed by trying.
    assert_eq!(fs::read(at("kept")).unwrap(), b"hello");
    assert_eq!(rest(served, "GET", "/kept", &[]).is(200).text(), "hello");
}

#[test]
fn a_directory_that_turns_read_only_is_read_on_and_says_so_to_writers() {
    if !need::fuse() || !need::root() {
        return;
    }
    let mut ground = Ground::new("tmpfs", c"size=4m");
    let data = ground.path().join("data");
    ground.bind(SHARE);
    let args = ["--no-auth", "--data", data.to_str().unwrap()];
    let mut served = Served::start(&args);
    fs::write(served.mount().join("kept"), "hello").unwrap();
    ground.set_read_only(SHARE, true);
    check_refused(&served);
    // A start on it serves it all the same.
    served.crash_and_restart(&args);
    check_refused(&served);
    ground.set_read_only(SHARE, false);
    write(&served, "kept", b"HE").is(201);
    assert_eq!(fs::read(served.mount().join("kept")).unwrap(), b"HEllo");
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named_at_the_start() {
    if !need::root() {
        return;
    }
    let mut ground = Ground::new("tmpfs", c"size=4m");
    let data = ground.bind("data");
    ground.set_read_only("data", true);
    let told = start_fails(&data);
    assert!(told.contains("read-only") || told.contains("Read-only"), "{told}");
    assert!(told.contains(data.to_str().unwrap()), "{told}");
}
