//! Whether costs stay what they are when there is much: a million entities, a million blobs, a
//! hundred thousand hidden messages; then memory and start with all of that. Blobs of a GiB and of
//! 50,000 blocks, and uploads in flight, are in `content`.
//!
//! `cargo bench --bench scale`; words behind `--` pick among `table`, `queue`, `blob` and
//! `content`.
//! `LATCHFS_BENCH_SCALE` is another number than a million, `LATCHFS_BENCH_DIR` names the disk,
//! `LATCHFS_BENCH_PROGRAM` another program than this build's. A figure is the best of five rounds
//! of processor time of the server per request.

mod content;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod load;
mod process;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod rows;
#[allow(dead_code, reason = "shared with the other benchmark")]
mod servers;

use std::env;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use load::{ACCOUNT, Client, Cost, Request, pour};
use servers::{Server, Service};

const ROUNDS: usize = 5;
/// Entities of a partition.
const PARTITION: usize = 1_000;
/// Blobs of a directory.
const DIRECTORY: usize = 100;
/// Items of a page of a listing.
const PAGE: usize = 5_000;
/// One blob in so many has a tag.
const TAGGED: usize = 10;
/// Connections that fill the server.
const FILLERS: usize = 16;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let quick = words.iter().any(|word| word == "--test");
    let wanted: Vec<_> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let asked = |name: &str| wanted.is_empty() || wanted.iter().any(|word| *word == name);
    let given = env::var("LATCHFS_BENCH_SCALE").ok().and_then(|text| text.parse().ok());
    let scale = if quick { 20_000 } else { given.unwrap_or(1_000_000) };
    let folder = servers::folder();
    println!("| scale {scale} | small | large | ratio | goal |\n|---|---:|---:|---:|---|");
    for (name, topic) in [
        ("table", tables as fn(&Server, usize)),
        ("queue", queues as fn(&Server, usize)),
        ("blob", blobs as fn(&Server, usize)),
    ] {
        if asked(name) {
            with_server(&folder.path().join(name), name, scale, topic);
        }
    }
    if asked("content") {
        content::measure(&folder.path().join("content"), quick);
    }
}

/// Runs a topic on a fresh server, then looks at memory and at the next start.
fn with_server(folder: &Path, name: &str, scale: usize, topic: fn(&Server, usize)) {
    let server = servers::latchfs(&servers::program(), Some(folder), &[]);
    let begun = Instant::now();
    topic(&server, scale);
    let resident = server.resident() / 1_000_000;
    println!("| {name}: resident | | {resident} MB | | under 150 MB |");
    println!("| {name}: filled and measured in | | {:.0?} | | |", begun.elapsed());
    drop(server);
    let begun = Instant::now();
    let server = servers::latchfs(&servers::program(), Some(folder), &[]);
    let mut client = Client::of(&server);
    match name {
        "table" => query_partition(&mut client, "small", 0),
        "queue" => _ = client.ask(Service::Queue, Request::new("GET", "/?comp=list", 200)),
        _ => _ = client.ask(Service::Blob, Request::new("GET", "/?comp=list", 200)),
    }
    let (took, used) = (begun.elapsed(), server.cpu());
    println!("| {name}: start to first 200 | | {took:.1?} | | under 50 ms |");
    println!("| {name}: processor time of that | | {used:.1?} | | |");
}

/// The cost of both, in turn, so that a busy machine is busy for both.
fn compare(
    server: &Server,
    name: &str,
    requests: usize,
    goal: f64,
    (small, large): (impl Fn(&mut Client, usize) + Sync, impl Fn(&mut Client, usize) + Sync),
) {
    let mut clients = [Client::of(server)];
    let mut best = [Cost::NONE; 2];
    for round in 0..ROUNDS {
        let range = (round * requests, requests);
        best[0] = best[0].or_better(pour(server, &mut clients, range, &small));
        best[1] = best[1].or_better(pour(server, &mut clients, range, &large));
    }
    let [small, large] = best.map(|cost| cost.cpu_us);
    let ratio = large / small;
    let verdict = if ratio <= goal { "met" } else { "MISSED" };
    println!("| {name} | {small:.0} us | {large:.0} us | {ratio:.2} | {goal} {verdict} |");
}

/// Makes `count` requests over many connections.
fn fill(server: &Server, count: usize, step: impl Fn(&mut Client, usize) + Sync) {
    let mut clients: Vec<Client> = (0..FILLERS).map(|_| Client::of(server)).collect();
    pour(server, &mut clients, (0, count), step);
}

fn tables(server: &Server, entities: usize) {
    let mut client = Client::of(server);
    for table in ["small", "large", "grouped", "bench"] {
        rows::create_table(&mut client, table);
    }
    let slices = PARTITION / 100;
    fill(server, slices, |client, n| transaction(client, "small", 0, n * 100));
    fill(server, entities / 100, |client, n| {
        transaction(client, "large", n / slices, n % slices * 100);
    });
    let middle = entities / PARTITION / 2;
    let queries = (
        |client: &mut Client, _| query_partition(client, "small", 0),
        |client: &mut Client, _| query_partition(client, "large", middle),
    );
    compare(server, "Query Entities, 1,000 of a partition", 20, 2.0, queries);
    compare(
        server,
        "an insertion; a transaction of 100",
        100,
        20.0,
        (rows::insert, |client: &mut Client, n| transaction(client, "grouped", n, 0)),
    );
}

