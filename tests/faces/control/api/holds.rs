//! Files that clients of the API hold open.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{Api, NAME, body, get_file, put_file, refused, serve};
use crate::common::served::wait_for;
use crate::control::fixture::{Folder, Holding};

#[test]
fn a_hold_keeps_others_out_until_it_is_released() {
    let (folder, _server, api) = serve(&[]);
    let held = body(&api.post("holds", &json!({ "path": "/A.TXT", "access": "rw" })).is(201));
    let expected = json!({
        "handle": held["handle"], "account": "devstoreaccount1", "share": "docs", "path": "/a.txt",
        "access": "rw", "share_mode": "none",
    });
    assert_eq!(held, expected);
    let refusal = get_file(&folder, "a.txt").refused(409, "SharingViolation");
    assert!(refusal.text().contains(NAME), "{}", refusal.text());
    let error = refused(api.post("holds", &json!({ "path": "a.txt" })), 409, "sharing_violation");
    assert_eq!(error["holder"]["handle"], held["handle"]);
    assert_eq!(error["holder"]["program"], NAME);
    let none = json!({ "path": "/none.txt", "share": "docs" });
    let missing = refused(api.post("holds", &none), 404, "not_found");
    assert_eq!(missing["message"], "file:docs/none.txt: no such file or directory");
    let list = body(&api.get("holds").is(200));
    let row = &list["holds"][0];
    assert_eq!((&row["handle"], &row["open"]), (&held["handle"], &json!(true)));
    assert!(row["expires_in_ms"].as_u64().unwrap() <= 60_000, "{row}");
    let path = format!("holds/{}", held["handle"]);
    assert_eq!(body(&api.delete(&path).is(200)), json!({ "open": true }));
    refused(api.delete(&path), 404, "not_found");
    get_file(&folder, "a.txt").is(200);
    assert_eq!(body(&api.get("holds").is(200)), json!({ "holds": [] }));
}

#[test]
fn a_hold_that_was_closed_by_force_says_so() {
    let (_folder, _server, api) = serve(&[]);
    let held = body(&api.post("holds", &json!({ "path": "a.txt" })).is(201));
    api.delete(&format!("handles/{}", held["handle"])).is(200);
    assert_eq!(body(&api.get("holds"))["holds"][0]["open"], false);
    let released = body(&api.delete(&format!("holds/{}", held["handle"])).is(200));
    assert_eq!(released, json!({ "open": false }));
}

#[test]
fn a_hold_ends_when_its_time_is_over() {
    let (folder, _server, api) = serve(&[]);
    let held = body(&api.post("holds", &json!({ "path": "a.txt", "for_ms": 1 })).is(201));
    wait_for("the end of the hold", || (get_file(&folder, "a.txt").status == 200).then_some(()));
    refused(api.delete(&format!("holds/{}", held["handle"])), 404, "not_found");
    let forever = json!({ "path": "a.txt", "for_ms": 3_600_001 });
    refused(api.post("holds", &forever), 400, "bad_request");
    let longest = json!({ "path": "a.txt", "for_ms": 3_600_000 });
    api.post("holds", &longest).is(201);
}

