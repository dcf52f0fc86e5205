//! Names of clients: the key that signs a request or its SAS names the client, on any connection.

use std::net::{IpAddr, Ipv4Addr};

use latchfs::clock::{SystemClock, TimeSource as _};
use latchfs::http::auth::{CLIENTS_MAX, Credential, RequestView, Scheme, sign};
use latchfs::rules::time::rfc1123;
use serde_json::{Value, json};

use super::fixture::{Api, body, refused};
use crate::common::http::{ACCOUNT, Got, Kept};
use crate::control::fixture::{Folder, Server};
use crate::service::account_sas;

pub fn serve() -> (Folder, Server, Api) {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    let api = Api::of(&folder);
    (folder, server, api)
}

/// Adds a client; the account with its key.
pub fn add(api: &Api, name: &str) -> Credential {
    let added = body(&api.post("clients", &json!({ "name": name })).is(201));
    format!("{ACCOUNT}:{}", added["key"].as_str().unwrap()).parse().unwrap()
}

/// Sends a request on a connection, signed with a key.
pub fn ask(
    connection: &mut Kept,
    key: &Credential,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    content: &[u8],
) -> Got {
    let now = SystemClock.now();
    let (date, length) = (rfc1123(now), content.len().to_string());
    let path = format!("/{ACCOUNT}{target}");
    let (raw_path, raw_query) = path.split_once('?').unwrap_or((&path, ""));
    let fixed =
        [("x-ms-date", &*date), ("x-ms-version", "2026-10-06"), ("content-length", &*length)];
    let all = [&fixed[..], headers].concat();
    let client_ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let https = false;
    let view = RequestView {
        method,
        raw_path,
        raw_query,
        headers: &all,
        now,
        outside: now,
        https,
        client_ip,
    };
    let signature = sign(&view, key, Scheme::SharedKey);
    let all = [&all[..], &[("authorization", &*signature)]].concat();
    connection.ask(method, target, &all, content).unwrap()
}

/// The client and how it is known, for each request after number `after`.
fn names(api: &Api, after: u64) -> Vec<(String, String)> {
    let rows = body(&api.get(&format!("events?kind=request&after={after}")).is(200));
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let rows = rows["events"].as_array().unwrap();
    rows.iter().map(|row| (text(row, "client"), text(row, "client_by"))).collect()
}

pub const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

