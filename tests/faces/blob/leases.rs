//! Blobs and containers through the tables of leases, and what the tables do not say: B60, B98,
//! B99, B101 to B103, B105 to B108, B111, B119.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use super::fixture::{A, B, Blobs, Got};
use super::requests::{blob_for, container, request};
use crate::leases::{Headers, ID, Leased, Use};

const BLOB: &str = "/con/b?";
const MISSING: &str = "LeaseIdMissing";
const MISMATCH: &str = "LeaseIdMismatchWithBlobOperation";
const LIST: &[u8] = b"<BlockList><Latest>AAAA</Latest></BlockList>";

/// Runs `check` with a server and the driver of the tables.
fn with_tables(noun: &str, check: impl FnOnce(&Blobs, &Leased<'_>)) {
    let blobs = Blobs::new();
    blobs.upload("source", &"s".repeat(512), &[]).is(201);
    let ask = |method: &str, target: &str, headers: Headers<'_>, body: &[u8]| {
        blobs.ask(method, target, headers, body)
    };
    let pass = |time: Duration| blobs.clock.advance(time);
    check(&blobs, &Leased::new((noun, true), &ask, &pass));
}

#[test]
fn blobs_are_leased_as_the_tables_say() {
    with_tables("Blob", |blobs, leased| {
        let make = |name: &str| blob_for(blobs, "Put Blob", name);
        leased.try_actions("actions on a blob or container lease", make);
        leased.try_walks(make);
    });
}

#[test]
fn containers_are_leased_as_the_tables_say() {
    with_tables("Container", |blobs, leased| {
        let make = |name: &str| container(blobs, name);
        leased.try_actions("actions on a blob or container lease", make);
        leased.try_walks(make);
    });
}

/// The operations of each class of uses.
const USES: [(&str, &[&str]); 3] = [
    (
        "read",
        &[
            "Get Blob",
            "Get Properties",
            "Get Metadata",
            "Get Metadata by GET",
            "Get Block List",
            "Get Page Ranges",
            "Get Tags",
            "Snapshot",
        ],
    ),
    (
        "write",
        &[
            "Put Blob",
            "Put Block",
            "Put Block List",
            "Put Page",
            "Clear Page",
            "Append Block",
            "Seal",
            "Set Properties",
            "Set Metadata",
            "Set Tags",
            "Set Tier",
            "Put Blob From URL",
            "Put Page From URL",
            "Append Block From URL",
            "Delete",
        ],
    ),
    ("target", &["Copy Blob"]),
];

#[test]
fn leased_blobs_are_used_as_the_table_says() {
    with_tables("Blob", |blobs, leased| {
        for (class, names) in USES {
            for name in names {
                let request = request(blobs, name);
                let one = Use {
                    class,
                    name,
                    ok: request.ok,
                    make: Box::new(|made| blob_for(blobs, name, made)),
                    send: Box::new(|at, headers| request.send(blobs, at, headers)),
                };
                leased.try_uses("uses of a blob or container", &[one], true);
            }
        }
        let list = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
        assert!(list.contains("<LeaseState>leased</LeaseState>"), "{list}");
    });
}

#[test]
fn leased_containers_are_used_as_the_table_says() {
    with_tables("Container", |blobs, leased| {
        for (class, name) in [
            ("read", "Get Container Properties"),
            ("read", "Get Container Metadata"),
            ("read", "Get Container ACL"),
            ("read", "Set Container Metadata"),
            ("read", "Set Container ACL"),
            ("delete", "Delete Container"),
            ("ignored", "List Blobs"),
        ] {
            let request = request(blobs, name);
            let one = Use {
                class,
                name,
                ok: request.ok,
                make: Box::new(|made| container(blobs, made)),
                send: Box::new(|at, headers| request.send(blobs, at, headers)),
            };
            leased.try_uses("uses of a blob or container", &[one], false);
        }
    });
}

fn with_blob() -> Blobs {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs
}

fn acquire(blobs: &Blobs, at: &str, seconds: &str, id: &str) -> Got {
    let headers = [("x-ms-lease-duration", seconds), ("x-ms-proposed-lease-id", id)];
    blobs.lease(at, "acquire", &headers)
}

fn state(blobs: &Blobs) -> String {
    blobs.head("/con/b", &[]).is(200).header("x-ms-lease-state").to_owned()
}

