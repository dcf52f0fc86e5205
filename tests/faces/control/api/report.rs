//! The report over HTTP and by the command: a run of two clients with keys, and what is said of it.

use std::fs;

use serde_json::{Value, json};

use super::clients::{BLOCK, add, ask, serve};
use super::fixture::{Api, body, refused};
use crate::common::http::Kept;
use crate::control::fixture::Folder;

/// A reads, B writes, A writes: without a condition, or with the `ETag` of the read.
fn run(folder: &Folder, api: &Api, has_condition: bool) {
    let [one, other] = ["A", "B"].map(|name| {
        api.delete(&format!("clients/{name}"));
        add(api, name)
    });
    let mut connection = Kept::connect(folder.service("blob")).unwrap();
    ask(&mut connection, &one, "PUT", "/box?restype=container", &[], b"");
    ask(&mut connection, &one, "PUT", "/box/a1", &[BLOCK], b"0").is(201);
    let read = ask(&mut connection, &one, "GET", "/box/a1", &[], b"").is(200);
    let etag = read.header("etag").to_owned();
    ask(&mut connection, &other, "PUT", "/box/a1", &[BLOCK], b"1").is(201);
    let condition = [BLOCK, ("if-match", &etag)];
    let headers = if has_condition { &condition[..] } else { &condition[..1] };
    ask(&mut connection, &one, "PUT", "/box/a1", headers, b"2");
}

fn findings(api: &Api, query: &str) -> Vec<Value> {
    let report = body(&api.get(&format!("report{query}")).is(200));
    report["findings"].as_array().unwrap().clone()
}

#[test]
fn a_lost_update_is_reported_with_its_rows_and_its_cure_is_not() {
    let (folder, _server, api) = serve();
    api.post("marks", &json!({ "test": "cured" })).is(201);
    run(&folder, &api, true);
    assert_eq!(findings(&api, "?level=warn"), [Value::Null; 0]);
    api.post("marks", &json!({ "test": "lost" })).is(201);
    run(&folder, &api, false);
    let found = findings(&api, "?since=lost&level=warn");
    let [lost] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&lost["rule"], &lost["level"]), (&json!("lost-update"), &json!("error")));
    assert_eq!((&lost["object"], &lost["mark"]), (&json!("blob:box/a*"), &json!("lost")));
    assert_eq!(lost["clients"], json!(["A", "B"]));
    let rows = lost["evidence"].as_array().unwrap();
    let rows: Vec<_> =
        rows.iter().map(|row| (row["client"].as_str(), row["operation"].as_str())).collect();
    let expected = [("A", "Get Blob"), ("B", "Put Blob"), ("A", "Put Blob")];
    assert_eq!(rows, expected.map(|(client, operation)| (Some(client), Some(operation))));
    // The numbers are those of the events.
    let seq = lost["evidence"][1]["seq"].as_u64().unwrap();
    let event = body(&api.get(&format!("events?after={}", seq - 1)))["events"][0].clone();
    assert_eq!((&event["client"], &event["operation"]), (&json!("B"), &json!("Put Blob")));
    // A reset ends nothing that was found.
    api.post("reset", &json!({})).is(200);
    assert_eq!(findings(&api, "?level=error").len(), 1);
    let ignore = json!({ "rule": "lost-update", "object": "blob:box/*", "why": "a test" });
    let id = body(&api.post("report/ignore", &ignore).is(201))["id"].clone();
    assert_eq!(findings(&api, "?level=error").len(), 0);
    api.delete(&format!("report/ignore/{id}")).is(200);
    assert_eq!(findings(&api, "?level=error").len(), 1);
}

/// A reads two blobs, B writes them, and A deletes them in one batch, the second on a condition.
#[test]
fn each_part_of_a_blob_batch_is_judged_by_its_own_condition() {
    let (folder, _server, api) = serve();
    let [one, other] = ["A", "B"].map(|name| add(&api, name));
    let mut connection = Kept::connect(folder.service("blob")).unwrap();
    ask(&mut connection, &one, "PUT", "/box?restype=container", &[], b"");
    let mut parts = String::new();
    for (name, condition) in [("bare", ""), ("careful", "If-Match: \"0x0\"\r\n")] {
        let target = format!("/box/{name}");
        ask(&mut connection, &other, "PUT", &target, &[BLOCK], b"0").is(201);
        ask(&mut connection, &one, "GET", &target, &[], b"").is(200);
        ask(&mut connection, &other, "PUT", &target, &[BLOCK], b"1").is(201);
        parts += "--b\r\nContent-Type: application/http\r\n\r\n";
        let line = format!("DELETE /devstoreaccount1{target} HTTP/1.1\r\n");
        parts.extend([&*line, condition, "\r\n\r\n"]);
    }
    parts += "--b--\r\n";
    let multipart = ("content-type", "multipart/mixed; boundary=b");
    let answer = ask(&mut connection, &one, "POST", "/?comp=batch", &[multipart], parts.as_bytes());
    let answer = answer.is(202).text();
    assert!(answer.contains("HTTP/1.1 202") && answer.contains("HTTP/1.1 412"), "{answer}");
    let found = findings(&api, "?level=warn");
    let [lost] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&lost["rule"], &lost["object"]), (&json!("lost-update"), &json!("blob:box/bare")));
    assert_eq!(lost["operations"], json!(["Get Blob", "Put Blob", "Blob Batch"]));
}

