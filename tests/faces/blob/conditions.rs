//! The tables of conditions in `src/rules/conditions/tables.txt`, tried through HTTP on blobs and
//! containers.

use latchfs::blob::service::BlobOptions;

use super::fixture::{A, Blobs, Got, NOT_MET};
use super::requests::{Etag, blob_for, container, request};
use crate::common::pages::{page, section};

/// The rows of a table, without its head.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let all = page("src/rules/conditions/tables.txt");
    let lines = section(&all, heading).lines().filter(|line| line.contains(" | "));
    lines.skip(1).map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The requests that follow each column. The first of a column is tried by every row, the others
/// by the rows with one condition.
const FORMS: [&[&str]; 4] = [
    &["Get Blob", "Get Properties", "Get Metadata", "Get Metadata by GET", "Get Page Ranges"],
    &["Put Blob", "Put Page Blob", "Put Append Blob", "Put Block List", "Copy Blob From URL"],
    &["Set Metadata", "Set Properties", "Snapshot", "Lease acquire", "Delete"],
    &["Put Page", "Clear Page", "Append Block", "Seal"],
];
const ON_CONTAINERS: [&str; 4] =
    ["Set Container Metadata", "Set Container ACL", "acquire", "Delete Container"];

/// The headers that a row such as `M=same & U=past` sends to an object of that version.
fn headers(blobs: &Blobs, row: &str, etag: &str, at: &str) -> Vec<(&'static str, String)> {
    let tags = |word: &str| match word {
        "same" => etag.to_owned(),
        "other" => "\"0x1\"".to_owned(),
        "two" => format!("\"0x1\", {etag}"),
        "two others" => "\"0x1\", \"0x2\"".to_owned(),
        star => star.to_owned(),
    };
    let date = |word: &str| match word {
        "past" => blobs.modified(at, -1),
        "same" => blobs.modified(at, 0),
        _ => blobs.modified(at, 1),
    };
    let conditions = row.split(" & ").filter(|word| *word != "-");
    conditions
        .map(|word| match word.split_once('=').unwrap() {
            ("M", word) => ("if-match", tags(word)),
            ("N", word) => ("if-none-match", tags(word)),
            ("I", word) => ("if-modified-since", date(word)),
            ("U", word) => ("if-unmodified-since", date(word)),
            ("T", _) => ("x-ms-if-tags", "\"t\" = '2'".to_owned()),
            ("L", _) => ("x-ms-lease-id", A.to_owned()),
            (other, _) => panic!("no condition {other}"),
        })
        .collect()
}

/// Fails unless the answer is what a cell says.
#[track_caller]
fn is_as_said(got: Got, cell: &str, ok: u16) -> Got {
    match cell {
        "ok" => got.is(ok),
        "400 many" => got.refused(400, "MultipleConditionHeadersNotSupported"),
        "400 star" => got.refused(400, "UnsatisfiableCondition"),
        "404" => got.refused(404, "BlobNotFound"),
        "409" => got.refused(409, "BlobAlreadyExists"),
        cell if cell.starts_with("304") => {
            let got = got.is(304);
            assert_eq!((got.code(), got.body.len()), (NOT_MET, 0));
            // What the client has is named, so that a cache can note it (RFC 9110, 15.4.5).
            assert!(got.header("etag").starts_with("\"0x"), "{got:?}");
            assert!(got.header("last-modified").ends_with(" GMT"), "{got:?}");
            got
        }
        _ => got.refused(412, NOT_MET),
    }
}

/// Sends the request to an object that is there. What is refused changes nothing; what is done
/// answers with the `ETag` that follows.
fn try_on_object(blobs: &Blobs, name: &str, at: &str, row: &str, cell: &str) {
    let told = format!("{name} with {row}");
    let object = at.trim_end_matches(['?', '&']);
    if row.contains("L=yes") {
        blobs.leased(at, "-1");
    }
    let before = blobs.etag(object);
    let headers = headers(blobs, row, &before, object);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let request = request(blobs, name);
    let got = is_as_said(request.send(blobs, at, &headers), cell, request.ok);
    if cell != "ok" {
        assert_eq!(blobs.etag(object), before, "a refusal changed it: {told}");
    } else if request.etag == Etag::Absent {
        assert_eq!(got.header("etag"), "", "{told}");
    } else {
        let after = blobs.etag(object);
        assert_eq!(got.header("etag"), after, "{told}");
        assert_eq!(after == before, request.etag == Etag::Same, "{told}");
    }
}

fn with_source() -> Blobs {
    let blobs = Blobs::new();
    blobs.upload("source", &"s".repeat(512), &[]).is(201);
    blobs
}

#[test]
fn blobs_follow_the_table_of_conditions() {
    let blobs = with_source();
    for (n, row) in rows("on an object").iter().enumerate() {
        for (f, (cell, requests)) in row[1..].iter().zip(FORMS).enumerate() {
            let all = if row[0].contains('&') { 1 } else { requests.len() };
            for (m, request) in requests[..all].iter().enumerate() {
                if *request == "Seal" && row[0] == "T=no" {
                    continue; // Seal takes no tags.
                }
                let name = format!("n{n}-{f}-{m}");
                let at = blob_for(&blobs, request, &name);
                try_on_object(&blobs, request, &at, &row[0], cell);
            }
        }
    }
}

