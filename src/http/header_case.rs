//! Keeps the case of metadata names on the wire.
//!
//! Metadata names keep their case, and some clients show them to their users. The HTTP library
//! gives header names in lower case; it remembers the original case and writes it again, but does
//! not expose it. Therefore a connection in memory is used: to learn a spelling, the library writes
//! the headers again; to send one, it reads the headers first. Only requests and answers with
//! metadata pay for this.
//!
//! Decides nothing: a spelling that cannot be learned is the lower case.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Mutex;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// The start of the header of a metadata name.
pub const META: &str = "x-ms-meta-";

/// Bytes on their way at a time.
const PIPE_BYTES: usize = 16 << 10;
/// The most names whose spelling is kept in an answer: 8 KiB of metadata have no more.
const NAMES_MAX: usize = 4_096;

/// The metadata headers of a request as they were spelled. `known` is what the library remembers
/// of it.
pub async fn read(headers: &HeaderMap, known: Extensions) -> Vec<String> {
    let mut names = HeaderMap::new();
    for name in headers.keys().filter(|name| name.as_str().starts_with(META)) {
        names.insert(name.clone(), HeaderValue::from_static(""));
    }
    if names.is_empty() {
        return Vec::new();
    }
    let written = converse(b"GET / HTTP/1.0\r\n\r\n", |_| {
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.headers_mut() = names.clone();
        *response.extensions_mut() = known.clone();
        response
    });
    let text = String::from_utf8(written.await.unwrap_or_default()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let is_ours = |name: &&str| names.contains_key(*name);
    lines.map(|(name, _)| name).filter(is_ours).map(str::to_owned).collect()
}

/// The extensions that make the library write these headers of an answer in this case.
pub async fn write(headers: &[String]) -> Extensions {
    let lines: String = headers.iter().flat_map(|name| [name.as_str(), ":\r\n"]).collect();
    let head = format!("GET / HTTP/1.0\r\n{lines}\r\n");
    let known = Mutex::new(Extensions::new());
    let read = converse(head.as_bytes(), |request| {
        if let Ok(mut known) = known.lock() {
            *known = request.into_parts().0.extensions;
        }
        Response::new(Empty::<Bytes>::new())
    });
    if let Err(error) = read.await {
        log::debug!("metadata names are sent in lower case: {error}");
    }
    known.into_inner().unwrap_or_default()
}

/// Has the library read `head` and write what `answer` makes of it.
async fn converse(
    head: &[u8],
    answer: impl Fn(Request<Incoming>) -> Response<Empty<Bytes>>,
) -> io::Result<Vec<u8>> {
    let (mut near, far) = duplex(PIPE_BYTES);
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(request))));
    let served = http1::Builder::new()
        .preserve_header_case(true)
        .keep_alive(false)
        .max_headers(NAMES_MAX)
        .serve_connection(TokioIo::new(far), service);
    let asking = async {
        let mut written = Vec::new();
        near.write_all(head).await?;
        near.read_to_end(&mut written).await?;
        Ok::<_, io::Error>(written)
    };
    let (served, written) = tokio::join!(served, asking);
    served.map_err(io::Error::other)?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_spelling_that_was_written_is_read_again() {
        let names: Vec<_> =
            (0..200).map(|number| format!("x-ms-meta-Mixed{number}{}", "X".repeat(200))).collect();
        let mut headers = HeaderMap::new();
        for name in names.iter().map(String::as_str).chain(["x-ms-date"]) {
            let name = hyper::header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.insert(name, HeaderValue::from_static("some value"));
        }
        let mut spelled = read(&headers, write(&names).await).await;
        spelled.sort();
        let mut expected = names.clone();
        expected.sort();
        assert_eq!(spelled, expected);
    }

    #[tokio::test]
    async fn what_the_library_does_not_remember_is_in_lower_case() {
        let mut headers = HeaderMap::new();
        assert_eq!(read(&headers, Extensions::new()).await, [""; 0]);
        headers.insert("x-ms-meta-a", HeaderValue::from_static("1"));
        assert_eq!(read(&headers, Extensions::new()).await, ["x-ms-meta-a"]);
    }
}
