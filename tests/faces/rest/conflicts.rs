//! The two faces at once: what an open of the mount makes of a request, and who is named.

use std::time::{Duration, Instant};

use crate::common::pages::{page, section};
use crate::leases::Headers;
use crate::rest::fixture::Fixture;
use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::http::frame::ErrorNames;

fn pending(fixture: &Fixture, name: &str) -> latchfs::file::service::Handle {
    let keeper = fixture.open(name, "r", "rwd");
    let deleter = fixture.open(name, "d", "rwd");
    fixture.share().set_disposition(&deleter, true).unwrap();
    fixture.share().close(&deleter).unwrap();
    keeper
}

/// The requests of a column of the table of share modes, to the file `a`.
fn requests(
    column: &str,
) -> Vec<(&'static str, &'static str, Headers<'static>, &'static [u8], u16)> {
    let create: Headers<'_> = &[("x-ms-type", "file"), ("x-ms-content-length", "3")];
    let update: Headers<'_> = &[("x-ms-range", "bytes=0-2"), ("x-ms-write", "update")];
    let clear: Headers<'_> = &[("x-ms-range", "bytes=0-2"), ("x-ms-write", "clear")];
    let lease: Headers<'_> = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    match column {
        "Create" => vec![("PUT", "", create, b"", 201)],
        "Get" => vec![("GET", "", &[], b"", 200)],
        "Ranges" => vec![("GET", "?comp=rangelist", &[], b"", 200)],
        "Put" => vec![
            ("PUT", "?comp=range", update, b"new", 201),
            ("PUT", "?comp=range", clear, b"", 201),
        ],
        "Props" => vec![
            ("PUT", "?comp=properties", &[], b"", 200),
            ("PUT", "?comp=properties", &[("x-ms-content-length", "5")], b"", 200),
        ],
        "Meta" => vec![("PUT", "?comp=metadata", &[("x-ms-meta-a", "1")], b"", 200)],
        "Delete" => vec![("DELETE", "", &[], b"", 202)],
        "Lease" => vec![("PUT", "?comp=lease", lease, b"", 201)],
        "Look" => vec![("HEAD", "", &[], b"", 200), ("GET", "?comp=metadata", &[], b"", 200)],
        other => panic!("no column {other}"),
    }
}

/// Sends the requests of a column to a file that is open so. A refusal changes nothing.
fn answers(fixture: &Fixture, column: &str, access: &str, share: &str, expected: &str) {
    for (n, (method, query, headers, body, ok)) in requests(column).into_iter().enumerate() {
        let name = format!("{column}-{access}-{share}-{n}");
        fixture.upload(&name, b"0123456789");
        let etag = || fixture.head(&format!("/docs/{name}")).is(200).header("etag").to_owned();
        let before = etag();
        let handle = fixture.open(&name, access, share);
        let got = fixture.ask(method, &format!("/docs/{name}{query}"), headers, body);
        let told = format!("{method} {query} against open({access}; {share})");
        if expected == "ok" {
            assert_eq!(got.status, ok, "{told}: {got:?}");
        } else {
            assert_eq!((got.status, got.code()), (409, "SharingViolation"), "{told}");
            assert_eq!(etag(), before, "{told}");
        }
        fixture.share().close(&handle).unwrap();
        if expected != "ok" {
            let got = fixture.get(&format!("/docs/{name}")).is(200);
            assert_eq!(got.text(), "0123456789", "{told}");
        }
    }
}

#[test]
fn share_modes_refuse_as_the_tables_say() {
    let fixture = Fixture::new();
    let all = page("src/file/rules/operation/share_modes.txt");
    let rows = |heading: &str| -> Vec<Vec<String>> {
        let lines = section(&all, heading).lines().filter(|line| line.contains('|'));
        lines.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
    };
    let table = rows("by the share mode of a handle that reads");
    for row in &table[1..] {
        for (column, expected) in table[0].iter().zip(row).skip(1) {
            answers(&fixture, column, "r", &row[0], expected);
        }
    }
    // An open for attributes alone stops nothing but what wants no handle.
    for column in &table[0][1..] {
        let expected = if column == "Delete" { "x" } else { "ok" };
        answers(&fixture, column, "none", "none", expected);
    }
    // The access of a handle matters to a lease alone.
    for row in &rows("by the access of a handle that shares everything")[1..] {
        if row[0] == "r" {
            continue; // A row of the first table.
        }
        answers(&fixture, "Lease", &row[0], "rwd", &row[1]);
        for column in ["Get", "Put"] {
            answers(&fixture, column, &row[0], "rwd", "ok");
        }
    }
}

