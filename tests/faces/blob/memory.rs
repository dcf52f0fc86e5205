//! Bodies stream: what is in flight takes a bounded amount of memory.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::common::http::{self, ACCOUNT};
use crate::common::served::Served;

/// Uploads in flight at once, the length of each, and the bytes that are sent of one before the
/// next has its turn.
const UPLOADS: usize = 32;
const LENGTH: usize = 4 << 20;
const PIECE: usize = 256 << 10;
/// The most that they may take together: less than half of their bytes.
const MEMORY_MAX_KIB: u64 = 60 << 10;

/// A line of the status of the server's process, in KiB.
fn status_kib(served: &Served, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn uploads_in_flight_take_less_memory_than_their_bytes() {
    let args = ["--no-mount", "--no-auth", "--queue", "off", "--table", "off"];
    let served = Served::start(&args);
    let text = served.told("connection_string");
    let rest = text.split("BlobEndpoint=http://").nth(1).unwrap();
    let addr: SocketAddr = rest.split('/').next().unwrap().parse().unwrap();
    http::ask(addr, "PUT", "/con?restype=container", &[], b"").is(201);
    let before = status_kib(&served, "VmRSS:");
    let head = |n: usize| {
        format!(
            "PUT /{ACCOUNT}/con/b{n} HTTP/1.1\r\nhost: {addr}\r\nx-ms-version: 2026-10-06\r\n\
             x-ms-blob-type: BlockBlob\r\ncontent-length: {LENGTH}\r\nconnection: close\r\n\r\n"
        )
    };
    let mut streams: Vec<TcpStream> = (0..UPLOADS)
        .map(|n| {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.write_all(head(n).as_bytes()).unwrap();
            stream
        })
        .collect();
    let piece = vec![7; PIECE];
    for _ in 0..LENGTH / PIECE {
        for stream in &mut streams {
            stream.write_all(&piece).unwrap();
        }
    }
    for stream in &mut streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    let taken = status_kib(&served, "VmHWM:").saturating_sub(before);
    assert!(taken < MEMORY_MAX_KIB, "{taken} KiB for {UPLOADS} uploads of {LENGTH} bytes");
}
