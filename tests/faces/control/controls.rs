//! What tests control through commands: the clock, gates and faults, met by requests to every
//! service.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use super::fixture::{Folder, Server, error_text, json, text};
use crate::common::http::{Got, Kept, ask};
use crate::common::need;

fn serve() -> (Folder, Server) {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--no-auth", "--share", "docs"]);
    let blob = folder.service("blob");
    ask(blob, "PUT", "/box?restype=container", &[], b"").is(201);
    (folder, server)
}

fn put(blob: SocketAddr, name: &str, content: &str) -> Got {
    let kind = [("x-ms-blob-type", "BlockBlob")];
    ask(blob, "PUT", &format!("/box/{name}"), &kind, content.as_bytes())
}

fn content(blob: SocketAddr, name: &str) -> String {
    ask(blob, "GET", &format!("/box/{name}"), &[], b"").is(200).text()
}

/// A command that must work; its output.
#[track_caller]
fn does(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.ask(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", error_text(&output));
    text(&output).trim().to_owned()
}

#[test]
fn a_lease_a_message_and_a_sas_run_out_when_the_clock_is_turned() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    does(&folder, &["mk", "blob:box"]);
    does(&folder, &["mk", "queue:jobs"]);
    std::fs::write(folder.join("x"), "hello").unwrap();
    let file = folder.join("x");
    let file = file.to_str().unwrap();
    does(&folder, &["put", "blob:box/a", file]);
    does(&folder, &["put", "queue:jobs", file]);
    // Requests are signed by the commands: the turned clock must not disturb their dates.
    let frozen = json(&folder.ask(&["clock", "freeze", "--json"]));
    assert_eq!(frozen["frozen"], true);
    let url = does(&folder, &["sas", "blob:box/a", "--permissions", "r", "--expires", "1h"]);
    let fetch = |url: &str| {
        let (host, target) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let (addr, target) = (host.parse().unwrap(), format!("/{target}"));
        crate::common::http::ask_as_it_is(addr, host, "GET", &target, &[], b"").status
    };
    assert_eq!(fetch(&url), 200);
    does(&folder, &["get", "queue:jobs", "--hide", "30"]);
    let hidden = folder.ask(&["get", "queue:jobs"]);
    assert_eq!(hidden.status.code(), Some(1));
    let before = json(&folder.ask(&["clock", "show", "--json"]));
    does(&folder, &["clock", "advance", "31s"]);
    assert_eq!(does(&folder, &["get", "queue:jobs"]), "hello");
    assert_eq!(fetch(&url), 200);
    does(&folder, &["clock", "advance", "1h"]);
    assert_eq!(fetch(&url), 403);
    // A new one counts by the clock that it is compared with.
    does(&folder, &["put", "file:docs/a", file]);
    for object in ["blob:box/a", "docs:/a"] {
        let url = does(&folder, &["sas", object, "--expires", "1h"]);
        assert_eq!(fetch(&url), 200, "{url}");
    }
    let back = folder.ask(&["clock", "set", before["now"].as_str().unwrap()]);
    assert_eq!(back.status.code(), Some(2));
    assert!(error_text(&back).contains("never set back"), "{}", error_text(&back));
    assert_eq!(json(&folder.ask(&["clock", "run", "--json"]))["frozen"], false);
}

#[test]
fn the_clock_is_not_advanced_by_less_than_nothing() {
    let (folder, _server) = serve();
    for by in ["-5s", "-1h"] {
        let back = folder.ask(&["clock", "advance", by]);
        let said = error_text(&back);
        assert_eq!(back.status.code(), Some(2), "{said}");
        assert!(said.contains("the clock only goes forward") && !said.contains("tip:"), "{said}");
    }
    for other in ["-x", "--json=5s"] {
        let refused = folder.ask(&["clock", "advance", other]);
        assert_eq!(refused.status.code(), Some(2), "{other}");
    }
    let options_still_are = folder.ask(&["clock", "advance", "--json", "1s"]);
    assert_eq!(json(&options_still_are)["frozen"], false);
}

#[test]
fn a_turned_clock_is_shown_by_clock_and_by_status() {
    let (folder, _server) = serve();
    assert!(!does(&folder, &["status"]).contains("\nclock "));
    assert_eq!(json(&folder.ask(&["clock", "--json"]))["frozen"], false);
    does(&folder, &["clock", "advance", "2h"]);
    assert!(does(&folder, &["clock"]).contains("(the system's clock shows "));
    let status = does(&folder, &["status"]);
    assert!(status.contains("\nclock "), "{status}");
}

