//! A disk without room below queues and tables: what stores is refused as 507, Get Messages too.
//! Reads and deletions go on, nothing that was acknowledged is lost, and room heals it.

use std::fs;
use std::net::SocketAddr;

use rustix::process::Resource;

use crate::common::ground::Ground;
use crate::common::http::{Got, ask};
use crate::common::need;
use crate::common::served::{Served, wait_for};
use crate::ground::limits::limit;

const FULL: &str = "InsufficientStorage";
const JSON: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json;odata=nometadata")];

fn addr(served: &Served, service: &str) -> SocketAddr {
    let text = fs::read_to_string(served.ready_file()).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
    let url = ready["endpoints"][service].as_str().unwrap();
    url.split('/').nth(2).unwrap().parse().unwrap()
}

/// Asks until a request is refused for want of room; how many were not.
fn until_full(mut write: impl FnMut(usize) -> Got) -> usize {
    for number in 0..20_000 {
        let got = write(number);
        if got.status >= 300 {
            let told = got.text();
            assert!(got.status == 507 && told.contains(FULL), "{} {told}", got.status);
            return number;
        }
    }
    panic!("the disk never gets full");
}

#[test]
fn queues_and_tables_on_a_full_disk_refuse_writes_and_lose_nothing() {
    if !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", c"size=32m");
    let data = ground.path().join("data");
    let any = "127.0.0.1:0";
    let args = ["--no-auth", "--no-mount", "--queue", any, "--table", any, "--blob", "off"];
    let args = [&args[..], &["--data", data.to_str().unwrap()]].concat();
    let mut served = Served::start(&args);
    let (messages, entities) = {
        let (queue, table) = (addr(&served, "queue"), addr(&served, "table"));
        ask(queue, "PUT", "/tasks", &[], b"").is(201);
        ask(table, "POST", "/Tables", &JSON, br#"{"TableName":"tab"}"#).is(201);
        let put = |number: usize| {
            let text = format!("{number:06} {}", "x".repeat(8_000));
            let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
            ask(queue, "POST", "/tasks/messages", &[], body.as_bytes())
        };
        let insert = |number: usize| {
            let note = "x".repeat(8_000);
            let row = format!(r#"{{"PartitionKey":"p","RowKey":"{number:06}","Note":"{note}"}}"#);
            ask(table, "POST", "/tab", &JSON, row.as_bytes())
        };
        put(0).is(201);
        insert(0).is(201);
        let filler = ground.fill();
        let messages = until_full(|number| put(number + 1)) + 1;
        let entities = until_full(|number| insert(number + 1)) + 1;
        // Reads need no room.
        let peeked = ask(queue, "GET", "/tasks/messages?peekonly=true", &[], b"").is(200);
        assert!(peeked.text().contains("000000 x"));
        let first = "/tab(PartitionKey='p',RowKey='000000')";
        ask(table, "GET", first, &JSON, b"").is(200);
        // Deletions have some that is kept for them.
        let delete = [("if-match", "*"), JSON[1]];
        wait_for("a deletion", || {
            (ask(table, "DELETE", first, &delete, b"").status == 204).then_some(())
        });
        ask(table, "GET", first, &JSON, b"").is(404);
        let got = ask(queue, "GET", "/tasks/messages?visibilitytimeout=1", &[], b"");
        assert!(matches!(got.status, 200 | 507), "{}", got.text());
        fs::remove_file(filler).unwrap();
        wait_for("room", || (insert(900_000).status != 507).then_some(()));
        wait_for("room", || (put(900_000).status != 507).then_some(()));
        (messages, entities)
    };
    served.crash_and_restart(&args);
    let (queue, table) = (addr(&served, "queue"), addr(&served, "table"));
    let counted = ask(queue, "GET", "/tasks?comp=metadata", &[], b"").is(200);
    let counted = counted.header("x-ms-approximate-messages-count").to_owned();
    assert_eq!(counted, (messages + 1).to_string(), "acknowledged messages");
    for number in 1..entities {
        let target = format!("/tab(PartitionKey='p',RowKey='{number:06}')");
        ask(table, "GET", &target, &JSON, b"").is(200);
    }
}

#[test]
fn a_database_as_long_as_a_file_may_be_refuses_as_one_on_a_full_disk() {
    if !need::root() {
        return;
    }
    let any = "127.0.0.1:0";
    let args = ["--no-auth", "--no-mount", "--queue", any, "--table", "off", "--blob", "off"];
    let served = Served::start(&args);
    let queue = addr(&served, "queue");
    ask(queue, "PUT", "/tasks", &[], b"").is(201);
    limit(&served, Resource::Fsize, 2 << 20);
    let text = "x".repeat(8_000);
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    let put = || ask(queue, "POST", "/tasks/messages", &[], body.as_bytes());
    // The log is refused first, then the database file, which no checkpoint can make longer.
    let kept = until_full(|_| put());
    assert!(kept > 50, "{kept} messages");
    ask(queue, "GET", "/tasks/messages?peekonly=true", &[], b"").is(200);
    limit(&served, Resource::Fsize, 64 << 20);
    wait_for("a message to be put", || (put().status == 201).then_some(()));
}
