//! Multipart bodies of batches: parts, and the HTTP requests and answers inside them.
//!
//! Decides the form that clients send and read: `multipart/mixed` with parts of `application/http`,
//! RFC 2046 and RFC 9112. The service decides which parts a batch may have, and what they mean.

use std::fmt::{self, Write as _};

use memchr::memmem;

/// Headers that one part may have.
const HEADERS_MAX: usize = 64;
/// Characters of a boundary, RFC 2046 5.1.1.
const BOUNDARY_MAX: usize = 70;

/// A part of a multipart body, or an HTTP message within one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    /// Its headers in their order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The bytes after its headers.
    pub body: &'a [u8],
}

/// An HTTP request within a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerRequest<'a> {
    pub method: &'a str,
    /// The target: an absolute URL or a path, as it was sent.
    pub target: &'a str,
    /// The headers in their order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body without the line ends around it.
    pub body: &'a [u8],
}

/// Why a multipart body cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// No boundary in the content type.
    #[error("the content type is not multipart/mixed with a boundary")]
    NoBoundary,
    /// The body does not have the boundary of its content type.
    #[error("the body does not begin with its boundary")]
    NotFound,
    /// The boundary that ends the body is missing.
    #[error("the body ends before its last boundary")]
    Truncated,
    /// More parts than allowed.
    #[error("the body has too many parts")]
    TooMany,
    /// A header that is none.
    #[error("a part has a line that is not a header")]
    Header,
    /// The first line of a request is none.
    #[error("a part does not begin with a request line")]
    RequestLine,
    /// The body is not as long as its header says.
    #[error("the body of a part is shorter than its Content-Length")]
    Length,
}

/// The value of a header, by its name in any case.
pub fn header<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// The boundary of `multipart/mixed; boundary=X`, quoted or not.
pub fn boundary(content_type: &str) -> Result<&str, Malformed> {
    let mut parameters = content_type.split(';').map(str::trim);
    let mixed = parameters.next().is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/mixed"));
    let value = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim_end().eq_ignore_ascii_case("boundary").then(|| value.trim())
    });
    let value = value.map(|value| {
        value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
    });
    let legal = |value: &&str| (1..=BOUNDARY_MAX).contains(&value.len()) && !value.contains('"');
    value.filter(|_| mixed).filter(legal).ok_or(Malformed::NoBoundary)
}

/// The parts between boundaries, at most `most`. What stands before the first boundary and after
/// the last is ignored; lines may end with a line feed alone.
pub fn parts<'a>(body: &'a [u8], boundary: &str, most: usize) -> Result<Vec<Part<'a>>, Malformed> {
    let delimiter = format!("--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    let mut at = find_line(&finder, body, 0).ok_or(Malformed::NotFound)?;
    let mut parts = Vec::new();
    loop {
        let after = at + delimiter.len();
        if body[after..].starts_with(b"--") {
            return Ok(parts);
        }
        let begin = after + line_end(&body[after..]).ok_or(Malformed::Truncated)?;
        let next = find_line(&finder, body, begin).ok_or(Malformed::Truncated)?;
        if parts.len() == most {
            return Err(Malformed::TooMany);
        }
        parts.push(part(without_line_end(&body[begin..next]))?);
        at = next;
    }
}

/// The next boundary at the beginning of a line, from `from` on. One that goes on with other
/// characters belongs to another body.
fn find_line(finder: &memmem::Finder<'_>, body: &[u8], from: usize) -> Option<usize> {
    let length = finder.needle().len();
    finder.find_iter(&body[from..]).map(|found| from + found).find(|found| {
        let begins = *found == 0 || body[found - 1] == b'\n';
        let rest = &body[found + length..];
        let ends = rest.starts_with(b"--") || line_end(rest).is_some();
        begins && ends
    })
}

