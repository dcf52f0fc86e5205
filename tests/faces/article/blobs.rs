//! What the article says of optimistic control of blobs and containers (S1, S4-S39), through real
//! HTTP. Leases are in `blob_leases`.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use crate::blob::fixture::{A, Blobs, Got};
use crate::blob::requests::{Etag, Request, blob_for, request};
use crate::service::{account_token, signed};

const NOT_MET: &str = "ConditionNotMet";
const OTHER: &str = "\"0x1\"";
const BLOB: &str = "/con/b";
const CONTAINER: &str = "/con?restype=container";
const METADATA: &str = "/con?restype=container&comp=metadata";
const ACL: &str = "/con?restype=container&comp=acl";

/// A server with what the request is for, and its address.
fn stage(name: &str) -> (Blobs, String) {
    let blobs = Blobs::new();
    blobs.upload("source", "one", &[]).is(201);
    let blob = blob_for(&blobs, name, "b");
    let of_container = name.contains("Container") || name == "List Blobs";
    (blobs, if of_container { format!("{CONTAINER}&") } else { blob })
}

/// The answer has the `ETag` that the request leaves or makes, or none.
#[track_caller]
fn has_its_etag(request: &Request, got: &Got, before: &str) {
    let etag = got.header("etag");
    match request.etag {
        Etag::New => assert!(etag.starts_with("\"0x8D") && etag != before, "{got:?}"),
        Etag::Same => assert_eq!(etag, before, "{got:?}"),
        Etag::Absent => assert_eq!(etag, "", "{got:?}"),
    }
}

/// A request that takes conditions: one that fails is refused and changes nothing, one that holds
/// is done.
fn takes_conditions(name: &str) -> Blobs {
    let (blobs, at) = stage(name);
    let object = at.trim_end_matches(['?', '&']);
    let request = request(&blobs, name);
    let etag = blobs.etag(object);
    let (past, same) = (blobs.modified(object, -3600), blobs.modified(object, 0));
    request.send(&blobs, &at, &[("if-unmodified-since", &past)]).is(412);
    request.send(&blobs, &at, &[("if-match", OTHER)]).is(412);
    assert_eq!(blobs.etag(object), etag, "a refused request changed {object}");
    let done = request.send(&blobs, &at, &[("if-unmodified-since", &same)]).is(request.ok);
    has_its_etag(&request, &done, &etag);
    blobs
}

/// A request that takes no conditions: one that would fail keeps nobody from anything.
fn takes_no_conditions(name: &str) -> Blobs {
    let (blobs, at) = stage(name);
    let object = at.trim_end_matches(['?', '&']);
    let request = request(&blobs, name);
    let (etag, future) = (blobs.etag(object), blobs.modified(object, 3600));
    for condition in [
        ("if-match", OTHER),
        ("if-none-match", "*"),
        ("if-modified-since", &future),
        ("if-unmodified-since", "Mon, 05 Jan 2009 10:00:00 GMT"),
    ] {
        let got = request.send(&blobs, &at, &[condition]).is(request.ok);
        has_its_etag(&request, &got, &etag);
    }
    blobs
}

statements! {
    takes_conditions {
        s016_set_container_metadata_returns_an_etag_and_takes_conditions =
            "Set Container Metadata";
        s018_set_container_acl_returns_an_etag_and_takes_conditions = "Set Container ACL";
        s019_delete_container_returns_no_etag_and_takes_conditions = "Delete Container";
        s020_lease_container_returns_an_etag_and_takes_conditions = "Lease Container";
        s023_put_blob_returns_an_etag_and_takes_conditions = "Put Blob";
        s024_get_blob_returns_an_etag_and_takes_conditions = "Get Blob";
        s025_get_blob_properties_returns_an_etag_and_takes_conditions = "Get Properties";
        s026_set_blob_properties_returns_an_etag_and_takes_conditions = "Set Properties";
        s027_get_blob_metadata_returns_an_etag_and_takes_conditions = "Get Metadata by GET";
        s028_set_blob_metadata_returns_an_etag_and_takes_conditions = "Set Metadata";
        s029_lease_blob_returns_an_etag_and_takes_conditions = "Lease acquire";
        s030_snapshot_blob_returns_an_etag_and_takes_conditions = "Snapshot";
        s033_delete_blob_returns_no_etag_and_takes_conditions = "Delete";
        s037_put_page_returns_an_etag_and_takes_conditions = "Put Page";
        s038_get_page_ranges_returns_an_etag_and_takes_conditions = "Get Page Ranges";
    }
    takes_no_conditions {
        s014_get_container_properties_returns_an_etag_and_takes_no_conditions =
            "Get Container Properties";
        s015_get_container_metadata_returns_an_etag_and_takes_no_conditions =
            "Get Container Metadata";
        s017_get_container_acl_returns_an_etag_and_takes_no_conditions = "Get Container ACL";
        s034_put_block_returns_no_etag_and_takes_no_conditions = "Put Block";
        s036_get_block_list_returns_an_etag_and_takes_no_conditions = "Get Block List";
    }
}

