//! The row of a request: what it asked for, what it read and changed.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::fixture::{Api, body, put_blob, serve};
use crate::common::http::{Got, Kept, ask};
use crate::common::served::wait_for;
use crate::control::fixture::Folder;

/// The row of the last request.
fn last(api: &Api) -> Value {
    let rows = body(&api.get("events?kind=request").is(200))["events"].clone();
    rows.as_array().unwrap().last().unwrap().clone()
}

fn blob(folder: &Folder, method: &str, target: &str, headers: &[(&str, &str)]) -> Got {
    ask(folder.service("blob"), method, target, headers, b"")
}

fn etag(got: &Got) -> Value {
    json!(got.header("etag"))
}

/// The only object that a request changed, and its ETags.
fn changed(row: &Value) -> (Value, Value, Value) {
    let [one] = &row["changed"].as_array().unwrap()[..] else { panic!("{row}") };
    (one["object"].clone(), one["etag_before"].clone(), one["etag_after"].clone())
}

#[test]
fn a_blob_has_its_versions_conditions_and_lists_in_the_rows() {
    let (folder, _server, api) = serve(&[]);
    let first = put_blob(&folder, "a", &[], b"one").is(201);
    let created = last(&api);
    assert_eq!(changed(&created), (json!("blob:box/a"), Value::Null, etag(&first)));
    assert_eq!((&created["length"], &created["answer"]), (&json!(3), &json!("sent")));
    let again = put_blob(&folder, "a", &[("if-match", first.header("etag"))], b"one").is(201);
    let row = last(&api);
    assert_eq!(changed(&row), (json!("blob:box/a"), etag(&first), etag(&again)));
    assert_eq!((&row["if_match"], &row["body"]), (&etag(&first), &created["body"]));
    put_blob(&folder, "a", &[("if-match", first.header("etag"))], b"two").is(412);
    let refused = last(&api);
    assert_eq!((&refused["changed"], &refused["status"]), (&Value::Null, &json!(412)));
    assert_eq!(refused["if_match"], etag(&first));
    blob(&folder, "GET", "/box/a", &[("x-ms-range", "bytes=0-1")]).is(206);
    let read = last(&api);
    assert_eq!(read["etag_read"], etag(&again));
    assert_eq!(read["parts"], json!({ "range": [0, 2] }));
    let known = [("if-none-match", again.header("etag"))];
    blob(&folder, "GET", "/box/a", &known).is(304);
    assert_eq!(last(&api)["etag_read"], etag(&again));
    blob(&folder, "GET", "/box?restype=container&comp=list&prefix=a", &[]).is(200);
    let listed = last(&api);
    assert_eq!(listed["listed"], json!([["blob:box/a", etag(&again)]]));
    assert_eq!(listed["prefix"], "a");
    let meta = blob(&folder, "PUT", "/box/a?comp=metadata", &[("x-ms-meta-k", "v")]).is(200);
    let row = last(&api);
    assert_eq!(row["parts"], "metadata");
    assert_eq!(changed(&row), (json!("blob:box/a"), etag(&again), etag(&meta)));
    blob(&folder, "DELETE", "/box/a", &[]).is(202);
    assert_eq!(changed(&last(&api)), (json!("blob:box/a"), etag(&meta), Value::Null));
}