#[test]
fn b060_a_proposed_id_is_a_guid_in_any_spelling() {
    let blobs = with_blob();
    acquire(&blobs, BLOB, "15", "nope").refused(400, "InvalidHeaderValue");
    assert_eq!(acquire(&blobs, BLOB, "-1", A).is(201).header(ID), A);
    for spelled in [A.to_uppercase(), format!("{{{A}}}"), A.replace('-', "")] {
        blobs.lease(BLOB, "renew", &[(ID, &spelled)]).is(200);
    }
    blobs.get("/con/b", &[(ID, "x")]).refused(400, "InvalidHeaderValue");
    for (name, bad) in [("x-ms-lease-break-period", "soon"), (ID, "x")] {
        let action = if name == ID { "renew" } else { "break" };
        blobs.lease(BLOB, action, &[(name, bad)]).refused(400, "InvalidHeaderValue");
    }
    acquire(&blobs, BLOB, "long", A).refused(400, "InvalidHeaderValue");
    // Breaking needs no ID and heeds none.
    blobs.lease(BLOB, "break", &[(ID, B)]).is(202);
    assert_eq!(state(&blobs), "broken");
    let told = blobs.upload("b", "x", &[(ID, A)]).refused(412, "LeaseLost").text();
    assert!(told.contains("Lease Blob (break)"), "{told}");
}

#[test]
fn b098_deleting_drops_the_lease() {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    blobs.delete("/con/b", &[(ID, A)]).is(202);
    blobs.blob("anew");
    assert_eq!(state(&blobs), "available");
}

#[test]
fn b099_a_valid_lease_lifts_a_star() {
    let blobs = with_blob();
    let star = ("if-none-match", "*");
    let stage = |headers: &[(&str, &str)]| {
        blobs.ask("PUT", "/con/b?comp=block&blockid=AAAA", headers, b"x").is(201);
    };
    stage(&[]);
    blobs.leased(BLOB, "-1");
    let commit =
        |headers: &[(&str, &str)]| blobs.ask("PUT", "/con/b?comp=blocklist", headers, LIST);
    blobs.upload("b", "x", &[star]).refused(412, MISSING);
    commit(&[star]).refused(412, MISSING);
    commit(&[star, (ID, A)]).is(201);
    blobs.upload("b", "x", &[star, (ID, A)]).is(201);
}

#[test]
fn b102_what_can_be_leased() {
    let blobs = with_blob();
    let taken = blobs.put("/con/b?comp=snapshot", &[]).is(201);
    let older = format!("/con/b?snapshot={}&", taken.header("x-ms-snapshot"));
    acquire(&blobs, &older, "15", A).refused(400, "InvalidOperation");
    acquire(&blobs, "/con/none?", "15", A).refused(404, "BlobNotFound");
    let stage = |headers: &[(&str, &str)]| {
        blobs.ask("PUT", "/con/u?comp=block&blockid=AAAA", headers, b"x")
    };
    stage(&[]).is(201);
    assert_eq!(acquire(&blobs, "/con/u?", "-1", A).is(201).header("etag"), "");
    stage(&[]).refused(412, MISSING);
    stage(&[(ID, A)]).is(201);
    blobs.ask("PUT", "/con/u?comp=blocklist", &[], LIST).refused(412, MISSING);
    blobs.ask("PUT", "/con/u?comp=blocklist", &[(ID, A)], LIST).is(201);
}

#[test]
fn b103_a_snapshot_of_a_leased_blob_has_no_lease() {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    blobs.put("/con/b?comp=snapshot", &[(ID, B)]).refused(412, MISMATCH);
    let taken = blobs.put("/con/b?comp=snapshot", &[(ID, A)]).is(201);
    let older = format!("/con/b?snapshot={}", taken.header("x-ms-snapshot"));
    let head = blobs.head(&older, &[]).is(200);
    for name in ["x-ms-lease-state", "x-ms-lease-status", "x-ms-lease-duration"] {
        assert_eq!(head.header(name), "");
    }
}

/// A server that leaves copies pending, with the blob `b`.
fn holding_back() -> Blobs {
    let copy_delay = Duration::from_mins(1);
    let blobs = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() });
    blobs.blob("one");
    blobs
}