#[test]
fn the_parts_of_a_transaction_are_judged() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--no-auth"]);
    let api = Api::of(&folder);
    let mut connection = Kept::connect(folder.service("table")).unwrap();
    let mut send = |client: &str, method: &str, target: &str, kind: &str, content: &str| {
        let length = content.len().to_string();
        let headers = [
            ("x-latchfs-client", client),
            ("x-ms-version", "2026-10-06"),
            ("content-type", kind),
            ("content-length", &*length),
        ];
        connection.ask(method, target, &headers, content.as_bytes()).unwrap()
    };
    let json = "application/json";
    send("A", "POST", "/Tables", json, r#"{"TableName":"rows"}"#).is(201);
    send("B", "POST", "/rows", json, r#"{"PartitionKey":"p","RowKey":"r","v":0}"#).is(201);
    let target = "/rows(PartitionKey='p',RowKey='r')";
    send("A", "GET", target, json, "").is(200);
    send("B", "PUT", target, json, r#"{"v":1}"#).is(204);
    let parts = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
         --c\r\nContent-Type: application/http\r\n\r\n\
         PUT {target} HTTP/1.1\r\n\r\n{{\"v\":2}}\r\n--c--\r\n--b--\r\n"
    );
    let done = send("A", "POST", "/$batch", "multipart/mixed; boundary=b", &parts);
    assert!(done.is(202).text().contains("HTTP/1.1 204"));
    let found = findings(&api, "?level=error");
    let [lost] = &found[..] else { panic!("{found:?}") };
    assert_eq!(lost["operations"][2], "Entity Group Transaction", "{lost}");
}

#[test]
fn what_a_report_cannot_be_asked_is_said() {
    let (_folder, _server, api) = serve();
    let error = refused(api.get("report?since=none"), 404, "not_found");
    let expected = "there is no mark 'none': a mark is set by POST /api/v1/marks, and a server \
                    remembers the last 10000";
    assert_eq!(error["message"], expected);
    refused(api.get("report?level=bad"), 400, "bad_request");
    refused(api.delete("report/ignore/7"), 404, "not_found");
    for bad in [
        json!({ "rule": "none", "object": "**", "why": "x" }),
        json!({ "rule": "file", "object": " ", "why": "x" }),
        json!({ "rule": "file", "object": "**", "why": "" }),
        json!({ "rule": "file", "object": "**", "why": "x".repeat(2_000) }),
        json!({ "rule": "file", "object": "**" }),
    ] {
        refused(api.post("report/ignore", &bad), 400, "bad_request");
    }
    for number in 0..1_000 {
        let ignore = json!({ "rule": "file", "object": number.to_string(), "why": "x" });
        api.post("report/ignore", &ignore).is(201);
    }
    let more = json!({ "rule": "file", "object": "more", "why": "x" });
    let error = refused(api.post("report/ignore", &more), 503, "busy");
    assert_eq!(error["message"], "a server has at most 1000 of them: remove one");
}

#[test]
fn the_command_shows_the_report_and_its_status_says_whether_it_is_bad() {
    let (folder, _server, api) = serve();
    run(&folder, &api, false);
    let file = folder.path().join("report.xml");
    let shown = folder.ask(&["report", "--junit", file.to_str().unwrap()]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.success(), "{text}");
    assert!(text.starts_with("error: lost-update of blob:box/a*\n"), "{text}");
    assert!(text.contains("1 error, 0 warnings"), "{text}");
    let junit = fs::read_to_string(&file).unwrap();
    assert!(junit.contains("failures=\"1\""), "{junit}");
    for (level, status) in [("error", 1), ("warn", 1), ("hint", 1)] {
        let failed = folder.ask(&["report", "--json", "--fail-on", level]);
        assert_eq!(failed.status.code(), Some(status), "{level}");
        let report: Value = serde_json::from_slice(&failed.stdout).unwrap();
        assert_eq!(report["findings"][0]["rule"], "lost-update");
    }
    api.post("marks", &json!({ "test": "cured" })).is(201);
    run(&folder, &api, true);
    let passed = folder.ask(&["report", "--since", "cured", "--fail-on", "warn"]);
    assert_eq!(passed.status.code(), Some(0), "{}", String::from_utf8_lossy(&passed.stdout));
    let unknown = folder.ask(&["report", "--since", "none"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no mark 'none'"));
}
