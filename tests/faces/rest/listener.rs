//! What holds for every request: addresses, hosts, versions, methods.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::rest::fixture::{ACCOUNT, Fixture};

#[test]
fn every_answer_carries_the_common_headers() {
    let fixture = Fixture::new();
    let got = fixture.ask("GET", "/docs?restype=share", &[("x-ms-client-request-id", "abc")], b"");
    let got = got.is(200);
    assert_eq!(got.header("x-ms-client-request-id"), "abc");
    assert_eq!(got.header("x-ms-version"), "2026-10-06");
    assert_eq!(got.header("x-ms-request-id").len(), 36);
    assert!(got.header("date").ends_with(" GMT"));
    assert!(got.header("etag").starts_with("\"0x8D"));
    let other = fixture.get("/docs?restype=share");
    assert_ne!(got.header("x-ms-request-id"), other.header("x-ms-request-id"));
}

#[test]
fn unknown_operations_methods_and_versions_are_bad_requests_and_never_errors_of_ours() {
    let fixture = Fixture::new();
    fixture.get("/docs?restype=share&comp=nonsense").refused(400, "InvalidQueryParameterValue");
    fixture.get("/docs?restype=moon").refused(400, "InvalidQueryParameterValue");
    fixture.get("/docs").refused(400, "InvalidUri");
    fixture.ask("POST", "/docs?restype=share", &[], b"").refused(405, "UnsupportedHttpVerb");
    fixture.ask("PATCH", "/docs/a", &[], b"").refused(405, "UnsupportedHttpVerb");
    let version = [("x-ms-version", "latest")];
    let got = fixture.ask("GET", "/docs?restype=share", &version, b"");
    got.refused(400, "InvalidHeaderValue");
    let newer = [("x-ms-version", "2031-01-01")];
    let got = fixture.ask("GET", "/docs?restype=share", &newer, b"").is(200);
    assert_eq!(got.header("x-ms-version"), "2031-01-01");
    // Without one: a SAS brings its own, who signs by headers must say, and nobody else need.
    let none = ("x-ms-version", "");
    let version = |target: &str| {
        fixture.ask("GET", target, &[none], b"").is(200).header("x-ms-version").to_owned()
    };
    assert_eq!(version("/docs?restype=share&sv=2024-05-04&sig=x"), "2024-05-04");
    assert_eq!(version("/docs?restype=share"), "2026-10-06");
    let signed = [none, ("authorization", "SharedKey devstoreaccount1:c2ln")];
    let got = fixture.ask("GET", "/docs?restype=share", &signed, b"");
    got.refused(400, "MissingRequiredHeader");
    fixture.put("/docs/a?comp=lease", &[]).refused(400, "MissingRequiredHeader");
    let action = [("x-ms-lease-action", "steal")];
    fixture.put("/docs/a?comp=lease", &action).refused(400, "InvalidHeaderValue");
}

#[test]
fn a_user_delegation_key_is_not_given_without_a_token() {
    let fixture = Fixture::new();
    let target = "/?restype=service&comp=userdelegationkey";
    fixture.ask("POST", target, &[], b"").refused(403, "AuthenticationFailed");
}

#[test]
fn an_error_to_a_head_has_a_code_and_neither_body_nor_type() {
    let fixture = Fixture::new();
    let got = fixture.head("/docs/missing").refused(404, "ResourceNotFound");
    assert!(!got.headers.contains_key("content-type"));
    let got = fixture.get("/docs/missing").refused(404, "ResourceNotFound");
    assert_eq!(got.header("content-type"), "application/xml");
    assert!(got.text().contains("RequestId:") && got.text().contains("Time:"));
}

#[test]
fn a_put_without_a_length_is_refused_and_one_in_chunks_is_not() {
    let fixture = Fixture::new();
    fixture.upload("a", &[0; 5]);
    let raw = |head: &str, body: &str| {
        let mut stream = TcpStream::connect(fixture.server.addr()).unwrap();
        let text = format!(
            "PUT /{ACCOUNT}/docs/a?comp=range HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             x-ms-range: bytes=0-4\r\nx-ms-write: update\r\n{head}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(raw("", "").starts_with("HTTP/1.1 411"));
    let chunked = raw("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n");
    assert!(chunked.starts_with("HTTP/1.1 201"), "{chunked}");
    assert_eq!(fixture.get("/docs/a").text(), "hello");
}

#[test]
fn a_stop_ends_idle_connections_at_once_and_frees_the_port() {
    let mut fixture = Fixture::new();
    let mut idle = TcpStream::connect(fixture.server.addr()).unwrap();
    fixture.get("/docs?restype=share").is(200);
    let begun = Instant::now();
    fixture.server.stop();
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    assert!(TcpStream::connect(fixture.server.addr()).is_err());
}
