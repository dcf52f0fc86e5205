//! Signed requests, sent again and again over connections that stay open.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::core::stamp::rfc1123;
use latchfs::engine::{Clock as _, SystemClock};
use latchfs::rest::auth::{Account, RequestView, Scheme, sign};

/// Connections at a time.
const CONNECTIONS: usize = 4;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request as it goes over the wire.
#[derive(Clone)]
pub struct Ask(Vec<u8>);

impl Ask {
    /// Signs a request of the well-known account. `target` has path and query.
    pub fn signed(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let now = SystemClock.now();
        let (date, length) = (rfc1123(now), body.len().to_string());
        let mut headers = headers.to_vec();
        headers.extend([("x-ms-date", &*date), ("x-ms-version", "2026-02-06")]);
        if method != "GET" {
            headers.push(("content-length", &length));
        }
        let (raw_path, raw_query) = target.split_once('?').unwrap_or((target, ""));
        let client_ip = [127, 0, 0, 1].into();
        let view = RequestView {
            method,
            raw_path,
            raw_query,
            headers: &headers,
            now,
            https: false,
            client_ip,
        };
        let signature = sign(&view, &Account::development(), Scheme::SharedKey);
        headers.extend([("authorization", &*signature), ("host", "127.0.0.1")]);
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines = lines.collect::<Vec<_>>().concat();
        let mut bytes = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n").into_bytes();
        bytes.extend_from_slice(body);
        Self(bytes)
    }
}

/// A connection that takes one request after another.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub fn open(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("it listens");
        stream.set_nodelay(true).expect("a socket has options");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has options");
        Self { stream, buffer: vec![0; 256 << 10] }
    }

    /// Sends a request and reads all of the answer: its status.
    pub fn send(&mut self, ask: &Ask) -> u16 {
        self.stream.write_all(&ask.0).expect("the server reads");
        let (mut have, head_end) = self.read_head();
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.map_or(0, |text| text.trim().parse::<usize>().expect("a length"));
        assert!(!head.contains("transfer-encoding"), "a length was expected: {head}");
        while have < head_end + length {
            have += self.read(0);
        }
        status
    }

    /// How many bytes came, and how many of them are head.
    fn read_head(&mut self) -> (usize, usize) {
        let mut have = 0;
        loop {
            have += self.read(have);
            let end = self.buffer[..have].windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                return (have, end + 4);
            }
        }
    }

    fn read(&mut self, from: usize) -> usize {
        let count = self.stream.read(&mut self.buffer[from..]).expect("the server answers");
        assert_ne!(count, 0, "the server hung up");
        count
    }
}

/// Asks for something once, and insists on the status.
pub fn ask_once(addr: SocketAddr, ask: &Ask, status: u16) {
    assert_eq!(Connection::open(addr).send(ask), status);
}

/// Sends a request over all connections for that long: the number of answers and the time taken.
pub fn pour(addr: SocketAddr, ask: &Ask, status: u16, duration: Duration) -> (u64, Duration) {
    let answers = AtomicU64::new(0);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut connection = Connection::open(addr);
                while begun.elapsed() < duration {
                    assert_eq!(connection.send(ask), status);
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (answers.into_inner(), begun.elapsed())
}
