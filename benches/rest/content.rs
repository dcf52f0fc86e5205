//! Blobs of a GiB, block lists of 50,000 blocks, uploads in flight, and the longest wait of a
//! write.
//!
//! A figure is the time that a client waits, the best of five requests where a request can be
//! repeated; each row has its goal. A quick run uses small blocks and shows no speed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::load::{ACCOUNT, Client, Request, head_of, pour};
use crate::rows::{self, LARGE, SMALL};
use crate::servers::{self, Server, Service};

const ROUNDS: usize = 5;
/// Blocks of the blob of a GiB.
const BLOCKS: usize = 256;
/// The most blocks of a blob.
const MOST_BLOCKS: usize = 50_000;
/// Uploads in flight at once, and their length.
const UPLOADS: usize = 200;
const UPLOAD_BYTES: usize = 100_000_000;
/// Bytes of an upload that are sent before memory is looked at.
const SENT_BYTES: usize = 4 << 20;
/// Writes whose longest wait is measured, and the connections they come over.
const WRITES: usize = 50_000;
const WRITERS: usize = 4;

/// How much is done.
struct Size {
    block: &'static [u8],
    most_blocks: usize,
    uploads: usize,
    sent: usize,
    writes: usize,
}

/// A server of its own with an empty container.
fn fresh(folder: &Path, name: &str) -> (Server, Client) {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let server = servers::latchfs(&servers::program(), Some(&folder), &[]);
    let mut client = Client::of(&server);
    client.ask(Service::Blob, Request::new("PUT", "/bench?restype=container", 201));
    (server, client)
}

/// Runs all rows on a fresh server; memory is measured on one that has done nothing before.
pub fn measure(folder: &Path, quick: bool) {
    let (server, mut client) = fresh(folder, "times");
    let size = if quick {
        Size { block: rows::bytes(SMALL), most_blocks: 500, uploads: 8, sent: SMALL, writes: 500 }
    } else {
        let block = rows::bytes(LARGE);
        let (uploads, writes) = (UPLOADS, WRITES);
        Size { block, most_blocks: MOST_BLOCKS, uploads, sent: SENT_BYTES, writes }
    };
    gigabyte(&server, &mut client, &size);
    most_blocks(&server, &mut client, &size);
    longest_wait(&server, &size);
    drop((client, server));
    let (server, _client) = fresh(folder, "uploads");
    uploads(&server, &size);
}

/// Prints a time and the most that it may be.
fn print(name: &str, took: Duration, goal: Duration) {
    let verdict = if took <= goal { "met" } else { "MISSED" };
    println!("| {name} | | {took:.1?} | | under {goal:.0?} {verdict} |");
}

/// The shortest of some requests.
fn best(mut request: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        request();
        begun.elapsed()
    });
    times.min().unwrap_or_default()
}

/// A block ID: eight digits are base64, and all IDs of a blob must have one length.
fn put_block(client: &mut Client, blob: &str, n: usize, body: &[u8]) {
    let target = format!("/bench/{blob}?comp=block&blockid={n:08}");
    client.ask(Service::Blob, Request::new("PUT", &target, 201).body(body));
}

fn block_list(blocks: usize) -> String {
    let mut list = "<BlockList>".to_owned();
    for n in 0..blocks {
        // Writing to a String does not fail.
        let _ = write!(list, "<Latest>{n:08}</Latest>");
    }
    list + "</BlockList>"
}

fn commit(client: &mut Client, blob: &str, list: &str) {
    let target = format!("/bench/{blob}?comp=blocklist");
    client.ask(Service::Blob, Request::new("PUT", &target, 201).body(list.as_bytes()));
}

/// Commits a GiB of 256 blocks, takes snapshots of it and copies it.
fn gigabyte(server: &Server, client: &mut Client, size: &Size) {
    let mut clients = [Client::of(server), Client::of(server)];
    pour(server, &mut clients, (0, BLOCKS), |client, n| put_block(client, "long", n, size.block));
    let list = block_list(BLOCKS);
    let begun = Instant::now();
    commit(client, "long", &list);
    let first = begun.elapsed();
    let took = best(|| commit(client, "long", &list)).min(first);
    let goal = Duration::from_millis(10);
    print("Put Block List of 256 blocks of 4 MiB", took, goal);
    let target = "/bench/long?comp=snapshot";
    let took = best(|| _ = client.ask(Service::Blob, Request::new("PUT", target, 201)));
    let goal = Duration::from_millis(5);
    print("Snapshot Blob of 1 GiB", took, goal);
    let addr = server.addrs[Service::Blob as usize].expect("latchfs has blobs");
    let source = format!("http://{addr}/{ACCOUNT}/bench/long");
    let headers = [("x-ms-copy-source", source.as_str())];
    let request = Request::new("PUT", "/bench/copy", 202).headers(&headers);
    let took = best(|| _ = client.ask(Service::Blob, request));
    print("Copy Blob of 1 GiB", took, goal);
}