#[test]
fn s001_a_blob_is_checked_at_the_update_locked_or_the_last_writer_wins() {
    let blobs = Blobs::new();
    let seen = blobs.blob("one");
    blobs.upload("b", "two", &[]).is(201);
    blobs.upload("b", "three", &[("if-match", &seen)]).refused(412, NOT_MET);
    blobs.leased("/con/b?", "15");
    blobs.upload("b", "three", &[]).refused(412, "LeaseIdMissing");
    assert_eq!(blobs.text("b"), "two");
}

#[test]
fn s004_without_a_condition_the_last_write_wins() {
    let blobs = Blobs::new();
    for text in ["one", "two"] {
        blobs.upload("b", text, &[]).is(201);
        blobs.put(METADATA, &[("x-ms-meta-by", text)]).is(200);
    }
    assert_eq!(blobs.text("b"), "two");
    assert_eq!(blobs.get(METADATA, &[]).is(200).header("x-ms-meta-by"), "two");
}

#[test]
fn s005_every_object_has_a_stamp_that_changes_with_each_update() {
    let blobs = Blobs::new();
    let mut seen = vec![blobs.etag(CONTAINER)];
    blobs.put(METADATA, &[("x-ms-meta-k", "v")]).is(200);
    seen.push(blobs.etag(CONTAINER));
    for _ in 0..3 {
        seen.push(blobs.blob("equal bytes"));
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn s006_a_get_returns_the_stamp_as_etag() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    assert_eq!(blobs.get(BLOB, &[]).is(200).header("etag"), etag);
}

#[test]
fn s007_an_update_may_send_it_back_in_if_match_and_it_is_compared() {
    let blobs = stage("Put Blob").0;
    let etag = blobs.get(BLOB, &[]).is(200).header("etag").to_owned();
    blobs.upload("b", "two", &[("if-match", OTHER)]).refused(412, NOT_MET);
    blobs.upload("b", "two", &[("if-match", &etag)]).is(201);
}

#[test]
fn s008_another_etag_is_refused_and_nothing_changes() {
    let blobs = Blobs::new();
    let stale = blobs.blob("one");
    let current = blobs.blob("two");
    let refused = blobs.upload("b", "three", &[("if-match", &stale)]).refused(412, NOT_MET);
    assert!(refused.text().contains("ago by Put Blob"), "{}", refused.text());
    assert_eq!((blobs.text("b"), blobs.etag(BLOB)), ("two".to_owned(), current));
}

#[test]
fn s009_the_same_etag_is_taken_and_changes() {
    let blobs = Blobs::new();
    let mut etag = blobs.blob("one");
    for _ in 0..3 {
        let next = blobs.upload("b", "x", &[("if-match", &etag)]).is(201);
        assert_ne!(next.header("etag"), etag);
        next.header("etag").clone_into(&mut etag);
    }
}

#[test]
fn s010_a_write_answers_with_the_new_etag() {
    let blobs = Blobs::new();
    let etag = blobs.upload("b", "one", &[]).is(201).header("etag").to_owned();
    blobs.upload("b", "two", &[("if-match", &etag)]).is(201);
}

#[test]
fn s011_somebodys_unconditional_overwrite_makes_the_first_writers_if_match_fail() {
    let blobs = Blobs::new();
    let first = blobs.blob("first");
    let third = blobs.upload("b", "third party", &[]).is(201);
    assert_ne!(third.header("etag"), first);
    blobs.upload("b", "first again", &[("if-match", &first)]).refused(412, NOT_MET);
    assert_eq!(blobs.text("b"), "third party");
}

#[test]
fn s012_dates_none_match_and_combinations_work_too() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let (past, same) = (blobs.modified(BLOB, -3600), blobs.modified(BLOB, 0));
    blobs.get(BLOB, &[("if-modified-since", &same)]).is(304);
    blobs.get(BLOB, &[("if-modified-since", &past)]).is(200);
    blobs.get(BLOB, &[("if-unmodified-since", &past)]).refused(412, NOT_MET);
    blobs.get(BLOB, &[("if-none-match", &etag)]).is(304);
    blobs.get(BLOB, &[("if-none-match", OTHER)]).is(200);
    blobs.get(BLOB, &[("if-none-match", &etag), ("if-modified-since", &same)]).is(304);
    blobs.upload("b", "x", &[("if-none-match", "*")]).refused(409, "BlobAlreadyExists");
    blobs.upload("b", "x", &[("if-modified-since", &same)]).refused(412, NOT_MET);
    blobs.upload("b", "x", &[("if-match", &etag), ("if-unmodified-since", &same)]).is(201);
}

