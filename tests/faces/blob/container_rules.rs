//! What moves the `ETag` of a container, and its policies: B47, B55, B57.

use super::fixture::Blobs;

const C: &str = "/con?restype=container";
const ACL: &str = "/con?restype=container&comp=acl";

#[test]
fn b047_create_has_an_etag_and_ignores_conditions() {
    let blobs = Blobs::new();
    let made = blobs.put("/other?restype=container", &[("if-match", "\"0x1\"")]).is(201);
    assert!(made.header("etag").starts_with("\"0x8D"), "{made:?}");
    blobs.put("/other?restype=container", &[]).refused(409, "ContainerAlreadyExists");
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