/// The length of the rest of a line if only blanks are on it, its end included.
fn line_end(rest: &[u8]) -> Option<usize> {
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match &rest[blanks..] {
        [b'\r', b'\n', ..] => Some(blanks + 2),
        [b'\n', ..] => Some(blanks + 1),
        _ => None,
    }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Splits headers from what follows the first empty line.
fn part(bytes: &[u8]) -> Result<Part<'_>, Malformed> {
    let mut rest = bytes;
    let mut headers = Vec::new();
    loop {
        let (line, after) = next_line(rest);
        rest = after;
        if line.is_empty() {
            return Ok(Part { headers, body: rest });
        }
        if headers.len() == HEADERS_MAX {
            return Err(Malformed::Header);
        }
        let line = std::str::from_utf8(line).map_err(|_| Malformed::Header)?;
        let (name, value) = line.split_once(':').ok_or(Malformed::Header)?;
        if name.is_empty() || name.contains(|letter: char| !is_token(letter)) {
            return Err(Malformed::Header);
        }
        headers.push((name, value.trim()));
    }
}

fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}

/// The line without its end, and what follows it.
fn next_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => (without_line_end(&bytes[..=at]), &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}

/// Reads the HTTP request in the body of a part. Empty lines around it and around its body are
/// ignored; a `Content-Length` that fits cuts the body.
pub fn inner_request(bytes: &[u8]) -> Result<InnerRequest<'_>, Malformed> {
    let (line, rest) = next_line(bytes.trim_ascii_start());
    let line = std::str::from_utf8(line).map_err(|_| Malformed::RequestLine)?;
    let (method, rest_of_line) = line.split_once(' ').ok_or(Malformed::RequestLine)?;
    // A target may hold blanks that a client did not escape.
    let (target, version) = rest_of_line.trim().rsplit_once(' ').ok_or(Malformed::RequestLine)?;
    let target = target.trim();
    let legal = !method.is_empty()
        && method.bytes().all(|byte| byte.is_ascii_uppercase())
        && !target.is_empty()
        && version.starts_with("HTTP/1.");
    if !legal {
        return Err(Malformed::RequestLine);
    }
    let Part { headers, body } = part(rest)?;
    let body = match header(&headers, "content-length") {
        None => body.trim_ascii(),
        Some(text) => {
            let length: usize = text.parse().map_err(|_| Malformed::Length)?;
            let body = if length == 0 { body } else { without_empty_lines(body) };
            body.get(..length).ok_or(Malformed::Length)?.trim_ascii()
        }
    };
    Ok(InnerRequest { method, target, headers, body })
}

/// Some clients send two empty lines before a body, of which the length counts none.
fn without_empty_lines(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_prefix(b"\r\n").or_else(|| bytes.strip_prefix(b"\n")) {
        bytes = rest;
    }
    bytes
}

/// Writes a multipart body, with CR LF at the end of every line.
#[derive(Debug)]
pub struct MultipartWriter {
    out: String,
    boundary: String,
}

impl MultipartWriter {
    /// Begins a body with that boundary.
    pub fn new(boundary: String) -> Self {
        Self { out: String::new(), boundary }
    }

    /// The value of `Content-Type`.
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Appends a part with these headers.
    pub fn part<N: fmt::Display, V: fmt::Display>(
        &mut self,
        headers: impl IntoIterator<Item = (N, V)>,
        body: &str,
    ) {
        // Writing to a String does not fail.
        let _ = write!(self.out, "--{}\r\n", self.boundary);
        for (name, value) in headers {
            let _ = write!(self.out, "{name}: {value}\r\n");
        }
        self.out.push_str("\r\n");
        self.out.push_str(body);
        if !body.ends_with("\r\n") {
            self.out.push_str("\r\n");
        }
    }

    pub fn finish(mut self) -> String {
        let _ = write!(self.out, "--{}--\r\n", self.boundary);
        self.out
    }
}