#[test]
fn a_gate_that_does_not_exist_is_told_by_every_command() {
    let (folder, _server) = serve();
    for command in ["wait", "release", "remove"] {
        let output = folder.ask(&["gate", command, "99"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(error_text(&output).contains("there is no gate 99"), "{}", error_text(&output));
    }
}

#[test]
fn a_gate_puts_two_writers_in_the_order_that_the_test_wants() {
    let (folder, _server) = serve();
    let blob = folder.service("blob");
    let gate = does(&folder, &["gate", "add", "put-blob", "box/a", "--times", "1"]);
    thread::scope(|scope| {
        let first = scope.spawn(|| put(blob, "a", "first"));
        does(&folder, &["gate", "wait", &gate]);
        put(blob, "a", "second").is(201);
        put(blob, "b", "another blob").is(201);
        assert_eq!(content(blob, "a"), "second");
        let gates = json(&folder.ask(&["gate", "list", "--json"]));
        assert_eq!(gates[0]["waiting"][0]["path"], "box/a");
        assert_eq!(gates[0]["waiting"][0]["operation"], "Put Blob");
        assert_eq!(does(&folder, &["gate", "release", &gate]), "1");
        first.join().unwrap().is(201);
    });
    assert_eq!(content(blob, "a"), "first", "the one that was let go last");
    let none = folder.ask(&["gate", "release", &gate]);
    assert_eq!((none.status.code(), text(&none).trim()), (Some(1), "0"));
    does(&folder, &["gate", "remove", &gate]);
    assert_eq!(folder.ask(&["gate", "remove", &gate]).status.code(), Some(2));
}

#[test]
fn what_stops_when_it_is_committed_is_seen_by_others_before_its_client_knows() {
    let (folder, _server) = serve();
    let blob = folder.service("blob");
    let gate = does(&folder, &["gate", "add", "Put Blob", "box/*", "--at", "committed"]);
    thread::scope(|scope| {
        let first = scope.spawn(|| put(blob, "a", "done"));
        does(&folder, &["gate", "wait", &gate]);
        assert_eq!(content(blob, "a"), "done");
        assert!(!first.is_finished());
        does(&folder, &["gate", "remove", "--all"]);
        first.join().unwrap().is(201);
    });
    // A gate that nobody opens lets go by itself.
    does(&folder, &["gate", "add", "Put Blob", "--limit", "100ms"]);
    put(blob, "b", "late").is(201);
}

#[test]
fn a_stop_refuses_requests_that_wait_at_a_gate() {
    let (folder, mut server) = serve();
    let blob = folder.service("blob");
    let gate = does(&folder, &["gate", "add", "Put Blob"]);
    let mut waiting = TcpStream::connect(blob).unwrap();
    let head = format!(
        "PUT /devstoreaccount1/box/a HTTP/1.1\r\nHost: {blob}\r\nx-ms-version: 2026-10-06\r\n\
         x-ms-blob-type: BlockBlob\r\nContent-Length: 0\r\n\r\n"
    );
    waiting.write_all(head.as_bytes()).unwrap();
    does(&folder, &["gate", "wait", &gate]);
    assert!(server.stop().success());
    assert!(!server.log().contains("still under way"), "{}", server.log());
    let mut answer = Vec::new();
    waiting.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("the server stops"), "{answer}");
}

#[test]
fn a_fault_loses_the_request_or_its_acknowledgement() {
    let (folder, _server) = serve();
    let blob = folder.service("blob");
    let write = |name: &str| {
        let mut client = Kept::connect(blob).unwrap();
        let kind = [("x-ms-blob-type", "BlockBlob")];
        client.ask("PUT", &format!("/box/{name}"), &kind, b"x").map(|got| got.status)
    };
    does(&folder, &["fault", "add", "Put Blob", "box/lost", "--drop", "before", "--times", "1"]);
    does(&folder, &["fault", "add", "Put Blob", "box/done", "--drop", "after", "--times", "1"]);
    assert!(write("lost").is_err());
    ask(blob, "HEAD", "/box/lost", &[], b"").is(404);
    assert!(write("done").is_err());
    assert_eq!(content(blob, "done"), "x");
    assert_eq!((write("lost").unwrap(), write("done").unwrap()), (201, 201), "once each");
    let met: Vec<_> = json(&folder.ask(&["fault", "list", "--json"]))
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["met"].as_u64().unwrap())
        .collect();
    assert_eq!(met, [1, 1]);
}

