//! Conditions of the other writes, operation by operation: B25 to B31, B33, B35 to B39.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use super::fixture::{A, Blobs, NOT_MET};

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Tries each of the four conditions on a write, failing and holding. `again` makes the blob anew
/// before each request.
fn each_condition(
    blobs: &Blobs,
    again: &dyn Fn(),
    (method, target, headers, body): (&str, &str, Headers<'_>, &[u8]),
    (ok, moves): (u16, Option<bool>),
) {
    for name in ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"] {
        for failing in [true, false] {
            again();
            let (etag, same) = (blobs.etag("/con/b"), blobs.modified("/con/b", 0));
            let past = blobs.modified("/con/b", -3600);
            let value = match (name, failing) {
                ("if-match", true) | ("if-none-match", false) => "\"0x1\"",
                ("if-match", false) | ("if-none-match", true) => &etag,
                ("if-modified-since", true) | ("if-unmodified-since", false) => &same,
                _ => &past,
            };
            let mut all = headers.to_vec();
            all.push((name, value));
            let got = blobs.ask(method, target, &all, body);
            if failing {
                got.refused(412, NOT_MET);
                assert_eq!(blobs.etag("/con/b"), etag, "{name}");
                continue;
            }
            let got = got.is(ok);
            match moves {
                Some(moves) => assert_eq!(got.header("etag") != etag, moves, "{target} {name}"),
                None => assert_eq!(got.header("etag"), "", "{target} {name}"),
            }
        }
    }
}

fn on_a_block_blob(request: (&str, &str, Headers<'_>, &[u8]), ok: (u16, Option<bool>)) {
    let blobs = Blobs::new();
    let again = || {
        blobs.blob("one");
    };
    each_condition(&blobs, &again, request, ok);
}

#[test]
fn b025_set_properties_takes_every_condition() {
    let headers = [("x-ms-blob-content-type", "a/b")];
    on_a_block_blob(("PUT", "/con/b?comp=properties", &headers, b""), (200, Some(true)));
}

#[test]
fn b026_set_metadata_takes_every_condition() {
    let headers = [("x-ms-meta-k", "v")];
    on_a_block_blob(("PUT", "/con/b?comp=metadata", &headers, b""), (200, Some(true)));
}

#[test]
fn b027_lease_takes_every_condition_and_moves_no_etag() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let headers = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", A),
    ];
    let request = ("PUT", "/con/b?comp=lease", &headers[..], &b""[..]);
    each_condition(&blobs, &|| {}, request, (201, Some(false)));
}

#[test]
fn b028_snapshot_takes_every_condition_and_never_says_304() {
    on_a_block_blob_kept(("PUT", "/con/b?comp=snapshot", &[], b""), (201, Some(false)));
}

/// The same without a new blob each time: snapshots stay with it.
fn on_a_block_blob_kept(request: (&str, &str, Headers<'_>, &[u8]), ok: (u16, Option<bool>)) {
    let blobs = Blobs::new();
    blobs.blob("one");
    each_condition(&blobs, &|| {}, request, ok);
}

#[test]
fn b029_delete_takes_every_condition_and_ignores_a_star() {
    on_a_block_blob(("DELETE", "/con/b", &[], b""), (202, None));
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs.delete("/con/b", &[("if-none-match", "*")]).is(202);
}

const BLOCK: &str = "/con/b?comp=block&blockid=AAAA";
const LIST: &[u8] = b"<BlockList><Latest>AAAA</Latest></BlockList>";

#[test]
fn b030_put_block_knows_no_conditions() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let staged = blobs.ask("PUT", BLOCK, &[("if-match", "\"0x1\"")], b"x").is(201);
    assert_eq!(staged.header("etag"), "");
}

#[test]
fn b031_put_block_list_takes_every_condition() {
    let blobs = Blobs::new();
    let again = || {
        blobs.blob("one");
        blobs.ask("PUT", BLOCK, &[], b"two").is(201);
    };
    each_condition(&blobs, &again, ("PUT", "/con/b?comp=blocklist", &[], LIST), (201, Some(true)));
    again();
    let star = [("if-none-match", "*")];
    let got = blobs.ask("PUT", "/con/b?comp=blocklist", &star, LIST);
    got.refused(409, "BlobAlreadyExists");
}

