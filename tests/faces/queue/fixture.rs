//! A Queue service in this process, with a clock that is turned by hand, and what tests ask of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use latchfs::clock::{ManualClock, TimeSource};
use latchfs::disk::DataRoot;
use latchfs::http::auth::Credential;
use latchfs::http::server::RestServer;
use latchfs::rules::Timestamp;
use latchfs::rules::service::ServiceKind;
use latchfs::server::{AccountOptions, Accounts};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::common::http;
pub use crate::common::http::{ACCOUNT, Got};
use crate::service;

/// When the clock starts: 2026-01-05T10:00:00Z.
pub const START: Timestamp = Timestamp(1_767_607_200_000_000_000);

/// A server with the queue `queue`.
pub struct Fixture {
    pub server: Option<RestServer>,
    pub accounts: Option<Arc<Accounts>>,
    pub clock: Arc<ManualClock>,
    pub addr: SocketAddr,
    root: Option<DataRoot>,
    folder: tempfile::TempDir,
    signed: bool,
}

/// A message as an answer shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub id: String,
    pub receipt: String,
    pub text: String,
    pub count: String,
    pub next_visible: String,
    pub inserted: String,
    pub expires: String,
}

impl Fixture {
    /// Lets every request in.
    pub fn new() -> Self {
        let fixture = Self::bare(false);
        fixture.put("/queue", &[]).is(201);
        fixture
    }

    /// Lets in what is signed with the development key. The queue is there all the same.
    pub fn signed() -> Self {
        let mut fixture = Self::new();
        fixture.signed = true;
        fixture.restart();
        fixture
    }

    fn bare(signed: bool) -> Self {
        let mut fixture = Self {
            server: None,
            accounts: None,
            clock: Arc::new(ManualClock::new(START)),
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            root: None,
            folder: tempfile::tempdir().unwrap(),
            signed,
        };
        fixture.restart();
        fixture
    }

    /// Ends server and engine, and starts both on what is left.
    pub fn restart(&mut self) {
        self.server = None;
        self.accounts = None;
        self.root = None;
        let root = DataRoot::open(self.folder.path()).unwrap();
        let clock: Arc<dyn TimeSource> = Arc::<ManualClock>::clone(&self.clock);
        let options = AccountOptions { clock, ..AccountOptions::default() };
        let accounts = Arc::new(Accounts::open(&root, ACCOUNT, [""; 0], &options).unwrap());
        let table = &latchfs::queue::rest::operations::SERVICE_TABLE;
        let server = service::listen(&accounts, table, |options| {
            if self.signed {
                options.admission = service::signed();
            }
        });
        self.addr = server.addr();
        (self.server, self.accounts, self.root) = (Some(server), Some(accounts), Some(root));
    }

    /// Lets every request in for a while.
    pub fn open_to_all(&mut self, asks: impl FnOnce(&Self)) {
        self.signed = false;
        self.restart();
        asks(self);
        self.signed = true;
        self.restart();
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        http::ask(self.addr, method, target, headers, body)
    }

    /// Sends a request to another account or location.
    pub fn ask_path(&self, method: &str, path: &str) -> Got {
        http::ask_as_it_is(self.addr, &self.addr.to_string(), method, path, &[], b"")
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

    /// Put Message with this text and query.
    pub fn send_with(&self, text: &str, query: &str) -> Got {
        let target = format!("/queue/messages{query}");
        self.ask("POST", &target, &[], document(text).as_bytes())
    }

    pub fn send(&self, text: &str) -> Message {
        one(&self.send_with(text, "").is(201))
    }

    /// Get Messages with this query.
    pub fn take(&self, query: &str) -> Vec<Message> {
        messages(&self.get(&format!("/queue/messages{query}")).is(200))
    }

    /// Gets the one message there is.
    pub fn take_one(&self, query: &str) -> Message {
        one(&self.get(&format!("/queue/messages{query}")).is(200))
    }

    pub fn peek(&self) -> Vec<Message> {
        messages(&self.get("/queue/messages?peekonly=true&numofmessages=32").is(200))
    }

    /// Update Message with this query behind the receipt, and this body.
    pub fn update(&self, id: &str, receipt: &str, more: &str, body: &str) -> Got {
        let target = format!("{}{more}", message_target(id, receipt));
        self.ask("PUT", &target, &[], body.as_bytes())
    }

    pub fn remove(&self, id: &str, receipt: &str) -> Got {
        self.delete(&message_target(id, receipt))
    }

    /// The approximate count of the queue.
    pub fn count(&self) -> u64 {
        let got = self.get("/queue?comp=metadata").is(200);
        got.header("x-ms-approximate-messages-count").parse().unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // The server goes before what it serves.
        self.server = None;
        self.accounts = None;
    }
}

/// The path and query that name a message in a state.
pub fn message_target(id: &str, receipt: &str) -> String {
    format!("/queue/messages/{id}?popreceipt={}", encoded(receipt))
}

pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The document of a message with this text, as a client writes it.
pub fn document(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('\r', "&#xD;");
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

/// The contents of each element of that name.
pub fn elements(document: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts = document.split(&open).skip(1);
    parts.map(|part| part.split(&close).next().unwrap().to_owned()).collect()
}

/// The content of the first element of that name; empty if there is none.
pub fn element(document: &str, name: &str) -> String {
    elements(document, name).into_iter().next().unwrap_or_default()
}

/// The messages of an answer.
pub fn messages(got: &Got) -> Vec<Message> {
    let read = |document: String| Message {
        id: element(&document, "MessageId"),
        receipt: element(&document, "PopReceipt"),
        text: element(&document, "MessageText")
            .replace("&#13;", "\r")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&amp;", "&"),
        count: element(&document, "DequeueCount"),
        next_visible: element(&document, "TimeNextVisible"),
        inserted: element(&document, "InsertionTime"),
        expires: element(&document, "ExpirationTime"),
    };
    elements(&got.text(), "QueueMessage").into_iter().map(read).collect()
}

/// The one message of an answer.
#[track_caller]
pub fn one(got: &Got) -> Message {
    let found = messages(got);
    assert_eq!(found.len(), 1, "{}", got.text());
    found.into_iter().next().unwrap()
}

/// The texts of messages.
pub fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_str()).collect()
}

/// A service SAS of the queue `queue`, as a query: permissions, expiry and policy.
pub fn queue_sas(permissions: &str, expiry: &str, policy: &str) -> String {
    let resource = format!("/{}/{ACCOUNT}/queue", ServiceKind::Queue.label());
    let version = "2026-10-06";
    let text = [permissions, "", expiry, &resource, policy, "", "", version].join("\n");
    let signature = Credential::development().key().sign(&text);
    let mut query = format!("sv={version}&sig={}", encoded(&signature));
    for (name, value) in [("sp", permissions), ("se", expiry), ("si", policy)] {
        if !value.is_empty() {
            query = format!("{query}&{name}={}", encoded(value));
        }
    }
    query
}
