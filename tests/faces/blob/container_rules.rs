//! Conditions of containers, and what moves their `ETag`: B47 to B55, B57, B58.

use latchfs::blob::service::BlobOptions;

use super::fixture::{Blobs, Got, NOT_MET};

const C: &str = "/con?restype=container";
const META: &str = "/con?restype=container&comp=metadata";
const ACL: &str = "/con?restype=container&comp=acl";

#[test]
fn b047_create_has_an_etag_and_ignores_conditions() {
    let blobs = Blobs::new();
    let made = blobs.put("/other?restype=container", &[("if-match", "\"0x1\"")]).is(201);
    assert!(made.header("etag").starts_with("\"0x8D"), "{made:?}");
    blobs.put("/other?restype=container", &[]).refused(409, "ContainerAlreadyExists");
}

#[test]
fn b048_reads_of_a_container_carry_its_etag_and_ignore_conditions() {
    let blobs = Blobs::new();
    let etag = blobs.etag(C);
    for target in [C, META, ACL] {
        let got = blobs.get(target, &[("if-match", "\"0x1\"")]).is(200);
        assert_eq!(got.header("etag"), etag, "{target}");
    }
}

#[test]
fn b049_set_metadata_takes_if_modified_since() {
    let blobs = Blobs::new();
    let (before, past, same) = (blobs.etag(C), blobs.modified(C, -3600), blobs.modified(C, 0));
    blobs.put(META, &[("if-modified-since", &same)]).refused(412, NOT_MET);
    let set = blobs.put(META, &[("if-modified-since", &past), ("x-ms-meta-k", "v")]).is(200);
    assert!(set.header("etag") != before && set.header("etag") == blobs.etag(C));
}

#[test]
fn b050_set_acl_takes_if_unmodified_since() {
    let blobs = Blobs::new();
    let (before, past, same) = (blobs.etag(C), blobs.modified(C, -3600), blobs.modified(C, 0));
    blobs.put(ACL, &[("if-unmodified-since", &past)]).refused(412, NOT_MET);
    let set = blobs.put(ACL, &[("if-unmodified-since", &same)]).is(200);
    assert!(set.header("etag") != before && set.header("etag") == blobs.etag(C));
}

#[test]
fn b051_delete_takes_if_modified_since() {
    let blobs = Blobs::new();
    let (past, future) = (blobs.modified(C, -3600), blobs.modified(C, 3600));
    blobs.delete(C, &[("if-modified-since", &future)]).refused(412, NOT_MET);
    blobs.delete(C, &[("if-modified-since", &past)]).is(202);
}

fn acquire(blobs: &Blobs, condition: (&str, &str)) -> Got {
    let headers = [("x-ms-lease-duration", "15"), condition];
    blobs.lease("/con?restype=container&", "acquire", &headers)
}

#[test]
fn b052_lease_takes_if_unmodified_since() {
    let blobs = Blobs::new();
    let (past, same) = (blobs.modified(C, -3600), blobs.modified(C, 0));
    acquire(&blobs, ("if-unmodified-since", &past)).refused(412, NOT_MET);
    acquire(&blobs, ("if-unmodified-since", &same)).is(201);
}

#[test]
fn b053_a_list_ignores_conditions_and_has_no_etag() {
    let blobs = Blobs::new();
    let date = blobs.modified(C, 3600);
    let list = "/con?restype=container&comp=list";
    for header in [
        ("if-match", "\"0x1\""),
        ("if-none-match", "*"),
        ("if-modified-since", &date),
        ("if-unmodified-since", "Mon, 05 Jan 2009 10:00:00 GMT"),
    ] {
        assert_eq!(blobs.get(list, &[header]).is(200).header("etag"), "", "{header:?}");
    }
}

#[test]
fn b054_if_match_counts_on_changes_of_containers_and_strict_mode_refuses_it() {
    let wrong = ("if-match", "\"0x1\"");
    let all = |blobs: &Blobs, status: u16, code: &str| {
        blobs.put(META, &[wrong]).refused(status, code);
        blobs.put(ACL, &[wrong]).refused(status, code);
        acquire(blobs, wrong).refused(status, code);
        blobs.delete(C, &[wrong]).refused(status, code);
    };
    let blobs = Blobs::new();
    all(&blobs, 412, NOT_MET);
    blobs.put(META, &[("if-match", &blobs.etag(C))]).is(200);
    let strict = Blobs::with(BlobOptions { strict: true, ..BlobOptions::default() });
    all(&strict, 400, "ConditionHeadersNotSupported");
}

#[test]
fn b055_blobs_do_not_move_the_etag_of_their_container() {
    let blobs = Blobs::new();
    let etag = blobs.etag(C);
    blobs.blob("one");
    blobs.delete("/con/b", &[]).is(202);
    assert_eq!(blobs.etag(C), etag);
}

#[test]
fn b057_five_policies_and_no_header_means_private() {
    let blobs = Blobs::new();
    let set = |count: usize, headers: &[(&str, &str)]| {
        let one = |n| format!("<SignedIdentifier><Id>p{n}</Id><AccessPolicy/></SignedIdentifier>");
        let all: String = (0..count).map(one).collect();
        let body = format!("<SignedIdentifiers>{all}</SignedIdentifiers>");
        blobs.ask("PUT", ACL, headers, body.as_bytes())
    };
    set(6, &[]).refused(400, "InvalidXmlDocument");
    set(5, &[("x-ms-blob-public-access", "blob")]).is(200);
    let got = blobs.get(ACL, &[]).is(200);
    assert_eq!(got.header("x-ms-blob-public-access"), "blob");
    assert_eq!(got.text().matches("<Id>").count(), 5);
    set(0, &[]).is(200);
    assert_eq!(blobs.get(ACL, &[]).is(200).header("x-ms-blob-public-access"), "");
}

#[test]
fn b058_without_conditions_the_last_write_to_a_container_stands() {
    let blobs = Blobs::new();
    blobs.put(META, &[("x-ms-meta-a", "1")]).is(200);
    blobs.put(META, &[("x-ms-meta-b", "2")]).is(200);
    let got = blobs.get(META, &[]).is(200);
    assert_eq!((got.header("x-ms-meta-a"), got.header("x-ms-meta-b")), ("", "2"));
}

#[test]
fn times_of_a_policy_may_lack_seconds_or_the_time_of_day() {
    let blobs = Blobs::new();
    for time in ["2099-01-01", "2099-01-01T00:00Z", "2099-01-01T00:00:00Z"] {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>{time}</Expiry>\
             <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        blobs.ask("PUT", ACL, &[], body.as_bytes()).is(200);
        let text = blobs.get(ACL, &[]).is(200).text();
        assert!(text.contains("<Expiry>2099-01-01T00:00:00.0000000Z</Expiry>"), "{text}");
    }
}
