//! What tests ask of a REST listener, request by request.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::SocketAddr;

use super::http::{self, Got};

/// A listener, and the share that files are made in.
pub struct Rest {
    addr: SocketAddr,
    share: &'static str,
}

impl Rest {
    /// The listener at that address.
    pub fn new(addr: SocketAddr, share: &'static str) -> Self {
        Self { addr, share }
    }

    /// Sends a request to `/ACCOUNT` followed by `target`.
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        http::ask(self.addr, method, target, headers, body)
    }

    pub fn get(&self, target: &str) -> Got {
        self.ask("GET", target, &[], b"")
    }

    pub fn head(&self, target: &str) -> Got {
        self.ask("HEAD", target, &[], b"")
    }

    pub fn put(&self, target: &str, headers: &[(&str, &str)]) -> Got {
        self.ask("PUT", target, headers, b"")
    }

    pub fn delete(&self, target: &str) -> Got {
        self.ask("DELETE", target, &[], b"")
    }

    /// Makes a file with these bytes, as clients do: Create File, Put Range.
    pub fn upload(&self, name: &str, bytes: &[u8]) {
        let length = bytes.len().to_string();
        let target = format!("/{}/{name}", self.share);
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", length.as_str())];
        self.put(&target, &headers).is(201);
        if !bytes.is_empty() {
            self.put_range(&target, 0, bytes, &[]).is(201);
        }
    }

    pub fn put_range(&self, target: &str, at: usize, bytes: &[u8], more: &[(&str, &str)]) -> Got {
        let range = format!("bytes={at}-{}", at + bytes.len() - 1);
        let mut headers = vec![("x-ms-range", range.as_str()), ("x-ms-write", "update")];
        headers.extend_from_slice(more);
        self.ask("PUT", &format!("{target}?comp=range"), &headers, bytes)
    }

    /// The URL of a file of the share, as copies and renames name their source.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{}/{}/{name}", self.addr, http::ACCOUNT, self.share)
    }
}
