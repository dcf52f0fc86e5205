//! Copy File, Abort Copy File, Put Range From URL.

use std::time::{Duration, Instant};

use crate::common::served::wait_for;
use crate::rest::fixture::Fixture;

#[test]
fn a_copy_has_the_bytes_and_says_how_it_went() {
    let fixture = Fixture::new();
    fixture.upload("a%20b", b"bytes");
    // The name of the real service stands for this one.
    let url = "https://devstoreaccount1.file.core.windows.net/docs/a%20b";
    let got = fixture.put("/docs/b", &[("x-ms-copy-source", url)]).is(202);
    let id = got.header("x-ms-copy-id").to_owned();
    let deadline = Instant::now() + Duration::from_secs(10);
    let got = loop {
        let got = fixture.head("/docs/b").is(200);
        if got.header("x-ms-copy-status") != "pending" || Instant::now() > deadline {
            break got;
        }
    };
    assert_eq!(got.header("x-ms-copy-status"), "success");
    assert_eq!((got.header("x-ms-copy-id"), got.header("x-ms-copy-source")), (&*id, url));
    assert_eq!(got.header("x-ms-copy-progress"), "5/5");
    assert_eq!(fixture.get("/docs/b").text(), "bytes");
    let abort = [("x-ms-copy-action", "abort")];
    let target = format!("/docs/b?comp=copy&copyid={id}");
    fixture.put(&target, &abort).refused(409, "NoPendingCopyOperation");
    fixture.put("/docs/b?comp=copy", &abort).refused(400, "MissingRequiredQueryParameter");
}

#[test]
fn a_long_copy_goes_on_after_its_answer() {
    let fixture = Fixture::new();
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "20971520")];
    fixture.put("/docs/long", &create).is(201);
    fixture.put_range("/docs/long", 20_971_516, b"tail", &[]).is(201);
    let url = format!("http://{}/devstoreaccount1/docs/long", fixture.server.addr());
    fixture.put("/docs/copy", &[("x-ms-copy-source", &url)]).is(202);
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.head("/docs/copy").header("x-ms-copy-status") == "pending" {
        assert!(Instant::now() < deadline, "the copy does not end");
    }
    let got = fixture.head("/docs/copy").is(200);
    assert_eq!(got.header("x-ms-copy-status"), "success");
    assert_eq!(got.header("x-ms-copy-progress"), "20971520/20971520");
    let tail = [("x-ms-range", "bytes=20971516-")];
    assert_eq!(fixture.ask("GET", "/docs/copy", &tail, b"").is(206).text(), "tail");
}

#[test]
fn a_copy_from_elsewhere_or_from_nothing_is_refused() {
    let fixture = Fixture::new();
    let foreign = [("x-ms-copy-source", "http://192.0.2.1:1/x/docs/a")];
    let got = fixture.put("/docs/b", &foreign).refused(403, "CannotVerifyCopySource");
    assert!(got.text().contains("--copy-sources any"), "{}", got.text());
    let other = [("x-ms-copy-source", "ftp://192.0.2.1/x")];
    fixture.put("/docs/b", &other).refused(400, "InvalidHeaderValue");
    let url = format!("http://{}/devstoreaccount1/docs/a", fixture.server.addr());
    fixture.put("/docs/b", &[("x-ms-copy-source", &url)]).refused(404, "ResourceNotFound");
    fixture.put("/docs/b", &[("x-ms-copy-source", "nonsense")]).refused(400, "InvalidHeaderValue");
}

#[test]
fn a_range_is_taken_from_another_file() {
    let fixture = Fixture::new();
    fixture.upload("a", b"0123456789");
    fixture.upload("b", b"----------");
    let url = format!("http://{}/devstoreaccount1/docs/a", fixture.server.addr());
    let headers = [
        ("x-ms-write", "update"),
        ("x-ms-range", "bytes=0-2"),
        ("x-ms-source-range", "bytes=7-9"),
        ("x-ms-copy-source", url.as_str()),
    ];
    let got = fixture.put("/docs/b?comp=range", &headers).is(201);
    assert_eq!(got.header("x-ms-content-crc64").len(), 12);
    assert_eq!(fixture.get("/docs/b").text(), "789-------");
    let crc = got.header("x-ms-content-crc64").to_owned();
    let mut none = headers.to_vec();
    none.push(("x-ms-source-if-none-match-crc64", &crc));
    fixture.put("/docs/b?comp=range", &none).refused(412, "SourceConditionNotMet");
    let mut past = headers;
    past[2] = ("x-ms-source-range", "bytes=8-10");
    fixture.put("/docs/b?comp=range", &past).refused(416, "InvalidRange");
}

