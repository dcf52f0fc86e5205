//! The stream of events: all services in one order, by page and as it comes.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use latchfs::api::FOLLOWERS_MAX;
use latchfs::clock::{SystemClock, TimeSource as _};
use latchfs::journal::row::TEXT_MAX;
use latchfs::rules::time::rfc1123;
use serde_json::{Value, json};

use super::fixture::{Api, NAME, body, get_file, put_blob, refused, serve};
use crate::common::http::ask;
use crate::common::need;
use crate::common::served::wait_for;
use crate::control::fixture::Folder;

/// The events of the stream that a query asks for.
fn events(api: &Api, query: &str) -> Vec<Value> {
    body(&api.get(&format!("events?{query}")).is(200))["events"].as_array().unwrap().clone()
}

/// The last event that a query asks for.
fn last(api: &Api, query: &str) -> Value {
    events(api, query).pop().unwrap_or_else(|| panic!("no event for {query}"))
}

#[test]
fn requests_of_all_services_are_in_one_order() {
    let (folder, _server, api) = serve(&[]);
    let queue = folder.service("queue");
    let table = folder.service("table");
    ask(queue, "PUT", "/jobs", &[], b"").is(201);
    let entity = br#"{"TableName":"Rows"}"#;
    ask(table, "POST", "/Tables", &[("content-type", "application/json")], entity).is(201);
    let headers = [("x-ms-client-request-id", "mine"), ("user-agent", "tester/1")];
    ask(folder.service("blob"), "GET", "/box/none%20yet", &headers, b"").is(404);
    let rows = events(&api, "kind=request");
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
            (text("service"), text("operation"), text("object"), row["status"].clone())
        })
        .collect();
    let row = |service: &str, operation: &str, object: &str, status: u16| {
        (service.to_owned(), operation.to_owned(), object.to_owned(), json!(status))
    };
    assert_eq!(
        told,
        [
            row("file", "Create File", "file:docs/a.txt", 201),
            row("blob", "Create Container", "blob:box", 201),
            row("queue", "Create Queue", "queue:jobs", 201),
            row("table", "Create Table", "-", 201),
            row("blob", "Get Blob", "blob:box/none yet", 404),
        ]
    );
    let row = &rows[4];
    assert_eq!((&row["client_request"], &row["user_agent"]), (&json!("mine"), &json!("tester/1")));
    assert_eq!(
        (&row["code"], &row["account"]),
        (&json!("BlobNotFound"), &json!("devstoreaccount1"))
    );
    assert!(row["connection"].as_str().unwrap().starts_with("REST 127.0.0.1:"), "{row}");
    assert_eq!(row["answer"], "sent");
    assert!(row["started"].as_str() <= row["system"].as_str(), "{row}");
    assert!(row["duration_us"].is_u64() && row["request_id"].is_string(), "{row}");
    let message = row["refusal"]["message"].as_str().unwrap();
    assert!(message.starts_with("The specified blob does not exist."), "{message}");
    let numbers: Vec<_> = events(&api, "").iter().map(|row| row["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "without gaps");
    assert_eq!(events(&api, "service=queue").len(), 1);
    assert!(events(&api, "account=devstoreaccount1&kind=request").len() == 5);
    assert!(events(&api, "account=other").is_empty());
}

#[test]
fn a_refusal_names_the_one_in_the_way() {
    let (folder, _server, api) = serve(&[]);
    let held = body(&api.post("holds", &json!({ "path": "a.txt" })).is(201));
    get_file(&folder, "a.txt").refused(409, "SharingViolation");
    let granted = last(&api, "kind=granted");
    assert_eq!((&granted["handle"], &granted["program"]), (&held["handle"], &json!(NAME)));
    assert_eq!(granted["object"], "file:docs/a.txt");
    let logged = last(&api, "kind=refused");
    assert_eq!(logged["holder"]["handle"], held["handle"]);
    let request = last(&api, "kind=request");
    assert_eq!(request["status"], 409);
    let refusal = &request["refusal"];
    assert_eq!(
        (&refusal["rule"], &refusal["code"]),
        (&json!("sharing_violation"), &json!("SharingViolation"))
    );
    assert_eq!(refusal["holder"]["program"], NAME);
    assert!(logged["seq"].as_u64() < request["seq"].as_u64());
    api.delete(&format!("holds/{}", held["handle"])).is(200);
    assert_eq!(last(&api, "kind=closed,force-closed")["handle"], held["handle"]);
    // The log of the command has refusals alone, as before.
    let log = String::from_utf8(folder.ask(&["events", "--json"]).stdout).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    put_blob(&folder, "b", &[("x-ms-client-request-id", "first")], b"1").is(201);
    put_blob(&folder, "b", &[("if-match", "\"0x1\"")], b"2").refused(412, "ConditionNotMet");
    let refusal = last(&api, "kind=request")["refusal"].clone();
    assert!(refusal["message"].as_str().unwrap().contains("client request first"), "{refusal}");
    assert_eq!(refusal["rule"], "condition");
    let logged = last(&api, "kind=refused");
    assert_eq!((&logged["object"], &logged["service"]), (&json!("blob:box/b"), &json!("blob")));
}

/// Sends a Put Blob of an empty blob; its answer is not read.
fn start_put(folder: &Folder, name: &str) -> TcpStream {
    let blob = folder.service("blob");
    let mut stream = TcpStream::connect(blob).unwrap();
    write!(
        stream,
        "PUT /devstoreaccount1/box/{name} HTTP/1.1\r\nhost: {blob}\r\nx-ms-version: 2026-10-06\r\n\
         x-ms-blob-type: BlockBlob\r\ncontent-length: 0\r\nuser-agent: tester/1\r\n\r\n"
    )
    .unwrap();
    stream
}

#[test]
fn a_request_whose_client_goes_away_at_a_gate_is_abandoned() {
    let (folder, _server, api) = serve(&[]);
    let gate = json!({ "operation": "Put Blob" });
    let id = body(&api.post("gates", &gate).is(201))["gate"].clone();
    let client = start_put(&folder, "a");
    api.get(&format!("gates/{id}/wait")).is(200);
    let row = body(&api.get(&format!("gates/{id}")).is(200));
    assert_eq!(row["waiting"][0]["user_agent"], "tester/1");
    assert_eq!(row["waiting"][0]["pid"], std::process::id());
    drop(client);
    let gone = last(&api, "kind=abandoned&wait_ms=20000");
    let gated = last(&api, "kind=gated");
    assert_eq!((&gone["gate"], &gone["request"]), (&id, &gated["request"]));
    assert_eq!((&gone["object"], &gone["user_agent"]), (&json!("blob:box/a"), &json!("tester/1")));
    assert_eq!(gone["pid"], std::process::id(), "who has hung up was known before");
    assert!(events(&api, "kind=released").is_empty());
    ask(folder.service("blob"), "GET", "/box/a", &[], b"").is(404);
}

#[test]
fn no_secret_of_a_refused_request_is_in_the_stream() {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    let api = Api::of(&folder);
    let date = rfc1123(SystemClock.now());
    let headers = [
        ("x-ms-date", &*date),
        ("authorization", "SharedKey devstoreaccount1:AAAA"),
        ("x-ms-copy-source", "https://real.example/box/b?sv=1&s%69g=SECRET1"),
        ("x-ms-copy-source-authorization", "Bearer SECRET2"),
        ("x-ms-encryption-key", "SECRET3"),
        ("x-ms-source-encryption-key", "SECRET4"),
    ];
    let target = "/box/b?sig=SECRET5";
    let got = ask(folder.service("blob"), "PUT", target, &headers, b"");
    let got = got.refused(403, "AuthenticationFailed");
    // The client is told the text that the server signed.
    assert!(got.text().contains("x-ms-copy-source:https://real.example/box/b?sv=1"), "{got:?}");
    assert!(!got.text().contains("SECRET"), "{}", got.text());
    let told = last(&api, "kind=request");
    assert_eq!((&told["status"], &told["code"]), (&json!(403), &json!("AuthenticationFailed")));
    let message = told["refusal"]["message"].as_str().unwrap();
    assert!(message.starts_with("Server failed to authenticate the request."), "{message}");
    assert!(!message.contains("real.example") && !told.to_string().contains("SECRET"), "{told}");
    assert!(!server.log().contains("SECRET"));
}

#[test]
fn what_an_unsigned_request_adds_to_the_stream_is_bounded() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    let api = Api::of(&folder);
    let long = "a".repeat(50_000);
    let headers = [("x-ms-date", &*long), ("authorization", "SharedKey devstoreaccount1:AAAA")];
    for service in ["file", "blob", "queue"] {
        for (path, headers) in [(&*long, &[][..]), ("b", &headers)] {
            ask(folder.service(service), "GET", &format!("/box/{path}"), headers, b"");
            let told = last(&api, "kind=request").to_string();
            assert!(told.contains("box"), "{told}");
            assert!(told.len() < 4 * TEXT_MAX, "{service}: {}", told.len());
        }
    }
}

