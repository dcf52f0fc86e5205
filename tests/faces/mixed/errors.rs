//! Bounds, ranges, copies and missing parents (behaviours 130-134).

use std::fs;
use std::sync::Arc;

use latchfs::clock::{SystemClock, TimeSource};
use latchfs::file::rules::SharePath;
use latchfs::file::service::{Asking, CopyOptions};
use latchfs::rules::{Client, Context, Owner};

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, errno};
use crate::common::served::wait_for;
use crate::mixed::inside::Inside;

const LARGEST: usize = 4 << 20;

#[test]
fn b130_a_range_has_at_most_4_mib_and_a_file_to_go_to() {
    let Some(at) = Meeting::start() else { return };
    let file = at.named("b130");
    fs::File::create(file.path()).unwrap().set_len(LARGEST as u64 + 1).unwrap();
    at.wait_idle("b130");
    let body = vec![7; LARGEST + 1];
    at.put_range(&file.target(), 0, &body, &[]).refused(413, "RequestBodyTooLarge");
    at.put_range(&file.target(), 1, &body[1..], &[]).is(201);
    assert_eq!(fs::read(file.path()).unwrap()[..3], [0, 7, 7]);
    at.named("b130-none").call(Call::Put).refused(404, "ResourceNotFound");
    fs::remove_file(file.path()).unwrap();
}

#[test]
fn b131_a_range_past_the_end_is_refused_and_holes_are_zeros() {
    let Some(at) = Meeting::start() else { return };
    let file = at.named("b131");
    fs::File::create(file.path()).unwrap().set_len(100_000).unwrap();
    let read = |range: &str| file.call_with(Call::Get, &[("x-ms-range", range)]);
    read("bytes=100000-100001").refused(416, "InvalidRange");
    let got = read("bytes=99990-100001").is(206);
    assert_eq!(got.body, [0; 10]);
    assert_eq!(got.header("content-range"), "bytes 99990-99999/100000");
}

#[test]
fn b132_a_copy_under_way_keeps_writers_away_until_it_is_aborted_which_empties_the_file() {
    let Some(at) = Inside::start() else { return };
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "20971520")];
    at.put("/share/long", &create).is(201);
    let client = Arc::new(Client { session: 1, name: "test".to_owned() });
    let who = Owner { client, pid: 0, program: None };
    let cx = Context::local(SystemClock.now(), who, "test");
    let options = CopyOptions { id: "copy-1".to_owned(), ..CopyOptions::default() };
    let path = |name: &str| SharePath::new(name).unwrap();
    let (share, asking) = (at.share(), Asking { cx: &cx, lease_id: None });
    let started = share.start_copy(asking, (&*share, &path("long")), &path("to"), &options);
    // Under way for as long as somebody keeps the rest of it.
    let Some(_rest) = started.unwrap().rest else {
        eprintln!("SKIPPED: this file system shares extents, no copy is ever under way");
        return;
    };
    assert_eq!(at.head("/share/to").is(200).header("x-ms-copy-status"), "pending");
    at.put_range("/share/to", 0, b"x", &[]).refused(409, "PendingCopyOperation");
    let abort = [("x-ms-copy-action", "abort")];
    at.put("/share/to?comp=copy&copyid=copy-1", &abort).is(204);
    let got = at.head("/share/to").is(200);
    assert_eq!((got.header("x-ms-copy-status"), got.header("content-length")), ("aborted", "0"));
    assert_eq!(fs::metadata(at.path("to")).unwrap().len(), 0);
}

#[test]
fn b133_a_copy_that_has_ended_is_not_aborted() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b133");
    let got = file.call(Call::CopyFrom).is(202);
    let id = got.header("x-ms-copy-id").to_owned();
    let copy = file.beside(".target");
    wait_for("the copy", || (copy.shown("x-ms-copy-status") == "success").then_some(()));
    let target = format!("{}?comp=copy&copyid={id}", copy.target());
    at.put(&target, &[("x-ms-copy-action", "abort")]).refused(409, "NoPendingCopyOperation");
    assert_eq!(copy.bytes(), file.bytes());
}

#[test]
fn b134_a_missing_parent_is_named_as_such() {
    let Some(at) = Meeting::start() else { return };
    at.named("b134/file").call(Call::Create).refused(404, "ParentNotFound");
    at.put("/share/b134/sub?restype=directory", &[]).refused(404, "ParentNotFound");
    assert_eq!(errno(fs::File::create(at.path("b134/file"))), libc::ENOENT);
}
