//! A server in this process, and an HTTP client of a few lines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use latchfs::core::create::OpenRequest;
use latchfs::core::{Access, Client, Owner, ShareMode, SharePath};
use latchfs::engine::account::NewShare;
use latchfs::engine::{Engine, EngineOptions, Handle, Share};
use latchfs::rest::{ErrorNames, Loose, RestOptions, Server};

/// The account that all requests name.
pub const ACCOUNT: &str = "devstoreaccount1";

/// A server with the share `docs`.
pub struct Fixture {
    pub server: Server,
    pub engine: Arc<Engine>,
    _folder: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub headers: HashMap<String, String>,
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

    /// The same, with a code, in header and body alike.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        let got = self.is(status);
        assert_eq!(got.code(), code, "{}", got.text());
        if !got.body.is_empty() {
            assert!(got.text().contains(&format!("<Code>{code}</Code>")), "{}", got.text());
        }
        got
    }
}

impl Fixture {
    pub fn new() -> Self {
        Self::with_names(ErrorNames::Article)
    }

    pub fn with_names(error_names: ErrorNames) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), EngineOptions::default()).unwrap();
        engine.create_share("docs", NewShare::default()).unwrap();
        let engine = Arc::new(engine);
        let options = RestOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            error_names,
            ..RestOptions::new(Arc::new(Loose::new([ACCOUNT])))
        };
        let server = Server::start(Arc::clone(&engine), options).unwrap();
        Self { server, engine, _folder: folder }
    }

    pub fn share(&self) -> Arc<Share> {
        self.engine.share("docs").unwrap()
    }

    /// Opens a file as a mount would.
    pub fn open(&self, name: &str, access: &str, share: &str) -> Handle {
        let client = Arc::new(Client { session: 7, name: "mount".to_owned() });
        let owner = Owner { client, pid: 4711, program: Some("excel".into()) };
        let (access, share) = (Access::parse(access).unwrap(), ShareMode::parse(share).unwrap());
        let request = OpenRequest::plain(access, share);
        let path = SharePath::new(name).unwrap();
        self.share().open(&owner, &path, &request).unwrap().handle
    }

    /// Sends a request to `/ACCOUNT` followed by `target`.
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let host = self.server.addr().to_string();
        self.ask_host(&host, method, &format!("/{ACCOUNT}{target}"), headers, body)
    }

    /// Sends a request as it is.
    pub fn ask_host(
        &self,
        host: &str,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Got {
        let given = |wanted: &str| headers.iter().any(|(name, _)| *name == wanted);
        let mut lines = vec![
            format!("{method} {target} HTTP/1.1"),
            format!("host: {host}"),
            "connection: close".to_owned(),
        ];
        if !given("x-ms-version") {
            lines.push("x-ms-version: 2026-10-06".to_owned());
        }
        if !given("content-length") {
            lines.push(format!("content-length: {}", body.len()));
        }
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        let text = lines.join("\r\n") + "\r\n\r\n";
        let mut stream = TcpStream::connect(self.server.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        // A refusal may come before all of it is read.
        let _ = stream.write_all(body);
        read_answer(stream, method == "HEAD")
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

    /// Makes a file of `docs` with these bytes, as clients do: Create File, Put Range.
    pub fn upload(&self, name: &str, bytes: &[u8]) {
        let length = bytes.len().to_string();
        let target = format!("/docs/{name}");
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
}

fn read_answer(stream: TcpStream, head: bool) -> Got {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {line:?}"));
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    reader.read_to_end(&mut body).unwrap();
    if head {
        assert!(body.is_empty(), "a HEAD was answered with a body");
    } else if status != 204 {
        assert_eq!(headers["content-length"], body.len().to_string());
    }
    Got { status, headers, body }
}