#[test]
fn gates_faults_and_the_clock_are_in_the_stream_with_those_who_changed_them() {
    let (folder, _server, api) = serve(&[]);
    let from = last(&api, "")["seq"].clone();
    let gate = json!({ "operation": "Put Blob", "times": 1 });
    let id = body(&api.post("gates", &gate).is(201))["gate"].clone();
    std::thread::scope(|scope| {
        let put = scope.spawn(|| put_blob(&folder, "a", &[], b"1").is(201));
        api.get(&format!("gates/{id}/wait")).is(200);
        api.post(&format!("gates/{id}/release"), &json!({})).is(200);
        put.join().unwrap();
    });
    api.delete(&format!("gates/{id}")).is(200);
    let fault = json!({ "operation": "Put Blob", "action": "drop_after", "times": 1 });
    let fault = body(&api.post("faults", &fault).is(201))["fault"].clone();
    let lost = start_put(&folder, "lost");
    assert_eq!(BufReader::new(lost).lines().count(), 0, "the acknowledgement is lost");
    api.delete("faults").is(200);
    api.post("clock", &json!({ "freeze": true })).is(200);
    let rows = events(&api, &format!("after={from}"));
    let kinds: Vec<_> = rows.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "gate-added",
            "gated",
            "released",
            "request",
            "gate-removed",
            "fault-added",
            "fault",
            "request",
            "fault-removed",
            "clock",
        ]
    );
    let [added, gated, released, request, _, _, met, dropped, _, clock] = rows.as_slice() else {
        panic!("{rows:?}")
    };
    assert_eq!(
        (&added["id"], &added["client"]),
        (&id, &json!(format!("{NAME} through the HTTP API")))
    );
    assert_eq!((&gated["gate"], &gated["at"]), (&id, &json!("received")));
    assert_eq!((&gated["object"], &gated["request"]), (&json!("blob:box/a"), &released["request"]));
    assert!(request["duration_us"].as_u64().unwrap() > 0);
    assert_eq!((&met["fault"], &met["object"]), (&fault, &json!("blob:box/lost")));
    assert!(dropped["status"].is_null() && dropped["refusal"].is_null(), "{dropped}");
    assert!(clock["detail"].as_str().unwrap().contains("stands"), "{clock}");
    // A clock that stands stops neither the numbers nor the system's time.
    put_blob(&folder, "b", &[], b"1").is(201);
    put_blob(&folder, "c", &[], b"1").is(201);
    // A command is named by its program.
    folder.ask(&["clock", "run"]);
    let by = last(&api, "kind=clock")["client"].clone();
    assert!(by.as_str().unwrap().starts_with("latchfs (pid "), "{by}");
    let [.., one, other] = &events(&api, "kind=request")[..] else { panic!() };
    assert_eq!(one["time"], other["time"]);
    assert!(one["system"].as_str() < other["system"].as_str());
}

