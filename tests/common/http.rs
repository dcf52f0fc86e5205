//! An HTTP client of a few lines: one request, one connection, and all of the answer to look at.
//!
//! It signs nothing: the servers it asks run with `--no-auth`. Real clients sign, in
//! tests/world/clients.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The account that all requests name.
pub const ACCOUNT: &str = "devstoreaccount1";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Got {
    pub status: u16,
    /// By name in lower case.
    pub headers: HashMap<String, String>,
    /// The names as they came.
    pub spelled: Vec<String>,
    pub body: Vec<u8>,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn code(&self) -> &str {
        self.header("x-ms-error-code")
    }

    /// Fails with all that was answered, unless it has this status.
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}\n{}", self.text());
        self
    }

    /// The same, with a code, in header and body (XML or JSON) alike.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        let got = self.is(status);
        assert_eq!(got.code(), code, "{}", got.text());
        if got.body.starts_with(b"{") {
            assert_eq!(got.json()["odata.error"]["code"], code);
        } else if !got.body.is_empty() {
            assert!(got.text().contains(&format!("<Code>{code}</Code>")), "{}", got.text());
        }
        got
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The message of an error of the Table service.
    pub fn message(&self) -> String {
        self.json()["odata.error"]["message"]["value"].as_str().unwrap().to_owned()
    }

    /// The tokens of the next page of a table, empty without one.
    pub fn continuation(&self) -> (String, String) {
        let token = |name: &str| self.header(&format!("x-ms-continuation-{name}")).to_owned();
        (token("nextpartitionkey"), token("nextrowkey"))
    }

    /// Status, code and message of the one part of a transaction that failed.
    #[track_caller]
    pub fn fault(self) -> (u16, String, String) {
        let text = self.is(202).text();
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
        let status = text.split("HTTP/1.1 ").nth(1).unwrap()[..3].parse().unwrap();
        let body = text.split("\r\n").find(|line| line.starts_with('{')).expect("a JSON error");
        let error: Value = serde_json::from_str(body).unwrap();
        let error = &error["odata.error"];
        let message = error["message"]["value"].as_str().unwrap().to_owned();
        (status, error["code"].as_str().unwrap().to_owned(), message)
    }
}

/// Sends a request to `/ACCOUNT` followed by `target`.
pub fn ask(
    addr: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Got {
    ask_as_it_is(addr, &addr.to_string(), method, &format!("/{ACCOUNT}{target}"), headers, body)
}

/// Sends a request to `host` as it is, with a version and a length unless they are given.
pub fn ask_as_it_is(
    addr: SocketAddr,
    host: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Got {
    let first = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close");
    let text = head(first, headers, body);
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    // The server reads on after a refusal, so that this client gets to read it.
    stream.write_all(body).unwrap();
    read_answer(stream, method == "HEAD")
}

/// The head of a request, with a version and a length unless they are given.
fn head(first: String, headers: &[(&str, &str)], body: &[u8]) -> String {
    let given = |wanted: &str| headers.iter().any(|(name, _)| *name == wanted);
    let mut lines = vec![first];
    if !given("x-ms-version") {
        lines.push("x-ms-version: 2026-10-06".to_owned());
    }
    if !given("content-length") {
        lines.push(format!("content-length: {}", body.len()));
    }
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.join("\r\n") + "\r\n\r\n"
}

/// An answer without its body, which comes next.
fn read_head(reader: &mut impl BufRead) -> io::Result<Got> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {line:?}"));
    let (mut headers, mut spelled) = (HashMap::new(), Vec::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        spelled.push(name.to_owned());
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(Got { status, headers, spelled, body: Vec::new() })
}

/// A connection that is kept from one request to the next.
pub struct Kept(BufReader<TcpStream>);

impl Kept {
    pub fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request to `/ACCOUNT` followed by `target`. An error says that the server was gone
    /// before all of the answer was there.
    pub fn ask(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Got> {
        self.ask_at(method, &format!("/{ACCOUNT}{target}"), headers, body)
    }

    /// Sends a request to `/account` followed by `target`.
    pub fn ask_of(
        &mut self,
        account: &str,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Got> {
        self.ask_at(method, &format!("/{account}{target}"), headers, body)
    }

    /// Sends a request to `target` as it is.
    pub fn ask_at(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Got> {
        let host = self.0.get_ref().peer_addr()?;
        let first = format!("{method} {target} HTTP/1.1\r\nhost: {host}");
        let mut text = head(first, headers, body).into_bytes();
        text.extend(body);
        self.0.get_mut().write_all(&text)?;
        let mut got = read_head(&mut self.0)?;
        let length = got.headers.get("content-length").and_then(|length| length.parse().ok());
        got.body = vec![0; if method == "HEAD" { 0 } else { length.unwrap_or(0) }];
        self.0.read_exact(&mut got.body)?;
        Ok(got)
    }
}

fn read_answer(stream: TcpStream, head: bool) -> Got {
    let mut reader = BufReader::new(stream);
    let mut got = read_head(&mut reader).unwrap();
    reader.read_to_end(&mut got.body).unwrap();
    if head {
        assert!(got.body.is_empty(), "a HEAD was answered with a body");
    } else if !matches!(got.status, 204 | 304) {
        assert_eq!(got.header("content-length"), got.body.len().to_string());
    }
    got
}
