//! What is held, one by one: locks, pending files, leases, hidden messages.

use std::fs;
use std::os::fd::AsRawFd;

use serde_json::{Value, json};

use super::fixture::{Api, NAME, body, get_file, put_blob, refused, serve};
use crate::common::http::{Got, ask};
use crate::common::need;
use crate::control::fixture::Folder;

fn rows(api: &Api, call: &str, name: &str) -> Vec<Value> {
    body(&api.get(call).is(200))[name].as_array().unwrap().clone()
}

#[test]
fn locks_are_shown_with_their_bytes_and_holders() {
    let (_folder, _server, api) = serve(&[]);
    let held = body(
        &api.post(
            "holds",
            &json!({
                "path": "a.txt", "access": "rw", "share_mode": "rw",
                "locks": [{ "start": 4 }, { "start": 1, "length": 2, "exclusive": false }],
            }),
        )
        .is(201),
    );
    let locks = rows(&api, "locks", "locks");
    assert_eq!(locks.len(), 2);
    let expected = json!({
        "account": "devstoreaccount1", "share": "docs", "path": "/a.txt", "start": 1, "length": 2,
        "exclusive": false, "owner": format!("{NAME} through the HTTP API"), "pid": 0,
        "program": NAME, "client": "the HTTP API", "handle": held["handle"],
    });
    assert_eq!(locks[0], expected);
    assert_eq!((&locks[1]["start"], &locks[1]["length"]), (&json!(4), &Value::Null));
    assert_eq!(rows(&api, "locks?share=docs&path=A.txt", "locks").len(), 2);
    refused(api.get("locks?path=none"), 404, "not_found");
    refused(api.get("locks?share=none"), 404, "not_found");
}

#[test]
fn locks_of_programs_on_the_mount_are_shown() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = fs::File::create(folder.join("mnt/a")).unwrap();
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(&file, lock).unwrap();
    assert!(file.as_raw_fd() > 0);
    let [lock] = &rows(&Api::of(&folder), "locks", "locks")[..] else { panic!("one lock") };
    assert_eq!((&lock["pid"], &lock["length"]), (&json!(std::process::id()), &Value::Null));
    assert_eq!((&lock["exclusive"], &lock["path"]), (&json!(true), &json!("/a")));
}

#[test]
fn a_file_that_is_deleted_while_it_is_open_is_pending_until_it_is_undeleted() {
    let (folder, _server, api) = serve(&[]);
    let hold = json!({ "path": "a.txt", "share_mode": "rwd" });
    let held = body(&api.post("holds", &hold).is(201));
    assert!(rows(&api, "pending", "pending").is_empty());
    let delete =
        json!({ "path": "a.txt", "access": "d", "share_mode": "rwd", "delete_on_close": true });
    let marked = body(&api.post("holds", &delete).is(201));
    api.delete(&format!("holds/{}", marked["handle"])).is(200);
    let [pending] = &rows(&api, "pending", "pending")[..] else { panic!("one file") };
    assert_eq!((&pending["share"], &pending["path"]), (&json!("docs"), &json!("/a.txt")));
    assert_eq!(pending["handles"][0]["handle"], held["handle"]);
    get_file(&folder, "a.txt").refused(409, "SMBDeletePending");
    let undeleted =
        body(&api.post("undelete", &json!({ "share": "docs", "path": "a.txt" })).is(200));
    assert_eq!(undeleted, json!({ "was_pending": true }));
    let again = body(&api.post("undelete", &json!({ "path": "a.txt" })).is(200));
    assert_eq!(again, json!({ "was_pending": false }));
    assert!(rows(&api, "pending", "pending").is_empty());
    refused(api.post("undelete", &json!({ "path": "none" })), 404, "not_found");
}

fn lease(folder: &Folder, service: &str, target: &str, action: &[(&str, &str)]) -> Got {
    let id = [("x-ms-client-request-id", "leaser")];
    ask(folder.service(service), "PUT", target, &[action, &id].concat(), b"")
}

fn acquire(folder: &Folder, service: &str, target: &str, seconds: &str) -> Got {
    let action = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", seconds)];
    lease(folder, service, target, &action).is(201)
}