/// A client that follows the stream.
struct Follower(BufReader<TcpStream>);

impl Follower {
    fn start(api: &Api, query: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(api.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let addr = api.addr;
        // 1.0: the events are not in chunks.
        write!(
            stream,
            "GET /api/v1/events?{query} HTTP/1.0\r\nhost: {addr}\r\naccept: text/event-stream\r\n\
             {headers}\r\n"
        )
        .unwrap();
        Self(BufReader::new(stream))
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.0.read_line(&mut line).unwrap() > 0).then(|| line.trim_end().to_owned())
    }

    /// The status of the answer; its head is read.
    fn status(&mut self) -> u16 {
        let status = self.line().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        while self.line().is_some_and(|line| !line.is_empty()) {}
        status
    }

    /// The next event: its number, kind and content.
    fn next(&mut self) -> (String, String, Value) {
        let (mut id, mut kind) = (String::new(), String::new());
        loop {
            let line = self.line().expect("the stream goes on");
            match line.split_once(": ") {
                Some(("id", value)) => value.clone_into(&mut id),
                Some(("event", value)) => value.clone_into(&mut kind),
                Some(("data", value)) => return (id, kind, serde_json::from_str(value).unwrap()),
                _ => {}
            }
        }
    }
}

#[test]
fn a_follower_is_sent_events_as_they_come_and_goes_on_where_it_was() {
    let (folder, _server, api) = serve(&[]);
    let mut follower = Follower::start(&api, "kind=request&service=blob", "");
    assert_eq!(follower.status(), 200);
    let (_, kind, made) = follower.next();
    assert_eq!((kind.as_str(), &made["operation"]), ("request", &json!("Create Container")));
    put_blob(&folder, "a", &[], b"1").is(201);
    let (id, _, put) = follower.next();
    assert_eq!((&put["object"], id), (&json!("blob:box/a"), put["seq"].to_string()));
    drop(follower);
    put_blob(&folder, "b", &[], b"1").is(201);
    let resumed = format!("last-event-id: {}\r\n", put["seq"]);
    let mut follower = Follower::start(&api, "", &resumed);
    assert_eq!(follower.status(), 200);
    assert_eq!(follower.next().2["object"], "blob:box/b");
    // A number of another run: all that is kept.
    let mut follower = Follower::start(&api, "after=999999", "");
    assert_eq!(follower.status(), 200);
    assert_eq!(follower.next().0, "1");
}

