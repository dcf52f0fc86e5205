//! How much of it there is: at each bound, and past it.

use std::net::TcpStream;
use std::thread;

use latchfs::admin::{BODY_MAX, CONNECTIONS_MAX, HOLDS_MAX, WAITS_MAX};
use serde_json::json;

use super::fixture::{NAME, body, refused, serve};
use crate::common::http::Kept;

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
    let (_folder, _server, api) = serve(&[]);
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
        api.delete(&format!("gates/{}", id.as_u64().unwrap())).is(200);
        for wait in waits {
            assert_eq!(wait.join().unwrap(), 404, "the gate is gone");
        }
    });
    refused(api.get(&format!("gates/{id}/wait?timeout_ms=600001")), 400, "bad_request");
}

#[test]
fn so_many_connections_are_served_and_the_next_one_waits() {
    let (_folder, _server, api) = serve(&[]);
    let connect = || TcpStream::connect(api.addr).unwrap();
    let mut idle: Vec<_> = (1..CONNECTIONS_MAX).map(|_| connect()).collect();
    let mut last = Kept::connect(api.addr).unwrap();
    let mut answered = || last.ask_at("GET", "/api/v1/clock", &[], b"").unwrap().is(200);
    answered();
    let next = thread::scope(|scope| {
        let next = scope.spawn(|| api.get("clock").status);
        // While all are there, those are answered and the next one is not.
        for _ in 0..100 {
            answered();
        }
        assert!(!next.is_finished());
        idle.clear();
        next.join().unwrap()
    });
    assert_eq!(next, 200);
}