#[test]
fn leases_of_all_kinds_are_shown_and_broken() {
    let (folder, mut server, api) = serve(&[]);
    assert!(rows(&api, "leases", "leases").is_empty());
    put_blob(&folder, "b", &[("x-ms-meta-lease", "{")], b"1").is(201);
    put_blob(&folder, "free", &[], b"1").is(201);
    acquire(&folder, "file", "/docs?restype=share&comp=lease", "30");
    acquire(&folder, "file", "/docs/a.txt?comp=lease", "-1");
    acquire(&folder, "blob", "/box?restype=container&comp=lease", "-1");
    let id = acquire(&folder, "blob", "/box/b?comp=lease", "60").header("x-ms-lease-id").to_owned();
    let leases = rows(&api, "leases", "leases");
    let objects: Vec<_> = leases.iter().map(|lease| lease["object"].as_str().unwrap()).collect();
    assert_eq!(objects, ["share:docs", "file:docs/a.txt", "blob:box", "blob:box/b"]);
    for lease in &leases {
        assert_eq!(
            (&lease["state"], &lease["status"]),
            (&json!("leased"), &json!("locked")),
            "{lease}"
        );
    }
    let blob = &leases[3];
    assert_eq!((&blob["id"], &blob["duration"]), (&json!(id), &json!("fixed")));
    assert_eq!(blob["holder"]["client_request"], "leaser");
    let left = blob["seconds_left"].as_u64().unwrap();
    assert!((1..=60).contains(&left), "{blob}");
    assert!(leases[0]["seconds_left"].as_u64().unwrap() <= 30, "{}", leases[0]);
    assert!(leases[1]["seconds_left"].is_null(), "{}", leases[1]);
    // Time passes for it as for every rule.
    api.post("clock", &json!({ "advance_ms": 61_000 })).is(200);
    assert_eq!(rows(&api, "leases", "leases").len(), 2);
    for object in ["file:docs/a.txt", "blob:box"] {
        let broken =
            body(&api.post("leases/break", &json!({ "object": object, "period": 0 })).is(200));
        assert_eq!(broken, json!({ "was_leased": true, "seconds": 0 }), "{object}");
    }
    let none = body(&api.post("leases/break", &json!({ "object": "share:docs" })).is(200));
    assert_eq!(none["was_leased"], true, "an expired lease is broken, too");
    assert!(rows(&api, "leases", "leases").is_empty());
    refused(api.post("leases/break", &json!({ "object": "blob:box/none" })), 404, "not_found");
    refused(api.post("leases/break", &json!({ "object": "queue:q" })), 400, "bad_request");
    // Leases outlive the server, and are shown before the service is used again.
    acquire(&folder, "blob", "/box/free?comp=lease", "-1");
    assert!(server.stop().success());
    drop(server);
    let _server = folder.start(&["serve", "--no-mount", "--no-auth"]);
    let leases = rows(&Api::of(&folder), "leases", "leases");
    assert!(leases.iter().any(|lease| lease["object"] == "blob:box/free"), "{leases:?}");
}

#[test]
fn a_message_that_somebody_got_is_shown_until_it_comes_back() {
    let (folder, _server, api) = serve(&[]);
    assert!(rows(&api, "messages", "messages").is_empty());
    let queue = folder.service("queue");
    for name in ["jobs", "other"] {
        ask(queue, "PUT", &format!("/{name}"), &[], b"").is(201);
        let message = b"<QueueMessage><MessageText>eA==</MessageText></QueueMessage>";
        ask(queue, "POST", &format!("/{name}/messages"), &[], message).is(201);
    }
    let headers = [("x-ms-client-request-id", "worker")];
    let got =
        ask(queue, "GET", "/jobs/messages?visibilitytimeout=30", &headers, b"").is(200).text();
    let id = got.split("<MessageId>").nth(1).unwrap().split('<').next().unwrap();
    let messages = body(&api.get("messages").is(200));
    assert_eq!(messages["left_out"], 0);
    let [message] = &messages["messages"].as_array().unwrap()[..] else { panic!("{messages}") };
    assert_eq!(message["object"], format!("queue:jobs/{id}"));
    assert_eq!(message["holder"]["client_request"], "worker");
    assert_eq!(message["dequeue_count"], 1);
    assert!(message["seconds_left"].as_u64().unwrap() <= 30, "{message}");
    assert_eq!(rows(&api, "messages?queue=jobs", "messages").len(), 1);
    assert!(rows(&api, "messages?queue=other", "messages").is_empty());
    refused(api.get("messages?queue=none"), 404, "not_found");
    api.post("clock", &json!({ "advance_ms": 30_000 })).is(200);
    assert!(rows(&api, "messages", "messages").is_empty());
}
