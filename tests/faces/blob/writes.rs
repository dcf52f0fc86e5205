//! What an `ETag` promises (B2, B41, B46), and the checksums of what is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fixture::Blobs;

#[test]
fn b002_every_change_makes_an_etag_that_was_not_there_before() {
    let blobs = Blobs::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(blobs.blob("same"));
        let set = blobs.put("/con/b?comp=metadata", &[("x-ms-meta-k", "v")]).is(200);
        seen.push(set.header("etag").to_owned());
        let header = [("x-ms-blob-content-type", "a/b")];
        let set = blobs.put("/con/b?comp=properties", &header).is(200);
        seen.push(set.header("etag").to_owned());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 9, "{seen:?}");
}

#[test]
fn b041_an_etag_may_come_without_quotes() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    blobs.get("/con/b", &[("if-none-match", etag.trim_matches('"'))]).is(304);
    blobs.upload("b", "two", &[("if-match", etag.trim_matches('"'))]).is(201);
}

#[test]
fn b046_what_is_acknowledged_is_read() {
    let blobs = Blobs::new();
    for n in 0..20 {
        blobs.blob(&n.to_string());
        assert_eq!(blobs.text("b"), n.to_string());
    }
}

#[test]
fn put_blob_checks_the_md5_that_the_blob_is_to_keep() {
    const OF_X: &str = "ndTkYSaMgDT1yFZOFVxnpg==";
    const OF_Y: &str = "QVKQdpWURg4uSFkikE80XQ==";
    let blobs = Blobs::new();
    let kept = |md5| ("x-ms-blob-content-md5", md5);
    let refused = blobs.upload("b", "x", &[kept(OF_Y)]).refused(400, "Md5Mismatch");
    assert!(refused.text().contains(OF_X), "{}", refused.text());
    blobs.upload("b", "x", &[kept("no")]).refused(400, "InvalidMd5");
    blobs.head("/con/b", &[]).is(404);
    // It goes before that of the request.
    blobs.upload("b", "x", &[kept(OF_Y), ("content-md5", OF_X)]).refused(400, "Md5Mismatch");
    blobs.upload("b", "x", &[kept(OF_X), ("content-md5", OF_Y)]).is(201);
    assert_eq!(blobs.head("/con/b", &[]).is(200).header("content-md5"), OF_X);
    // The MD5 of a list of blocks is that of the document; the blob keeps what it is given.
    let list = b"<BlockList></BlockList>";
    blobs.ask("PUT", "/con/b?comp=blocklist", &[kept(OF_Y)], list).is(201);
    assert_eq!(blobs.head("/con/b", &[]).is(200).header("content-md5"), OF_Y);
}

#[test]
fn documents_are_compared_with_their_checksums() {
    const OTHER_MD5: &str = "ndTkYSaMgDT1yFZOFVxnpg==";
    const OTHER_CRC: &str = "AAAAAAAAAAE=";
    let blobs = Blobs::new();
    blobs.blob("x");
    let tags = "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
    for (target, document) in
        [("/con/b?comp=tags", tags), ("/con/b?comp=blocklist", "<BlockList></BlockList>")]
    {
        let ask = |headers: &[(&str, &str)]| blobs.ask("PUT", target, headers, document.as_bytes());
        ask(&[("content-md5", OTHER_MD5)]).refused(400, "Md5Mismatch");
        ask(&[("x-ms-content-crc64", OTHER_CRC)]).refused(400, "Crc64Mismatch");
        let mut digest = crc64fast_nvme::Digest::new();
        digest.write(document.as_bytes());
        let crc = STANDARD.encode(digest.sum64().to_le_bytes());
        assert!(blobs.text("b") == "x" && ask(&[("x-ms-content-crc64", &crc)]).status < 300);
    }
}
