//! Files and directories that are taken away directly in the backing directory.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};

use crate::common::need;
use crate::common::served::{Served, wait_for};
use crate::ground::{create, errno, rest, write};

fn no_handles(served: &Served) {
    wait_for("no handle to be left", || {
        let output = served.latchfs(&["handles"]).output().unwrap();
        output.stdout.is_empty().then_some(())
    });
}

#[test]
fn a_file_removed_underneath_is_gone_on_both_faces_and_can_be_made_anew() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let path = served.mount().join("a");
    fs::write(&path, "old").unwrap();
    let mut open = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    fs::metadata(&path).unwrap();
    fs::remove_file(served.data().join("a")).unwrap();

    rest(&served, "GET", "/a", &[]).refused(404, "ResourceNotFound");
    write(&served, "a", b"x").refused(404, "ResourceNotFound");
    rest(&served, "DELETE", "/a", &[]).refused(404, "ResourceNotFound");
    // Who has it open goes on with it, as on any file system.
    open.write_all(b"new").unwrap();
    open.rewind().unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "new");
    // The kernel still knows the name: it looks again, and makes the file.
    assert_eq!(errno(File::open(&path)), libc::ENOENT);
    fs::write(&path, "again").unwrap();
    assert_eq!(rest(&served, "GET", "/a", &[]).is(200).text(), "again");
    drop(open);
    no_handles(&served);
    assert_eq!(fs::read(&path).unwrap(), b"again");
}

#[test]
fn a_file_that_the_kernel_knows_and_that_is_gone_is_made_by_an_open_that_creates() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let path = served.mount().join("a");
    for round in 0..20 {
        fs::write(&path, "old").unwrap();
        fs::metadata(&path).unwrap();
        if round % 2 == 0 {
            fs::remove_file(served.data().join("a")).unwrap();
        } else {
            rest(&served, "DELETE", "/a", &[]).is(202);
        }
        let made = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        assert_eq!(errno(made), 0, "round {round}");
        assert_eq!(fs::read(&path).unwrap(), b"", "round {round}");
    }
}

#[test]
fn a_file_replaced_underneath_is_the_new_one_to_all_who_come_later() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let path = served.mount().join("a");
    fs::write(&path, "old").unwrap();
    let mut open = File::open(&path).unwrap();
    fs::write(served.data().join("b"), "another").unwrap();
    fs::rename(served.data().join("b"), served.data().join("a")).unwrap();
    assert_eq!(rest(&served, "GET", "/a", &[]).is(200).text(), "another");
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "old");
    // The kernel still knows the name as that of the old one, which is open.
    assert_eq!(fs::read(&path).unwrap(), b"another");
    drop(open);
    no_handles(&served);
}

#[test]
fn a_directory_removed_underneath_takes_its_entries_with_it() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    fs::create_dir(served.mount().join("d")).unwrap();
    fs::write(served.mount().join("d/a"), "a").unwrap();
    let open = File::open(served.mount().join("d/a")).unwrap();
    fs::remove_dir_all(served.data().join("d")).unwrap();
    rest(&served, "GET", "/d/a", &[]).is(404);
    create(&served, "d/b", 1).refused(404, "ParentNotFound");
    rest(&served, "GET", "/d?restype=directory&comp=list", &[]).is(404);
    assert_eq!(errno(File::create(served.mount().join("d/b"))), libc::ENOENT);
    drop(open);
    no_handles(&served);
    fs::create_dir(served.data().join("d")).unwrap();
    create(&served, "d/b", 1).is(201);
}

#[test]
fn a_share_whose_directory_is_taken_away_refuses_and_the_server_goes_on() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    fs::write(served.mount().join("a"), "a").unwrap();
    fs::remove_dir_all(served.data()).unwrap();
    rest(&served, "GET", "/a", &[]).is(404);
    create(&served, "b", 1).is(404);
    assert_eq!(errno(File::create(served.mount().join("b"))), libc::ENOENT);
    let status = served.latchfs(&["status"]).output().unwrap();
    assert!(status.status.success(), "{status:?}");
}
