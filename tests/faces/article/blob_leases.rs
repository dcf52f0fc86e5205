//! What the article says of pessimistic control of blobs and containers (S40-S76), through real
//! HTTP.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use crate::blob::fixture::{A, B, Blobs, Got};

type Headers<'a> = &'a [(&'a str, &'a str)];

const ID: &str = "x-ms-lease-id";
const MISSING: &str = "LeaseIdMissing";
const BLOB: &str = "/con/b";
const LEASE: &str = "/con/b?";
const CONTAINER: &str = "/con?restype=container";
const CONTAINER_LEASE: &str = "/con?restype=container&";
const METADATA: &str = "/con?restype=container&comp=metadata";
const ACL: &str = "/con?restype=container&comp=acl";
const LIST: &[u8] = b"<BlockList><Latest>AAAA</Latest></BlockList>";

fn with_blob() -> Blobs {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs
}

/// A blob that is leased under A without end.
fn leased() -> Blobs {
    let blobs = with_blob();
    blobs.leased(LEASE, "-1");
    blobs
}

fn acquire(blobs: &Blobs, target: &str, seconds: &str) -> Got {
    blobs.lease(target, "acquire", &[("x-ms-lease-duration", seconds)])
}

/// A write of a leased blob: refused without the ID and with another one, done with it.
#[track_caller]
fn needs_the_id(ok: u16, ask: impl Fn(Headers<'_>) -> Got) {
    ask(&[]).refused(412, MISSING);
    ask(&[(ID, B)]).refused(412, "LeaseIdMismatchWithBlobOperation");
    ask(&[(ID, A)]).is(ok);
}

/// A read of a leased object: the ID may be there, and must then be the right one.
#[track_caller]
fn may_carry_the_id(ok: u16, ask: impl Fn(Headers<'_>) -> Got) {
    ask(&[]).is(ok);
    ask(&[(ID, A)]).is(ok);
    let wrong = ask(&[(ID, B)]).is(412);
    assert!(wrong.code().starts_with("LeaseIdMismatchWith"), "{wrong:?}");
}

#[test]
fn s040_a_lease_is_for_15_to_60_seconds_or_without_end() {
    let blobs = with_blob();
    for seconds in ["14", "61", "0", "-2"] {
        acquire(&blobs, LEASE, seconds).refused(400, "InvalidHeaderValue");
    }
    for seconds in ["15", "60", "-1"] {
        let taken = acquire(&blobs, LEASE, seconds).is(201);
        blobs.lease(LEASE, "release", &[(ID, taken.header(ID))]).is(200);
    }
}

#[test]
fn s041_a_finite_lease_can_be_renewed_any_lease_released() {
    let blobs = with_blob();
    blobs.leased(LEASE, "15");
    blobs.pass(10);
    blobs.lease(LEASE, "renew", &[(ID, A)]).is(200);
    blobs.pass(10);
    blobs.upload("b", "x", &[]).refused(412, MISSING);
    blobs.lease(LEASE, "release", &[(ID, A)]).is(200);
    blobs.upload("b", "x", &[]).is(201);
    blobs.leased(LEASE, "-1");
    blobs.lease(LEASE, "release", &[(ID, A)]).is(200);
    blobs.upload("b", "x", &[]).is(201);
}

#[test]
fn s042_a_finite_lease_ends_by_itself() {
    let blobs = with_blob();
    blobs.leased(LEASE, "15");
    blobs.pass(14);
    blobs.upload("b", "x", &[]).refused(412, MISSING);
    blobs.pass(1);
    blobs.upload("b", "x", &[]).is(201);
}

#[test]
fn s043_a_leased_blob_is_put_set_and_deleted_by_the_holder_alone() {
    let blobs = leased();
    needs_the_id(201, |headers| blobs.upload("b", "two", headers));
    needs_the_id(200, |headers| blobs.put("/con/b?comp=metadata", headers));
    needs_the_id(200, |headers| blobs.put("/con/b?comp=properties", headers));
    needs_the_id(202, |headers| blobs.delete(BLOB, headers));
}

#[test]
fn s044_reading_a_leased_blob_needs_no_lease_id() {
    let blobs = leased();
    assert_eq!(blobs.text("b"), "one");
    blobs.head(BLOB, &[]).is(200);
}

#[test]
fn s045_reading_alone_is_a_matter_of_agreement_between_clients() {
    let blobs = leased();
    // Clients that agree to send an ID: only the holder of the valid one reads.
    blobs.get(BLOB, &[(ID, A)]).is(200);
    blobs.get(BLOB, &[(ID, B)]).refused(412, "LeaseIdMismatchWithBlobOperation");
    // Nothing keeps one that does not agree.
    blobs.get(BLOB, &[]).is(200);
}

#[test]
fn s046_a_lease_that_is_held_cannot_be_acquired() {
    let blobs = with_blob();
    blobs.leased(LEASE, "15");
    acquire(&blobs, LEASE, "15").refused(409, "LeaseAlreadyPresent");
    blobs.pass(15);
    acquire(&blobs, LEASE, "15").is(201);
}

#[test]
fn s047_a_write_with_the_valid_id_succeeds() {
    let blobs = leased();
    blobs.upload("b", "two", &[(ID, A)]).is(201);
    assert_eq!(blobs.text("b"), "two");
}

#[test]
fn s048_a_write_without_an_id_is_refused() {
    let blobs = leased();
    blobs.upload("b", "two", &[]).refused(412, MISSING);
    assert_eq!(blobs.text("b"), "one");
}

#[test]
fn s049_a_write_with_the_id_of_a_lease_that_ran_out_is_refused() {
    let blobs = with_blob();
    blobs.leased(LEASE, "15");
    blobs.pass(15);
    blobs.upload("b", "two", &[(ID, A)]).is(412);
    assert_eq!(blobs.text("b"), "one");
}

#[test]
fn s050_put_blob_can_carry_a_lease_id() {
    let blobs = leased();
    needs_the_id(201, |headers| blobs.upload("b", "two", headers));
}

#[test]
fn s051_get_blob_can_carry_a_lease_id() {
    let blobs = leased();
    may_carry_the_id(200, |headers| blobs.get(BLOB, headers));
}

#[test]
fn s052_get_blob_properties_can_carry_a_lease_id() {
    let blobs = leased();
    may_carry_the_id(200, |headers| blobs.head(BLOB, headers));
}

#[test]
fn s053_set_blob_properties_can_carry_a_lease_id() {
    let blobs = leased();
    needs_the_id(200, |headers| blobs.put("/con/b?comp=properties", headers));
}

#[test]
fn s054_get_blob_metadata_can_carry_a_lease_id() {
    let blobs = leased();
    may_carry_the_id(200, |headers| blobs.get("/con/b?comp=metadata", headers));
}

#[test]
fn s055_set_blob_metadata_can_carry_a_lease_id() {
    let blobs = leased();
    needs_the_id(200, |headers| blobs.put("/con/b?comp=metadata", headers));
}

#[test]
fn s056_delete_blob_can_carry_a_lease_id() {
    let blobs = leased();
    needs_the_id(202, |headers| blobs.delete(BLOB, headers));
}

fn put_block(blobs: &Blobs, headers: Headers<'_>) -> Got {
    blobs.ask("PUT", "/con/b?comp=block&blockid=AAAA", headers, b"bytes")
}

#[test]
fn s057_put_block_can_carry_a_lease_id() {
    let blobs = leased();
    needs_the_id(201, |headers| put_block(&blobs, headers));
}

#[test]
fn s058_put_block_list_can_carry_a_lease_id() {
    let blobs = leased();
    put_block(&blobs, &[(ID, A)]).is(201);
    needs_the_id(201, |headers| blobs.ask("PUT", "/con/b?comp=blocklist", headers, LIST));
}

#[test]
fn s059_get_block_list_can_carry_a_lease_id() {
    let blobs = leased();
    may_carry_the_id(200, |headers| blobs.get("/con/b?comp=blocklist", headers));
}

/// A page blob that is leased under A without end.
fn leased_pages() -> Blobs {
    let blobs = Blobs::new();
    let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put(BLOB, &headers).is(201);
    blobs.leased(LEASE, "-1");
    blobs
}

#[test]
fn s060_put_page_can_carry_a_lease_id() {
    let blobs = leased_pages();
    let page = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
    needs_the_id(201, |headers| {
        blobs.ask("PUT", "/con/b?comp=page", &[&page, headers].concat(), &[7; 512])
    });
}

#[test]
fn s061_get_page_ranges_can_carry_a_lease_id() {
    let blobs = leased_pages();
    may_carry_the_id(200, |headers| blobs.get("/con/b?comp=pagelist", headers));
}

#[test]
fn s062_snapshot_blob_can_carry_a_lease_id() {
    let blobs = leased();
    may_carry_the_id(201, |headers| blobs.put("/con/b?comp=snapshot", headers));
}

#[test]
fn s063_copy_blob_needs_the_lease_id_of_a_leased_destination() {
    let blobs = leased();
    let url = blobs.url("from");
    blobs.upload("from", "two", &[]).is(201);
    needs_the_id(202, |headers| {
        blobs.put(BLOB, &[&[("x-ms-copy-source", url.as_str())], headers].concat())
    });
    assert_eq!(blobs.text("b"), "two");
}

#[test]
fn s064_abort_copy_blob_needs_the_lease_id_of_a_destination_leased_without_end() {
    let copy_delay = Duration::from_mins(1);
    let blobs = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() });
    blobs.blob("one");
    blobs.leased(LEASE, "-1");
    blobs.upload("from", "two", &[]).is(201);
    let url = blobs.url("from");
    let begun = blobs.put(BLOB, &[("x-ms-copy-source", &url), (ID, A)]).is(202);
    let abort = format!("/con/b?comp=copy&copyid={}", begun.header("x-ms-copy-id"));
    let action = ("x-ms-copy-action", "abort");
    blobs.put(&abort, &[action]).refused(412, MISSING);
    blobs.put(&abort, &[action, (ID, A)]).is(204);
}

