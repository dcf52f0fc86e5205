//! What the article says of pessimistic control of blobs and containers (S40-S76), through real
//! HTTP.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use crate::blob::fixture::{A, B, Blobs, Got};
use crate::blob::requests::{blob_for, request};
use crate::leases::ID;

const MISSING: &str = "LeaseIdMissing";
const BLOB: &str = "/con/b";
const LEASE: &str = "/con/b?";
const CONTAINER: &str = "/con?restype=container";
const CONTAINER_LEASE: &str = "/con?restype=container&";
const METADATA: &str = "/con?restype=container&comp=metadata";
const ACL: &str = "/con?restype=container&comp=acl";

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

/// A server with what the request is for, leased under A without end, and its address.
fn stage(name: &str) -> (Blobs, String) {
    let blobs = Blobs::new();
    blobs.upload("source", "two", &[]).is(201);
    let blob = blob_for(&blobs, name, "b");
    let at = if name.contains("Container") { CONTAINER_LEASE.to_owned() } else { blob };
    blobs.leased(&at, "-1");
    (blobs, at)
}

/// A change of what is leased: refused without the ID and with another one, done with it.
fn needs_the_id(name: &str) -> Blobs {
    let (blobs, at) = stage(name);
    let request = request(&blobs, name);
    request.send(&blobs, &at, &[]).refused(412, MISSING);
    let noun = if at == CONTAINER_LEASE { "Container" } else { "Blob" };
    let wrong = format!("LeaseIdMismatchWith{noun}Operation");
    request.send(&blobs, &at, &[(ID, B)]).refused(412, &wrong);
    request.send(&blobs, &at, &[(ID, A)]).is(request.ok);
    blobs
}

/// A read of what is leased: the ID may be there, and must then be the right one.
fn may_carry_the_id(name: &str) {
    let (blobs, at) = stage(name);
    let request = request(&blobs, name);
    request.send(&blobs, &at, &[]).is(request.ok);
    request.send(&blobs, &at, &[(ID, A)]).is(request.ok);
    let wrong = request.send(&blobs, &at, &[(ID, B)]).is(412);
    assert!(wrong.code().starts_with("LeaseIdMismatchWith"), "{wrong:?}");
}

statements! {
    needs_the_id {
        s050_put_blob_can_carry_a_lease_id = "Put Blob";
        s053_set_blob_properties_can_carry_a_lease_id = "Set Properties";
        s055_set_blob_metadata_can_carry_a_lease_id = "Set Metadata";
        s056_delete_blob_can_carry_a_lease_id = "Delete";
        s057_put_block_can_carry_a_lease_id = "Put Block";
        s058_put_block_list_can_carry_a_lease_id = "Put Block List";
        s060_put_page_can_carry_a_lease_id = "Put Page";
        s070_delete_container_can_carry_a_lease_id = "Delete Container";
    }
    may_carry_the_id {
        s051_get_blob_can_carry_a_lease_id = "Get Blob";
        s052_get_blob_properties_can_carry_a_lease_id = "Get Properties";
        s054_get_blob_metadata_can_carry_a_lease_id = "Get Metadata by GET";
        s059_get_block_list_can_carry_a_lease_id = "Get Block List";
        s061_get_page_ranges_can_carry_a_lease_id = "Get Page Ranges";
        s062_snapshot_blob_can_carry_a_lease_id = "Snapshot";
        s071_get_container_properties_can_carry_a_lease_id = "Get Container Properties";
        s072_get_container_metadata_can_carry_a_lease_id = "Get Container Metadata";
        s073_set_container_metadata_can_carry_a_lease_id = "Set Container Metadata";
        s074_get_container_acl_can_carry_a_lease_id = "Get Container ACL";
        s075_set_container_acl_can_carry_a_lease_id = "Set Container ACL";
    }
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
    for name in ["Put Blob", "Set Metadata", "Set Properties", "Delete"] {
        needs_the_id(name);
    }
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
fn s063_copy_blob_needs_the_lease_id_of_a_leased_destination() {
    assert_eq!(needs_the_id("Copy Blob").text("b"), "two");
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
fn s076_lease_container_carries_a_lease_id() {
    let blobs = leased_container();
    let wrong = "LeaseIdMismatchWithLeaseOperation";
    for action in ["renew", "release"] {
        blobs.lease(CONTAINER_LEASE, action, &[(ID, B)]).refused(409, wrong);
        blobs.lease(CONTAINER_LEASE, action, &[(ID, A)]).is(200);
    }
}
