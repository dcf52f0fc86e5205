//! What the article says of optimistic control of blobs and containers (S1, S4-S39), through real
//! HTTP. Leases are in `blob_leases`.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;
use latchfs::http::auth::{AccountSas, Admission, Authorizer, Credential, Credentials};
use latchfs::rules::Timestamp;

use crate::blob::fixture::{A, Blobs, Got};

type Headers<'a> = &'a [(&'a str, &'a str)];

const NOT_MET: &str = "ConditionNotMet";
const OTHER: &str = "\"0x1\"";
const BLOB: &str = "/con/b";
const CONTAINER: &str = "/con?restype=container";
const METADATA: &str = "/con?restype=container&comp=metadata";
const ACL: &str = "/con?restype=container&comp=acl";

fn with_blob() -> Blobs {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs
}

/// An operation that takes conditions: one that fails is refused and changes nothing, one that
/// holds is done. Gives the answer.
#[track_caller]
fn takes_conditions(blobs: &Blobs, target: &str, ok: u16, ask: impl Fn(Headers<'_>) -> Got) -> Got {
    let etag = blobs.etag(target);
    let past = blobs.modified(target, -3600);
    ask(&[("if-unmodified-since", &past)]).is(412);
    ask(&[("if-match", OTHER)]).is(412);
    assert_eq!(blobs.etag(target), etag, "a refused request changed {target}");
    let same = blobs.modified(target, 0);
    ask(&[("if-unmodified-since", &same)]).is(ok)
}

/// An operation that takes no conditions: one that would fail keeps nobody from anything.
#[track_caller]
fn takes_no_conditions(ok: u16, ask: impl Fn(Headers<'_>) -> Got) -> Got {
    ask(&[("if-match", OTHER)]).is(ok)
}

#[track_caller]
fn has_etag(got: &Got) {
    assert!(got.header("etag").starts_with("\"0x8D"), "{got:?}");
}

#[track_caller]
fn has_no_etag(got: &Got) {
    assert_eq!(got.header("etag"), "", "{got:?}");
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
    let blobs = with_blob();
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
fn s013_create_container_returns_an_etag_and_takes_no_conditions() {
    let blobs = Blobs::new();
    let made = takes_no_conditions(201, |headers| blobs.put("/new?restype=container", headers));
    has_etag(&made);
}

#[test]
fn s014_get_container_properties_returns_an_etag_and_takes_no_conditions() {
    let blobs = Blobs::new();
    has_etag(&takes_no_conditions(200, |headers| blobs.get(CONTAINER, headers)));
}

#[test]
fn s015_get_container_metadata_returns_an_etag_and_takes_no_conditions() {
    let blobs = Blobs::new();
    has_etag(&takes_no_conditions(200, |headers| blobs.get(METADATA, headers)));
}

#[test]
fn s016_set_container_metadata_returns_an_etag_and_takes_conditions() {
    let blobs = Blobs::new();
    let before = blobs.etag(CONTAINER);
    let set = takes_conditions(&blobs, CONTAINER, 200, |headers| blobs.put(METADATA, headers));
    has_etag(&set);
    assert_ne!(set.header("etag"), before);
}

#[test]
fn s017_get_container_acl_returns_an_etag_and_takes_no_conditions() {
    let blobs = Blobs::new();
    has_etag(&takes_no_conditions(200, |headers| blobs.get(ACL, headers)));
}

#[test]
fn s018_set_container_acl_returns_an_etag_and_takes_conditions() {
    let blobs = Blobs::new();
    has_etag(&takes_conditions(&blobs, CONTAINER, 200, |headers| blobs.put(ACL, headers)));
}

#[test]
fn s019_delete_container_returns_no_etag_and_takes_conditions() {
    let blobs = Blobs::new();
    let delete = |headers: Headers<'_>| blobs.delete(CONTAINER, headers);
    has_no_etag(&takes_conditions(&blobs, CONTAINER, 202, delete));
}

#[test]
fn s020_lease_container_returns_an_etag_and_takes_conditions() {
    let blobs = Blobs::new();
    let etag = blobs.etag(CONTAINER);
    let leased = takes_conditions(&blobs, CONTAINER, 201, |headers| {
        acquire(&blobs, "/con?restype=container&", headers)
    });
    assert_eq!(leased.header("etag"), etag);
}

fn acquire(blobs: &Blobs, target: &str, headers: Headers<'_>) -> Got {
    let mut all = vec![("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", A)];
    all.extend(headers);
    blobs.lease(target, "acquire", &all)
}

#[test]
fn s021_list_blobs_returns_no_etag_and_takes_no_conditions() {
    let blobs = with_blob();
    let list = "/con?restype=container&comp=list";
    let listed = takes_no_conditions(200, |headers| blobs.get(list, headers));
    has_no_etag(&listed);
    // Each blob in it has one.
    assert!(listed.text().contains("<Etag>0x8D"), "{}", listed.text());
}

#[test]
fn s022_a_change_of_a_containers_acl_takes_up_to_30_seconds_to_be_seen() {
    let accounts = Credentials::new([Credential::development()]).unwrap();
    let authorizer = Authorizer { accounts, ..Authorizer::default() };
    let options = BlobOptions { acl_delay: Duration::from_secs(30), ..BlobOptions::default() };
    let blobs = Blobs::empty(options, Admission::Signed(authorizer));
    let sas = AccountSas {
        permissions: "racwdl".to_owned(),
        services: "b".to_owned(),
        levels: "sco".to_owned(),
        expiry: Timestamp(i64::MAX),
        ..AccountSas::default()
    };
    let token = sas.token(&Credential::development());
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
fn s023_put_blob_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    let put = |headers: Headers<'_>| blobs.upload("b", "two", headers);
    has_etag(&takes_conditions(&blobs, BLOB, 201, put));
}

#[test]
fn s024_get_blob_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    has_etag(&takes_conditions(&blobs, BLOB, 200, |headers| blobs.get(BLOB, headers)));
}

#[test]
fn s025_get_blob_properties_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    has_etag(&takes_conditions(&blobs, BLOB, 200, |headers| blobs.head(BLOB, headers)));
}

#[test]
fn s026_set_blob_properties_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    let set = |headers: Headers<'_>| blobs.put("/con/b?comp=properties", headers);
    has_etag(&takes_conditions(&blobs, BLOB, 200, set));
}

