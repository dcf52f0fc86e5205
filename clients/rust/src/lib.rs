//! The program under test: reads a file of a share over HTTP, as any client of Azure Files does.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// What the service answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of the HTTP answer.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads a file. `endpoint` is `http://HOST:PORT/ACCOUNT`, and the server asks for no signature.
pub fn read_file(endpoint: &str, share: &str, path: &str) -> io::Result<Answer> {
    let wrong = || io::Error::other(format!("{endpoint} is not an endpoint"));
    let (host, account) =
        endpoint.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "GET /{account}/{share}/{path} HTTP/1.1\r\nHost: {host}\r\nx-ms-version: 2025-05-05\r\n\
         Connection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(wrong)?;
    let status = std::str::from_utf8(&answer[9..12]).ok().and_then(|text| text.parse().ok());
    Ok(Answer { status: status.ok_or_else(wrong)?, body: answer[head + 4..].to_vec() })
}