#[test]
fn a_fault_answers_delays_and_cuts() {
    let (folder, _server) = serve();
    let blob = folder.service("blob");
    put(blob, "a", &"0123456789".repeat(1_000)).is(201);
    let busy = does(&folder, &["fault", "add", "Get Blob", "--answer", "503:ServerBusy"]);
    let refused = ask(blob, "GET", "/box/a", &[], b"").refused(503, "ServerBusy");
    assert!(refused.text().contains("fault 1"), "{}", refused.text());
    does(&folder, &["fault", "remove", &busy]);
    does(&folder, &["fault", "add", "Get Blob", "box/a", "--cut", "5000", "--times", "1"]);
    assert_eq!(received(blob, "/box/a"), 5_000, "so many bytes, then the end");
    does(&folder, &["fault", "add", "Get Blob", "--delay", "50ms", "--times", "1"]);
    let began = std::time::Instant::now();
    assert_eq!(content(blob, "a").len(), 10_000);
    assert!(began.elapsed().as_millis() >= 50);
    does(&folder, &["fault", "add", "Get Blob", "--slow", "20000", "--times", "1"]);
    let began = std::time::Instant::now();
    assert_eq!(content(blob, "a").len(), 10_000);
    assert!(began.elapsed().as_millis() >= 200, "its second half waits for a quarter second");
    does(&folder, &["fault", "remove", "--all"]);
}

/// How many bytes of a body come before the connection ends.
fn received(blob: SocketAddr, target: &str) -> usize {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(blob).unwrap();
    let account = crate::common::http::ACCOUNT;
    let head = format!("GET /{account}{target} HTTP/1.1\r\nhost: {blob}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut all = Vec::new();
    // An end by a reset is an end, too.
    let _ = stream.read_to_end(&mut all);
    let start = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    all.len() - start
}

#[test]
fn an_open_on_the_mount_has_gates_and_other_calls_have_faults() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--share", "docs", "--mount", "docs=mnt"]);
    let path = folder.join("mnt/a");
    std::fs::write(&path, "hello").unwrap();
    let gate = does(&folder, &["gate", "add", "Mount Open", "docs/a"]);
    thread::scope(|scope| {
        let open = scope.spawn(|| std::fs::read_to_string(&path).unwrap());
        does(&folder, &["gate", "wait", &gate]);
        let gates = json(&folder.ask(&["gate", "list", "--json"]));
        assert_eq!(gates[0]["waiting"][0]["operation"], "Mount Open");
        assert_eq!(gates[0]["waiting"][0]["path"], "docs/a");
        let client = gates[0]["waiting"][0]["client"].as_str().unwrap().to_owned();
        assert!(client.contains(&format!("pid {}", std::process::id())), "{client}");
        does(&folder, &["gate", "remove", &gate]);
        assert_eq!(open.join().unwrap(), "hello");
    });
    does(&folder, &["fault", "add", "Mount Unlink", "docs/a", "--answer", "EIO", "--times", "1"]);
    let refused = std::fs::remove_file(&path).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EIO));
    std::fs::remove_file(&path).unwrap();
    for (arguments, part) in [
        (&["gate", "add", "Mount Create"][..], "the kernel holds the directory"),
        (&["gate", "add", "Mount Close"], "Mount Open, Mount Create"),
        (&["gate", "add", "Mount Write"], "needs a server that was started with --no-passthrough"),
        (&["fault", "add", "Mount Write", "--answer", "EIO"], "--no-passthrough"),
        (&["fault", "add", "Mount Open", "--drop", "after"], "has no connection"),
    ] {
        let refused = folder.ask(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(error_text(&refused).contains(part), "{arguments:?}: {}", error_text(&refused));
    }
}