#[test]
fn the_key_that_signs_names_the_client_on_a_shared_connection() {
    let (folder, _server, api) = serve();
    let keys = ["A", "B"].map(|name| add(&api, name));
    let mut connection = Kept::connect(folder.service("blob")).unwrap();
    ask(&mut connection, &keys[0], "PUT", "/box?restype=container", &[], b"").is(201);
    for key in [&keys[1], &keys[0], &keys[1]] {
        ask(&mut connection, key, "PUT", "/box/a", &[BLOCK], b"x").is(201);
    }
    let own = Credential::development();
    ask(&mut connection, &own, "GET", "/box/a", &[], b"").is(200);
    let found = names(&api, 0);
    let [first, .., last] = &found[..] else { panic!("{found:?}") };
    let known = |name: &str| (name.to_owned(), "key".to_owned());
    assert_eq!(found[..4], ["A", "B", "A", "B"].map(known));
    assert!(first != last && last.1 == "process", "{last:?}");
    // A SAS signed with a client's key names the client, a header goes after the key.
    let sas = account_sas("bqtf", "sco", "rwcl").token(&keys[1]);
    let after = api_newest(&api);
    let target = format!("/box/a?{sas}");
    connection.ask("GET", &target, &[("x-latchfs-client", "C")], b"").unwrap().is(200);
    ask(&mut connection, &own, "GET", "/box/a", &[("x-latchfs-client", "C")], b"").is(200);
    ask(&mut connection, &own, "GET", "/box/a", &[("traceparent", TRACE)], b"").is(200);
    let text = |pair: (&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
    // A trace is a piece of work, and no client.
    let expected = [("B", "key"), ("C", "header"), (&*last.0, "process")];
    assert_eq!(names(&api, after), expected.map(text));
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn api_newest(api: &Api) -> u64 {
    body(&api.get("events").is(200))["newest"].as_u64().unwrap()
}

#[test]
fn a_refusal_and_the_history_name_the_client_in_each_service() {
    let (folder, _server, api) = serve();
    let [one, other] = ["A", "B"].map(|name| add(&api, name));
    let mut blob = Kept::connect(folder.service("blob")).unwrap();
    ask(&mut blob, &one, "PUT", "/box?restype=container", &[], b"").is(201);
    ask(&mut blob, &one, "PUT", "/box/a", &[BLOCK], b"x").is(201);
    let condition = [BLOCK, ("if-match", "\"0x1\"")];
    let got = ask(&mut blob, &other, "PUT", "/box/a", &condition, b"y");
    let got = got.refused(412, "ConditionNotMet");
    assert!(got.text().contains("by Put Blob, client A, from 127.0.0.1:"), "{}", got.text());
    let logged = body(&api.get("events?kind=refused"))["events"][0].clone();
    assert_eq!((&logged["program"], &logged["client_by"]), (&json!("B"), &json!("key")));
    let mut queue = Kept::connect(folder.service("queue")).unwrap();
    ask(&mut queue, &one, "PUT", "/jobs", &[], b"").is(201);
    let message = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    ask(&mut queue, &one, "POST", "/jobs/messages", &[], message).is(201);
    let got = ask(&mut queue, &one, "GET", "/jobs/messages", &[], b"").is(200);
    let id = got.text().split("MessageId>").nth(1).unwrap().trim_end_matches("</").to_owned();
    let target = format!("/jobs/messages/{id}?popreceipt=AgAAAAMAAAAAAAAAnFo2qbWS2AE%3D");
    let got = ask(&mut queue, &other, "DELETE", &target, &[], b"");
    assert!(got.text().contains("by Get Messages, client A, from"), "{}", got.text());
    // The Table service signs another text: a SAS.
    let mut table = Kept::connect(folder.service("table")).unwrap();
    let mut post = |key: &Credential, target: &str, content: &[u8]| {
        let target = format!("{target}?{}", account_sas("t", "sco", "rwdlacu").token(key));
        let headers = [("content-type", "application/json"), ("accept", "application/json")];
        table.ask("POST", &target, &headers, content).unwrap()
    };
    post(&one, "/Tables", br#"{"TableName":"rows"}"#).is(201);
    let entity = br#"{"PartitionKey":"p","RowKey":"r"}"#;
    post(&one, "/rows", entity).is(201);
    let got = post(&other, "/rows", entity);
    assert!(got.text().contains("by Insert Entity, client A, from"), "{}", got.text());
    let changes = body(&api.get("history").is(200))["changes"].clone();
    assert!(changes.as_array().unwrap().iter().all(|change| change["client"] == "A"), "{changes}");
    let why = folder.ask(&["why", "blob:box/a"]);
    assert!(String::from_utf8(why.stdout).unwrap().contains("by Put Blob, client A, from"));
}

#[test]
fn clients_are_listed_and_removed_and_survive_a_reset() {
    let (folder, _server, api) = serve();
    assert_eq!(api.token, None, "keys of clients are no reason for a token");
    let key = add(&api, "A");
    api.post("reset", &json!({})).is(200);
    let listed = body(&api.get("clients").is(200))["clients"].clone();
    assert_eq!(listed[0]["name"], "A");
    let own = body(&api.get("connection"))["connection_string"].as_str().unwrap().to_owned();
    let string = listed[0]["connection_string"].as_str().unwrap();
    let parts = |string: &str| string.split(';').map(str::to_owned).collect::<Vec<_>>();
    let differ: Vec<_> =
        parts(&own).into_iter().zip(parts(string)).filter(|(a, b)| a != b).collect();
    assert_eq!(differ.len(), 1, "{differ:?}");
    assert_eq!(differ[0].1, format!("AccountKey={}", listed[0]["key"].as_str().unwrap()));
    let mut connection = Kept::connect(folder.service("blob")).unwrap();
    ask(&mut connection, &key, "PUT", "/box?restype=container", &[], b"").is(201);
    let error = refused(api.post("clients", &json!({ "name": "A" })), 409, "exists");
    assert_eq!(error["message"], "there is a client A already: remove it, or take another name");
    for bad in ["", "a b", "ä"] {
        refused(api.post("clients", &json!({ "name": bad })), 400, "bad_request");
    }
    let removed = body(&api.delete("clients/A").is(200));
    assert_eq!(removed, json!({ "removed": "A" }));
    refused(api.delete("clients/A"), 404, "not_found");
    ask(&mut connection, &key, "GET", "/box/a", &[], b"").refused(403, "AuthenticationFailed");
    for number in 0..CLIENTS_MAX {
        add(&api, &format!("worker-{number}"));
    }
    let error = refused(api.post("clients", &json!({ "name": "more" })), 503, "busy");
    assert_eq!(error["message"], "an account has at most 128 clients: remove one");
}

#[test]
fn commands_add_list_and_remove_clients() {
    let (folder, _server, _api) = serve();
    let does = |arguments: &[&str]| {
        let done = folder.ask(arguments);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let string = does(&["client", "add", "A"]);
    assert!(string.starts_with("DefaultEndpointsProtocol=http;"), "{string}");
    assert_eq!(does(&["client", "list"]), format!("A\t{string}"));
    let taken = folder.ask(&["client", "add", "A"]);
    assert_eq!(taken.status.code(), Some(2));
    assert_eq!(does(&["client", "remove", "A"]), "client A was removed\n");
    assert_eq!(does(&["client", "list"]), "");
}

#[test]
fn a_mark_parts_the_events_of_tests() {
    let (_folder, _server, api) = serve();
    let mark = body(&api.post("marks", &json!({ "test": "test_one" })).is(201))["mark"].clone();
    let row = body(&api.get("events?kind=mark").is(200))["events"][0].clone();
    assert_eq!((&row["seq"], &row["detail"]), (&mark, &json!("test_one")));
    refused(api.post("marks", &json!({ "test": " " })), 400, "bad_request");
    refused(api.post("marks", &json!({})), 400, "bad_request");
}
