//! The program under test: asks a storage service over HTTP, as any client of Azure Storage does.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// What the service answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of the HTTP answer.
    pub status: u16,
    /// The ETag; empty if it has none.
    pub etag: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads a file. `endpoint` is `http://HOST:PORT/ACCOUNT`, and the server asks for no signature.
pub fn read_file(endpoint: &str, share: &str, path: &str) -> io::Result<Answer> {
    ask(endpoint, "reader", "GET", &format!("{share}/{path}"), &[], b"")
}

/// Sends a request in the name of a client.
pub fn ask(
    endpoint: &str,
    client: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    let wrong = || io::Error::other(format!("{endpoint} is not an endpoint"));
    let (host, account) =
        endpoint.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
    let mut stream = TcpStream::connect(host)?;
    let mut head = format!(
        "{method} /{account}/{path} HTTP/1.1\r\nHost: {host}\r\nx-ms-version: 2025-05-05\r\n\
         x-latchfs-client: {client}\r\nContent-Length: {}\r\nConnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(wrong)?;
    let lines = String::from_utf8_lossy(&answer[..head]).into_owned();
    let status = lines.get(9..12).and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let etag = lines.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("etag").then(|| value.to_owned())
    });
    Ok(Answer { status, etag: etag.unwrap_or_default(), body: answer[head + 4..].to_vec() })
}