/// A hold that lasts as long as its connection, which is returned.
fn hold_connected(api: &Api, body: &Value) -> (BufReader<TcpStream>, Value) {
    let mut stream = TcpStream::connect(api.addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (host, body) = (api.addr, body.to_string());
    write!(
        stream,
        "POST /api/v1/holds HTTP/1.1\r\nhost: {host}\r\nx-latchfs-client: {NAME}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains(" 201 "), "{line}");
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if line.starts_with('{') {
            return (reader, serde_json::from_str(&line).unwrap());
        }
    }
}

#[test]
fn a_hold_ends_with_the_connection_of_a_client_that_asked_for_that() {
    let (folder, _server, api) = serve(&[]);
    let wanted = json!({ "path": "a.txt", "while_connected": true });
    for half in [true, false] {
        let (reader, held) = hold_connected(&api, &wanted);
        get_file(&folder, "a.txt").refused(409, "SharingViolation");
        assert_eq!(body(&api.get("holds"))["holds"][0]["handle"], held["handle"]);
        if half {
            reader.get_ref().shutdown(Shutdown::Both).unwrap();
        }
        drop(reader);
        wait_for("the end of the hold", || {
            (get_file(&folder, "a.txt").status == 200).then_some(())
        });
    }
    // Released by another call: the answer ends with its last chunk.
    let (mut reader, held) = hold_connected(&api, &wanted);
    api.delete(&format!("holds/{}", held["handle"])).is(200);
    let mut rest = String::new();
    while !rest.ends_with("0\r\n\r\n") {
        assert!(reader.read_line(&mut rest).unwrap() > 0, "{rest}");
    }
}

#[test]
fn a_hold_locks_bytes_all_or_none() {
    let (_folder, _server, api) = serve(&[]);
    let shared = |locks: Value| {
        let (path, access) = ("a.txt", "rw");
        json!({ "path": path, "access": access, "share_mode": "rw", "locks": locks })
    };
    api.post("holds", &shared(json!([{ "start": 2, "length": 1 }]))).is(201);
    let taken = shared(json!([{ "start": 0, "length": 1 }, { "start": 1 }]));
    let error = refused(api.post("holds", &taken), 409, "lock_not_granted");
    assert_eq!(error["holder"]["program"], NAME);
    assert_eq!(body(&api.get("handles"))["handles"].as_array().unwrap().len(), 1);
    let free = shared(json!([{ "start": 0, "length": 2, "exclusive": false }, { "start": 3 }]));
    let both = body(&api.post("holds", &free).is(201));
    let why = body(&api.get("why?object=file:docs/a.txt"));
    assert_eq!(why["locks"].as_array().unwrap().len(), 3, "{why}");
    api.delete(&format!("holds/{}", both["handle"])).is(200);
    let why = body(&api.get("why?object=file:docs/a.txt"));
    assert_eq!(why["locks"].as_array().unwrap().len(), 1, "{why}");
}

#[test]
fn a_hold_may_make_a_file_and_delete_it_when_it_closes() {
    let (folder, _server, api) = serve(&[]);
    let wanted = json!({
        "path": "new.txt", "share": "docs", "access": "rwd", "share_mode": "rwd",
        "disposition": "create", "delete_on_close": true,
    });
    let held = body(&api.post("holds", &wanted).is(201));
    refused(api.post("holds", &wanted), 409, "exists");
    api.delete(&format!("holds/{}", held["handle"])).is(200);
    get_file(&folder, "new.txt").is(404);
    for wrong in [
        json!({ "path": "a.txt", "access": "x" }),
        json!({ "path": "a.txt", "share_mode": "x" }),
        json!({ "path": "a.txt", "disposition": "x" }),
        json!({ "path": "a.txt", "shared": true }),
        json!({ "access": "r" }),
    ] {
        refused(api.post("holds", &wrong), 400, "bad_request");
    }
    refused(api.post("holds", &json!({ "path": "none" })), 404, "not_found");
    refused(api.post("holds", &json!({ "path": "a", "share": "no" })), 404, "not_found");
}

#[test]
fn equal_handles_of_two_shares_are_told_apart() {
    let folder = Folder::new();
    let _server =
        folder.start(&["serve", "--no-mount", "--no-auth", "--share", "docs", "--share", "other"]);
    let api = Api::of(&folder);
    let hold = |share: &str| {
        let wanted = json!({ "share": share, "path": "new", "disposition": "create" });
        body(&api.post("holds", &wanted).is(201))
    };
    let (one, other) = (hold("docs"), hold("other"));
    assert_eq!(one["handle"], other["handle"], "numbers are by share");
    let path = format!("holds/{}", one["handle"]);
    let error = refused(api.delete(&path), 400, "bad_request");
    assert!(error["message"].as_str().unwrap().contains("share=NAME"), "{error}");
    refused(api.delete(&format!("handles/{}", one["handle"])), 400, "bad_request");
    api.delete(&format!("{path}?share=docs")).is(200);
    api.delete(&path).is(200);
}

#[test]
fn holds_of_the_api_end_with_the_server_and_those_of_commands_are_not_listed() {
    let (folder, mut server, api) = serve(&[]);
    put_file(&folder, "b.txt");
    let socket = folder.socket();
    let command = ["docs:/b.txt", "--control", socket.to_str().unwrap(), "--for", "60s"];
    let _holding = Holding::start(&folder, &command);
    api.post("holds", &json!({ "path": "a.txt" })).is(201);
    let (_reader, _) = hold_connected(
        &api,
        &json!({ "path": "a.txt", "access": "none", "share_mode": "rwd", "while_connected": true }),
    );
    assert_eq!(body(&api.get("holds"))["holds"].as_array().unwrap().len(), 2);
    assert!(server.stop().success(), "{}", server.log());
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}