#[test]
fn leases_and_receipts_are_in_the_rows_as_fingerprints_alone() {
    let (folder, _server, api) = serve(&[]);
    put_blob(&folder, "a", &[], b"one").is(201);
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
    let got = blob(&folder, "PUT", "/box/a?comp=lease", &acquire).is(201);
    let id = got.header("x-ms-lease-id").to_owned();
    let acquired = last(&api);
    assert_eq!(
        (&acquired["lease_action"], &acquired["parts"]),
        (&json!("acquire"), &json!("lease"))
    );
    let given = acquired["lease_given"].as_str().unwrap();
    assert_eq!(given.len(), 8);
    assert!(acquired["lease_until"].as_str() > acquired["time"].as_str(), "{acquired}");
    put_blob(&folder, "a", &[("x-ms-lease-id", &id)], b"two").is(201);
    assert_eq!(last(&api)["lease_sent"], given);
    let queue = folder.service("queue");
    ask(queue, "PUT", "/jobs", &[], b"").is(201);
    let message = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    ask(queue, "POST", "/jobs/messages", &[], message).is(201);
    let got = ask(queue, "GET", "/jobs/messages?visibilitytimeout=30", &[], b"").is(200);
    let row = last(&api);
    let taken = &row["messages"][0];
    let text = got.text();
    let (_, receipt) = text.split_once("<PopReceipt>").unwrap();
    let receipt = receipt.split('<').next().unwrap();
    assert_eq!(taken["dequeue_count"], 1);
    assert!(taken["visible_until"].as_str() > row["time"].as_str(), "{row}");
    let (id_of, target) = (taken["message"].as_str().unwrap(), receipt.replace('+', "%2B"));
    let target = format!("/jobs/messages/{id_of}?popreceipt={target}");
    ask(queue, "DELETE", &target, &[], b"").is(204);
    let deleted = last(&api);
    assert_eq!(deleted["receipt_used"], taken["receipt_given"]);
    assert_eq!(deleted["message"], taken["message"]);
    assert_eq!(changed(&deleted).0, format!("queue:jobs/{id_of}"));
    let all = api.get("events").is(200).text();
    assert!(!all.contains(&id) && !all.contains(receipt), "a secret is in the journal");
}

#[test]
fn an_entity_has_its_key_its_properties_and_each_part_of_a_transaction() {
    let (folder, _server, api) = serve(&[]);
    let table = folder.service("table");
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    ask(table, "POST", "/Tables", &headers, br#"{"TableName":"rows"}"#).is(201);
    let entity = br#"{"PartitionKey":"p","RowKey":"r","a":1,"b":2}"#;
    let first = ask(table, "POST", "/rows", &headers, entity).is(201);
    assert_eq!(changed(&last(&api)), (json!("table:rows/p/r"), Value::Null, etag(&first)));
    let key = "/rows(PartitionKey='p',RowKey='r')";
    ask(table, "GET", key, &headers[1..], b"").is(200);
    assert_eq!(last(&api)["etag_read"], etag(&first));
    let any = [headers[0], ("if-match", "*")];
    let merged = ask(table, "MERGE", key, &any, br#"{"b":3}"#).is(204);
    let row = last(&api);
    assert_eq!(changed(&row), (json!("table:rows/p/r"), etag(&first), etag(&merged)));
    assert_eq!(row["changed"][0]["parts"], json!({ "properties": ["b"] }));
    assert_eq!(row["if_match"], "*");
    ask(table, "GET", "/rows()", &headers[1..], b"").is(200);
    assert_eq!(last(&api)["listed"], json!([["table:rows/p/r", etag(&merged)]]));
    let part = |row: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST http://h/devstoreaccount1/rows HTTP/1.1\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}\r\n"
        )
    };
    let parts = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}{}--c--\r\n--b--\r\n",
        part("x"),
        part("y")
    );
    let mixed = [("content-type", "multipart/mixed; boundary=b")];
    ask(table, "POST", "/$batch", &mixed, parts.as_bytes()).is(202);
    let row = last(&api);
    let objects: Vec<_> =
        row["changed"].as_array().unwrap().iter().map(|one| one["object"].clone()).collect();
    assert_eq!(objects, ["table:rows/p/x", "table:rows/p/y"]);
    assert_eq!(row["changed"][1]["guarded"], true, "an insertion replaces nothing");
    // Of a transaction that is refused, nothing stays.
    let parts = parts.replace("\"x\"", "\"z\"");
    ask(table, "POST", "/$batch", &mixed, parts.as_bytes()).is(202);
    assert_eq!(last(&api)["changed"], Value::Null);
    // More names than a row keeps count as all of them.
    let many = vec!["property-with-a-long-name"; 2_000].join(",");
    ask(table, "GET", &format!("/rows()?$select={many}"), &headers[1..], b"").is(200);
    assert_eq!(last(&api)["parts"], Value::Null);
}

