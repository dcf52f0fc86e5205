//! A client of the HTTP API.

use std::net::SocketAddr;

use serde_json::Value;

use crate::common::http::{Got, ask, ask_as_it_is};
use crate::control::fixture::{Folder, Server};

/// The name that the tests have in the API.
pub const NAME: &str = "a test";

/// The API of a server.
pub struct Api {
    pub addr: SocketAddr,
    pub token: Option<String>,
}

impl Api {
    pub fn of(folder: &Folder) -> Self {
        let ready = folder.ready();
        let url = ready["admin"].as_str().unwrap();
        let addr: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
        Self { addr, token: ready["admin_token"].as_str().map(str::to_owned) }
    }

    /// Sends a request with these headers and the token.
    pub fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut all = headers.to_vec();
        all.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        ask_as_it_is(self.addr, &self.addr.to_string(), method, path, &all, body)
    }

    /// Calls without a body.
    pub fn get(&self, path: &str) -> Got {
        self.raw("GET", &format!("/api/v1/{path}"), &[], b"")
    }

    /// Calls something that changes something.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Got {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("x-latchfs-client", NAME)];
        self.raw(method, &format!("/api/v1/{path}"), &headers, body.as_bytes())
    }

    pub fn post(&self, path: &str, body: &Value) -> Got {
        self.send("POST", path, body)
    }

    pub fn delete(&self, path: &str) -> Got {
        self.send("DELETE", path, &Value::Null)
    }
}

/// The body of an answer.
pub fn body(got: &Got) -> Value {
    serde_json::from_slice(&got.body).unwrap_or_else(|_| panic!("no JSON: {got:?}"))
}

/// Fails unless the call was refused with this status and kind. Returns the error.
#[track_caller]
pub fn refused(got: Got, status: u16, kind: &str) -> Value {
    let got = got.is(status);
    let error = body(&got)["error"].clone();
    assert_eq!(error["kind"], kind, "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    error
}

/// A server with a share `docs` that has a file `a.txt`, and a container `box`.
pub fn serve(arguments: &[&str]) -> (Folder, Server, Api) {
    let folder = Folder::new();
    let all = [&["serve", "--no-mount", "--no-auth", "--share", "docs"], arguments].concat();
    let server = folder.start(&all);
    put_file(&folder, "a.txt");
    ask(folder.service("blob"), "PUT", "/box?restype=container", &[], b"").is(201);
    let api = Api::of(&folder);
    (folder, server, api)
}

/// Makes a file of five bytes in the share.
pub fn put_file(folder: &Folder, name: &str) {
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    ask(folder.listener(), "PUT", &format!("/docs/{name}"), &headers, b"").is(201);
}

/// Reads a file of the share.
pub fn get_file(folder: &Folder, name: &str) -> Got {
    ask(folder.listener(), "GET", &format!("/docs/{name}"), &[], b"")
}

/// Puts a blob into the container.
pub fn put_blob(folder: &Folder, name: &str, headers: &[(&str, &str)], content: &[u8]) -> Got {
    let all = [&[("x-ms-blob-type", "BlockBlob")], headers].concat();
    ask(folder.service("blob"), "PUT", &format!("/box/{name}"), &all, content)
}