#[test]
fn s027_get_blob_metadata_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    let get = |headers: Headers<'_>| blobs.get("/con/b?comp=metadata", headers);
    has_etag(&takes_conditions(&blobs, BLOB, 200, get));
}

#[test]
fn s028_set_blob_metadata_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    let set = |headers: Headers<'_>| blobs.put("/con/b?comp=metadata", headers);
    has_etag(&takes_conditions(&blobs, BLOB, 200, set));
}

#[test]
fn s029_lease_blob_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    has_etag(&takes_conditions(&blobs, BLOB, 201, |headers| acquire(&blobs, "/con/b?", headers)));
}

#[test]
fn s030_snapshot_blob_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    let take = |headers: Headers<'_>| blobs.put("/con/b?comp=snapshot", headers);
    has_etag(&takes_conditions(&blobs, BLOB, 201, take));
}

#[test]
fn s031_copy_blob_returns_an_etag_and_takes_conditions_on_source_and_destination() {
    let blobs = with_blob();
    blobs.upload("to", "two", &[]).is(201);
    let url = blobs.url("b");
    let copy = |headers: Headers<'_>| {
        let mut all = vec![("x-ms-copy-source", url.as_str())];
        all.extend(headers);
        blobs.put("/con/to", &all)
    };
    copy(&[("x-ms-source-if-match", OTHER)]).refused(412, "SourceConditionNotMet");
    copy(&[("if-match", OTHER)]).refused(412, "TargetConditionNotMet");
    has_etag(&takes_conditions(&blobs, "/con/to", 202, copy));
    assert_eq!(blobs.text("to"), "one");
}

