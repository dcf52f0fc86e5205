//! How much of it there is: at each bound, and past it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use latchfs::api::{ApiClient, BODY_MAX, CONNECTIONS_MAX, HOLDS_MAX, WAITS_MAX, WaitAtGate};
use serde_json::json;

use super::fixture::{Api, NAME, body, refused, serve};
use crate::common::http::Kept;

/// How long anything may take that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);

const CLOCK: &[u8] = br#"{"advance_ms":1}"#;

#[test]
fn a_body_has_so_many_bytes_and_no_more() {
    let (_folder, _server, api) = serve(&[]);
    let padded = |length: usize| {
        let body = r#"{"advance_ms":1}"#;
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let sent = |length: usize| {
        let headers = [("x-latchfs-client", NAME)];
        api.raw("POST", "/api/v1/clock", &headers, padded(length).as_bytes())
    };
    sent(BODY_MAX).is(200);
    refused(sent(BODY_MAX + 1), 413, "too_large");
}

#[test]
fn clients_hold_so_many_files_and_no_more() {
    let (_folder, _server, api) = serve(&[]);
    let hold = json!({ "path": "a.txt", "share_mode": "rwd" });
    let mut kept = Kept::connect(api.addr).unwrap();
    let text = hold.to_string();
    for _ in 0..HOLDS_MAX {
        let headers = [("x-latchfs-client", NAME)];
        let got = kept.ask_at("POST", "/api/v1/holds", &headers, text.as_bytes()).unwrap();
        got.is(201);
    }
    refused(api.post("holds", &hold), 503, "busy");
    let held = body(&api.get("holds"));
    assert_eq!(held["holds"].as_array().unwrap().len(), HOLDS_MAX);
    api.delete(&format!("holds/{}", held["holds"][0]["handle"])).is(200);
    api.post("holds", &hold).is(201);
}

#[test]
fn so_many_calls_wait_and_no_more() {
    let (folder, _server, api) = serve(&[]);
    let id = body(&api.post("gates", &json!({ "operation": "Put Blob" })).is(201))["gate"].clone();
    let wait = format!("gates/{id}/wait?timeout_ms=600000");
    thread::scope(|scope| {
        // One that comes while the look below has the last place tries again.
        let waits_for = || loop {
            let status = api.get(&wait).status;
            if status != 503 {
                return status;
            }
        };
        let waits: Vec<_> = (0..WAITS_MAX).map(|_| scope.spawn(waits_for)).collect();
        crate::common::served::wait_for("the bound", || {
            let got = api.get(&format!("gates/{id}/wait?timeout_ms=1"));
            (got.status == 503).then(|| refused(got, 503, "busy"))
        });
        // A call that waits for nothing is answered.
        api.get("status").is(200);
        // The owner of the server has places of its own.
        let number = id.as_u64().unwrap();
        let wait = WaitAtGate { id: number, count: None, timeout_ms: Some(1) };
        let error = ApiClient::new(&folder.socket()).ask(&wait).unwrap_err();
        assert!(error.to_string().contains("0 of 1 requests wait"), "{error}");
        api.delete(&format!("gates/{number}")).is(200);
        for wait in waits {
            assert_eq!(wait.join().unwrap(), 404, "the gate is gone");
        }
    });
    refused(api.get(&format!("gates/{id}/wait?timeout_ms=600001")), 400, "bad_request");
}

/// A call that is being carried out: its body is awaited.
fn begun(api: &Api) -> TcpStream {
    let mut stream = TcpStream::connect(api.addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /api/v1/clock HTTP/1.1\r\nhost: {}\r\nx-latchfs-client: {NAME}\r\n\
         content-length: {}\r\nexpect: 100-continue\r\n\r\n",
        api.addr,
        CLOCK.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = [0; 12];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100");
    stream
}

#[test]
fn so_many_connections_are_served_and_the_next_one_waits() {
    let (_folder, _server, api) = serve(&[]);
    let mut calls: Vec<_> = (0..CONNECTIONS_MAX).map(|_| begun(&api)).collect();
    let mut next = TcpStream::connect(api.addr).unwrap();
    next.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let head = format!("GET /api/v1/clock HTTP/1.1\r\nhost: {}\r\n\r\n", api.addr);
    next.write_all(head.as_bytes()).unwrap();
    assert!(next.read(&mut [0]).is_err(), "all of the others are at work");
    // One that has its answer is idle, and makes room.
    calls[0].write_all(CLOCK).unwrap();
    next.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = [0; 12];
    next.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let mut told = String::new();
    calls[0].read_to_string(&mut told).unwrap();
    assert!(told.contains("HTTP/1.1 200"), "{told}");
}

#[test]
fn idle_connections_keep_nobody_out() {
    let (_folder, _server, api) = serve(&[]);
    let idle: Vec<_> =
        (0..CONNECTIONS_MAX + 50).map(|_| TcpStream::connect(api.addr).unwrap()).collect();
    for _ in 0..20 {
        api.get("clock").is(200);
    }
    drop(idle);
}

#[test]
fn clients_that_do_not_read_keep_nobody_out() {
    let (_folder, _server, api) = serve(&[]);
    let one = format!("GET /page/page.css HTTP/1.1\r\nhost: {}\r\n\r\n", api.addr);
    // More answers than the buffers of a connection take.
    let many = one.repeat(2_000);
    let silent: Vec<_> = (0..CONNECTIONS_MAX)
        .map(|_| {
            let mut stream = TcpStream::connect(api.addr).unwrap();
            stream.set_nonblocking(true).unwrap();
            // As much as the server takes.
            let _ = stream.write(many.as_bytes());
            stream
        })
        .collect();
    let answered = || {
        let mut stream = TcpStream::connect(api.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", api.addr);
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).map(|()| answer)
    };
    assert_eq!(&answered().unwrap(), b"HTTP/1.1 200");
    drop(silent);
}