#[test]
fn an_open_that_shares_nothing_refuses_the_download_and_names_its_holder() {
    let fixture = Fixture::new();
    fixture.upload("report.xlsx", b"cells");
    let handle = fixture.open("report.xlsx", "rw", "none");
    let got = fixture.get("/docs/report.xlsx").refused(409, "SharingViolation");
    let message = format!(
        "<Message>The specified resource may be in use by an SMB client. [latchfs: \"excel\" (pid \
         4711) has it open for rw, sharing none; handle {}]\n",
        handle.id()
    );
    assert!(got.text().contains(&message), "{}", got.text());
    fixture.head("/docs/report.xlsx").is(200);
    fixture.put_range("/docs/report.xlsx", 0, b"x", &[]).refused(409, "SharingViolation");
    fixture.delete("/docs/report.xlsx").refused(409, "SharingViolation");
    fixture.share().close(&handle).unwrap();
    assert_eq!(fixture.get("/docs/report.xlsx").is(200).text(), "cells");
}

#[test]
fn a_file_that_is_delete_pending_is_refused_and_not_listed() {
    let fixture = Fixture::new();
    fixture.upload("a", b"a");
    let keeper = pending(&fixture, "a");
    let got = fixture.get("/docs/a").refused(409, "SMBDeletePending");
    let message = "<Message>The specified resource is marked for deletion by an SMB client. \
                   [latchfs: it is removed when \"excel\" (pid 4711) closes it; handle ";
    assert!(got.text().contains(message), "{}", got.text());
    fixture.head("/docs/a").refused(409, "SMBDeletePending");
    let list = fixture.get("/docs?restype=directory&comp=list").is(200).text();
    assert!(!list.contains("<Name>a</Name>"), "{list}");
    fixture.share().close(&keeper).unwrap();
    fixture.get("/docs/a").refused(404, "ResourceNotFound");
}

#[test]
fn the_service_spells_delete_pending_its_own_way() {
    let fixture = Fixture::with_names(ErrorNames::Service);
    fixture.upload("a", b"a");
    let _keeper = pending(&fixture, "a");
    fixture.get("/docs/a").refused(409, "DeletePending");
}

#[test]
fn a_read_only_file_is_not_changed_until_its_attributes_are() {
    let fixture = Fixture::new();
    fixture.upload("a", b"a");
    let set = |attributes: &str| {
        fixture.put("/docs/a?comp=properties", &[("x-ms-file-attributes", attributes)]).is(200)
    };
    let got = set("ReadOnly|Archive");
    assert_eq!(got.header("x-ms-file-attributes"), "ReadOnly | Archive");
    fixture.put_range("/docs/a", 0, b"x", &[]).refused(409, "ReadOnlyAttribute");
    fixture.delete("/docs/a").refused(409, "ReadOnlyAttribute");
    set("None");
    fixture.delete("/docs/a").is(202);
}

#[test]
fn a_locked_range_refuses_reads_of_it_and_all_writes() {
    let fixture = Fixture::new();
    fixture.upload("a", b"0123456789");
    let handle = fixture.open("a", "rw", "rwd");
    let first = ByteRange::new(0, 5).unwrap();
    fixture.share().lock(&handle, &[(first, LockKind::Exclusive)]).unwrap();
    let got = fixture.get("/docs/a").refused(409, "FileLockConflict");
    assert!(
        got.text().contains("[latchfs: \"excel\" (pid 4711) has locked bytes 0 to 4"),
        "{}",
        got.text()
    );
    fixture.put_range("/docs/a", 8, b"x", &[]).refused(409, "FileLockConflict");
    let rest = [("x-ms-range", "bytes=5-9")];
    assert_eq!(fixture.ask("GET", "/docs/a", &rest, b"").is(206).text(), "56789");
}

#[test]
fn a_handle_whose_release_is_on_its_way_is_waited_for_and_no_other_is() {
    let fixture = Fixture::new();
    fixture.upload("a", b"bytes");
    let timed = |target: &str| {
        let begun = Instant::now();
        fixture.get(target).refused(409, "SharingViolation");
        begun.elapsed()
    };
    let handle = fixture.open("a", "rw", "none");
    fixture.share().set_flushed(&handle).unwrap();
    let waited = timed("/docs/a");
    assert!((100..5_000).contains(&waited.as_millis()), "{waited:?}");
    // The release arrives while the request is under way, or before it.
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| fixture.get("/docs/a"));
        fixture.share().close(&handle).unwrap();
        assert_eq!(asked.join().unwrap().is(200).text(), "bytes");
    });
    let _held = fixture.open("a", "rw", "none");
    let least = (0..20).map(|_| timed("/docs/a")).min().unwrap();
    assert!(least < Duration::from_millis(100), "{least:?}");
}
