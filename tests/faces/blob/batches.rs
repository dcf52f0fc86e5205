//! What the parts of a batch may do: no more than a request of their own might.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use latchfs::blob::service::BlobOptions;

use super::access::{container_sas, sas, signed};
use super::fixture::{ACCOUNT, Blobs, Got};
use super::lists::{BATCH, batch_of};

/// A server with the blob `secret` in another container than `con`.
fn with_secret() -> Blobs {
    let blobs = signed(BlobOptions::default());
    let all = sas("racwdl");
    blobs.put(&format!("/other?restype=container&{all}"), &[]).is(201);
    let block = [("x-ms-blob-type", "BlockBlob")];
    blobs.ask("PUT", &format!("/other/secret?{all}"), &block, b"secret").is(201);
    blobs
}

fn secret(blobs: &Blobs) -> Got {
    blobs.get(&format!("/other/secret?{}", sas("r")), &[])
}

/// The answer to a batch of the container `con` whose header `Authorization` is the byte 0xFF.
fn with_broken_authorization(blobs: &Blobs, query: &str, part: &str) -> String {
    let body = batch_of(&[part.to_owned()]);
    let head = format!(
        "POST /{ACCOUNT}/con?restype=container&comp=batch&{query} HTTP/1.1\r\nhost: {}\r\n\
         connection: close\r\nx-ms-version: 2025-05-05\r\n{}: {}\r\ncontent-length: {}\r\n",
        blobs.addr(),
        BATCH.0,
        BATCH.1,
        body.len()
    );
    let mut stream = TcpStream::connect(blobs.addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"authorization: \xff\r\n\r\n").unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn an_authorization_header_that_is_no_text_is_refused_and_covers_no_part() {
    let blobs = with_secret();
    for (letters, part) in [
        ("d", format!("DELETE /{ACCOUNT}/other/secret?sig= HTTP/1.1\r\n")),
        ("d", format!("DELETE /{ACCOUNT}/other/secret HTTP/1.1\r\n")),
        ("w", format!("PUT /{ACCOUNT}/other/secret?comp=tier&sig= HTTP/1.1\r\n")),
    ] {
        let answer = with_broken_authorization(&blobs, &container_sas(letters), &part);
        assert!(answer.starts_with("HTTP/1.1 400"), "{part}: {answer}");
        assert!(answer.contains("InvalidAuthenticationInfo"), "{part}: {answer}");
    }
    secret(&blobs).is(200);
}

#[test]
fn a_part_with_an_empty_signature_does_not_get_that_of_the_batch() {
    let blobs = with_secret();
    let parts = ["con/b?sig=", "con/b?SIG", "con/b?s%69g="]
        .map(|target| format!("DELETE /{ACCOUNT}/{target} HTTP/1.1\r\n"));
    let target = format!("/con?restype=container&comp=batch&{}", container_sas("d"));
    let text = blobs.ask("POST", &target, &[BATCH], &batch_of(&parts)).is(202).text();
    assert_eq!(text.matches("HTTP/1.1 401").count(), parts.len(), "{text}");
    let part = format!("DELETE /{ACCOUNT}/con/b HTTP/1.1\r\n");
    let text = blobs.ask("POST", &target, &[BATCH], &batch_of(&[part])).is(202).text();
    assert!(text.contains("HTTP/1.1 202"), "{text}");
}

#[test]
fn a_batch_of_a_container_stays_in_it() {
    let blobs = Blobs::new();
    blobs.put("/other?restype=container", &[]).is(201);
    blobs.put("/$root?restype=container", &[]).is(201);
    let block = [("x-ms-blob-type", "BlockBlob")];
    for target in ["/other/b", "/con/b", "/con"] {
        blobs.ask("PUT", target, &block, b"bytes").is(201);
    }
    // A path of one segment is a blob of the root container, whatever the name.
    let parts = ["other/b", "con", "con/b"]
        .map(|target| format!("DELETE /{ACCOUNT}/{target} HTTP/1.1\r\n"));
    let target = "/con?restype=container&comp=batch";
    let text = blobs.ask("POST", target, &[BATCH], &batch_of(&parts)).is(202).text();
    let statuses: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).collect();
    assert_eq!(statuses, ["400 Bad Request", "400 Bad Request", "202 Accepted"], "{text}");
    blobs.get("/other/b", &[]).is(200);
    blobs.get("/con", &[]).is(200);
    let text = blobs.ask("POST", "/?comp=batch", &[BATCH], &batch_of(&parts)).is(202).text();
    assert_eq!(text.matches("HTTP/1.1 202").count(), 2, "{text}");
}

#[test]
fn a_part_that_names_another_host_or_a_coding_is_not_carried_out() {
    let blobs = Blobs::new();
    blobs.blob("bytes");
    let ask = |target: &str, more: &str| {
        let part = format!("DELETE {target}/{ACCOUNT}/con/b HTTP/1.1\r\n{more}");
        blobs.ask("POST", "/?comp=batch", &[BATCH], &batch_of(&[part]))
    };
    ask("http://evil.example", "").refused(400, "InvalidInput");
    ask("http://evil.example", "host: localhost\r\n").refused(400, "InvalidInput");
    ask("", "transfer-encoding: chunked\r\n").refused(400, "InvalidInput");
    let text = ask("", "host: evil.example\r\n").is(202).text();
    assert!(!text.contains("HTTP/1.1 202"), "{text}");
    blobs.get("/con/b", &[]).is(200);
    let text = ask("http://localhost", "host: localhost\r\n").is(202).text();
    assert!(text.contains("HTTP/1.1 202"), "{text}");
}

#[test]
fn a_part_is_admitted_as_a_request_of_its_own() {
    let blobs = Blobs::new();
    blobs.blob("bytes");
    let ask = |account: &str, more: &str| {
        let part = format!("DELETE /{account}/con/b HTTP/1.1\r\n{more}");
        blobs.ask("POST", "/?comp=batch", &[BATCH], &batch_of(&[part])).is(202).text()
    };
    let secondary = ask(&format!("{ACCOUNT}-secondary"), "");
    assert!(secondary.contains("HTTP/1.1 403"), "{secondary}");
    assert!(secondary.contains("WriteOperationNotSupportedOnSecondary"), "{secondary}");
    for version in ["latest", "2999-01-01"] {
        let refused = ask(ACCOUNT, &format!("x-ms-version: {version}\r\n"));
        assert!(refused.contains("HTTP/1.1 400"), "{refused}");
        assert!(refused.contains("InvalidHeaderValue"), "{refused}");
    }
    blobs.get("/con/b", &[]).is(200);
    assert!(ask(ACCOUNT, "x-ms-version: 2025-05-05\r\n").contains("HTTP/1.1 202"));
}
