//! What a leased blob lets through: B64 to B70, B73, B75, B76, B93, B94, B96 to B108, B111, B112.

use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use super::fixture::{A, B, Blobs, Got};

const BLOB: &str = "/con/b?";
const ID: &str = "x-ms-lease-id";
const MISSING: &str = "LeaseIdMissing";
const MISMATCH: &str = "LeaseIdMismatchWithBlobOperation";
const ABSENT: &str = "LeaseNotPresentWithBlobOperation";
const LIST: &[u8] = b"<BlockList><Latest>AAAA</Latest></BlockList>";
const TAGS: &[u8] = b"<Tags><TagSet/></Tags>";

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

/// A request that writes: the blob's name is in front of the rest of the target.
struct Write {
    kind: &'static str,
    method: &'static str,
    rest: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    status: u16,
}

/// Every write to a blob of each type.
fn writes(blobs: &Blobs) -> Vec<Write> {
    let write = |kind, rest, headers: &[(&'static str, &str)], body: &[u8], status| Write {
        kind,
        method: "PUT",
        rest,
        headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        body: body.to_vec(),
        status,
    };
    let source = blobs.url("source");
    let source = ("x-ms-copy-source", source.as_str());
    let range = ("x-ms-range", "bytes=0-511");
    let mut all = vec![
        write("block", "", &[("x-ms-blob-type", "BlockBlob")], b"x", 201),
        write("block", "?comp=metadata", &[], b"", 200),
        write("block", "?comp=properties", &[], b"", 200),
        write("block", "?comp=block&blockid=AAAA", &[], b"x", 201),
        write("block", "?comp=blocklist", &[], LIST, 201),
        write("page", "?comp=page", &[range, ("x-ms-page-write", "update")], &[1; 512], 201),
        write("page", "?comp=page", &[range, ("x-ms-page-write", "clear")], b"", 201),
        write("append", "?comp=appendblock", &[], b"x", 201),
        write("append", "?comp=seal", &[], b"", 200),
        write("block", "", &[source], b"", 202),
        write("block", "?comp=tags", &[], TAGS, 204),
        write("block", "?comp=tier", &[("x-ms-access-tier", "Hot")], b"", 200),
        write("block", "", &[source, ("x-ms-blob-type", "BlockBlob")], b"", 201),
    ];
    all.push(Write { method: "DELETE", ..write("block", "", &[], b"", 202) });
    all
}

/// A server with a source, and with a blob of each type under an infinite lease A.
fn with_leased() -> Blobs {
    let blobs = Blobs::new();
    blobs.upload("source", "copied", &[]).is(201);
    let length = ("x-ms-blob-content-length", "512");
    blobs.upload("block", "one", &[]).is(201);
    blobs.ask("PUT", "/con/block?comp=block&blockid=AAAA", &[], b"x").is(201);
    blobs.put("/con/page", &[("x-ms-blob-type", "PageBlob"), length]).is(201);
    blobs.put("/con/append", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    for kind in ["block", "page", "append"] {
        acquire(&blobs, &format!("/con/{kind}?"), "-1", A).is(201);
    }
    blobs
}

fn send(blobs: &Blobs, write: &Write, id: Option<&str>) -> Got {
    let headers = write.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let headers: Vec<_> = headers.chain(id.map(|id| (ID, id))).collect();
    blobs.ask(write.method, &format!("/con/{}{}", write.kind, write.rest), &headers, &write.body)
}

/// All that a client sees of a blob.
fn seen(blobs: &Blobs, name: &str) -> (String, Vec<u8>, String, String) {
    let head = blobs.head(&format!("/con/{name}"), &[]).is(200);
    let body = blobs.get(&format!("/con/{name}"), &[]).is(200).body;
    let tier = head.header("x-ms-access-tier-change-time").to_owned();
    (head.header("etag").to_owned(), body, head.header("x-ms-tag-count").to_owned(), tier)
}

#[test]
fn b064_every_write_needs_the_lease_and_is_told_who_has_it() {
    let blobs = with_leased();
    for write in writes(&blobs) {
        let before = seen(&blobs, write.kind);
        let told = send(&blobs, &write, None).refused(412, MISSING).text();
        assert!(told.contains("[latchfs: leased") && told.contains("Lease Blob (acquire)"));
        assert_eq!(seen(&blobs, write.kind), before, "{} {}", write.method, write.rest);
    }
}

#[test]
fn b065_every_write_passes_with_the_lease() {
    let blobs = with_leased();
    for write in writes(&blobs) {
        let got = send(&blobs, &write, Some(A));
        assert_eq!(got.status, write.status, "{} {}: {}", write.method, write.rest, got.text());
    }
}

#[test]
fn b066_no_write_passes_with_another_lease() {
    let blobs = with_leased();
    for write in writes(&blobs) {
        let before = seen(&blobs, write.kind);
        send(&blobs, &write, Some(B)).refused(412, MISMATCH);
        assert_eq!(seen(&blobs, write.kind), before, "{} {}", write.method, write.rest);
    }
}

/// Every read, with the blob that it reads.
const READS: [(&str, &str, u16); 8] = [
    ("GET", "/con/block", 200),
    ("HEAD", "/con/block", 200),
    ("HEAD", "/con/block?comp=metadata", 200),
    ("GET", "/con/block?comp=metadata", 200),
    ("GET", "/con/block?comp=blocklist&blocklisttype=all", 200),
    ("GET", "/con/page?comp=pagelist", 200),
    ("GET", "/con/block?comp=tags", 200),
    ("PUT", "/con/block?comp=snapshot", 201),
];

#[test]
fn b067_reads_need_no_lease() {
    let blobs = with_leased();
    for (method, target, status) in READS {
        blobs.ask(method, target, &[], b"").is(status);
    }
    let list = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
    assert!(list.contains("<LeaseState>leased</LeaseState>"), "{list}");
    let url = blobs.url("block");
    blobs.put("/con/copy", &[("x-ms-copy-source", &url)]).is(202);
}

#[test]
fn b068_reads_pass_with_the_lease_and_not_with_another() {
    let blobs = with_leased();
    for (method, target, status) in READS {
        blobs.ask(method, target, &[(ID, A)], b"").is(status);
        blobs.ask(method, target, &[(ID, B)], b"").refused(412, MISMATCH);
    }
}

#[test]
fn b069_a_read_with_an_id_wants_a_lease() {
    let blobs = with_blob();
    blobs.get("/con/b", &[(ID, A)]).refused(412, ABSENT);
    blobs.head("/con/b", &[(ID, A)]).refused(412, ABSENT);
}

#[test]
fn b070_a_write_with_an_id_wants_a_lease() {
    let blobs = with_blob();
    blobs.upload("b", "x", &[(ID, A)]).refused(412, ABSENT);
    blobs.put("/con/b?comp=metadata", &[(ID, A)]).refused(412, ABSENT);
    assert_eq!(blobs.text("b"), "one");
}

fn expired() -> Blobs {
    let blobs = with_blob();
    blobs.leased(BLOB, "15");
    blobs.pass(15);
    blobs
}

fn renew(blobs: &Blobs) -> Got {
    blobs.lease(BLOB, "renew", &[(ID, A)])
}

#[test]
fn b073_an_expired_lease_is_lost_and_keeps_no_writer_out() {
    let blobs = expired();
    blobs.upload("b", "x", &[(ID, A)]).refused(412, "LeaseLost");
    assert_eq!(blobs.text("b"), "one");
    blobs.upload("b", "two", &[]).is(201);
    assert_eq!(state(&blobs), "available");
}

#[test]
fn b075_after_a_write_an_expired_lease_cannot_be_renewed() {
    let blobs = expired();
    blobs.upload("b", "two", &[]).is(201);
    renew(&blobs).refused(409, "LeaseIdMismatchWithLeaseOperation");
}

#[test]
fn b076_after_a_read_an_expired_lease_can_be_renewed() {
    let blobs = expired();
    assert_eq!(blobs.text("b"), "one");
    renew(&blobs).is(200);
}

#[test]
fn b093_a_breaking_lease_still_guards() {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    blobs.lease(BLOB, "break", &[("x-ms-lease-break-period", "10")]).is(202);
    blobs.upload("b", "x", &[]).refused(412, MISSING);
    blobs.upload("b", "x", &[(ID, B)]).refused(412, MISMATCH);
    blobs.upload("b", "x", &[(ID, A)]).is(201);
}

fn broken() -> Blobs {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    blobs.lease(BLOB, "break", &[("x-ms-lease-break-period", "0")]).is(202);
    blobs
}

#[test]
fn b094_a_broken_lease_is_lost_and_keeps_no_writer_out() {
    let blobs = broken();
    let told = blobs.upload("b", "x", &[(ID, A)]).refused(412, "LeaseLost").text();
    assert!(told.contains("Lease Blob (break)"), "{told}");
    blobs.upload("b", "x", &[]).is(201);
    assert_eq!(state(&blobs), "available");
}

#[test]
fn b096_a_read_leaves_a_broken_lease() {
    let blobs = broken();
    blobs.get("/con/b", &[(ID, A)]).refused(412, "LeaseLost");
    blobs.get("/con/b", &[]).is(200);
    assert_eq!(state(&blobs), "broken");
}

#[test]
fn b097_writing_anew_keeps_the_lease() {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    blobs.upload("b", "two", &[(ID, A)]).is(201);
    assert_eq!(state(&blobs), "leased");
    blobs.upload("b", "three", &[]).refused(412, MISSING);
    blobs.upload("b", "three", &[(ID, A)]).is(201);
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
fn b100_an_id_on_a_missing_blob() {
    let blobs = Blobs::new();
    blobs.upload("none", "x", &[(ID, A)]).refused(412, ABSENT);
    blobs.put("/con/none?comp=metadata", &[(ID, A)]).refused(404, "BlobNotFound");
    blobs.get("/con/none", &[]).refused(404, "BlobNotFound");
}

#[test]
fn b101_an_id_is_a_guid() {
    let blobs = with_blob();
    blobs.get("/con/b", &[(ID, "x")]).refused(400, "InvalidHeaderValue");
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
    acquire(&blobs, "/con/u?", "-1", A).is(201);
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

#[test]
fn b104_a_copy_needs_an_infinite_lease() {
    let blobs = with_blob();
    let url = blobs.url("b");
    blobs.upload("to", "x", &[]).is(201);
    let copy = |headers: &[(&str, &str)]| {
        let mut all = vec![("x-ms-copy-source", url.as_str())];
        all.extend(headers);
        blobs.put("/con/to", &all)
    };
    acquire(&blobs, "/con/to?", "60", A).is(201);
    copy(&[(ID, A)]).refused(412, "InfiniteLeaseDurationRequired");
    copy(&[]).refused(412, MISSING);
    acquire(&blobs, "/con/to?", "-1", A).is(201);
    copy(&[]).refused(412, MISSING);
    copy(&[(ID, A)]).is(202);
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
fn b112_exclusive_reading_is_by_convention() {
    let blobs = with_blob();
    blobs.leased(BLOB, "-1");
    for _ in 0..2 {
        blobs.get("/con/b", &[(ID, A)]).is(200);
    }
    blobs.lease(BLOB, "change", &[(ID, A), ("x-ms-proposed-lease-id", B)]).is(200);
    blobs.get("/con/b", &[(ID, A)]).refused(412, MISMATCH);
    blobs.get("/con/b", &[(ID, B)]).is(200);
}
