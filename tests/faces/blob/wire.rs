//! Requests as they come over the wire: bodies in chunks and in frames, bodies that never come,
//! heads that say two things, clients that go away.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crc64fast_nvme::Digest;
use latchfs::blob::service::BlobOptions;

use super::access::{sas, signed};
use super::elsewhere::breaking_off;
use super::fixture::{ACCOUNT, Blobs, Got};
use crate::common::http::Kept;
use crate::common::served::wait_for;

/// Less than a body may take, more than any other wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends some bytes; the connection.
fn send(blobs: &Blobs, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(blobs.addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Sends some bytes; all that is answered until the server ends the connection.
fn raw(blobs: &Blobs, text: &str) -> String {
    let mut answer = Vec::new();
    send(blobs, text.as_bytes()).read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(blobs: &Blobs, target: &str, headers: &str) -> String {
    format!(
        "PUT /{ACCOUNT}{target} HTTP/1.1\r\nhost: {}\r\nx-ms-version: 2026-10-06\r\n{headers}\r\n",
        blobs.addr()
    )
}

/// The timeout of the client is far below the time that a body may take.
#[test]
fn a_refused_request_is_answered_although_its_body_never_comes() {
    let blobs = signed(BlobOptions::default());
    let put = "x-ms-blob-type: BlockBlob\r\ncontent-length: 512\r\n";
    let answer = raw(&blobs, &head(&blobs, "/con/new", put));
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let target = format!("/con/new?{}", sas("r"));
    let answer = raw(&blobs, &head(&blobs, &target, put));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // One that was authorised and is refused by a rule.
    let target = format!("/con/b?{}", sas("cw"));
    let headers = format!("{put}if-none-match: *\r\n");
    let answer = raw(&blobs, &head(&blobs, &target, &headers));
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    // A client that waits for a word first gets the answer and no word.
    for (target, status) in [("/con/new", "401"), (&*target, "409")] {
        let headers = format!("{put}if-none-match: *\r\nexpect: 100-continue\r\n");
        let answer = raw(&blobs, &head(&blobs, target, &headers));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

/// A client that fails where its connection ends before all is sent.
#[test]
fn a_client_that_sends_all_of_a_refused_body_gets_the_answer() {
    let blobs = Blobs::new();
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "67108864")];
    blobs.put("/con/page", &page).is(201);
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    let body = vec![7; (100 << 20) + 512];
    let ask = |target: &str, headers: &[(&str, &str)], length: usize| {
        let mut client = Kept::connect(blobs.addr()).unwrap();
        client.ask("PUT", target, headers, &body[..length]).unwrap()
    };
    let headers = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-33554431")];
    ask("/con/page?comp=page", &headers, 32 << 20).refused(413, "RequestBodyTooLarge");
    ask("/con/log?comp=appendblock", &[], body.len()).refused(413, "RequestBodyTooLarge");
    let acl = "/con?restype=container&comp=acl";
    ask(acl, &[], 32 << 20).refused(413, "RequestBodyTooLarge");
    // The same with a body that is refused for something else.
    let headers = [("x-ms-blob-type", "BlockBlob"), ("content-md5", "no")];
    ask("/con/b", &headers, 32 << 20).refused(400, "InvalidMd5");
}

/// The next request comes on the same connection.
#[test]
fn a_checksum_that_is_none_is_refused_and_the_connection_goes_on() {
    let blobs = Blobs::new();
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    let block = ("x-ms-blob-type", "BlockBlob");
    let mut client = Kept::connect(blobs.addr()).unwrap();
    for length in [0, 5, 1 << 20] {
        let body = vec![7; length];
        for (target, headers, code) in [
            ("/con/b", [block, ("content-md5", "no")], "InvalidMd5"),
            ("/con/b", [block, ("x-ms-blob-content-md5", "no")], "InvalidMd5"),
            ("/con/b", [block, ("x-ms-content-crc64", "no")], "InvalidHeaderValue"),
            ("/con/b?comp=block&blockid=AAAA", [block, ("content-md5", "no")], "InvalidMd5"),
            ("/con/log?comp=appendblock", [block, ("content-md5", "no")], "InvalidMd5"),
        ] {
            if length == 0 && target.contains("comp") {
                continue;
            }
            let answer = client.ask("PUT", target, &headers, &body).unwrap();
            assert_ne!(answer.header("connection"), "close", "{target} {headers:?} {length}");
            answer.refused(400, code);
        }
        client.ask("PUT", "/con/b", &[block], &body).unwrap().is(201);
    }
}

/// A short body mostly comes together with its head, and is then not asked about before.
#[test]
fn a_body_that_came_with_its_head_is_refused_as_one_that_comes_later() {
    let blobs = Blobs::new();
    blobs.blob("before");
    for length in [0, 5, 16 << 10, (16 << 10) + 1] {
        let body = "x".repeat(length);
        let refused = |headers: &str, status: &str, code: &str| {
            let more = format!("content-length: {length}\r\nconnection: close\r\n{headers}");
            let headers = format!("x-ms-blob-type: BlockBlob\r\n{more}");
            let answer = raw(&blobs, &(head(&blobs, "/con/b", &headers) + &body));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{length}: {answer}");
            assert!(answer.contains(code), "{length}: {answer}");
        };
        let (wrong, stale) = ("content-md5: AAAAAAAAAAAAAAAAAAAAAA==\r\n", "if-match: \"0x1\"\r\n");
        refused(wrong, "400", "Md5Mismatch");
        refused(stale, "412", "ConditionNotMet");
        // What the rules say goes before what is wrong with the body.
        refused(&format!("{wrong}{stale}"), "412", "ConditionNotMet");
        refused(&format!("content-md5: no\r\n{stale}"), "412", "ConditionNotMet");
        assert_eq!(blobs.text("b"), "before");
    }
}

#[test]
fn a_head_that_names_two_hosts_is_refused() {
    let blobs = Blobs::new();
    blobs.blob("bytes");
    let addr = blobs.addr();
    let get = |target: &str, hosts: &[&str]| {
        let hosts: Vec<_> = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        let hosts = hosts.concat();
        raw(&blobs, &format!("GET {target} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"))
    };
    let (path, host) = (format!("/{ACCOUNT}/con/b"), addr.to_string());
    let other = format!("localhost:{}", addr.port());
    let absolute = format!("http://{host}{path}");
    assert!(get(&path, &[&host]).starts_with("HTTP/1.1 200"));
    assert!(get(&absolute, &[&host]).starts_with("HTTP/1.1 200"));
    for (target, hosts) in [
        (&path, &[&*host, &other][..]),
        (&path, &[&*host, &host]),
        (&absolute, &[&*other]),
        (&absolute, &[&*host, &other]),
    ] {
        let answer = get(target, hosts);
        assert!(answer.starts_with("HTTP/1.1 400"), "{target} {hosts:?}: {answer}");
    }
}

#[test]
fn a_coding_that_is_not_known_is_not_stored_as_if_it_were_the_bytes() {
    let blobs = Blobs::new();
    for coding in ["gzip, chunked", "gzip\r\ntransfer-encoding: chunked"] {
        let headers = format!(
            "x-ms-blob-type: BlockBlob\r\ntransfer-encoding: {coding}\r\nconnection: close\r\n"
        );
        let answer = raw(&blobs, &(head(&blobs, "/con/b", &headers) + "3\r\nabc\r\n0\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 501"), "{answer}");
    }
    blobs.head("/con/b", &[]).is(404);
}

/// Sends a body in chunks; the answer.
fn chunked(blobs: &Blobs, target: &str, headers: &str, chunks: &[&[u8]]) -> String {
    let headers = format!("{headers}transfer-encoding: chunked\r\nconnection: close\r\n");
    let mut bytes = head(blobs, target, &headers).into_bytes();
    for chunk in chunks {
        write!(bytes, "{:x}\r\n", chunk.len()).unwrap();
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    let mut answer = Vec::new();
    send(blobs, &bytes).read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn bodies_in_chunks_end_up_where_their_size_belongs_and_an_empty_block_is_refused() {
    let blobs = Blobs::new();
    let long = vec![7; 3 << 20];
    for (name, body) in [("small", &long[..10]), ("middle", &long[..100_000]), ("large", &long)] {
        let chunks: Vec<&[u8]> = body.chunks(9_000).collect();
        let kind = "x-ms-blob-type: BlockBlob\r\n";
        let answer = chunked(&blobs, &format!("/con/{name}"), kind, &chunks);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        assert!(blobs.get(&format!("/con/{name}"), &[]).is(200).body == body);
        let block = format!("/con/blocks?comp=block&blockid={}", &"AAAABBBBCCCC"[..4]);
        let answer = chunked(&blobs, &block, "", &chunks);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    for target in ["/con/blocks?comp=block&blockid=DDDD", "/con/log?comp=appendblock"] {
        let answer = chunked(&blobs, target, "", &[]);
        assert!(answer.starts_with("HTTP/1.1 400"), "{target}: {answer}");
        assert!(answer.contains("InvalidHeaderValue"), "{answer}");
        let answer = chunked(&blobs, target, "", &[b"a line"]);
        assert!(answer.starts_with("HTTP/1.1 201"), "{target}: {answer}");
    }
    assert_eq!(blobs.text("log"), "a line");
}

fn crc(bytes: &[u8]) -> [u8; 8] {
    let mut digest = Digest::new();
    digest.write(bytes);
    digest.sum64().to_le_bytes()
}

/// A structured body with segments of that length.
fn framed(payload: &[u8], segment: usize) -> Vec<u8> {
    let segments: Vec<&[u8]> = payload.chunks(segment).collect();
    let mut body = vec![1];
    let length = 13 + segments.len() * 18 + payload.len() + 8;
    body.extend((length as u64).to_le_bytes());
    body.extend(1_u16.to_le_bytes());
    body.extend(u16::try_from(segments.len()).unwrap().to_le_bytes());
    for (number, segment) in (1_u16..).zip(segments) {
        body.extend(number.to_le_bytes());
        body.extend((segment.len() as u64).to_le_bytes());
        body.extend(segment);
        body.extend(crc(segment));
    }
    body.extend(crc(payload));
    body
}

fn put_framed(blobs: &Blobs, target: &str, headers: &[(&str, &str)], payload: &[u8]) -> Got {
    let length = payload.len().to_string();
    let mut all = vec![
        ("x-ms-structured-body", "XSM/1.0; properties=crc64"),
        ("x-ms-structured-content-length", &*length),
    ];
    all.extend(headers);
    blobs.ask("PUT", target, &all, &framed(payload, 1_000_000))
}

#[test]
fn framed_bodies_are_taken_apart_as_they_come() {
    let blobs = Blobs::new();
    let payload: Vec<u8> = (0..5_000_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    let block = [("x-ms-blob-type", "BlockBlob")];
    for length in [0, 100, 100_000, payload.len()] {
        let put = put_framed(&blobs, "/con/b", &block, &payload[..length]).is(201);
        assert_eq!(put.header("x-ms-structured-body"), "XSM/1.0; properties=crc64");
        assert!(blobs.get("/con/b", &[]).is(200).body == payload[..length], "{length}");
    }
    let put = put_framed(&blobs, "/con/p?comp=block&blockid=AAAA", &[], &payload).is(201);
    assert_eq!(put.header("x-ms-structured-body"), "XSM/1.0; properties=crc64");
    let plain = blobs.ask("PUT", "/con/p?comp=block&blockid=AAAA", &[], b"x").is(201);
    assert_eq!(plain.header("x-ms-structured-body"), "");
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "8388608")];
    blobs.put("/con/page", &page).is(201);
    let write = |payload: &[u8]| {
        let range = format!("bytes=512-{}", 511 + payload.len());
        let headers = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
        put_framed(&blobs, "/con/page?comp=page", &headers, payload)
    };
    write(&payload[..1024]).is(201);
    assert!(blobs.get("/con/page", &[]).is(200).body[512..1536] == payload[..1024]);
    // The maximum of the operation is that of the payload.
    write(&payload[..4 << 20]).is(201);
    write(&payload[..(4 << 20) + 512]).refused(413, "RequestBodyTooLarge");
}

#[test]
fn a_frame_that_is_wrong_changes_nothing() {
    let blobs = Blobs::new();
    blobs.blob("before");
    let headers =
        [("x-ms-blob-type", "BlockBlob"), ("x-ms-structured-body", "XSM/1.0; properties=crc64")];
    let good = framed(&[7; 3_000], 1_000);
    let mut bad = good.clone();
    bad[40] ^= 1;
    blobs.ask("PUT", "/con/b", &headers, &bad).refused(400, "Crc64Mismatch");
    blobs.ask("PUT", "/con/b", &headers, &good[..good.len() - 1]).refused(400, "InvalidInput");
    let longer = [&good[..], b"x"].concat();
    blobs.ask("PUT", "/con/b", &headers, &longer).refused(400, "InvalidInput");
    let other = [headers[0], headers[1], ("x-ms-structured-content-length", "2999")];
    blobs.ask("PUT", "/con/b", &other, &good).is(400);
    assert_eq!(blobs.text("b"), "before");
    blobs.ask("PUT", "/con/b", &headers, &good).is(201);
}

/// Another connection holds the database while the copy is to begin, so that the client is gone
/// before it has begun.
#[test]
fn a_copy_whose_client_went_away_does_not_stay_pending() {
    let to = Blobs::new().reaching_out();
    // The service is open before anybody holds its database.
    to.head("/con/none", &[]).is(404);
    let database = to.data().join(ACCOUNT).join("blob.db");
    let begun = (0..10).any(|attempt| {
        let target = format!("/con/to-{attempt}");
        let (url, end) = breaking_off();
        let files = || std::fs::read_dir(to.data().join(ACCOUNT).join("blobs")).unwrap().count();
        let before = files();
        let holder = rusqlite::Connection::open(&database).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let headers = format!("x-ms-copy-source: {url}\r\ncontent-length: 0\r\n");
        let mut client = send(&to, head(&to, &target, &headers).as_bytes());
        // The source has answered, and there is a place for its bytes: the copy begins now.
        wait_for("a place for the copy", || (files() > before).then_some(()));
        client.shutdown(Shutdown::Write).unwrap();
        // The server lets the connection go, and with it all that was done on it.
        let _ = client.read(&mut [0]);
        holder.execute_batch("COMMIT").unwrap();
        drop((holder, end));
        // The client may have been gone before the copy began; then its place goes away.
        wait_for("the copy to begin and to end, or not to begin", || {
            let given_up = files() <= before;
            match to.head(&target, &[]) {
                got if got.header("x-ms-copy-status") == "failed" => Some(true),
                got if got.status == 404 && given_up => Some(false),
                _ => None,
            }
        })
    });
    assert!(begun, "no copy has begun while the database was held");
}
