//! Copies and the From URL forms whose source is on another server: a second latchfs, and a server
//! of a few lines that breaks off.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use super::fixture::{Blobs, Got};
use crate::common::served::wait_for;

/// More than is fetched before the answer.
const LONG: usize = (4 << 20) + 5;

fn pair() -> (Blobs, Blobs) {
    (Blobs::new(), Blobs::new().reaching_out())
}

fn copy(to: &Blobs, url: &str, headers: &[(&str, &str)]) -> Got {
    let mut all = vec![("x-ms-copy-source", url)];
    all.extend(headers);
    to.put("/con/to", &all)
}

/// The destination, once the copy has ended.
fn ended(to: &Blobs) -> Got {
    wait_for("the copy to end", || {
        let got = to.head("/con/to", &[]).is(200);
        (got.header("x-ms-copy-status") != "pending").then_some(got)
    })
}

#[test]
fn other_servers_are_asked_only_with_the_option() {
    let (from, to) = (Blobs::new(), Blobs::new());
    from.blob("bytes");
    let got = copy(&to, &from.url("b"), &[]).refused(403, "CannotVerifyCopySource");
    assert!(got.text().contains("--copy-sources any"), "{}", got.text());
    to.head("/con/to", &[]).is(404);
}

#[test]
fn a_copy_brings_bytes_properties_and_metadata_along() {
    let (from, to) = pair();
    let headers = [("x-ms-blob-content-type", "text/plain"), ("x-ms-meta-who", "me")];
    from.upload("b", "bytes", &headers).is(201);
    let got = copy(&to, &format!("{}?sig=secret", from.url("b")), &[]);
    assert_eq!(got.is(202).header("x-ms-copy-status"), "success");
    let got = to.get("/con/to", &[]).is(200);
    assert_eq!((&*got.text(), got.header("content-type")), ("bytes", "text/plain"));
    assert_eq!(got.header("x-ms-meta-who"), "me");
    assert_eq!(got.header("x-ms-copy-source"), from.url("b"), "without the signature");
    copy(&to, &from.url("b"), &[("x-ms-meta-mine", "1")]).is(202);
    let got = to.head("/con/to", &[]);
    assert_eq!((got.header("x-ms-meta-who"), got.header("x-ms-meta-mine")), ("", "1"));
    copy(&to, &from.url("missing"), &[]).refused(404, "CannotVerifyCopySource");
    assert_eq!(to.text("to"), "bytes");
}

#[test]
fn a_long_copy_is_pending_until_its_bytes_are_there() {
    let (from, to) = pair();
    from.upload("b", &"x".repeat(LONG), &[]).is(201);
    let begun = copy(&to, &from.url("b"), &[]).is(202);
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    let done = ended(&to);
    assert_eq!(done.header("x-ms-copy-status"), "success");
    assert_eq!(done.header("x-ms-copy-progress"), format!("{LONG}/{LONG}"));
    assert_ne!(done.header("etag"), begun.header("etag"));
    assert_eq!(to.get("/con/to", &[]).is(200).body.len(), LONG);
}

/// Says that it has `LONG` bytes, sends a few, and waits for the test to end it.
pub fn breaking_off() -> (String, std::sync::mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/source", listener.local_addr().unwrap());
    let (end, ended) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4_096];
        let _ = stream.read(&mut head);
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\nbegin");
        stream.write_all(answer.as_bytes()).unwrap();
        let _ = ended.recv();
    });
    (url, end)
}

#[test]
fn a_source_that_breaks_off_fails_the_copy() {
    let to = Blobs::new().reaching_out();
    let (url, end) = breaking_off();
    let begun = copy(&to, &url, &[]).is(202);
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    to.upload("to", "x", &[]).refused(409, "PendingCopyOperation");
    end.send(()).unwrap();
    let failed = ended(&to);
    assert_eq!(failed.header("x-ms-copy-status"), "failed");
    assert_ne!(failed.header("x-ms-copy-status-description"), "");
    assert_eq!(failed.header("content-length"), "0");
    to.upload("to", "x", &[]).is(201);
}

