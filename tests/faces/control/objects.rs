//! `why`, `history` and `lease` of blobs, messages and entities: one vocabulary for all services.

use super::fixture::{Folder, Server, error_text, json, text};
use crate::common::http::{Got, ask};

const LEASE: &str = "11111111-2222-3333-4444-555555555555";

/// A server of all services without a mount, open to every request.
fn serve() -> (Folder, Server) {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--no-auth"]);
    (folder, server)
}

fn send(
    folder: &Folder,
    service: &str,
    request: (&str, &str, &[u8]),
    headers: &[(&str, &str)],
) -> Got {
    let (method, target, body) = request;
    ask(folder.service(service), method, target, headers, body)
}

fn put_blob(folder: &Folder, name: &str, body: &str, request: &str) -> String {
    let target = format!("/docs/{name}");
    let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-client-request-id", request)];
    let put = send(folder, "blob", ("PUT", &target, body.as_bytes()), &headers).is(201);
    put.header("etag").to_owned()
}

fn with_container() -> (Folder, Server) {
    let (folder, server) = serve();
    send(&folder, "blob", ("PUT", "/docs?restype=container", b""), &[]).is(201);
    (folder, server)
}

#[test]
fn why_and_history_of_a_blob_name_its_writers_oldest_first() {
    let (folder, _server) = with_container();
    put_blob(&folder, "a/b.txt", "one", "first");
    let etag = put_blob(&folder, "a/b.txt", "two", "second");
    put_blob(&folder, "other", "x", "third");
    let why = folder.ask(&["why", "blob:docs/a/b.txt"]);
    assert!(why.status.success(), "{}", error_text(&why));
    let words = text(&why);
    assert!(words.starts_with("blob:docs/a/b.txt: nothing stands in the way\n"), "{words}");
    assert!(words.contains(&format!("etag {etag}")) && words.contains("length 3"), "{words}");
    let last = words.lines().last().unwrap();
    assert!(last.contains("by Put Blob, client request second, "), "{words}");
    let history = json(&folder.ask(&["history", "blob:docs/a/b.txt", "--json"]));
    let history = history.as_array().unwrap();
    let requests: Vec<_> = history.iter().map(|change| change["client_request"].clone()).collect();
    assert_eq!(requests, ["first", "second"]);
    let latest = &history[1];
    assert_eq!(latest["etag"], *etag);
    assert_eq!(latest["object"], "blob:docs/a/b.txt");
    assert_eq!(latest["account"], "devstoreaccount1");
    assert!(latest["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{latest}");
    // The container holds its blobs, and the service its containers.
    let all = text(&folder.ask(&["history", "blob:docs"]));
    assert_eq!(all.lines().count(), 4, "{all}");
    let cells: Vec<_> = all.lines().next().unwrap().split('\t').collect();
    assert_eq!((cells[1], cells[2]), ("blob:docs", "Create Container"));
    assert_eq!(text(&folder.ask(&["history", "--last", "1"])).lines().count(), 1);
    // A blob that is gone is told with the request that deleted it.
    let by = [("x-ms-client-request-id", "deleter")];
    send(&folder, "blob", ("DELETE", "/docs/other", b""), &by).is(202);
    let gone = folder.ask(&["why", "blob:docs/other"]);
    assert_eq!(gone.status.code(), Some(2));
    let said = error_text(&gone);
    assert!(said.contains("does not exist. [latchfs: changed "), "{said}");
    assert!(said.contains("by Delete Blob, client request deleter"), "{said}");
}

#[test]
fn the_last_writer_outlives_a_restart_and_older_changes_do_not() {
    let (folder, mut server) = with_container();
    put_blob(&folder, "a", "one", "first");
    put_blob(&folder, "a", "two", "second");
    assert!(server.stop().success());
    let _server = folder.start(&["serve", "--no-mount", "--no-auth"]);
    let history = json(&folder.ask(&["history", "blob:docs/a", "--json"]));
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
    assert_eq!(history[0]["client_request"], "second");
    assert_eq!(history[0]["operation"], "Put Blob");
}

#[test]
fn the_lease_of_a_blob_or_container_is_shown_stands_in_the_way_and_is_broken() {
    let (folder, _server) = with_container();
    put_blob(&folder, "a", "one", "first");
    for (object, target) in
        [("blob:docs/a", "/docs/a?comp=lease"), ("blob:docs", "/docs?restype=container&comp=lease")]
    {
        let show = || folder.ask(&["lease", "show", object]);
        assert_eq!(text(&show()), format!("{object}: available\n"));
        let none = folder.ask(&["lease", "break", object]);
        assert_eq!(none.status.code(), Some(1), "{}", error_text(&none));
        let acquire = [
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", "-1"),
            ("x-ms-proposed-lease-id", LEASE),
        ];
        send(&folder, "blob", ("PUT", target, b""), &acquire).is(201);
        assert_eq!(text(&show()), format!("{object}: leased, infinite, ID {LEASE}\n"));
        let why = folder.ask(&["why", object, "--json"]);
        assert_eq!(why.status.code(), Some(1));
        let told: serde_json::Value = serde_json::from_slice(&why.stdout).unwrap();
        assert_eq!(told["in_the_way"][0]["rule"], "lease");
        let message = told["in_the_way"][0]["message"].as_str().unwrap();
        assert!(message.contains(" ago by Lease ") && message.contains("(acquire)"), "{message}");
        assert_eq!(told["facts"]["lease_id"], LEASE);
        let broken = json(&folder.ask(&["lease", "break", object, "--period", "0", "--json"]));
        assert_eq!(broken["was_leased"], true);
        assert_eq!(json(&folder.ask(&["lease", "show", object, "--json"]))["state"], "broken");
        assert!(folder.ask(&["why", object]).status.success());
    }
    let missing = folder.ask(&["lease", "show", "blob:docs/none"]);
    assert_eq!(missing.status.code(), Some(2));
    let unleasable = folder.ask(&["lease", "show", "queue:jobs"]);
    assert!(error_text(&unleasable).contains("has no lease"), "{}", error_text(&unleasable));
}

#[test]
fn why_of_a_message_says_who_has_it_and_until_when() {
    let (folder, _server) = serve();
    send(&folder, "queue", ("PUT", "/jobs", b""), &[]).is(201);
    let body = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    let put = send(&folder, "queue", ("POST", "/jobs/messages", body), &[]).is(201).text();
    let id = put.split("<MessageId>").nth(1).unwrap().split('<').next().unwrap();
    let object = format!("queue:jobs/{id}");
    let visible = folder.ask(&["why", &object]);
    assert!(visible.status.success(), "{}", error_text(&visible));
    assert!(text(&visible).contains("nothing stands in the way"), "{}", text(&visible));
    let by = [("x-ms-client-request-id", "consumer-7"), ("user-agent", "worker/1")];
    let target = "/jobs/messages?visibilitytimeout=3600";
    send(&folder, "queue", ("GET", target, b""), &by).is(200);
    let held = folder.ask(&["why", &object]);
    assert_eq!(held.status.code(), Some(1));
    let words = text(&held);
    assert!(words.starts_with(&format!("{object}: no Get returns it until ")), "{words}");
    let last = words.lines().last().unwrap();
    assert!(last.contains("by Get Messages, client request consumer-7, worker/1"), "{words}");
    assert!(words.contains("dequeue count 1"), "{words}");
    let queue = folder.ask(&["why", "queue:jobs"]);
    assert_eq!(queue.status.code(), Some(1));
    let words = text(&queue);
    let hidden = "queue:jobs: no Get returns 1 of its 1 messages; the first comes back at ";
    assert!(words.starts_with(hidden), "{words}");
    let last = words.lines().last().unwrap();
    assert!(last.contains("by Get Messages, client request consumer-7, worker/1"), "{words}");
    let operations = text(&folder.ask(&["history", "queue:jobs"]));
    let operations: Vec<_> =
        operations.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert_eq!(operations, ["Create Queue", "Put Message", "Get Messages"]);
    assert_eq!(folder.ask(&["why", "queue:jobs/none"]).status.code(), Some(2));
    assert_eq!(folder.ask(&["why", "queue:none"]).status.code(), Some(2));
    // One whose time ends before does not come back.
    send(&folder, "queue", ("PUT", "/short", b""), &[]).is(201);
    send(&folder, "queue", ("POST", "/short/messages?messagettl=600", body), &[]).is(201);
    let target = "/short/messages?visibilitytimeout=3600";
    send(&folder, "queue", ("GET", target, b""), &[]).is(200);
    let words = text(&folder.ask(&["why", "queue:short"]));
    assert_eq!(words.lines().next(), Some("queue:short: no Get returns 1 of its 1 messages"));
}

#[test]
fn why_and_history_of_an_entity_name_its_writers() {
    let (folder, _server) = serve();
    let json_body = [("content-type", "application/json")];
    let table = br#"{"TableName":"Rows"}"#;
    send(&folder, "table", ("POST", "/Tables", table), &json_body).is(201);
    let row = br#"{"PartitionKey":"p","RowKey":"r","n":1}"#;
    send(&folder, "table", ("POST", "/Rows", row), &json_body).is(201);
    let target = "/Rows(PartitionKey='p',RowKey='r')";
    let by = [json_body[0], ("if-match", "*"), ("x-ms-client-request-id", "merger")];
    let merged = send(&folder, "table", ("MERGE", target, br#"{"m":2}"#), &by).is(204);
    let why = json(&folder.ask(&["why", "table:rows/p/r", "--json"]));
    assert_eq!(why["facts"]["etag"], merged.header("etag"));
    assert_eq!(why["facts"]["properties"], 2);
    assert_eq!(why["changes"].as_array().unwrap().len(), 2);
    assert_eq!(why["changes"][1]["client_request"], "merger");
    let history = json(&folder.ask(&["history", "table:rows", "--json"]));
    let operations: Vec<_> =
        history.as_array().unwrap().iter().map(|change| change["operation"].clone()).collect();
    assert_eq!(operations, ["Create Table", "Insert Entity", "Merge Entity"]);
    assert_eq!(history[2]["etag"], merged.header("etag"));
    let gone = folder.ask(&["why", "table:rows/p/none"]);
    assert_eq!(gone.status.code(), Some(2));
    assert_eq!(folder.ask(&["why", "table:none/p/r"]).status.code(), Some(2));
    // A table, and a partition: nothing holds them, and their changes are known.
    for object in ["table:rows", "table:rows/p"] {
        let why = json(&folder.ask(&["why", object, "--json"]));
        assert_eq!(why["object"], object);
        let changes = why["changes"].as_array().unwrap();
        assert!(changes.iter().any(|change| change["object"] == "table:Rows/p/r"), "{why}");
    }
    assert_eq!(folder.ask(&["why", "table:none"]).status.code(), Some(2));
}

#[test]
fn an_address_that_cannot_be_meant_is_refused_with_the_form() {
    let (folder, _server) = serve();
    for object in ["table:", "queue:", "blob:"] {
        let why = folder.ask(&["why", object]);
        assert_eq!(why.status.code(), Some(2), "{object}");
        assert!(error_text(&why).contains("blob:CONTAINER[/NAME]"), "{}", error_text(&why));
    }
    let files = folder.ask(&["history", "file:docs/a"]);
    assert!(error_text(&files).contains("latchfs events"), "{}", error_text(&files));
    let nothing = folder.ask(&["history", "docs"]);
    assert!(error_text(&nothing).contains("blob:CONTAINER"), "{}", error_text(&nothing));
}
