//! Conditions of Put Blob, and what an `ETag` promises: B1 to B15, B40, B41, B46.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fixture::{Blobs, NOT_MET};

const MANY: &str = "MultipleConditionHeadersNotSupported";

#[test]
fn b001_without_conditions_the_second_write_stands() {
    let blobs = Blobs::new();
    blobs.upload("b", "one", &[]).is(201);
    blobs.upload("b", "two", &[]).is(201);
    assert_eq!(blobs.text("b"), "two");
}

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
fn b003_reads_carry_the_etag_of_the_last_write() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let last = blobs.put("/con/b?comp=metadata", &[]).is(200).header("etag").to_owned();
    assert_eq!(blobs.get("/con/b", &[]).is(200).header("etag"), last);
    assert_eq!(blobs.head("/con/b", &[]).is(200).header("etag"), last);
}

#[test]
fn b004_the_right_etag_writes_and_gets_a_new_one() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let won = blobs.upload("b", "two", &[("if-match", &etag)]).is(201);
    assert_ne!(won.header("etag"), etag);
    assert_eq!(won.header("etag"), blobs.etag("/con/b"));
}

#[test]
fn b005_another_etag_is_refused_and_changes_nothing() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    blobs.upload("b", "two", &[("if-match", "\"0x8D1\"")]).refused(412, NOT_MET);
    assert_eq!((blobs.text("b"), blobs.etag("/con/b")), ("one".to_owned(), etag));
}

#[test]
fn b006_who_read_before_another_wrote_is_refused_and_told_who_wrote() {
    let blobs = Blobs::new();
    let read = blobs.blob("one");
    blobs.upload("b", "two", &[("x-ms-client-request-id", "of-b")]).is(201);
    let lost = blobs.upload("b", "three", &[("if-match", &read)]).refused(412, NOT_MET).text();
    assert!(lost.contains("is not met. [latchfs: changed"), "{lost}");
    assert!(lost.contains("ago by Put Blob, client request of-b"), "{lost}");
    assert_eq!(blobs.text("b"), "two");
}

#[test]
fn b007_a_star_in_if_match_wants_a_blob() {
    let blobs = Blobs::new();
    blobs.upload("none", "x", &[("if-match", "*")]).refused(412, NOT_MET);
    blobs.get("/con/none", &[]).refused(404, "BlobNotFound");
    blobs.blob("one");
    blobs.upload("b", "two", &[("if-match", "*")]).is(201);
}

#[test]
fn b008_a_star_in_if_none_match_wants_none() {
    let blobs = Blobs::new();
    blobs.upload("b", "one", &[("if-none-match", "*")]).is(201);
    blobs.upload("b", "two", &[("if-none-match", "*")]).refused(409, "BlobAlreadyExists");
    assert_eq!(blobs.text("b"), "one");
}

#[test]
fn b009_if_none_match_refuses_the_etag_it_names() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    blobs.upload("b", "x", &[("if-none-match", &etag)]).refused(412, NOT_MET);
    blobs.upload("b", "x", &[("if-none-match", "\"0x8D1\"")]).is(201);
}

#[test]
fn b010_if_modified_since_wants_a_later_change() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
    blobs.upload("b", "x", &[("if-modified-since", &same)]).refused(412, NOT_MET);
    blobs.upload("b", "x", &[("if-modified-since", &past)]).is(201);
}

#[test]
fn b011_if_unmodified_since_wants_no_later_change() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
    blobs.upload("b", "x", &[("if-unmodified-since", &past)]).refused(412, NOT_MET);
    blobs.upload("b", "x", &[("if-unmodified-since", &same)]).is(201);
}

#[test]
fn b012_beside_if_match_a_date_does_not_count() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let past = blobs.modified("/con/b", -3600);
    blobs.upload("b", "x", &[("if-match", &etag), ("if-unmodified-since", &past)]).is(201);
    let other = [("if-match", "\"0x1\""), ("if-unmodified-since", &*blobs.modified("/con/b", 0))];
    blobs.upload("b", "x", &other).refused(412, NOT_MET);
}

#[test]
fn b013_beside_if_none_match_a_date_does_not_count() {
    let blobs = Blobs::new();
    blobs.blob("one");
    let future = blobs.modified("/con/b", 3600);
    let headers = [("if-none-match", "\"0x1\""), ("if-modified-since", &*future)];
    blobs.upload("b", "x", &headers).is(201);
}

#[test]
fn b014_conditions_that_contradict_each_other_are_refused() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let date = blobs.modified("/con/b", 0);
    for headers in [
        [("if-match", &*etag), ("if-none-match", "\"0x1\"")],
        [("if-modified-since", &*date), ("if-unmodified-since", &*date)],
        [("if-match", &*etag), ("if-modified-since", &*date)],
        [("if-none-match", "\"0x1\""), ("if-unmodified-since", &*date)],
    ] {
        blobs.upload("b", "x", &headers).refused(400, MANY);
    }
    assert_eq!(blobs.etag("/con/b"), etag);
}

#[test]
fn b015_several_etags_are_for_reads() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let two = format!("\"0x1\", {etag}");
    blobs.upload("b", "x", &[("if-match", &two)]).refused(400, MANY);
    blobs.get("/con/b", &[("if-match", &two)]).is(200);
    blobs.get("/con/b", &[("if-none-match", &two)]).is(304);
    blobs.get("/con/b", &[("if-match", "\"0x1\", \"0x2\"")]).refused(412, NOT_MET);
}

#[test]
fn b040_the_same_bytes_again_are_a_new_state() {
    let blobs = Blobs::new();
    assert_ne!(blobs.blob("one"), blobs.blob("one"));
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
