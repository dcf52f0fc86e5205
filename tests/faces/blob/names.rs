//! Names of blobs with a backslash, as programs on Windows make them of paths.

use latchfs::blob::service::BlobOptions;
use latchfs::http::frame::Address;

use super::access::{sas, signed, state_sas};
use super::fixture::{ACCOUNT, Blobs};
use crate::service::ask_by_key;

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

#[test]
fn a_backslash_in_a_name_is_a_slash() {
    let blobs = Blobs::new();
    blobs.upload("dir%5Csub%5cfile.txt", "one", &[]).is(201);
    for name in ["dir/sub/file.txt", "dir%5Csub/file.txt", "dir%2Fsub%5Cfile.txt"] {
        assert_eq!(blobs.text(name), "one", "{name}");
    }
    let list = blobs.get("/con?restype=container&comp=list&prefix=dir/", &[]).is(200).text();
    assert!(list.contains("<Name>dir/sub/file.txt</Name>"), "{list}");
    assert!(!list.contains('\\'), "{list}");
    // An escaped escape is text.
    blobs.upload("dir%255Cfile", "two", &[]).is(201);
    assert_eq!(blobs.text("dir%255Cfile"), "two");
    blobs.get("/con/dir/file", &[]).is(404);
}

#[test]
fn every_way_to_name_a_blob_takes_a_backslash() {
    let blobs = Blobs::new();
    blobs.upload("dir/b", "bytes", &[]).is(201);
    let source = blobs.url("dir%5Cb");
    blobs.put("/con/dir%5Ccopy", &[("x-ms-copy-source", &source)]).is(202);
    assert_eq!(blobs.text("dir/copy"), "bytes");
    let block = "/con/dir%5Cblocks?comp=block&blockid=AAAA";
    blobs.ask("PUT", block, &[], b"staged").is(201);
    let list = b"<BlockList><Latest>AAAA</Latest></BlockList>";
    blobs.ask("PUT", "/con/dir/blocks?comp=blocklist", &[], list).is(201);
    assert_eq!(blobs.text("dir%5Cblocks"), "staged");
    let part = format!(
        "--x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nDELETE \
         /{ACCOUNT}/con/dir%5Ccopy HTTP/1.1\r\nContent-Length: 0\r\n\r\n--x--\r\n"
    );
    let kind = [("content-type", "multipart/mixed; boundary=x")];
    let answer = blobs.ask("POST", "/?comp=batch", &kind, part.as_bytes()).is(202).text();
    assert!(answer.contains("HTTP/1.1 202"), "{answer}");
    blobs.get("/con/dir/copy", &[]).is(404);
}

/// A request is signed as it is sent; a SAS is made for the name that the blob has.
#[test]
fn a_request_with_a_backslash_is_signed_as_sent_and_a_sas_names_the_slash() {
    let blobs = signed(BlobOptions::default());
    let put = ask_by_key(blobs.addr(), "PUT", "/con/dir%5Cfile", &[BLOCK], b"bytes");
    put.is(201);
    ask_by_key(blobs.addr(), "GET", "/con/dir/file", &[], b"").is(200);
    let slash = state_sas("con/dir/file", "b", "", [""; 5]);
    for name in ["dir/file", "dir%5Cfile"] {
        let got = blobs.get(&format!("/con/{name}?{slash}"), &[]).is(200);
        assert_eq!(got.text(), "bytes", "{name}");
    }
    let backslash = state_sas("con/dir\\file", "b", "", [""; 5]);
    blobs.get(&format!("/con/dir%5Cfile?{backslash}"), &[]).refused(403, "AuthenticationFailed");
    let source = format!("{}?{slash}", blobs.url("dir%5Cfile"));
    let copy = [("x-ms-copy-source", &*source), ("x-ms-requires-sync", "true")];
    blobs.put(&format!("/con/to?{}", sas("cw")), &copy).is(202);
}

/// Gates, faults and events match a request by the name that its blob is kept under.
#[test]
fn the_path_of_a_request_has_the_name_of_its_blob() {
    let table = &latchfs::blob::rest::operations::SERVICE_TABLE;
    let address = |rest: &str| Address {
        account: ACCOUNT.to_owned(),
        secondary: false,
        endpoint: String::new(),
        container: Some("con".to_owned()),
        rest: rest.to_owned(),
    };
    for (rest, path) in [
        ("dir%5Cfile", "con/dir/file"),
        ("dir/f%20g", "con/dir/f g"),
        ("dir%255Cfile", "con/dir%5Cfile"),
        ("", "con"),
        ("dir/", "con/dir"),
    ] {
        assert_eq!(table.named_path(&address(rest)), path, "{rest}");
    }
}