#[test]
fn a_copy_from_a_snapshot_has_what_the_file_was_then() {
    let fixture = Fixture::new();
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "9437184"), ("x-ms-meta-k", "v")];
    fixture.put("/docs/long", &create).is(201);
    fixture.put_range("/docs/long", 9_437_180, b"then", &[]).is(201);
    fixture.upload("short", b"then");
    let taken = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = taken.header("x-ms-snapshot").to_owned();
    fixture.put_range("/docs/long", 9_437_180, b"now!", &[]).is(201);
    fixture.delete("/docs/short").is(202);
    // No open of the share's file is in the way: a snapshot has none.
    let _held = fixture.open("long", "rw", "none");
    let from = |name: &str, snapshot: &str| {
        let addr = fixture.server.addr();
        format!("http://{addr}/devstoreaccount1/docs/{name}?sharesnapshot={snapshot}")
    };
    for (name, tail) in [("long", "bytes=9437180-"), ("short", "bytes=0-")] {
        let to = format!("/docs/{name}-copy");
        fixture.put(&to, &[("x-ms-copy-source", &from(name, &snapshot))]).is(202);
        wait_for("the copy to end", || {
            (fixture.head(&to).header("x-ms-copy-status") != "pending").then_some(())
        });
        assert_eq!(fixture.head(&to).is(200).header("x-ms-copy-status"), "success");
        let got = fixture.ask("GET", &to, &[("x-ms-range", tail)], b"").is(206);
        assert_eq!(got.text(), "then");
    }
    assert_eq!(fixture.head("/docs/long-copy").header("x-ms-meta-k"), "v");
    let gone = from("none", &snapshot);
    fixture.put("/docs/b", &[("x-ms-copy-source", &gone)]).refused(404, "ResourceNotFound");
    let never = from("long", "2020-01-01T00:00:00.0000000Z");
    fixture.put("/docs/b", &[("x-ms-copy-source", &never)]).refused(404, "ShareSnapshotNotFound");
}

#[test]
fn a_copy_stays_pending_for_the_delay_and_can_be_aborted() {
    let fixture = Fixture::with(|options| options.copy_delay = Duration::from_mins(10));
    fixture.upload("a", b"bytes");
    fixture.upload("b", b"old");
    let url = fixture.url("a");
    let got = fixture.put("/docs/b", &[("x-ms-copy-source", &url)]).is(202);
    assert_eq!(got.header("x-ms-copy-status"), "pending");
    let id = got.header("x-ms-copy-id").to_owned();
    let seen = fixture.head("/docs/b").is(200);
    assert_eq!(seen.header("x-ms-copy-status"), "pending");
    assert_eq!(seen.header("x-ms-copy-progress"), "0/5");
    fixture.put_range("/docs/b", 0, b"x", &[]).refused(409, "PendingCopyOperation");
    let abort = [("x-ms-copy-action", "abort")];
    fixture.put(&format!("/docs/b?comp=copy&copyid={id}"), &abort).is(204);
    let seen = fixture.head("/docs/b").is(200);
    assert_eq!(seen.header("x-ms-copy-status"), "aborted");
    assert_eq!(seen.header("content-length"), "0");
}

#[test]
fn a_delayed_copy_is_done_after_the_delay() {
    let fixture = Fixture::with(|options| options.copy_delay = Duration::from_millis(50));
    fixture.upload("a", b"bytes");
    let url = fixture.url("a");
    let got = fixture.put("/docs/b", &[("x-ms-copy-source", &url)]).is(202);
    assert_eq!(got.header("x-ms-copy-status"), "pending");
    wait_for("the copy", || {
        let status = fixture.head("/docs/b").header("x-ms-copy-status").to_owned();
        (status == "success").then_some(())
    });
    assert_eq!(fixture.get("/docs/b").text(), "bytes");
}