#[test]
fn what_no_request_can_meet_is_refused() {
    let (folder, _server) = serve();
    for (arguments, part) in [
        (&["gate", "add", "Putt Blob"][..], "no operation is called 'Putt Blob'"),
        (&["gate", "add", "Put Blob", "--service", "queue"], "no operation"),
        (&["gate", "add", "Put Blob", "--service", "disk"], "is not a service"),
        (&["gate", "add", "Put Blob", "--account", "other"], "no account 'other'"),
        (&["gate", "add", "Put Blob", "--limit", "2h"], "an hour at most"),
        (&["gate", "add", "Put Blob", "--at", "checked"], "stop the request at received"),
        (&["gate", "add", "Put Blob", "--at", "done"], "expected received or committed"),
        (&["gate", "add", "Put Blob", "--times", "0"], "0 times is never"),
        (&["gate", "add", "Put Blob", "file:docs/a", "--service", "blob"], "not of the Blob"),
        (&["gate", "add", "Put Message", "queue:jobs"], "QUEUE/messages"),
        (&["gate", "add", "Mount Open"], "is a call on a mount: this server has none"),
        (&["gate", "wait", "7"], "no gate 7"),
        (&["gate", "remove"], "--all"),
        (&["fault", "add", "Put Blob", "--answer", "503"], "STATUS:CODE"),
        (&["fault", "add", "Put Blob", "--answer", "200:Ok"], "not the status of an error"),
        (&["fault", "add", "Put Blob", "--answer", "503:A B"], "cannot be an error code"),
        (&["fault", "add", "Put Blob", "--answer", "EIO"], "EIO is for calls on a mount"),
        (&["fault", "add", "Put Blob"], "give one of --answer, --delay"),
        (&["fault", "add", "Put Blob", "--drop", "after", "--times", "0"], "0 times is never"),
        (&["fault", "add", "Put Blob", "--slow", "0"], "never end"),
        (&["fault", "add", "Put Blob", "--drop", "after", "--probability", "2"], "from 0 to 1"),
        (&["clock", "set", "tomorrow"], "is not a time"),
    ] {
        let refused = folder.ask(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(error_text(&refused).contains(part), "{arguments:?}: {}", error_text(&refused));
    }
    assert_eq!(json(&folder.ask(&["gate", "list", "--json"])), serde_json::json!([]));
    assert_eq!(json(&folder.ask(&["fault", "list", "--json"])), serde_json::json!([]));
}

#[test]
fn a_gate_takes_the_address_of_an_object_as_commands_print_it() {
    let (folder, _server) = serve();
    let blob = folder.service("blob");
    let gate = does(&folder, &["gate", "add", "Put Blob", "blob:box/*"]);
    thread::scope(|scope| {
        let upload = scope.spawn(|| put(blob, "a", "x"));
        does(&folder, &["gate", "wait", &gate]);
        does(&folder, &["gate", "remove", &gate]);
        upload.join().unwrap().is(201);
    });
    for path in ["file:docs/a", "docs:/a"] {
        does(&folder, &["fault", "add", "*", path, "--answer", "503:ServerBusy", "--times", "1"]);
        ask(folder.listener(), "GET", "/docs/a", &[], b"").refused(503, "ServerBusy");
    }
}

#[test]
fn all_data_is_saved_restored_listed_and_removed_by_commands() {
    let (folder, _server) = serve();
    let blob = folder.service("blob");
    put(blob, "a", "first").is(201);
    let saved = json(&folder.ask(&["state", "save", "seeded", "--json"]));
    assert_eq!(saved["name"], "seeded");
    let listed = json(&folder.ask(&["state", "list", "--json"]));
    assert_eq!(listed, serde_json::json!([saved]));
    put(blob, "a", "second").is(201);
    let restored = json(&folder.ask(&["state", "restore", "seeded", "--json"]));
    assert_eq!(restored, serde_json::json!({ "restored": "seeded" }));
    assert_eq!(content(blob, "a"), "first");
    assert_eq!(does(&folder, &["state", "reset"]), "everything was removed");
    ask(blob, "GET", "/box/a", &[], b"").refused(404, "ContainerNotFound");
    assert!(does(&folder, &["state", "list"]).starts_with("seeded\t20"));
    does(&folder, &["state", "delete", "seeded"]);
    assert_eq!(does(&folder, &["state", "list"]), "");
    for (arguments, says) in [
        (["state", "restore", "seeded"], "no state 'seeded' is saved here"),
        (["state", "save", ".hidden"], "is not a valid state name"),
    ] {
        let refused = folder.ask(&arguments);
        assert!(!refused.status.success() && error_text(&refused).contains(says), "{refused:?}");
    }
}
