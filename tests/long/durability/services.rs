//! Blobs, queues and tables of one program that is killed in the middle of mixed work: what was
//! acknowledged is there, and of a transaction all or nothing.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::alone;
use crate::common::http::{Kept, ask};
use crate::common::random::{Random, seeds};
use crate::common::served::{Served, wait_for};

const ARGS: [&str; 2] = ["--no-mount", "--no-auth"];
const CLIENTS: usize = 3;
const ROWS: usize = 5;
/// Rounds of work that are acknowledged before the server is killed, at most.
const LIFE_MAX: usize = 40;

/// Where the services listen.
#[derive(Clone, Copy)]
struct Places {
    blob: SocketAddr,
    queue: SocketAddr,
    table: SocketAddr,
}

impl Places {
    fn of(served: &Served) -> Self {
        let place = |service: &str| {
            let text = served.told("connection_string");
            let key = format!("{service}Endpoint=http://");
            let rest = text.split(&key).nth(1).expect("the service listens");
            rest.split('/').next().and_then(|host| host.parse().ok()).expect("an address")
        };
        Self { blob: place("Blob"), queue: place("Queue"), table: place("Table") }
    }
}

/// The last numbers that a client was acknowledged: its transaction, its blob, its message.
#[derive(Clone, Copy, Default, Debug)]
struct Acknowledged {
    rows: u64,
    blob: u64,
    message: u64,
}

fn transaction(client: usize, n: u64) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for row in 0..ROWS {
        // Writing to a String does not fail.
        let _ = write!(
            body,
            "--c\r\nContent-Type: application/http\r\n\r\n\
             PUT /tab(PartitionKey='p{client}',RowKey='{row}') HTTP/1.1\r\n\r\n\
             {{\"n\":{n}}}\r\n"
        );
    }
    body.push_str("--c--\r\n--b--\r\n");
    body
}

/// Works until the server is gone.
fn work(at: Places, client: usize, from: Acknowledged, all: &AtomicUsize) -> Acknowledged {
    let mut done = from;
    let connect = |addr| Kept::connect(addr).ok();
    let (Some(mut blob), Some(mut queue), Some(mut table)) =
        (connect(at.blob), connect(at.queue), connect(at.table))
    else {
        return done;
    };
    let multipart = [("content-type", "multipart/mixed; boundary=b")];
    for n in from.rows.max(from.blob).max(from.message) + 1.. {
        let body = transaction(client, n);
        match table.ask("POST", "/$batch", &multipart, body.as_bytes()) {
            Ok(got) if got.text().contains("HTTP/1.1 204") => done.rows = n,
            Ok(got) => panic!("{}", got.text()),
            Err(_) => return done,
        }
        let target = format!("/con/b{client}");
        let headers = [("x-ms-blob-type", "BlockBlob")];
        match blob.ask("PUT", &target, &headers, n.to_string().as_bytes()) {
            Ok(got) => {
                got.is(201);
                done.blob = n;
            }
            Err(_) => return done,
        }
        let text = format!("{client}-{n}");
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        match queue.ask("POST", "/jobs/messages", &[], body.as_bytes()) {
            Ok(got) => {
                got.is(201);
                done.message = n;
            }
            Err(_) => return done,
        }
        all.fetch_add(1, Ordering::Relaxed);
    }
    done
}

/// The numbers of a client's rows.
fn rows(at: Places, client: usize) -> Vec<u64> {
    let target = format!("/tab?$filter=PartitionKey%20eq%20'p{client}'");
    let got = ask(at.table, "GET", &target, &[], b"").is(200);
    let body: Value = serde_json::from_slice(&got.body).unwrap();
    body["value"].as_array().unwrap().iter().map(|one| one["n"].as_u64().unwrap()).collect()
}

/// Takes all messages out of the queue and deletes them.
fn drain(at: Places) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let target = "/jobs/messages?numofmessages=32&visibilitytimeout=600";
        let page = ask(at.queue, "GET", target, &[], b"").is(200).text();
        let found: Vec<_> = page.split("<MessageText>").skip(1).collect();
        if found.is_empty() {
            ask(at.queue, "DELETE", "/jobs/messages", &[], b"").is(204);
            return texts;
        }
        texts.extend(found.iter().map(|text| text.split('<').next().unwrap().to_owned()));
    }
}

/// Checks what is there against what was acknowledged since the last check.
fn check(at: Places, round: usize, before: &[Acknowledged], last: &mut [Acknowledged]) {
    let messages = drain(at);
    let all: HashSet<_> = messages.iter().collect();
    assert_eq!(all.len(), messages.len(), "round {round}: a message is there twice");
    for client in 0..CLIENTS {
        let done = &mut last[client];
        let found = rows(at, client);
        assert!(found.len() == ROWS || done.rows == 0, "round {round}: {found:?}");
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "half of it: {found:?}");
        let found = found.first().copied().unwrap_or_default();
        assert!(found >= done.rows, "round {round}: rows {found}, not {done:?}");
        let blob = ask(at.blob, "GET", &format!("/con/b{client}"), &[], b"");
        let blob = if blob.status == 404 { 0 } else { blob.is(200).text().parse().unwrap() };
        assert!(blob >= done.blob, "round {round}: blob {blob}, not {done:?}");
        let first = before[client].rows.max(before[client].blob).max(before[client].message) + 1;
        for n in first..=done.message {
            let text = format!("{client}-{n}");
            assert!(all.contains(&text), "round {round}: message {text} is lost");
        }
        (done.rows, done.blob) = (found, blob);
    }
}

#[test]
fn mixed_work_on_blobs_queues_and_tables_outlives_a_killed_server() {
    let _alone = alone();
    let seed = seeds(1)[0];
    println!("services: LATCHFS_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let mut served = Served::start(&ARGS);
    let at = Places::of(&served);
    ask(at.blob, "PUT", "/con?restype=container", &[], b"").is(201);
    ask(at.queue, "PUT", "/jobs", &[], b"").is(201);
    ask(at.table, "POST", "/Tables", &[], br#"{"TableName":"tab"}"#).is(201);
    let mut last = [Acknowledged::default(); CLIENTS];
    let mut total = 0;
    for round in 0..super::rounds().min(100) {
        let at = Places::of(&served);
        let before = last;
        let (all, life) = (AtomicUsize::new(0), 1 + random.below(LIFE_MAX));
        let done: Vec<_> = thread::scope(|scope| {
            let all = &all;
            let start = |client| scope.spawn(move || work(at, client, before[client], all));
            let threads: Vec<_> = (0..CLIENTS).map(start).collect();
            wait_for("work", || (all.load(Ordering::Relaxed) >= life).then_some(()));
            served.crash();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        served.restart(&ARGS);
        last.copy_from_slice(&done);
        check(Places::of(&served), round, &before, &mut last);
        total += all.into_inner();
    }
    assert!(total >= super::rounds().min(100), "hardly anything was done: {total}");
}