/// An HTTP answer as the body of a part. Without a body it ends with two empty lines, as clients
/// expect.
pub fn inner_answer<N: fmt::Display, V: fmt::Display>(
    (status, reason): (u16, &str),
    headers: impl IntoIterator<Item = (N, V)>,
    body: &str,
) -> String {
    let mut out = format!("HTTP/1.1 {status} {reason}\r\n");
    for (name, value) in headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out.push_str("\r\n");
    out.push_str(body);
    out.push_str("\r\n");
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A batch of the Python client.
    const PYTHON: &str = "--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_b\r\n\r\n\
        --changeset_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
        Content-ID: 0\r\n\r\nPOST http://127.0.0.1:10002/acct/tab HTTP/1.1\r\n\
        x-ms-version: 2019-02-02\r\nContent-Type: application/json\r\n\
        Accept: application/json;odata=minimalmetadata\r\nContent-Length: 33\r\n\
        Date: Mon, 05 Jan 2026 10:00:00 GMT\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\r\n\
        --changeset_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
        Content-ID: 1\r\n\r\n\
        DELETE http://127.0.0.1:10002/acct/tab(PartitionKey='p',RowKey='z') HTTP/1.1\r\n\
        If-Match: *\r\n\r\n\r\n--changeset_b--\r\n\r\n--batch_a--\r\n";

    /// A batch of the JS client.
    const JS: &str = "--batch_a\r\ncontent-type: multipart/mixed; boundary=changeset_b\r\n\r\n\r\n\
        --changeset_b\r\ncontent-type: application/http\r\n\
        content-transfer-encoding: binary\r\n\r\n\
        POST http://127.0.0.1:10002/acct/tab HTTP/1.1\r\naccept: application/json\r\n\
        prefer: return-no-content\r\n\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\r\n\
        --changeset_b\r\ncontent-type: application/http\r\n\
        content-transfer-encoding: binary\r\n\r\n\
        DELETE http://127.0.0.1:10002/acct/tab(PartitionKey='p',RowKey='z') HTTP/1.1\r\n\
        if-match: *\r\n\r\n--changeset_b--\r\n--batch_a--";

    fn read(body: &str) -> Vec<(String, String, String)> {
        let outer = parts(body.as_bytes(), "batch_a", 2).unwrap();
        assert_eq!(outer.len(), 1);
        let inner = boundary(header(&outer[0].headers, "Content-Type").unwrap()).unwrap();
        let inner = parts(outer[0].body, inner, 100).unwrap();
        let requests = inner.iter().map(|part| {
            assert_eq!(header(&part.headers, "CONTENT-TYPE"), Some("application/http"));
            let request = inner_request(part.body).unwrap();
            let body = String::from_utf8(request.body.to_vec()).unwrap();
            (request.method.to_owned(), request.target.to_owned(), body)
        });
        requests.collect()
    }

    #[test]
    fn bodies_of_both_clients_read_alike_also_with_bare_line_feeds_t68() {
        let base = "http://127.0.0.1:10002/acct/tab";
        let expected = [
            ("POST".into(), base.into(), "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}".into()),
            ("DELETE".into(), format!("{base}(PartitionKey='p',RowKey='z')"), String::new()),
        ];
        for body in [PYTHON, JS] {
            assert_eq!(read(body), expected);
            assert_eq!(read(&body.replace("\r\n", "\n")), expected);
            assert_eq!(read(&format!("preamble\r\n{body}\r\nepilogue")), expected);
        }
    }

    #[test]
    fn a_boundary_may_be_quoted_and_names_have_any_case() {
        for good in [
            "multipart/mixed; boundary=abc",
            "Multipart/Mixed;charset=x; Boundary=\"abc\"",
            "multipart/mixed ; boundary = abc ",
        ] {
            assert_eq!(boundary(good), Ok("abc"), "{good}");
        }
        let long = format!("multipart/mixed; boundary={}", "x".repeat(71));
        for bad in [
            "",
            "multipart/mixed",
            "multipart/form-data; boundary=abc",
            "multipart/mixed; boundary=",
            "multipart/mixed; boundary=\"\"",
            "application/json; boundary=abc",
            &long,
        ] {
            assert_eq!(boundary(bad), Err(Malformed::NoBoundary), "{bad}");
        }
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let body = PYTHON.as_bytes();
        for cut in 0..body.len() - 4 {
            let whole = parts(&body[..cut], "batch_a", 2).is_ok_and(|outer| {
                let inner = outer.first().map(|part| parts(part.body, "changeset_b", 100));
                matches!(inner, Some(Ok(inner)) if inner.len() == 2)
            });
            assert!(!whole, "{cut}");
        }
        assert_eq!(parts(b"", "b", 1), Err(Malformed::NotFound));
        assert_eq!(parts(b"--bb\r\n\r\n--bb--", "b", 1), Err(Malformed::NotFound));
        assert_eq!(parts(b"x--b\r\n\r\n--b--", "b", 1), Ok(vec![]));
        assert_eq!(parts(b"--b--", "b", 1), Ok(vec![]));
        assert_eq!(
            parts(b"--b\r\n\r\n1\r\n--b\r\n\r\n2\r\n--b--", "b", 1),
            Err(Malformed::TooMany)
        );
    }

    #[test]
    fn a_boundary_within_a_line_or_that_goes_on_is_content() {
        let body = b"--b\r\n\r\nx --b\r\n--bc\r\ny\r\n--b--";
        let found = parts(body, "b", 5).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].body, b"x --b\r\n--bc\r\ny");
    }

    #[test]
    fn a_request_needs_a_request_line() {
        for bad in [
            "",
            "GET",
            "GET /x",
            "GET /x HTTP/2.0\r\n",
            "get /x HTTP/1.1\r\n",
            " HTTP/1.1\r\n",
            "GET  HTTP/1.1\r\n",
        ] {
            assert_eq!(inner_request(bad.as_bytes()), Err(Malformed::RequestLine), "{bad}");
        }
        let bad = "GET /x HTTP/1.1\r\nno header\r\n\r\n";
        assert_eq!(inner_request(bad.as_bytes()), Err(Malformed::Header));
        let short = "PUT /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nab";
        assert_eq!(inner_request(short.as_bytes()), Err(Malformed::Length));
        let many = format!("GET /x HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        assert_eq!(inner_request(many.as_bytes()), Err(Malformed::Header));
    }

    #[test]
    fn an_answer_has_the_bytes_that_clients_read() {
        let mut changeset = MultipartWriter::new("changesetresponse_d".into());
        let head = [("Content-Type", "application/http"), ("Content-Transfer-Encoding", "binary")];
        changeset.part(head, &inner_answer((204, "No Content"), [("ETag", "W/\"x\"")], ""));
        changeset.part(head, &inner_answer((409, "Conflict"), [("A", "b")], "{\"e\":1}"));
        let mut batch = MultipartWriter::new("batchresponse_c".into());
        assert_eq!(batch.content_type(), "multipart/mixed; boundary=batchresponse_c");
        let content_type = changeset.content_type();
        batch.part([("Content-Type", &content_type)], &changeset.finish());
        assert_eq!(
            batch.finish(),
            "--batchresponse_c\r\nContent-Type: multipart/mixed; boundary=changesetresponse_d\r\n\
             \r\n--changesetresponse_d\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nETag: W/\"x\"\r\n\
             \r\n\r\n--changesetresponse_d\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 409 Conflict\r\nA: b\r\n\r\n\
             {\"e\":1}\r\n--changesetresponse_d--\r\n--batchresponse_c--\r\n"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bodies in prop::collection::vec("[ -~]{0,40}", 0..6)) {
            let mut writer = MultipartWriter::new("b_1".into());
            for body in &bodies {
                writer.part([("X", "y")], body);
            }
            let text = writer.finish();
            let read = parts(text.as_bytes(), "b_1", 6).unwrap();
            let read: Vec<_> = read.iter().map(|part| part.body.to_vec()).collect();
            let given: Vec<_> = bodies.iter().map(|body| body.as_bytes().to_vec()).collect();
            prop_assert_eq!(read, given);
        }

        #[test]
        fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parts(&body, "b", 3);
            let _ = inner_request(&body);
        }

        #[test]
        fn no_pieces_panic(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "--b", "--b--", "--", "\r\n", "\n", "\r", " ", "A: b", ":", "GET / HTTP/1.1",
                    "Content-Length: 3", "Content-Length: -1", "{}", "é",
                ]),
                0..30,
            )
        ) {
            let body = pieces.concat();
            if let Ok(parts) = parts(body.as_bytes(), "b", 10) {
                for part in parts {
                    let _ = inner_request(part.body);
                }
            }
            let _ = inner_request(body.as_bytes());
            let _ = boundary(&body);
        }
    }
}
