//! What a leased container lets through: B113 to B117, B119, B120.

use super::fixture::{A, B, Blobs};

const C: &str = "/con?restype=container";
const META: &str = "/con?restype=container&comp=metadata";
const ACL: &str = "/con?restype=container&comp=acl";
const LEASE: &str = "/con?restype=container&";
const ID: &str = "x-ms-lease-id";
const MISMATCH: &str = "LeaseIdMismatchWithContainerOperation";

/// Properties, metadata and access policies, read and written.
const FIVE: [(&str, &str); 5] =
    [("GET", C), ("GET", META), ("GET", ACL), ("PUT", META), ("PUT", ACL)];

fn leased() -> Blobs {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs.leased(LEASE, "-1");
    blobs
}

#[test]
fn b113_a_leased_container_is_deleted_with_the_lease_alone() {
    let blobs = leased();
    let told = blobs.delete(C, &[]).refused(412, "LeaseIdMissing").text();
    assert!(told.contains("Lease Container (acquire)"), "{told}");
    blobs.delete(C, &[(ID, B)]).refused(412, MISMATCH);
    blobs.delete(C, &[(ID, A)]).is(202);
}

#[test]
fn b114_all_else_in_a_leased_container_needs_no_lease() {
    let blobs = leased();
    for (method, target) in FIVE {
        blobs.ask(method, target, &[], b"").is(200);
    }
    blobs.get("/con?restype=container&comp=list", &[]).is(200);
    blobs.upload("new", "x", &[]).is(201);
    blobs.delete("/con/new", &[]).is(202);
}

#[test]
fn b115_the_lease_passes_and_another_does_not() {
    let blobs = leased();
    for (method, target) in FIVE {
        blobs.ask(method, target, &[(ID, A)], b"").is(200);
        blobs.ask(method, target, &[(ID, B)], b"").refused(412, MISMATCH);
    }
}

#[test]
fn b116_an_id_wants_a_lease() {
    let blobs = Blobs::new();
    let absent = "LeaseNotPresentWithContainerOperation";
    for (method, target) in FIVE {
        blobs.ask(method, target, &[(ID, A)], b"").refused(412, absent);
    }
    blobs.delete(C, &[(ID, A)]).refused(412, absent);
}

#[test]
fn b117_a_broken_lease_is_lost_and_keeps_nobody_out() {
    let blobs = leased();
    blobs.lease(LEASE, "break", &[("x-ms-lease-break-period", "0")]).is(202);
    blobs.delete(C, &[(ID, A)]).refused(412, "LeaseLost");
    blobs.delete(C, &[]).is(202);
}

#[test]
fn b119_leased_blobs_do_not_keep_their_container() {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs.leased("/con/b?", "-1");
    blobs.delete(C, &[]).is(202);
    blobs.get(C, &[]).refused(404, "ContainerNotFound");
}

#[test]
fn b120_lease_actions_leave_the_etag_of_a_container() {
    let blobs = Blobs::new();
    let (etag, date) = (blobs.etag(C), blobs.modified(C, 0));
    blobs.pass(10);
    let id = (ID, A);
    blobs.leased(LEASE, "60");
    blobs.lease(LEASE, "renew", &[id]).is(200);
    blobs.lease(LEASE, "change", &[id, ("x-ms-proposed-lease-id", A)]).is(200);
    blobs.lease(LEASE, "break", &[("x-ms-lease-break-period", "0")]).is(202);
    blobs.lease(LEASE, "release", &[id]).is(200);
    assert_eq!((blobs.etag(C), blobs.modified(C, 0)), (etag, date));
}