#[test]
fn s065_lease_blob_carries_a_lease_id() {
    let blobs = leased();
    for action in ["renew", "release"] {
        blobs.lease(LEASE, action, &[]).refused(400, "MissingRequiredHeader");
        blobs.lease(LEASE, action, &[(ID, B)]).refused(409, "LeaseIdMismatchWithLeaseOperation");
        blobs.lease(LEASE, action, &[(ID, A)]).is(200);
    }
}

/// A container, with a blob, that is leased under A without end.
fn leased_container() -> Blobs {
    let blobs = with_blob();
    blobs.leased(CONTAINER_LEASE, "-1");
    blobs
}

#[test]
fn s066_a_containers_lease_guards_its_deletion_only() {
    let blobs = leased_container();
    blobs.put(METADATA, &[("x-ms-meta-k", "v")]).is(200);
    blobs.upload("b", "two", &[]).is(201);
    blobs.delete(BLOB, &[]).is(202);
    blobs.delete(CONTAINER, &[]).refused(412, MISSING);
}

#[test]
fn s067_deleting_a_leased_container_needs_the_active_lease_id() {
    let blobs = leased_container();
    blobs.delete(CONTAINER, &[]).refused(412, MISSING);
    let wrong = blobs.delete(CONTAINER, &[(ID, B)]);
    wrong.refused(412, "LeaseIdMismatchWithContainerOperation");
    blobs.delete(CONTAINER, &[(ID, A)]).is(202);
}

