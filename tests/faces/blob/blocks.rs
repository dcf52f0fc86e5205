//! Blocks and their lists: B121 to B131.

use super::fixture::{Blobs, Got};

const ALL: &str = "/con/b?comp=blocklist&blocklisttype=all";

fn block(blobs: &Blobs, id: &str, body: &str) -> Got {
    blobs.ask("PUT", &format!("/con/b?comp=block&blockid={id}"), &[], body.as_bytes())
}

fn commit(blobs: &Blobs, entries: &[(&str, &str)]) -> Got {
    let entry = |(kind, id): &(&str, &str)| format!("<{kind}>{id}</{kind}>");
    let all: String = entries.iter().map(entry).collect();
    let list = format!("<?xml version=\"1.0\"?><BlockList>{all}</BlockList>");
    blobs.ask("PUT", "/con/b?comp=blocklist", &[], list.as_bytes())
}

/// A server with the blocks A, B and C staged.
fn staged() -> Blobs {
    let blobs = Blobs::new();
    for (id, body) in [("AAAA", "one,"), ("BBBB", "two,"), ("CCCC", "three,")] {
        block(&blobs, id, body).is(201);
    }
    blobs
}

/// A server with a blob of the block A, and the block B staged.
fn committed() -> Blobs {
    let blobs = Blobs::new();
    block(&blobs, "AAAA", "one,").is(201);
    commit(&blobs, &[("Latest", "AAAA")]).is(201);
    block(&blobs, "BBBB", "two,").is(201);
    blobs
}

#[test]
fn b121_a_blob_has_the_order_of_its_list() {
    let blobs = staged();
    commit(&blobs, &[("Latest", "CCCC"), ("Latest", "AAAA"), ("Latest", "BBBB")]).is(201);
    assert_eq!(blobs.text("b"), "three,one,two,");
}

#[test]
fn b122_of_two_blocks_with_one_id_the_last_counts() {
    let blobs = staged();
    block(&blobs, "BBBB", "again").is(201);
    commit(&blobs, &[("Latest", "BBBB")]).is(201);
    assert_eq!(blobs.text("b"), "again");
}

#[test]
fn b123_ids_are_base64_of_one_length() {
    let blobs = staged();
    block(&blobs, "AAAAAAAA", "x").refused(400, "InvalidBlobOrBlock");
    block(&blobs, "!", "x").refused(400, "InvalidQueryParameterValue");
}

#[test]
fn b124_a_list_with_an_unknown_block_changes_nothing() {
    let blobs = committed();
    let etag = blobs.etag("/con/b");
    commit(&blobs, &[("Latest", "BBBB"), ("Latest", "ZZZZ")]).refused(400, "InvalidBlockList");
    assert_eq!((blobs.text("b"), blobs.etag("/con/b")), ("one,".to_owned(), etag));
    let list = blobs.get(ALL, &[]).is(200).text();
    assert!(list.contains("<UncommittedBlocks><Block><Name>BBBB</Name>"), "{list}");
}

#[test]
fn b125_a_list_says_where_it_looks_for_a_block() {
    let blobs = committed();
    commit(&blobs, &[("Committed", "BBBB")]).refused(400, "InvalidBlockList");
    commit(&blobs, &[("Uncommitted", "AAAA")]).refused(400, "InvalidBlockList");
    commit(&blobs, &[("Uncommitted", "BBBB"), ("Committed", "AAAA")]).is(201);
    assert_eq!(blobs.text("b"), "two,one,");
}

#[test]
fn b126_blocks_that_a_list_does_not_name_go_away() {
    let blobs = staged();
    commit(&blobs, &[("Latest", "AAAA")]).is(201);
    let list = blobs.get(ALL, &[]).is(200).text();
    assert!(list.contains("<UncommittedBlocks></UncommittedBlocks>"), "{list}");
    commit(&blobs, &[("Latest", "BBBB")]).refused(400, "InvalidBlockList");
}

#[test]
fn b127_a_block_may_be_in_a_list_twice() {
    let blobs = staged();
    commit(&blobs, &[("Latest", "AAAA"), ("Latest", "BBBB"), ("Latest", "AAAA")]).is(201);
    assert_eq!(blobs.text("b"), "one,two,one,");
}

#[test]
fn b128_a_new_blob_drops_blocks_that_were_staged() {
    let blobs = staged();
    blobs.upload("b", "whole", &[]).is(201);
    commit(&blobs, &[("Latest", "AAAA")]).refused(400, "InvalidBlockList");
    blobs.upload("from", "copied", &[]).is(201);
    block(&blobs, "AAAA", "one,").is(201);
    let url = blobs.url("from");
    blobs.put("/con/b", &[("x-ms-copy-source", &url)]).is(202);
    commit(&blobs, &[("Latest", "AAAA")]).refused(400, "InvalidBlockList");
    assert_eq!(blobs.text("b"), "copied");
}

#[test]
fn b129_a_blob_of_uncommitted_blocks_is_hardly_there() {
    let blobs = staged();
    blobs.get("/con/b", &[]).refused(404, "BlobNotFound");
    let list = blobs.get(ALL, &[]).is(200);
    assert_eq!(list.header("etag"), "");
    let names = |include: &str| {
        let target = format!("/con?restype=container&comp=list{include}");
        blobs.get(&target, &[]).is(200).text()
    };
    assert!(!names("").contains("<Name>"));
    let shown = names("&include=uncommittedblobs");
    assert!(shown.contains("<Name>b</Name>") && shown.contains("<Content-Length>0<"), "{shown}");
    assert!(!shown.contains("<Etag>") && !shown.contains("<Last-Modified>"), "{shown}");
    blobs.delete("/con/b", &[]).is(202);
    blobs.get(ALL, &[]).refused(404, "BlobNotFound");
}

#[test]
fn b130_a_list_without_metadata_clears_it() {
    let blobs = Blobs::new();
    blobs.upload("b", "x", &[("x-ms-meta-k", "v")]).is(201);
    block(&blobs, "AAAA", "one").is(201);
    commit(&blobs, &[("Latest", "AAAA")]).is(201);
    assert_eq!(blobs.head("/con/b", &[]).is(200).header("x-ms-meta-k"), "");
}

#[test]
fn b131_a_block_has_content_and_belongs_to_a_block_blob() {
    let blobs = Blobs::new();
    block(&blobs, "AAAA", "").refused(400, "InvalidHeaderValue");
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put("/con/b", &page).is(201);
    block(&blobs, "AAAA", "x").refused(409, "InvalidBlobType");
}
