//! Input that is wrong: the right code, nothing changed, never a 500 (B159).

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use super::fixture::{ACCOUNT, Blobs, Got};

const MD5: (&str, &str) = ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==");
const CRC: (&str, &str) = ("x-ms-content-crc64", "AAAAAAAAAAA=");

/// Blobs of all types, blocks beside one of them, and a container with metadata.
fn world() -> Blobs {
    let blobs = Blobs::new();
    blobs.upload("b", "bytes", &[("x-ms-meta-k", "v"), ("x-ms-tags", "k=v")]).is(201);
    blobs.ask("PUT", "/con/b?comp=block&blockid=AAAA", &[], b"block").is(201);
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    blobs.ask("PUT", "/con/log?comp=appendblock", &[], b"line").is(201);
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    blobs.put("/con/page", &page).is(201);
    blobs
}

/// All that can be read of it.
fn state(blobs: &Blobs) -> Vec<String> {
    let list = "/con?restype=container&comp=list&include=metadata,tags,uncommittedblobs";
    let mut state = vec![blobs.get(list, &[]).is(200).text()];
    for name in ["b", "log", "page"] {
        state.push(blobs.get(&format!("/con/{name}"), &[]).is(200).text());
    }
    state.push(blobs.get("/con/b?comp=blocklist&blocklisttype=all", &[]).is(200).text());
    state.push(blobs.get("/con?restype=container&comp=acl", &[]).is(200).text());
    state
}

/// Sends part of a body and closes the connection.
fn truncated(blobs: &Blobs, target: &str, headers: &str) {
    let mut stream = TcpStream::connect(blobs.addr()).unwrap();
    let head = format!(
        "PUT /{ACCOUNT}{target} HTTP/1.1\r\nhost: {}\r\nx-ms-version: 2026-10-06\r\n\
         content-length: 512\r\n{headers}\r\n",
        blobs.addr()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[1; 100]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // An answer or none: the client has gone.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{target}: {answer}");
}

#[test]
fn bodies_that_end_early_change_nothing() {
    let blobs = world();
    let before = state(&blobs);
    truncated(&blobs, "/con/b", "x-ms-blob-type: BlockBlob\r\n");
    truncated(&blobs, "/con/new", "x-ms-blob-type: BlockBlob\r\n");
    truncated(&blobs, "/con/b?comp=block&blockid=AAAA", "");
    truncated(&blobs, "/con/b?comp=blocklist", "");
    truncated(&blobs, "/con/b?comp=tags", "");
    truncated(&blobs, "/con/log?comp=appendblock", "");
    let page = "x-ms-page-write: update\r\nx-ms-range: bytes=0-511\r\n";
    truncated(&blobs, "/con/page?comp=page", page);
    truncated(&blobs, "/con?restype=container&comp=acl", "");
    assert_eq!(state(&blobs), before);
}

#[test]
fn b159_wrong_checksums_change_nothing() {
    let blobs = world();
    let before = state(&blobs);
    let page = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
    let writes: [(&str, &[(&str, &str)]); 5] = [
        ("/con/b", &[("x-ms-blob-type", "BlockBlob")]),
        ("/con/new", &[("x-ms-blob-type", "BlockBlob"), ("if-none-match", "*")]),
        ("/con/b?comp=block&blockid=AAAA", &[]),
        ("/con/log?comp=appendblock", &[]),
        ("/con/page?comp=page", &page),
    ];
    for (target, headers) in writes {
        for (checksum, code) in [(MD5, "Md5Mismatch"), (CRC, "Crc64Mismatch")] {
            let all = [headers, &[checksum]].concat();
            blobs.ask("PUT", target, &all, &[1; 512]).refused(400, code);
        }
        let malformed = [headers, &[("content-md5", "no")]].concat();
        blobs.ask("PUT", target, &malformed, &[1; 512]).refused(400, "InvalidMd5");
    }
    assert_eq!(state(&blobs), before);
}

fn list(ids: usize) -> String {
    let mut list = "<BlockList>".to_owned();
    for _ in 0..ids {
        list += "<Latest>AAAA</Latest>";
    }
    list + "</BlockList>"
}

#[test]
fn lists_of_blocks_have_at_most_50_000_entries() {
    let blobs = world();
    let before = state(&blobs);
    let commit = |text: &str| blobs.ask("PUT", "/con/b?comp=blocklist", &[], text.as_bytes());
    commit(&list(50_001)).refused(400, "BlockListTooLong");
    let wrong = list(2).replacen("AAAA", "ZZZZ", 1);
    commit(&wrong).refused(400, "InvalidBlockList");
    assert_eq!(state(&blobs), before);
    commit(&list(50_000)).is(201);
    let length = blobs.head("/con/b", &[]).is(200).header("content-length").to_owned();
    assert_eq!(length, (50_000 * 5).to_string());
}

#[test]
fn ten_thousand_tags_are_refused() {
    let blobs = world();
    let before = state(&blobs);
    let (mut document, mut header) = ("<Tags><TagSet>".to_owned(), String::new());
    for n in 0..10_000 {
        write!(document, "<Tag><Key>k{n}</Key><Value>v</Value></Tag>").unwrap();
        if n < 1_000 {
            write!(header, "k{n}=v&").unwrap();
        }
    }
    document += "</TagSet></Tags>";
    let refused = |got: Got| {
        assert_eq!(got.status, 400, "{}", got.text());
        assert_ne!(got.code(), "");
    };
    refused(blobs.ask("PUT", "/con/b?comp=tags", &[], document.as_bytes()));
    refused(blobs.upload("b", "new", &[("x-ms-tags", header.trim_end_matches('&'))]));
    assert_eq!(state(&blobs), before);
}

#[test]
fn documents_that_are_no_xml_are_refused() {
    let blobs = world();
    let before = state(&blobs);
    let targets = [
        "/con/b?comp=blocklist",
        "/con/b?comp=tags",
        "/con?restype=container&comp=acl",
        "/?restype=service&comp=properties",
    ];
    let nested = "<a>".repeat(100_000);
    let documents = [
        "",
        "<",
        "no xml",
        "<BlockList>",
        "<Tags><TagSet></Tags></TagSet>",
        "<a/>",
        "\u{0}",
        &nested,
    ];
    for target in targets {
        for document in documents {
            if document.is_empty() && target.ends_with("acl") {
                // No body is no policies.
                continue;
            }
            let got = blobs.ask("PUT", target, &[], document.as_bytes());
            let short: String = document.chars().take(20).collect();
            assert_eq!(got.status, 400, "{target} {short}: {}", got.text());
            assert_ne!(got.code(), "", "{target} {short}");
        }
    }
    assert_eq!(state(&blobs), before);
}

#[test]
fn headers_that_are_too_long_are_refused() {
    let blobs = world();
    let before = state(&blobs);
    let long = "x".repeat(9 << 10);
    let got = blobs.upload("b", "new", &[("x-ms-meta-long", &long)]);
    assert_eq!(got.status / 100, 4, "{}", got.text());
    let huge = "x".repeat(1 << 20);
    let got = blobs.upload("b", "new", &[("x-ms-meta-huge", &huge)]);
    assert_eq!(got.status / 100, 4, "{}", got.text());
    assert_eq!(state(&blobs), before);
}