#[test]
fn s068_every_other_operation_on_a_leased_container_needs_no_id() {
    let blobs = leased_container();
    for (method, target) in [
        ("GET", CONTAINER),
        ("GET", METADATA),
        ("PUT", METADATA),
        ("GET", ACL),
        ("PUT", ACL),
        ("GET", "/con?restype=container&comp=list"),
    ] {
        blobs.ask(method, target, &[], b"").is(200);
    }
}

#[test]
fn s069_using_a_container_alone_is_a_matter_of_agreement() {
    let blobs = leased_container();
    let wrong = "LeaseIdMismatchWithContainerOperation";
    for (method, target) in [("GET", METADATA), ("PUT", METADATA)] {
        blobs.ask(method, target, &[(ID, A)], b"").is(200);
        blobs.ask(method, target, &[(ID, B)], b"").refused(412, wrong);
        blobs.ask(method, target, &[], b"").is(200);
    }
}

#[test]
fn s070_delete_container_can_carry_a_lease_id() {
    let blobs = leased_container();
    blobs.delete(CONTAINER, &[(ID, A)]).is(202);
}

#[test]
fn s071_get_container_properties_can_carry_a_lease_id() {
    let blobs = leased_container();
    may_carry_the_id(200, |headers| blobs.get(CONTAINER, headers));
}

#[test]
fn s072_get_container_metadata_can_carry_a_lease_id() {
    let blobs = leased_container();
    may_carry_the_id(200, |headers| blobs.get(METADATA, headers));
}

#[test]
fn s073_set_container_metadata_can_carry_a_lease_id() {
    let blobs = leased_container();
    may_carry_the_id(200, |headers| blobs.put(METADATA, headers));
}

#[test]
fn s074_get_container_acl_can_carry_a_lease_id() {
    let blobs = leased_container();
    may_carry_the_id(200, |headers| blobs.get(ACL, headers));
}

#[test]
fn s075_set_container_acl_can_carry_a_lease_id() {
    let blobs = leased_container();
    may_carry_the_id(200, |headers| blobs.put(ACL, headers));
}

#[test]
fn s076_lease_container_carries_a_lease_id() {
    let blobs = leased_container();
    let wrong = "LeaseIdMismatchWithLeaseOperation";
    for action in ["renew", "release"] {
        blobs.lease(CONTAINER_LEASE, action, &[(ID, B)]).refused(409, wrong);
        blobs.lease(CONTAINER_LEASE, action, &[(ID, A)]).is(200);
    }
}