#[test]
fn b033_writing_and_clearing_pages_takes_every_condition() {
    for (write, body) in [("update", &[1; 512][..]), ("clear", &[][..])] {
        let blobs = Blobs::new();
        let create = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
        let again = || {
            blobs.put("/con/b", &create).is(201);
        };
        let headers = [("x-ms-page-write", write), ("x-ms-range", "bytes=0-511")];
        let request = ("PUT", "/con/b?comp=page", &headers[..], body);
        each_condition(&blobs, &again, request, (201, Some(true)));
    }
}

#[test]
fn b035_a_copy_has_conditions_on_both_sides() {
    let blobs = Blobs::new();
    let from = blobs.upload("from", "one", &[]).is(201).header("etag").to_owned();
    let to = blobs.upload("to", "two", &[]).is(201).header("etag").to_owned();
    let url = blobs.url("from");
    let copy = |headers: Headers<'_>| {
        let mut all = vec![("x-ms-copy-source", url.as_str())];
        all.extend(headers);
        blobs.put("/con/to", &all)
    };
    let (past, future) = (blobs.modified("/con/to", -3600), blobs.modified("/con/to", 3600));
    for header in [
        ("if-match", &*from),
        ("if-none-match", &*to),
        ("if-modified-since", &*future),
        ("if-unmodified-since", &*past),
    ] {
        copy(&[header]).refused(412, "TargetConditionNotMet");
    }
    for header in [
        ("x-ms-source-if-match", &*to),
        ("x-ms-source-if-none-match", &*from),
        ("x-ms-source-if-modified-since", &*future),
        ("x-ms-source-if-unmodified-since", &*past),
    ] {
        copy(&[header]).refused(412, "SourceConditionNotMet");
    }
    assert_eq!(blobs.text("to"), "two");
    let done = copy(&[("if-match", &to), ("x-ms-source-if-match", &from)]).is(202);
    assert_eq!(blobs.etag("/con/to"), done.header("etag"));
    assert_eq!(blobs.text("to"), "one");
}

#[test]
fn b036_a_star_guards_the_destination_of_a_copy() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let url = blobs.url("b");
    let headers = [("x-ms-copy-source", url.as_str()), ("if-none-match", "*")];
    blobs.put("/con/new", &headers).is(202);
    blobs.put("/con/new", &headers).refused(409, "BlobAlreadyExists");
}

#[test]
fn b037_aborting_a_copy_knows_no_conditions_and_has_no_etag() {
    let copy_delay = Duration::from_mins(1);
    let blobs = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() });
    blobs.blob("one");
    let url = blobs.url("b");
    let begun = blobs.put("/con/to", &[("x-ms-copy-source", &url)]).is(202);
    let abort = format!("/con/to?comp=copy&copyid={}", begun.header("x-ms-copy-id"));
    let headers = [("x-ms-copy-action", "abort"), ("if-match", "\"0x1\"")];
    assert_eq!(blobs.put(&abort, &headers).is(204).header("etag"), "");
}

/// Asserts that `act` leaves `ETag` and Last-Modified of the blob.
fn moves_nothing(blobs: &Blobs, act: impl FnOnce()) {
    let before = (blobs.etag("/con/b"), blobs.modified("/con/b", 0));
    blobs.pass(10);
    act();
    assert_eq!((blobs.etag("/con/b"), blobs.modified("/con/b", 0)), before);
}

#[test]
fn b038_no_lease_action_moves_the_etag() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let id = ("x-ms-lease-id", A);
    moves_nothing(&blobs, || {
        for (action, headers, status) in [
            ("acquire", vec![("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", A)], 201),
            ("renew", vec![id], 200),
            ("change", vec![id, ("x-ms-proposed-lease-id", A)], 200),
            ("break", vec![("x-ms-lease-break-period", "0")], 202),
            ("release", vec![id], 200),
        ] {
            let got = blobs.lease("/con/b?", action, &headers).is(status);
            assert_eq!(got.header("etag"), etag, "{action}");
        }
    });
}

#[test]
fn b039_blocks_snapshots_tags_and_tier_move_no_etag() {
    let blobs = Blobs::new();
    blobs.blob("one");
    moves_nothing(&blobs, || {
        blobs.ask("PUT", BLOCK, &[], b"x").is(201);
        blobs.put("/con/b?comp=snapshot", &[]).is(201);
        let tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
        blobs.ask("PUT", "/con/b?comp=tags", &[], tags).is(204);
        blobs.put("/con/b?comp=tier", &[("x-ms-access-tier", "Cool")]).is(200);
    });
    let head = blobs.head("/con/b", &[]).is(200);
    assert_eq!((head.header("x-ms-access-tier"), head.header("x-ms-tag-count")), ("Cool", "1"));
}
