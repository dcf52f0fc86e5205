//! A section of the page on a service: which operations it has, written from its table and a
//! server's own answers, and compared with what is there.
//!
//! A request comes from the service's table; that it is not implemented, from the server's answer
//! to it. A bare request is often a bad one, so any other answer says only that there is code for
//! it: that it does the right thing is for the tests of each operation. What no code knows is said
//! by the service: since which version an operation exists, and what is different here.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::host::{Host, HostedAccount};
use super::routing::{RouteRow, Verb, When};
use super::service::Service;
use crate::http::auth::{Admission, ResourceLevel};
use crate::http::server::{RestOptions, RestServer};

const ACCOUNT: &str = "devstoreaccount1";

/// What the words of the table mean.
const LEGEND: &str = "\
*501* and *done* are what a server answered to one request: *done* is any answer but 501, and does
not mean that every option works. *Since* is the service version that introduced the operation.
latchfs accepts every `x-ms-version` up to five years ahead; a request signed by a header must have
one. A test writes the table from the routes and a server's answers;
`LATCHFS_BLESS=1 cargo test --lib coverage` renews it.";

/// A service and its section of the page.
pub struct Coverage {
    pub service: &'static Service,
    /// The page, from the root of the repository.
    pub page: &'static str,
    /// The heading of its section.
    pub title: &'static str,
    pub rows: &'static [RouteRow],
    /// The paths of its levels, as people read them, and one that is asked for.
    pub paths: fn(ResourceLevel) -> (&'static str, &'static str),
    /// Makes what the requests ask about, before each of them.
    pub prepare: fn(&dyn HostedAccount),
    /// The groups of operations: what a name begins with.
    pub groups: &'static [&'static str],
    /// The version of the service that first had an operation.
    pub since: fn(&'static str) -> &'static str,
    /// The differences to the service that a user should know.
    pub differs: fn(&'static str) -> &'static str,
}

/// An operation with all its requests.
struct CoverageEntry {
    operation: &'static str,
    shapes: Vec<String>,
    done: bool,
}

impl Coverage {
    /// Fails if the section is not what the table and a server say; `LATCHFS_BLESS` renews it.
    /// `host` makes an account of that name in an empty folder.
    #[track_caller]
    pub fn check<H: Host + 'static>(&self, host: impl FnOnce(&Path, &str) -> Arc<H>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.page);
        let section = self.write(host);
        let page = std::fs::read_to_string(&path).unwrap();
        let start = page.find(&format!("## {}\n", self.title)).expect("the section's heading");
        let end = page[start..].find("\n\n## ").map_or(page.len(), |length| start + length + 1);
        if std::env::var_os("LATCHFS_BLESS").is_some() {
            let renewed = format!("{}{section}{}", &page[..start], &page[end..]);
            std::fs::write(&path, renewed).unwrap();
            return;
        }
        assert!(
            page[start..end] == section,
            "{} differs: renew it with LATCHFS_BLESS=1 cargo test --lib coverage",
            self.page
        );
    }

    fn write<H: Host + 'static>(&self, host: impl FnOnce(&Path, &str) -> Arc<H>) -> String {
        let entries = self.entries(host);
        let done = entries.iter().filter(|entry| entry.done).count();
        let mut page = format!(
            "## {}\n\n{done} of {} operations are implemented.\n\n{LEGEND}\n\n\
             | operation | request | status | since | different here |\n|---|---|---|---|---|\n",
            self.title,
            entries.len(),
        );
        for CoverageEntry { operation, shapes, done } in entries {
            let status = if done { "done" } else { "501" };
            let (name, shapes) = (self.name(operation), shapes.join("<br>"));
            let (since, differs) = ((self.since)(operation), (self.differs)(operation));
            writeln!(page, "| {name} | {shapes} | {status} | {since} | {differs} |").unwrap();
        }
        page
    }

    /// The rows of the page: the answer of the server to each operation.
    fn entries<H: Host + 'static>(
        &self,
        host: impl FnOnce(&Path, &str) -> Arc<H>,
    ) -> Vec<CoverageEntry> {
        let folder = tempfile::tempdir().unwrap();
        let accounts = host(folder.path(), ACCOUNT);
        let account = accounts.account(ACCOUNT).unwrap();
        let options = RestOptions::new(Admission::Everyone);
        let server = RestServer::start(Arc::clone(&accounts), self.service, options).unwrap();
        let shapes =
            vec!["OPTIONS of anything, `Origin`, `Access-Control-Request-Method`".to_owned()];
        let mut entries = vec![CoverageEntry { operation: "ServicePreflight", shapes, done: true }];
        for row in self.rows {
            (self.prepare)(&*account);
            let status = self.asked(server.addr(), row);
            assert!(status < 500 || status == 501, "{}: {status}", self.shape(row));
            let done = status != 501;
            let known = entries.iter_mut().find(|entry| entry.operation == row.operation.name);
            if let Some(entry) = known {
                entry.shapes.push(self.shape(row));
                entry.done &= done;
            } else {
                let (operation, shapes) = (row.operation.name, vec![self.shape(row)]);
                entries.push(CoverageEntry { operation, shapes, done });
            }
        }
        entries
    }

    /// A row as people read it.
    fn shape(&self, row: &RouteRow) -> String {
        let methods: Vec<_> = row.methods.iter().copied().map(Verb::name).collect();
        let path = if let [level] = row.levels {
            (self.paths)(*level).0.to_owned()
        } else {
            // The root of a container is an object too.
            let (container, object) =
                ((self.paths)(ResourceLevel::Container).0, (self.paths)(ResourceLevel::Object).0);
            format!("{container}[{}]", object.strip_prefix(container).unwrap_or(object))
        };
        let header = match row.when {
            When::Always => String::new(),
            When::Has(name) => format!(", `{name}`"),
            When::Is(name, value) => format!(", `{name}: {value}`"),
        };
        format!("{} `{path}{}`{header}", methods.join(", "), query(row))
    }

    /// The status of the answer to a request like that row.
    fn asked(&self, addr: SocketAddr, row: &RouteRow) -> u16 {
        let target = format!("/{ACCOUNT}{}{}", (self.paths)(row.levels[0]).1, query(row));
        let header = match row.when {
            When::Always => String::new(),
            When::Has(name) => format!("{name}: true\r\n"),
            When::Is(name, value) => format!("{name}: {value}\r\n"),
        };
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let common = format!("host: {addr}\r\ncontent-length: 0\r\nconnection: close\r\n");
        let method = row.methods[0].name();
        write!(stream, "{method} {target} HTTP/1.1\r\n{common}{header}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// `Share_Create`, as the service's own description has it.
    fn name(&self, operation: &'static str) -> String {
        let group = self.groups.iter().find(|group| operation.starts_with(**group)).unwrap();
        format!("{group}_{}", &operation[group.len()..])
    }
}

fn query(row: &RouteRow) -> String {
    let parts = [("restype", row.restype), ("comp", row.comp)];
    let parts = parts.iter().filter(|(_, value)| !value.is_empty());
    let parts: Vec<_> = parts.map(|(name, value)| format!("{name}={value}")).collect();
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}