fn query_partition(client: &mut Client, table: &str, partition: usize) {
    let target = format!("/{table}()?$filter=PartitionKey%20eq%20%27p{partition:05}%27");
    let headers = [("accept", "application/json;odata=minimalmetadata")];
    let answer = client.ask(Service::Table, Request::new("GET", &target, 200).headers(&headers));
    assert!(answer.windows(8).filter(|word| word == b"\"RowKey\"").count() >= PARTITION);
}

/// Inserts 100 entities at once.
fn transaction(client: &mut Client, table: &str, partition: usize, from: usize) {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for row in from..from + 100 {
        let _ = write!(
            body,
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
             \r\nPOST http://127.0.0.1/{ACCOUNT}/{table} HTTP/1.1\r\n\
             Content-Type: application/json\r\nAccept: application/json\r\n\
             Prefer: return-no-content\r\n\r\n\
             {{\"PartitionKey\":\"p{partition:05}\",\"RowKey\":\"{row:06}\",{}}}\r\n",
            rows::PROPERTIES
        );
    }
    body.push_str("--c--\r\n--b--\r\n");
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let request = Request::new("POST", "/$batch", 202).headers(&headers);
    let answer = client.ask(Service::Table, request.body(body.as_bytes()));
    assert_eq!(answer.windows(12).filter(|word| word == b"HTTP/1.1 204").count(), 100);
}

fn queues(server: &Server, scale: usize) {
    const VISIBLE: usize = 2_000;
    let mut client = Client::of(server);
    for queue in ["small", "large"] {
        client.ask(Service::Queue, Request::new("PUT", &format!("/{queue}"), 201));
    }
    fill(server, scale / 10, |client, _| {
        rows::put_message(client, "large", "?visibilitytimeout=86400");
    });
    for queue in ["small", "large"] {
        fill(server, VISIBLE, |client, _| rows::put_message(client, queue, ""));
    }
    let get = |queue: &'static str| {
        move |client: &mut Client, _| {
            let target = format!("/{queue}/messages?visibilitytimeout=3600");
            let answer = client.ask(Service::Queue, Request::new("GET", &target, 200));
            assert!(answer.windows(12).any(|word| word == b"<PopReceipt>"), "a message");
        }
    };
    let requests = VISIBLE / ROUNDS;
    let name = "Get Messages with a tenth of that many hidden";
    compare(server, name, requests, 2.0, (get("small"), get("large")));
    let none = (get_none("small"), get_none("large"));
    compare(server, "Get Messages where all are hidden", requests, 2.0, none);
}

fn get_none(queue: &'static str) -> impl Fn(&mut Client, usize) + Sync {
    move |client: &mut Client, _| {
        client.ask(Service::Queue, Request::new("GET", &format!("/{queue}/messages"), 200));
    }
}

fn blobs(server: &Server, scale: usize) {
    let mut client = Client::of(server);
    client.ask(Service::Blob, Request::new("PUT", "/bench?restype=container", 201));
    fill(server, scale, |client, n| {
        let target = format!("/bench/d{:06}/b{n:07}", n / DIRECTORY);
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "kind=tagged")];
        let headers = &headers[..if n % TAGGED == 0 { 2 } else { 1 }];
        client.ask(Service::Blob, Request::new("PUT", &target, 201).headers(headers).body(b"b"));
    });
    for (name, query) in [
        ("List Blobs of 5,000; first and last page", "/bench?restype=container&comp=list"),
        ("List Blobs by /; first and last page", "/bench?restype=container&comp=list&delimiter=/"),
        ("Find Blobs by Tags; first and last page", "/?comp=blobs&where=kind%3D%27tagged%27"),
    ] {
        let last = last_marker(&mut client, query);
        let page = |marker: String| move |client: &mut Client, _| _ = page(client, query, &marker);
        compare(server, name, 4, 2.0, (page(String::new()), page(last)));
    }
}

/// Reads all pages: the marker of the last full one.
fn last_marker(client: &mut Client, query: &str) -> String {
    let mut markers = vec![String::new()];
    while let Some(next) = page(client, query, &markers[markers.len() - 1]) {
        markers.push(next);
    }
    markers.pop().unwrap_or_default()
}

/// Asks for a page: the marker of the next.
fn page(client: &mut Client, query: &str, marker: &str) -> Option<String> {
    let target = format!("{query}&maxresults={PAGE}&marker={marker}");
    let answer = client.ask(Service::Blob, Request::new("GET", &target, 200));
    let text = String::from_utf8_lossy(&answer[answer.len().saturating_sub(4_000)..]);
    let (_, rest) = text.split_once("<NextMarker>")?;
    let next = rest.split('<').next().filter(|next| !next.is_empty())?;
    Some(next.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D").replace('&', "%26"))
}