#[test]
fn a_pending_copy_is_aborted_or_cut_off_by_the_end_of_the_server() {
    let mut to = Blobs::new().reaching_out();
    let (url, _end) = breaking_off();
    let id = copy(&to, &url, &[]).is(202).header("x-ms-copy-id").to_owned();
    let abort = |to: &Blobs, id: &str| {
        let target = format!("/con/to?comp=copy&copyid={id}");
        to.put(&target, &[("x-ms-copy-action", "abort")])
    };
    abort(&to, &id).is(204);
    let aborted = to.head("/con/to", &[]).is(200);
    assert_eq!(aborted.header("x-ms-copy-status"), "aborted");
    let (url, _end) = breaking_off();
    let id = copy(&to, &url, &[]).is(202).header("x-ms-copy-id").to_owned();
    to.restart();
    let failed = to.head("/con/to", &[]).is(200);
    assert_eq!(failed.header("x-ms-copy-status"), "failed");
    abort(&to, &id).refused(409, "NoPendingCopyOperation");
}

#[test]
fn forms_from_a_url_read_other_servers_too() {
    let (from, to) = pair();
    let etag = from.upload("b", "0123456789", &[]).is(201).header("etag").to_owned();
    let url = from.url("b");
    let source = ("x-ms-copy-source", &*url);
    let put = [source, ("x-ms-blob-type", "BlockBlob")];
    to.put("/con/put", &put).is(201);
    assert_eq!(to.text("put"), "0123456789");
    let sync = [source, ("x-ms-requires-sync", "true")];
    to.put("/con/sync", &sync).is(202);
    assert_eq!(to.text("sync"), "0123456789");
    let block = "/con/blocks?comp=block&blockid=AAAA";
    to.put(block, &[source, ("x-ms-source-range", "bytes=2-4")]).is(201);
    let list = b"<BlockList><Latest>AAAA</Latest></BlockList>";
    to.ask("PUT", "/con/blocks?comp=blocklist", &[], list).is(201);
    assert_eq!(to.text("blocks"), "234");
    to.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    let append = "/con/log?comp=appendblock";
    to.put(append, &[source, ("x-ms-source-if-match", &etag)]).is(201);
    to.put(append, &[source, ("x-ms-source-if-match", "\"0x1\"")])
        .refused(412, "CannotVerifyCopySource");
    to.put(append, &[source, ("x-ms-source-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")])
        .refused(400, "Md5Mismatch");
    to.put(append, &[source, ("x-ms-source-range", "bytes=20-30")])
        .refused(416, "CannotVerifyCopySource");
    assert_eq!(to.text("log"), "0123456789");
}

/// Append and page blobs of another account or server are written in parts later.
#[test]
fn a_short_append_blob_from_another_server_can_be_appended_to() {
    let (from, to) = pair();
    from.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    from.ask("PUT", "/con/log?comp=appendblock", &[], b"one,").is(201);
    copy(&to, &from.url("log"), &[]).is(202);
    to.ask("PUT", "/con/to?comp=appendblock", &[], b"two").is(201);
    assert_eq!(to.text("to"), "one,two");
}

#[test]
fn a_copy_from_another_server_is_held_back_too() {
    let from = Blobs::new();
    let copy_delay = Duration::from_secs(5);
    let to = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() }).reaching_out();
    from.blob("bytes");
    assert_eq!(copy(&to, &from.url("b"), &[]).is(202).header("x-ms-copy-status"), "pending");
    assert_eq!(to.text("to"), "");
    to.pass(5);
    assert_eq!(to.text("to"), "bytes");
}

#[test]
fn the_md5_of_a_source_in_the_same_account_is_compared() {
    let blobs = Blobs::new();
    blobs.blob("bytes");
    let url = blobs.url("b");
    let put = |md5: &str| {
        let headers = [
            ("x-ms-copy-source", &*url),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-source-content-md5", md5),
        ];
        blobs.put("/con/to", &headers)
    };
    put("AAAAAAAAAAAAAAAAAAAAAA==").refused(400, "Md5Mismatch");
    blobs.head("/con/to", &[]).is(404);
    let md5 = blobs.head("/con/b", &[]).is(200).header("content-md5").to_owned();
    put(&md5).is(201);
    assert_eq!(blobs.text("to"), "bytes");
}
