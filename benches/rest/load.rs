//! Signed requests over connections that stay open, and the load that many of them make.
//!
//! What is asked is decided in `rows`, who is asked in `servers`.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::clock::{SystemClock, TimeSource as _};
use latchfs::http::auth::{Credential, RequestView, Scheme, sign};
use latchfs::rules::time::rfc1123;

use crate::servers::{Server, Service};

/// The account that everybody knows.
pub const ACCOUNT: &str = "devstoreaccount1";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A request without its signature.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a str,
    /// Path and query, without the account.
    pub target: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
    /// The `Content-Length`, if it is not that of `body`.
    pub announced: Option<usize>,
    pub status: u16,
}

impl<'a> Request<'a> {
    pub fn new(method: &'a str, target: &'a str, status: u16) -> Self {
        Self { method, target, headers: &[], body: b"", announced: None, status }
    }

    pub fn headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }

    pub fn body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }
}

/// One client of a server: a connection to each of its services, opened when it is first used.
pub struct Client {
    addrs: [Option<SocketAddr>; Service::COUNT],
    connections: [Option<Connection>; Service::COUNT],
    /// Messages that this client got and did not delete yet: ID and pop receipt.
    pub messages: Vec<(String, String)>,
}

impl Client {
    pub fn of(server: &Server) -> Self {
        Self { addrs: server.addrs, connections: Default::default(), messages: Vec::new() }
    }

    /// Sends a request, insists on its status, and returns the body of the answer.
    pub fn ask(&mut self, service: Service, request: Request<'_>) -> &[u8] {
        let place = service as usize;
        let addr = self.addrs[place].expect("the server has this service");
        let connection = self.connections[place].get_or_insert_with(|| Connection::open(addr));
        let head = head_of(service, &request);
        let status = connection.send(&head, request.body);
        let answer = &connection.body;
        let Request { method, target, .. } = request;
        let text = || String::from_utf8_lossy(answer);
        assert_eq!(status, request.status, "{method} {target}: {}", text());
        answer
    }
}

/// The head of a request, signed as the service wants it. nginx looks at no signature, and is
/// sent one of the same length.
pub fn head_of(service: Service, request: &Request<'_>) -> String {
    let Request { method, target, headers, body, announced, .. } = *request;
    let now = SystemClock.now();
    let (date, length) = (rfc1123(now), announced.unwrap_or(body.len()).to_string());
    let target = if matches!(service, Service::Web | Service::Admin) {
        target.to_owned()
    } else {
        format!("/{ACCOUNT}{target}")
    };
    let (raw_path, raw_query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = headers.to_vec();
    headers.extend([("x-ms-date", &*date), ("x-ms-version", "2026-02-06")]);
    if method != "GET" {
        headers.push(("content-length", &length));
    }
    let key = Credential::development();
    let signature = if service == Service::Table {
        let signature = key.key().sign(&format!("{date}\n/{ACCOUNT}{raw_path}"));
        format!("SharedKeyLite {ACCOUNT}:{signature}")
    } else {
        let view = RequestView {
            method,
            raw_path,
            raw_query,
            headers: &headers,
            now,
            outside: now,
            https: false,
            client_ip: [127, 0, 0, 1].into(),
        };
        sign(&view, &key, Scheme::SharedKey)
    };
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    headers.push(("authorization", &signature));
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    head
}

/// A connection that takes one request after another.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Bytes in the buffer that were not used yet.
    unread: std::ops::Range<usize>,
    body: Vec<u8>,
}

impl Connection {
    fn open(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("it listens");
        stream.set_nodelay(true).expect("a socket has options");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has options");
        Self { stream, buffer: vec![0; 256 << 10], unread: 0..0, body: Vec::new() }
    }

    /// Sends a request and reads all of the answer: its status.
    fn send(&mut self, head: &str, body: &[u8]) -> u16 {
        if body.len() < 64 << 10 {
            self.stream.write_all(&[head.as_bytes(), body].concat()).expect("the server reads");
        } else {
            self.stream.write_all(head.as_bytes()).expect("the server reads");
            self.stream.write_all(body).expect("the server reads");
        }
        self.body.clear();
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().expect("a length");
            }
            chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
        }
        if !chunked {
            self.take(length);
        }
        while chunked {
            let length = usize::from_str_radix(&self.line(), 16).expect("a chunk's length");
            self.take(length);
            self.line();
            chunked = length > 0;
        }
        status
    }

    /// The next line of a head, without its end.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            let unread = &self.buffer[self.unread.clone()];
            let end = unread.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(unread.len(), |end| end + 1);
            line.extend_from_slice(&unread[..taken]);
            self.unread.start += taken;
            if end.is_some() {
                let line = String::from_utf8(line).expect("a head is text");
                return line.trim_end().to_owned();
            }
            self.read();
        }
    }

    /// Moves the next `length` bytes to the body.
    fn take(&mut self, mut length: usize) {
        while length > 0 {
            if self.unread.is_empty() {
                self.read();
            }
            let taken = length.min(self.unread.len());
            let from = self.unread.start;
            self.body.extend_from_slice(&self.buffer[from..from + taken]);
            self.unread.start += taken;
            length -= taken;
        }
    }

    fn read(&mut self) {
        let count = self.stream.read(&mut self.buffer).expect("the server answers");
        assert_ne!(count, 0, "the server hung up");
        self.unread = 0..count;
    }
}

/// What a load cost.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Processor time of the server per request, in microseconds.
    pub cpu_us: f64,
    pub per_second: f64,
}

impl Cost {
    /// None was measured yet.
    pub const NONE: Self = Self { cpu_us: f64::MAX, per_second: 0.0 };

    /// The better of both, figure by figure.
    pub fn or_better(self, other: Self) -> Self {
        Self {
            cpu_us: self.cpu_us.min(other.cpu_us),
            per_second: self.per_second.max(other.per_second),
        }
    }
}

/// Has the clients make `requests` requests in all, numbered from `first`: what that costs the
/// server.
pub fn pour(
    server: &Server,
    clients: &mut [Client],
    (first, requests): (usize, usize),
    step: impl Fn(&mut Client, usize) + Sync,
) -> Cost {
    let (before, begun) = (server.cpu(), Instant::now());
    let count = clients.len();
    thread::scope(|scope| {
        for (index, client) in clients.iter_mut().enumerate() {
            let step = &step;
            scope.spawn(move || {
                // Servers end connections that were idle while others were asked.
                client.connections = Default::default();
                (index..requests).step_by(count).for_each(|n| step(client, first + n));
            });
        }
    });
    let (used, took) = (server.cpu().saturating_sub(before), begun.elapsed());
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let requests = requests as f64;
    Cost { cpu_us: used.as_secs_f64() * 1e6 / requests, per_second: requests / took.as_secs_f64() }
}