#[test]
fn a_page_of_events_waits_for_the_first_that_fits() {
    let (folder, _server, api) = serve(&[]);
    let from = last(&api, "")["seq"].clone();
    let waited = std::thread::scope(|scope| {
        let wait =
            scope.spawn(|| events(&api, &format!("after={from}&service=queue&wait_ms=20000")));
        put_blob(&folder, "a", &[], b"1").is(201);
        ask(folder.service("queue"), "PUT", "/jobs", &[], b"").is(201);
        wait.join().unwrap()
    });
    assert_eq!(waited[0]["operation"], "Create Queue");
    let page = body(&api.get("events?after=1&wait_ms=1&kind=undeleted,removed").is(200));
    assert_eq!((&page["events"], &page["lost"]), (&json!([]), &json!(0)));
    assert_eq!(page["last"], page["newest"]);
    refused(api.get("events?after=x"), 400, "bad_request");
    let misspelt = refused(api.get("events?kind=request,nonsense"), 400, "bad_request");
    let message = misspelt["message"].as_str().unwrap();
    assert!(message.starts_with("there is no kind 'nonsense', only request, "), "{message}");
    for empty in ["events?kind=", "events?kind=request,"] {
        refused(api.get(empty), 400, "bad_request");
    }
    refused(api.get("events?service=blobs"), 400, "bad_request");
    refused(api.get("events?wait_ms=600001"), 400, "bad_request");
}

#[test]
fn so_many_follow_and_no_more_and_none_that_stalls_keeps_a_request_waiting() {
    let (folder, _server, api) = serve(&[]);
    let mut followers: Vec<_> = (0..FOLLOWERS_MAX).map(|_| Follower::start(&api, "", "")).collect();
    assert!(followers.iter_mut().all(|follower| follower.status() == 200));
    assert_eq!(Follower::start(&api, "", "").status(), 503);
    // None of them reads.
    for number in 0..300 {
        put_blob(&folder, &format!("a{number}"), &[], b"1").is(201);
    }
    assert_eq!(events(&api, "kind=request&after=300").len(), 2);
    followers.pop();
    wait_for("a place", || (Follower::start(&api, "", "").status() == 200).then_some(()));
}

#[test]
fn a_page_that_follows_sends_the_token_in_its_address() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--account", "private:c2VjcmV0"]);
    let api = Api::of(&folder);
    let token = api.token.clone().unwrap();
    assert_eq!(Follower::start(&api, &format!("token={token}"), "").status(), 200);
    assert_eq!(Follower::start(&api, "token=wrong", "").status(), 401);
    assert_eq!(Follower::start(&api, "", "").status(), 401);
}

#[test]
fn opens_on_the_mount_are_in_the_stream() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let api = Api::of(&folder);
    drop(folder.file("a", "text"));
    let granted = wait_for("the open", || {
        events(&api, "kind=granted").into_iter().find(|row| row["object"] == "file:docs/a")
    });
    assert_eq!(granted["pid"], std::process::id());
    wait_for("the close", || {
        events(&api, "kind=closed").into_iter().find(|row| row["handle"] == granted["handle"])
    });
}