#[test]
fn each_part_of_a_batch_is_a_change_and_a_snapshot_is_another_object() {
    let (folder, _server, api) = serve(&[]);
    for name in ["a", "b", "c"] {
        put_blob(&folder, name, &[], b"one").is(201);
    }
    let snapshot = blob(&folder, "PUT", "/box/c?comp=snapshot", &[]).is(201);
    let version = snapshot.header("x-ms-snapshot");
    blob(&folder, "GET", &format!("/box/c?snapshot={version}"), &[]).is(200);
    assert_eq!(last(&api)["version"], version);
    let delete = |name: &str| {
        format!(
            "--x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
             DELETE /devstoreaccount1/box/{name} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n"
        )
    };
    let parts = ["a", "none", "b"].map(delete).concat() + "--x--\r\n";
    let mixed = [("content-type", "multipart/mixed; boundary=x")];
    ask(folder.service("blob"), "POST", "/?comp=batch", &mixed, parts.as_bytes()).is(202);
    let row = last(&api);
    let objects: Vec<_> =
        row["changed"].as_array().unwrap().iter().map(|one| one["object"].clone()).collect();
    assert_eq!(objects, ["blob:box/a", "blob:box/b"]);
}

#[test]
fn a_file_has_its_versions_in_the_rows() {
    let (folder, _server, api) = serve(&[]);
    let (listener, at) = (folder.listener(), "/docs/new");
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    let first = ask(listener, "PUT", at, &create, b"").is(201);
    assert_eq!(changed(&last(&api)), (json!("file:docs/new"), Value::Null, etag(&first)));
    let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
    let written = ask(listener, "PUT", "/docs/new?comp=range", &range, b"hello").is(201);
    let row = last(&api);
    assert_eq!(changed(&row), (json!("file:docs/new"), etag(&first), etag(&written)));
    assert_eq!(row["parts"], json!({ "range": [0, 5] }));
    ask(listener, "GET", at, &[], b"").is(200);
    assert_eq!(last(&api)["etag_read"], etag(&written));
    let source = format!("http://{listener}/devstoreaccount1/docs/new");
    let rename = [("x-ms-file-rename-source", &*source)];
    ask(listener, "PUT", "/docs/moved?comp=rename", &rename, b"").is(200);
    let row = last(&api);
    assert_eq!(row["source"], "file:docs/new");
    assert_eq!(
        (&row["changed"][0]["object"], &row["changed"][1]["object"]),
        (&json!("file:docs/new"), &json!("file:docs/moved"))
    );
    ask(listener, "DELETE", "/docs/moved", &[], b"").is(202);
    assert_eq!(changed(&last(&api)).0, "file:docs/moved");
}

#[test]
fn a_lost_answer_and_a_client_that_goes_away_are_told() {
    let (folder, _server, api) = serve(&[]);
    let fault = json!({ "operation": "Put Blob", "action": "drop_after", "times": 1 });
    api.post("faults", &fault).is(201);
    let mut connection = Kept::connect(folder.service("blob")).unwrap();
    let kind = [("x-ms-blob-type", "BlockBlob")];
    connection.ask("PUT", "/box/a", &kind, b"one").unwrap_err();
    let row = last(&api);
    assert_eq!((&row["answer"], &row["status"]), (&json!("dropped"), &Value::Null));
    assert_eq!(changed(&row).0, "blob:box/a");
    let gate = json!({ "operation": "Put Blob" });
    let gate = body(&api.post("gates", &gate).is(201))["gate"].clone();
    let addr = folder.service("blob");
    let waits = std::thread::spawn(move || {
        let mut connection = Kept::connect(addr).unwrap();
        connection.ask("PUT", "/box/b", &[kind[0], ("if-none-match", "*")], b"two").is_err()
    });
    api.get(&format!("gates/{gate}/wait")).is(200);
    let gated = body(&api.get("events?kind=gated").is(200))["events"][0].clone();
    assert_eq!((&gated["if_none_match"], &gated["length"]), (&json!("*"), &json!(3)));
    api.post("reset", &json!({})).is(200);
    assert!(waits.join().unwrap());
    assert_eq!(last(&api)["answer"], "dropped");
    // A client that closes its connection while its request is under way.
    let gate =
        body(&api.post("gates", &json!({ "operation": "Get Blob" })).is(201))["gate"].clone();
    let mut leaves = TcpStream::connect(addr).unwrap();
    let head = "GET /devstoreaccount1/box/b HTTP/1.1\r\nhost: localhost\r\n\r\n";
    leaves.write_all(head.as_bytes()).unwrap();
    api.get(&format!("gates/{gate}/wait")).is(200);
    drop(leaves);
    let gone = wait_for("the row of a client that went away", || {
        Some(last(&api)).filter(|row| row["answer"] == "client-gone")
    });
    assert_eq!(gone["operation"], "Get Blob");
}
