//! Refusals of blobs, queues and tables in the log of events and in the metrics.

use std::net::SocketAddr;

use serde_json::Value;

use super::events;
use crate::common::http::{Got, ask, ask_as_it_is};
use crate::common::served::Served;

const LEASE: &str = "00000000-0000-4000-8000-00000000000a";

fn serve() -> Served {
    Served::start(&["--no-mount", "--no-auth", "--admin", "127.0.0.1:0"])
}

/// Where a service listens.
fn place(served: &Served, service: &str) -> SocketAddr {
    let text = served.told("connection_string");
    let rest = text.split(&format!("{service}Endpoint=http://")).nth(1).unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

/// The refusals that are in the log, as `rule service:object code`.
fn refusals(events: &[Value]) -> Vec<String> {
    let text = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
    let refused = events.iter().filter(|event| event["event"] == "refused");
    let shown = |event: &Value| {
        let object = format!("{}:{}", text(event, "service"), text(event, "path"));
        format!("{} {object} {}", text(event, "rule"), text(event, "code"))
    };
    refused.map(shown).collect()
}

/// The counter of a service and a rule.
fn counted(served: &Served, service: &str, rule: &str) -> u64 {
    let admin: SocketAddr = served.told("admin").split('/').nth(2).unwrap().parse().unwrap();
    let text = ask_as_it_is(admin, &admin.to_string(), "GET", "/metrics", &[], b"").is(200).text();
    let labels = format!(r#"account="devstoreaccount1",service="{service}",rule="{rule}""#);
    let name = format!("latchfs_refusals_total{{{labels}}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&name));
    value.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

#[test]
fn conditions_and_leases_that_refuse_requests_to_blobs_are_told_of_and_counted() {
    let served = serve();
    let blob = place(&served, "Blob");
    let send = |method: &str, target: &str, headers: &[(&str, &str)]| -> Got {
        ask(blob, method, target, headers, b"")
    };
    let block = ("x-ms-blob-type", "BlockBlob");
    send("PUT", "/docs?restype=container", &[]).is(201);
    let first = send("PUT", "/docs/a/b", &[block, ("x-ms-client-request-id", "writer-1")]).is(201);
    let other = ("if-match", "\"other\"");
    let by = ("x-ms-client-request-id", "late-2");
    send("PUT", "/docs/a/b", &[block, other, by]).refused(412, "ConditionNotMet");
    send("PUT", "/docs/a/b", &[block, ("if-none-match", "*")]).refused(409, "BlobAlreadyExists");
    // What has not changed is no refusal; what is missing or malformed is one, and no conflict.
    send("GET", "/docs/a/b", &[("if-none-match", first.header("etag"))]).is(304);
    send("GET", "/docs/none", &[]).is(404);
    send("PUT", "/docs/a/b", &[]).is(400);
    let acquire = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    for target in ["/docs/a/b?comp=lease", "/docs?restype=container&comp=lease"] {
        send("PUT", target, &acquire).is(201);
    }
    send("DELETE", "/docs/a/b", &[]).refused(412, "LeaseIdMissing");
    send("DELETE", "/docs?restype=container", &[]).refused(412, "LeaseIdMissing");
    // A part of a batch is refused by itself.
    let part = "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
                DELETE /devstoreaccount1/docs/a/b HTTP/1.1\r\n\r\n\r\n--b--\r\n";
    let multipart = [("content-type", "multipart/mixed; boundary=b")];
    let batch = ask(blob, "POST", "/?comp=batch", &multipart, part.as_bytes()).is(202).text();
    assert!(batch.contains("LeaseIdMissing"), "{batch}");
    // An account that there is not.
    ask_as_it_is(blob, &blob.to_string(), "GET", "/other/docs", &[], b"").is(400);
    let all = events(&served, &[]);
    let expected = [
        "condition blob:docs/a/b ConditionNotMet",
        "condition blob:docs/a/b BlobAlreadyExists",
        "not_found blob:docs/none BlobNotFound",
        "invalid blob:docs/a/b MissingRequiredHeader",
        "lease blob:docs/a/b LeaseIdMissing",
        "lease blob:docs LeaseIdMissing",
        "lease blob:docs/a/b LeaseIdMissing",
        "invalid blob: InvalidUri",
    ];
    assert_eq!(refusals(&all), expected);
    // An object as it is printed, and what holds it.
    assert_eq!(refusals(&events(&served, &["blob:docs/a/b"])).len(), 5);
    assert_eq!(refusals(&events(&served, &["blob:docs"])).len(), 7);
    assert!(events(&served, &["blob:other"]).is_empty());
    assert!(events(&served, &["queue:"]).is_empty());
    let first = &all[0];
    assert_eq!((&first["status"], &first["operation"]), (&412.into(), &"Put Blob".into()));
    assert!(first["client"].as_str().unwrap().ends_with(", request late-2"), "{first}");
    assert!(first["message"].as_str().unwrap().contains("client request writer-1"), "{first}");
    assert_eq!(counted(&served, "blob", "condition"), 2);
    assert_eq!(counted(&served, "blob", "lease"), 3);
    assert_eq!(counted(&served, "table", "condition"), 0);
    let shown = served.latchfs(&["events", "--control", served.told("control")]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line = shown.lines().find(|line| line.contains("ConditionNotMet")).unwrap();
    assert!(line.contains("\tblob:docs/a/b\t") && line.contains("[ConditionNotMet]"), "{line}");
}

#[test]
fn stale_etags_of_entities_and_stale_receipts_of_messages_are_told_of_and_counted() {
    let served = serve();
    let (table, queue) = (place(&served, "Table"), place(&served, "Queue"));
    let json = ("content-type", "application/json");
    ask(table, "POST", "/Tables", &[json], br#"{"TableName":"rows"}"#).is(201);
    let entity = br#"{"PartitionKey":"p","RowKey":"r"}"#;
    ask(table, "POST", "/rows", &[json], entity).is(201);
    ask(table, "POST", "/rows", &[json], entity).is(409);
    let stale = ("if-match", "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"");
    let target = "/rows(PartitionKey='p',RowKey='r')";
    ask(table, "PUT", target, &[json, stale], b"{}").is(412);
    let transaction = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
         --c\r\nContent-Type: application/http\r\n\r\n\
         PUT /rows(PartitionKey='p',RowKey='new') HTTP/1.1\r\n\r\n{{}}\r\n\
         --c\r\nContent-Type: application/http\r\n\r\n\
         PUT {target} HTTP/1.1\r\nIf-Match: {}\r\n\r\n{{}}\r\n--c--\r\n--b--\r\n",
        stale.1
    );
    let multipart = [("content-type", "multipart/mixed; boundary=b")];
    let got = ask(table, "POST", "/$batch", &multipart, transaction.as_bytes()).is(202).text();
    assert!(got.contains("HTTP/1.1 412"), "{got}");
    ask(queue, "PUT", "/jobs", &[], b"").is(201);
    let text = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    let put = ask(queue, "POST", "/jobs/messages", &[], text).is(201).text();
    let id = put.split("<MessageId>").nth(1).unwrap().split('<').next().unwrap();
    let stale = format!("/jobs/messages/{id}?popreceipt=stale");
    ask(queue, "DELETE", &stale, &[], b"").refused(400, "PopReceiptMismatch");
    let expected = [
        "condition table:rows/p/r EntityAlreadyExists".to_owned(),
        "condition table:rows/p/r UpdateConditionNotSatisfied".to_owned(),
        "condition table:rows/p/r UpdateConditionNotSatisfied".to_owned(),
        format!("receipt queue:jobs/{id} PopReceiptMismatch"),
    ];
    assert_eq!(refusals(&events(&served, &[])), expected);
    assert_eq!(counted(&served, "table", "condition"), 3);
    assert_eq!(counted(&served, "queue", "receipt"), 1);
}

#[test]
fn every_request_that_is_answered_with_an_error_is_told_of_once_whatever_its_service() {
    let served = Served::start(&["--no-mount", "--admin", "off"]);
    let (blob, queue) = (place(&served, "Blob"), place(&served, "Queue"));
    let (table, file) = (place(&served, "Table"), place(&served, "File"));
    let with = |of: &str| served.latchfs(&["mk", of]).output().unwrap();
    for object in ["blob:docs", "queue:jobs", "table:rows", "file:things"] {
        assert!(with(object).status.success(), "{object}");
    }
    // By another key.
    let wrong = [("authorization", "SharedKey devstoreaccount1:AAAA")];
    ask(blob, "GET", "/docs/a", &wrong, b"").is(403);
    ask(queue, "GET", "/jobs/messages", &wrong, b"").is(403);
    ask(table, "GET", "/rows()", &wrong, b"").is(403);
    ask(file, "GET", "/things/a/b", &wrong, b"").is(403);
    // Signed: the commands use the services' own endpoints.
    for object in ["blob:docs/none", "queue:none", "table:rows/p/r", "file:things/none"] {
        assert!(!served.latchfs(&["get", object]).output().unwrap().status.success(), "{object}");
    }
    for object in ["blob:docs", "table:rows", "file:things"] {
        assert!(!with(object).status.success(), "{object}");
    }
    let shown = refusals(&events(&served, &[]));
    let expected = [
        "denied blob:docs/a AuthenticationFailed",
        "denied queue:jobs AuthenticationFailed",
        "denied table:rows AuthenticationFailed",
        "denied file:/a/b AuthenticationFailed",
        "not_found blob:docs/none BlobNotFound",
        "not_found queue:none QueueNotFound",
        "not_found table:rows/p/r ResourceNotFound",
        "not_found file:/none ResourceNotFound",
        "exists blob:docs ContainerAlreadyExists",
        "exists table:rows TableAlreadyExists",
        "exists file:/ ShareAlreadyExists",
    ];
    assert_eq!(shown, expected);
    assert_eq!(refusals(&events(&served, &["--share-name", "things", "a"])).len(), 1);
}

#[test]
fn breaking_a_lease_that_is_not_there_is_no_refusal() {
    let served = serve();
    let said = |arguments: &[&str]| served.latchfs(arguments).output().unwrap();
    assert!(said(&["mk", "file:things"]).status.success());
    let file = place(&served, "File");
    let length = [("x-ms-type", "file"), ("x-ms-content-length", "4")];
    ask(file, "PUT", "/things/a.txt", &length, b"").is(201);
    ask(place(&served, "Blob"), "PUT", "/docs?restype=container", &[], b"").is(201);
    for object in ["things:/a.txt", "things:/", "blob:docs"] {
        let broken = said(&["lease", "break", object]);
        assert_eq!(broken.status.code(), Some(1), "{object}: {broken:?}");
    }
    assert!(events(&served, &[]).is_empty(), "{:?}", events(&served, &[]));
}

#[test]
fn names_of_others_turn_no_letters_round_in_what_commands_print() {
    let served = serve();
    let blob = place(&served, "Blob");
    ask(blob, "PUT", "/docs?restype=container", &[], b"").is(201);
    let block = [("x-ms-blob-type", "BlockBlob")];
    ask(blob, "PUT", "/docs/a%E2%80%AEfdp.exe%0Ablob:docs/b", &block, b"").is(201);
    ask(blob, "GET", "/docs/x%E2%80%AE", &[], b"").is(404);
    for arguments in [&["ls", "blob:docs"][..], &["history"], &["events"]] {
        let shown = String::from_utf8(served.latchfs(arguments).output().unwrap().stdout).unwrap();
        assert!(shown.contains("\\u{202e}") && !shown.contains('\u{202e}'), "{shown}");
        assert!(shown.lines().all(|line| !line.starts_with("blob:docs/b")), "{shown}");
    }
}