/// Commits as many blocks as a blob may have, while another client writes small blobs.
fn most_blocks(server: &Server, client: &mut Client, size: &Size) {
    let blocks = size.most_blocks;
    let mut clients: Vec<Client> = (0..16).map(|_| Client::of(server)).collect();
    pour(server, &mut clients, (0, blocks), |client, n| put_block(client, "many", n, b"x"));
    let list = block_list(blocks);
    let (mut shortest, mut longest) = (Duration::MAX, Duration::ZERO);
    for _ in 0..ROUNDS {
        let ended = AtomicBool::new(false);
        let waited = thread::scope(|scope| {
            let writer = scope.spawn(|| wait_of_writes(server, &ended));
            let begun = Instant::now();
            commit(client, "many", &list);
            shortest = shortest.min(begun.elapsed());
            ended.store(true, Ordering::Relaxed);
            writer.join().expect("the writer ends")
        });
        longest = longest.max(waited);
    }
    print(&format!("Put Block List of {blocks} blocks"), shortest, Duration::from_millis(500));
    let name = "longest wait of another writer beside that list";
    print(name, longest, Duration::from_millis(50));
}

/// The longest wait of writes of 4 KiB until `ended`.
fn wait_of_writes(server: &Server, ended: &AtomicBool) -> Duration {
    let (mut client, mut longest) = (Client::of(server), Duration::ZERO);
    rows::put_blob(&mut client, "beside", SMALL);
    while !ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        rows::put_blob(&mut client, "beside", SMALL);
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// The longest wait of many writes: checkpoints run beside them.
fn longest_wait(server: &Server, size: &Size) {
    let waits = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut client = Client::of(server);
                    let waits = (0..size.writes / WRITERS).map(|n| {
                        let begun = Instant::now();
                        rows::put_blob(&mut client, &format!("steady{writer}-{n}"), SMALL);
                        begun.elapsed()
                    });
                    waits.collect::<Vec<_>>()
                })
            })
            .collect();
        let waits = writers.into_iter().map(|writer| writer.join().expect("the writer ends"));
        let mut waits: Vec<_> = waits.flatten().collect();
        waits.sort_unstable();
        waits
    });
    let [.., longest] = waits[..] else { return };
    let most = waits[waits.len() * 999 / 1000];
    print(&format!("longest wait of {} writes", waits.len()), longest, Duration::from_millis(50));
    println!("| 99.9 % of these writes | | {most:.1?} | | |");
}

/// Memory while many long uploads are on their way.
fn uploads(server: &Server, size: &Size) {
    let before = server.resident();
    let addr = server.addrs[Service::Blob as usize].expect("latchfs has blobs");
    let headers = [("x-ms-blob-type", "BlockBlob")];
    let mut streams: Vec<TcpStream> = (0..size.uploads)
        .map(|n| {
            let target = format!("/bench/upload{n}");
            let request = Request::new("PUT", &target, 201).headers(&headers);
            let request = Request { announced: Some(UPLOAD_BYTES), ..request };
            let mut stream = TcpStream::connect(addr).expect("it listens");
            let head = head_of(Service::Blob, &request);
            stream.write_all(head.as_bytes()).expect("the server reads");
            stream
        })
        .collect();
    let piece = rows::bytes(SMALL * 16);
    let mut most = 0;
    // In turn, so that all of them are under way at once.
    for _ in 0..size.sent.div_ceil(piece.len()) {
        for (n, stream) in streams.iter_mut().enumerate() {
            stream.write_all(piece).unwrap_or_else(|error| panic!("upload {n}: {error}"));
        }
        most = most.max(server.resident());
    }
    let (before, most) = (before / 1_000_000, most / 1_000_000);
    let verdict = if most <= 100 { "met" } else { "MISSED" };
    let name =
        format!("resident, {} uploads of 100 MB in flight (before: {before} MB)", streams.len());
    println!("| {name} | | {most} MB | | under 100 MB {verdict} |");
}