#[test]
fn requests_for_a_missing_blob_follow_the_table_of_conditions() {
    let blobs = with_source();
    for (n, row) in rows("on nothing").iter().enumerate() {
        for (f, (cell, requests)) in row[1..].iter().zip(FORMS).enumerate() {
            for (m, name) in requests.iter().filter(|name| **name != "Put Block List").enumerate() {
                let at = format!("/con/n{n}-{f}-{m}?");
                let headers = headers(&blobs, &row[0], "\"0x8D1\"", "/con/source");
                let headers: Vec<_> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let request = request(&blobs, name);
                is_as_said(request.send(&blobs, &at, &headers), cell, request.ok);
                let status = if cell == "ok" { 200 } else { 404 };
                blobs.head(at.trim_end_matches('?'), &[]).is(status);
            }
        }
    }
}

#[test]
fn containers_follow_the_table_of_conditions() {
    let blobs = Blobs::new();
    for (n, row) in rows("on an object").iter().enumerate() {
        // Containers have no tags, and a lease lifts no condition.
        if row[0].contains("T=no") || row[0].contains("L=yes") {
            continue;
        }
        let all = if row[0].contains('&') { 1 } else { ON_CONTAINERS.len() };
        for (m, request) in ON_CONTAINERS[..all].iter().enumerate() {
            let at = container(&blobs, &format!("{n}-{m}"));
            try_on_object(&blobs, request, &at, &row[0], &row[4]);
        }
    }
}

/// The requests of the columns of refusals of copies.
const COPIES: [&[&str]; 4] = [
    &["Copy Blob"],
    &["Copy Blob From URL"],
    &["Put Blob From URL"],
    &["Put Page From URL", "Append Block From URL"],
];

#[test]
fn copies_name_the_side_whose_condition_fails() {
    let blobs = with_source();
    for (n, row) in rows("refusals of copies").iter().enumerate() {
        let (side, letter) = row[0].split_once(' ').unwrap();
        for (cell, requests) in row[1..].iter().zip(COPIES) {
            for (m, name) in requests.iter().enumerate() {
                let source = side == "source";
                if source && letter == "T" && !matches!(*name, "Copy Blob" | "Put Blob From URL") {
                    continue; // These take no tags of their source.
                }
                let at = blob_for(&blobs, name, &format!("n{n}-{m}-{}", name.len()));
                let target = at.trim_end_matches('?');
                let of = if source { "/con/source" } else { target };
                let (before, etag) = (blobs.etag(target), blobs.etag(of));
                let (header, value) = match letter {
                    "M" => ("if-match", "\"0x1\"".to_owned()),
                    "N" => ("if-none-match", etag),
                    "I" => ("if-modified-since", blobs.modified(of, 0)),
                    "U" => ("if-unmodified-since", blobs.modified(of, -1)),
                    _ => ("if-tags", "\"t\" = '2'".to_owned()),
                };
                let header = match (source, letter) {
                    (true, _) => format!("x-ms-source-{header}"),
                    (false, "T") => format!("x-ms-{header}"),
                    (false, _) => header.to_owned(),
                };
                let got = request(&blobs, name).send(&blobs, &at, &[(&header, &value)]);
                let (status, code) = match cell.as_str() {
                    "412 source" => (412, "SourceConditionNotMet"),
                    "412 target" => (412, "TargetConditionNotMet"),
                    "412 verify" => (412, "CannotVerifyCopySource"),
                    "304 verify" => (304, "CannotVerifyCopySource"),
                    _ => (412, NOT_MET),
                };
                got.refused(status, code);
                assert_eq!(blobs.etag(target), before, "{name}: {row:?}");
            }
        }
    }
}

/// The conditions that the documentation does not name for containers count, unless the server is
/// strict.
#[test]
fn b054_strict_mode_refuses_if_match_on_containers() {
    let blobs = Blobs::with(BlobOptions { strict: true, ..BlobOptions::default() });
    for name in ON_CONTAINERS {
        let wrong = [("if-match", "\"0x1\"")];
        let got = request(&blobs, name).send(&blobs, "/con?restype=container&", &wrong);
        got.refused(400, "ConditionHeadersNotSupported");
    }
}

#[test]
fn b023_tags_are_a_condition_in_their_language() {
    let blobs = with_source();
    let at = blob_for(&blobs, "Get Blob", "b");
    for name in ["Get Blob", "Get Properties", "Get Block List"] {
        let ask = |tags| request(&blobs, name).send(&blobs, &at, &[("x-ms-if-tags", tags)]);
        ask("\"t\" = '1'").is(200);
        ask("\"t\" = '2'").refused(412, NOT_MET);
        ask("nonsense").refused(400, "InvalidHeaderValue");
    }
}