/// A copy to `to` that is held back, and the target that aborts it.
fn pending_copy() -> (Blobs, String) {
    let copy_delay = Duration::from_mins(1);
    let blobs = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() });
    blobs.blob("one");
    let url = blobs.url("b");
    let begun = blobs.put("/con/to", &[("x-ms-copy-source", &url)]).is(202);
    let abort = format!("/con/to?comp=copy&copyid={}", begun.header("x-ms-copy-id"));
    (blobs, abort)
}

#[test]
fn s032_abort_copy_blob_returns_no_etag_and_takes_no_conditions() {
    let (blobs, abort) = pending_copy();
    let ended = takes_no_conditions(204, |headers| {
        blobs.put(&abort, &[&[("x-ms-copy-action", "abort")], headers].concat())
    });
    has_no_etag(&ended);
}

#[test]
fn s033_delete_blob_returns_no_etag_and_takes_conditions() {
    let blobs = with_blob();
    has_no_etag(&takes_conditions(&blobs, BLOB, 202, |headers| blobs.delete(BLOB, headers)));
}

fn put_block(blobs: &Blobs, headers: Headers<'_>) -> Got {
    blobs.ask("PUT", "/con/b?comp=block&blockid=AAAA", headers, b"bytes")
}

#[test]
fn s034_put_block_returns_no_etag_and_takes_no_conditions() {
    let blobs = with_blob();
    has_no_etag(&takes_no_conditions(201, |headers| put_block(&blobs, headers)));
}

#[test]
fn s035_put_block_list_returns_an_etag_and_takes_conditions() {
    let blobs = with_blob();
    put_block(&blobs, &[]).is(201);
    let list = b"<BlockList><Latest>AAAA</Latest></BlockList>";
    let put = |headers: Headers<'_>| blobs.ask("PUT", "/con/b?comp=blocklist", headers, list);
    has_etag(&takes_conditions(&blobs, BLOB, 201, put));
    assert_eq!(blobs.text("b"), "bytes");
}

#[test]
fn s036_get_block_list_returns_an_etag_and_takes_no_conditions() {
    let blobs = with_blob();
    let get = |headers: Headers<'_>| blobs.get("/con/b?comp=blocklist", headers);
    has_etag(&takes_no_conditions(200, get));
}

fn with_page_blob() -> Blobs {
    let blobs = Blobs::new();
    let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put(BLOB, &headers).is(201);
    blobs
}

#[test]
fn s037_put_page_returns_an_etag_and_takes_conditions() {
    let blobs = with_page_blob();
    let put = |headers: Headers<'_>| {
        let page = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
        blobs.ask("PUT", "/con/b?comp=page", &[&page, headers].concat(), &[7; 512])
    };
    has_etag(&takes_conditions(&blobs, BLOB, 201, put));
}

#[test]
fn s038_get_page_ranges_returns_an_etag_and_takes_conditions() {
    let blobs = with_page_blob();
    let get = |headers: Headers<'_>| blobs.get("/con/b?comp=pagelist", headers);
    has_etag(&takes_conditions(&blobs, BLOB, 200, get));
}

#[test]
fn s039_a_lease_does_not_change_a_blobs_etag() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let id = [("x-ms-lease-id", A)];
    let change = [id[0], ("x-ms-proposed-lease-id", A)];
    acquire(&blobs, "/con/b?", &[]).is(201);
    blobs.lease("/con/b?", "renew", &id).is(200);
    blobs.lease("/con/b?", "change", &change).is(200);
    blobs.lease("/con/b?", "break", &[("x-ms-lease-break-period", "0")]).is(202);
    blobs.lease("/con/b?", "release", &id).is(200);
    assert_eq!(blobs.etag(BLOB), etag);
}