#[test]
fn s021_list_blobs_returns_no_etag_and_takes_no_conditions() {
    let blobs = takes_no_conditions("List Blobs");
    // Each blob in it has one.
    let listed = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
    assert!(listed.contains("<Etag>0x8D"), "{listed}");
}

#[test]
fn s035_put_block_list_returns_an_etag_and_takes_conditions() {
    assert_eq!(takes_conditions("Put Block List").text("b"), "staged");
}

#[test]
fn s022_a_change_of_a_containers_acl_takes_up_to_30_seconds_to_be_seen() {
    let options = BlobOptions { acl_delay: Duration::from_secs(30), ..BlobOptions::default() };
    let blobs = Blobs::empty(options, signed());
    let token = account_token("b", "sco", "racwdl");
    blobs.put(&format!("{CONTAINER}&{token}"), &[]).is(201);
    let target = format!("{BLOB}?{token}");
    blobs.ask("PUT", &target, &[("x-ms-blob-type", "BlockBlob")], b"one").is(201);
    blobs.put(&format!("{ACL}&{token}"), &[("x-ms-blob-public-access", "blob")]).is(200);
    blobs.pass(29);
    blobs.get(BLOB, &[]).is(401);
    blobs.pass(1);
    assert_eq!(blobs.get(BLOB, &[]).is(200).text(), "one");
}

#[test]
fn s013_create_container_returns_an_etag_and_takes_no_conditions() {
    let blobs = Blobs::new();
    let made = blobs.put("/new?restype=container", &[("if-match", OTHER)]).is(201);
    assert!(made.header("etag").starts_with("\"0x8D"), "{made:?}");
}

#[test]
fn s031_copy_blob_returns_an_etag_and_takes_conditions_on_source_and_destination() {
    let (blobs, at) = stage("Copy Blob");
    let copy = request(&blobs, "Copy Blob");
    let before = blobs.etag(BLOB);
    let source = copy.send(&blobs, &at, &[("x-ms-source-if-match", OTHER)]);
    source.refused(412, "SourceConditionNotMet");
    copy.send(&blobs, &at, &[("if-match", OTHER)]).refused(412, "TargetConditionNotMet");
    assert_eq!(blobs.etag(BLOB), before);
    let conditions = [("if-match", &*before), ("x-ms-source-if-match", &blobs.etag("/con/source"))];
    let done = copy.send(&blobs, &at, &conditions).is(202);
    has_its_etag(&copy, &done, &before);
    assert_eq!(
        (blobs.text("b"), blobs.etag(BLOB)),
        ("one".to_owned(), done.header("etag").to_owned())
    );
}

#[test]
fn s032_abort_copy_blob_returns_no_etag_and_takes_no_conditions() {
    let copy_delay = Duration::from_mins(1);
    let blobs = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() });
    blobs.blob("one");
    let url = blobs.url("b");
    let begun = blobs.put("/con/to", &[("x-ms-copy-source", &url)]).is(202);
    let abort = format!("/con/to?comp=copy&copyid={}", begun.header("x-ms-copy-id"));
    let ended = blobs.put(&abort, &[("x-ms-copy-action", "abort"), ("if-match", OTHER)]).is(204);
    assert_eq!(ended.header("etag"), "");
}

#[test]
fn s039_a_lease_does_not_change_a_blobs_etag() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let id = [("x-ms-lease-id", A)];
    let change = [id[0], ("x-ms-proposed-lease-id", A)];
    blobs.leased("/con/b?", "15");
    blobs.lease("/con/b?", "renew", &id).is(200);
    blobs.lease("/con/b?", "change", &change).is(200);
    blobs.lease("/con/b?", "break", &[("x-ms-lease-break-period", "0")]).is(202);
    blobs.lease("/con/b?", "release", &id).is(200);
    assert_eq!(blobs.etag(BLOB), etag);
}
