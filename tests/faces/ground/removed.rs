//! Files and directories that are taken away directly in the backing directory.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::SocketAddr;

use crate::common::http::{ask, ask_as_it_is};
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

/// The address that a server told under `endpoints`, or under `admin`.
fn address(served: &Served, service: &str) -> SocketAddr {
    let text = fs::read_to_string(served.ready_file()).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
    let url = ready["endpoints"][service].as_str().or_else(|| ready[service].as_str()).unwrap();
    url.split('/').nth(2).unwrap().parse().unwrap()
}

#[test]
fn databases_that_are_taken_away_are_told_and_nothing_more_is_acknowledged() {
    let any = "127.0.0.1:0";
    let args = ["--no-auth", "--no-mount", "--blob", any, "--queue", any, "--table", "off"];
    let served = Served::start(&[&args[..], &["--admin", any]].concat());
    let (blob, queue) = (address(&served, "blob"), address(&served, "queue"));
    let admin = address(&served, "admin");
    let health = || ask_as_it_is(admin, &admin.to_string(), "GET", "/healthz", &[], b"");
    let put = || {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        ask(blob, "PUT", "/box/b", &headers, b"hello")
    };
    ask(blob, "PUT", "/box?restype=container", &[], b"").is(201);
    ask(queue, "PUT", "/tasks", &[], b"").is(201);
    put().is(201);
    health().is(200);
    let account = served.data().parent().unwrap().parent().unwrap().to_owned();
    // The content of blobs alone, then all of it.
    for (name, gone) in [("blobs", "blobs was removed"), ("blob.db", "blob.db was removed")] {
        let (path, aside) = (account.join(name), account.join("aside"));
        fs::rename(&path, &aside).unwrap();
        let refused = wait_for("a refusal", || Some(put()).filter(|got| got.status != 201));
        assert_eq!(refused.status, 503);
        assert!(refused.text().contains(gone), "{}", refused.text());
        let unwell = health();
        assert!(unwell.status == 503 && unwell.text().contains(gone), "{}", unwell.text());
        ask(queue, "PUT", &format!("/{}", name.replace('.', "-")), &[], b"").is(201);
        fs::rename(&aside, &path).unwrap();
        health().is(200);
        wait_for("a write", || Some(put()).filter(|got| got.status == 201));
    }
}