#[test]
fn b105_aborting_a_copy_to_a_blob_under_an_infinite_lease_needs_it() {
    let blobs = holding_back();
    let url = blobs.url("b");
    let action = ("x-ms-copy-action", "abort");
    let begin = |name: &str, headers: &[(&str, &str)]| {
        let mut all = vec![("x-ms-copy-source", url.as_str())];
        all.extend(headers);
        let begun = blobs.put(&format!("/con/{name}"), &all).is(202);
        assert_eq!(begun.header("x-ms-copy-status"), "pending");
        format!("/con/{name}?comp=copy&copyid={}", begun.header("x-ms-copy-id"))
    };
    let abort = begin("free", &[]);
    blobs.put(&abort, &[action, (ID, A)]).refused(412, "LeaseNotPresentWithBlobOperation");
    blobs.put(&abort, &[action]).is(204);
    // A finite lease ends before a copy to its blob can begin, and stands in no abort's way.
    blobs.upload("finite", "x", &[]).is(201);
    acquire(&blobs, "/con/finite?", "15", A).is(201);
    let headers = [("x-ms-copy-source", url.as_str()), (ID, A)];
    blobs.put("/con/finite", &headers).refused(412, "InfiniteLeaseDurationRequired");
    blobs.pass(15);
    let abort = begin("finite", &[]);
    blobs.put(&abort, &[action]).is(204);
    blobs.put(&abort, &[action]).refused(409, "NoPendingCopyOperation");
    blobs.upload("leased", "x", &[]).is(201);
    acquire(&blobs, "/con/leased?", "-1", A).is(201);
    let abort = begin("leased", &[(ID, A)]);
    blobs.put(&abort, &[action]).refused(412, MISSING);
    blobs.put(&abort, &[action, (ID, B)]).refused(412, MISMATCH);
    assert_eq!(blobs.head("/con/leased", &[]).header("x-ms-copy-status"), "pending");
    blobs.put(&abort, &[action, (ID, A)]).is(204);
    let aborted = blobs.head("/con/leased", &[]).is(200);
    assert_eq!(aborted.header("x-ms-copy-status"), "aborted");
    assert_eq!(aborted.header("x-ms-lease-state"), "leased", "the lease stays");
}

#[test]
fn b106_no_lease_action_while_a_copy_is_pending() {
    let blobs = holding_back();
    let url = blobs.url("b");
    blobs.put("/con/to", &[("x-ms-copy-source", &url)]).is(202);
    let id = (ID, A);
    for (action, headers) in [
        ("acquire", vec![("x-ms-lease-duration", "15")]),
        ("renew", vec![id]),
        ("change", vec![id, ("x-ms-proposed-lease-id", B)]),
        ("release", vec![id]),
        ("break", vec![]),
    ] {
        blobs.lease("/con/to?", action, &headers).refused(409, "PendingCopyOperation");
    }
}

#[test]
fn b107_headers_and_lists_show_the_state() {
    let blobs = with_blob();
    let shown = || {
        let head = blobs.head("/con/b", &[]).is(200);
        let list = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
        let of = |name: &str| head.header(&format!("x-ms-lease-{name}")).to_owned();
        for (element, value) in [("LeaseStatus", of("status")), ("LeaseState", of("state"))] {
            assert!(list.contains(&format!("<{element}>{value}</{element}>")), "{list}");
        }
        let duration = format!("<LeaseDuration>{}</LeaseDuration>", of("duration"));
        assert_eq!(list.contains("<LeaseDuration>"), !of("duration").is_empty());
        assert!(of("duration").is_empty() || list.contains(&duration), "{list}");
        format!("{} {} {}", of("status"), of("state"), of("duration"))
    };
    assert_eq!(shown(), "unlocked available ");
    blobs.leased(BLOB, "15");
    assert_eq!(shown(), "locked leased fixed");
    blobs.leased(BLOB, "-1");
    assert_eq!(shown(), "locked leased infinite");
    blobs.lease(BLOB, "break", &[("x-ms-lease-break-period", "10")]).is(202);
    assert_eq!(shown(), "locked breaking ");
    blobs.pass(10);
    assert_eq!(shown(), "unlocked broken ");
    blobs.leased(BLOB, "15");
    blobs.pass(15);
    assert_eq!(shown(), "unlocked expired ");
}

#[test]
fn b108_leases_outlive_a_restart() {
    let mut blobs = with_blob();
    blobs.upload("finite", "x", &[]).is(201);
    blobs.leased(BLOB, "-1");
    blobs.leased("/con/finite?", "60");
    blobs.pass(30);
    blobs.restart();
    let told = blobs.upload("b", "x", &[]).refused(412, MISSING).text();
    assert!(told.contains("[latchfs: leased 30.0 s ago"), "{told}");
    blobs.upload("finite", "x", &[]).refused(412, MISSING);
    blobs.pass(30);
    blobs.upload("finite", "x", &[]).is(201);
    blobs.upload("b", "x", &[]).refused(412, MISSING);
}

#[test]
fn b111_the_lease_is_asked_before_conditions() {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    blobs.upload("b", "x", &[("if-match", "\"0x1\"")]).refused(412, MISSING);
    blobs.upload("b", "x", &[("if-match", "\"0x1\""), (ID, A)]).refused(412, "ConditionNotMet");
}

#[test]
fn b119_leased_blobs_do_not_keep_their_container() {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs.leased("/con/b?", "-1");
    blobs.delete("/con?restype=container", &[]).is(202);
    blobs.get("/con?restype=container", &[]).refused(404, "ContainerNotFound");
}
