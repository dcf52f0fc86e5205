//! The coverage page, `docs/rest-coverage.md`: written from the table of routes, and compared
//! with what is there.
//!
//! Requests come from the table itself; that one is not implemented, from the server's own answer
//! to it. A bare request is often a bad one, so any other answer says only that there is code for
//! it: that it does the right thing is for the tests of each operation. What no code knows is said
//! here: since which version the service has an operation, and what is different here.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::address::Level;
use super::authorise::Loose;
use super::route::{Operation, Row, TABLE, Verb, When};
use super::server::{RestOptions, Server};
use crate::engine::account::NewShare;
use crate::engine::{Engine, EngineOptions};

const PAGE: &str = "docs/rest-coverage.md";
const ACCOUNT: &str = "devstoreaccount1";

/// The version of the service that first had an operation (LOCKING section 9; what it does not
/// name is as old as the service).
fn since(operation: Operation) -> &'static str {
    use Operation as Op;
    match operation {
        Op::ServiceListSharesSegment
        | Op::ShareCreate
        | Op::ShareGetProperties
        | Op::ShareDelete
        | Op::ShareGetMetadata
        | Op::ShareSetMetadata
        | Op::DirectoryCreate
        | Op::DirectoryGetProperties
        | Op::DirectoryDelete
        | Op::DirectorySetMetadata
        | Op::DirectoryListFilesAndDirectoriesSegment
        | Op::FileCreate
        | Op::FileDownload
        | Op::FileGetProperties
        | Op::FileDelete
        | Op::FileSetHttpHeaders
        | Op::FileSetMetadata
        | Op::FileUploadRange
        | Op::FileGetRangeList => "2014-02-14",
        Op::ServicePreflight
        | Op::ServiceSetProperties
        | Op::ServiceGetProperties
        | Op::ShareSetProperties
        | Op::ShareGetAccessPolicy
        | Op::ShareSetAccessPolicy
        | Op::ShareGetStatistics
        | Op::FileStartCopy
        | Op::FileAbortCopy => "2015-02-21",
        Op::ShareCreateSnapshot => "2017-04-17",
        Op::DirectoryListHandles
        | Op::DirectoryForceCloseHandles
        | Op::FileListHandles
        | Op::FileForceCloseHandles => "2018-11-09",
        Op::ShareCreatePermission
        | Op::ShareGetPermission
        | Op::DirectorySetProperties
        | Op::FileAcquireLease
        | Op::FileReleaseLease
        | Op::FileChangeLease
        | Op::FileBreakLease
        | Op::FileUploadRangeFromURL => "2019-02-02",
        Op::ShareRestore => "2019-12-12",
        Op::ShareAcquireLease
        | Op::ShareReleaseLease
        | Op::ShareChangeLease
        | Op::ShareRenewLease
        | Op::ShareBreakLease => "2020-02-10",
        Op::DirectoryRename | Op::FileRename => "2021-04-10",
        Op::FileCreateHardLink => "2025-05-05",
        Op::ServiceGetUserDelegationKey | Op::FileCreateSymbolicLink | Op::FileGetSymbolicLink => {
            "2025-07-05"
        }
    }
}

/// What a user of the service would miss, or be surprised by.
fn differs(operation: Operation) -> &'static str {
    use Operation as Op;
    match operation {
        Op::ServiceSetProperties | Op::ServiceGetProperties => {
            "kept and given back; only CORS rules have an effect. All accounts share them"
        }
        Op::ServiceListSharesSegment => "all accounts of a server have the same shares",
        Op::ServiceGetUserDelegationKey => "a key for SAS by bearer token",
        Op::ShareCreate => "SMB shares only; provisioned figures, tier and root squash are kept",
        Op::ShareDelete => "does not say how many bytes were in use",
        Op::ShareGetPermission => "in the format that it was created in",
        Op::ShareRestore => "under its own name",
        Op::FileGetRangeList => {
            "as fine as the file system keeps holes; `prevsharesnapshot` compares bytes, so that \
             bytes written as they were are no change; all of a file that was moved is new"
        }
        Op::FileStartCopy | Op::FileUploadRangeFromURL => {
            "a source on another server needs `--copy-sources any`"
        }
        Op::DirectoryListHandles | Op::FileListHandles => "opens of the mount, and `latchfs hold`",
        Op::FileCreateSymbolicLink | Op::FileGetSymbolicLink | Op::FileCreateHardLink => {
            "NFS shares only, which there are none of"
        }
        _ => "",
    }
}

fn path(level: Level) -> &'static str {
    match level {
        Level::Service => "/",
        Level::Share => "/docs",
        Level::Path => "/docs/file",
    }
}

fn query(row: &Row) -> String {
    let parts = [("restype", row.restype), ("comp", row.comp)];
    let parts = parts.iter().filter(|(_, value)| !value.is_empty());
    let parts: Vec<_> = parts.map(|(name, value)| format!("{name}={value}")).collect();
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

const fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::Head => "HEAD",
        Verb::Put => "PUT",
        Verb::Delete => "DELETE",
        Verb::Post => "POST",
    }
}

/// A row as people read it.
fn shape(row: &Row) -> String {
    let methods: Vec<_> = row.methods.iter().copied().map(verb).collect();
    let path = match row.levels {
        [Level::Service] => "/",
        [Level::Share] => "/SHARE",
        [Level::Path] => "/SHARE/PATH",
        _ => "/SHARE[/PATH]",
    };
    let header = match row.when {
        When::Always => String::new(),
        When::Has(name) => format!(", `{name}`"),
        When::Is(name, value) => format!(", `{name}: {value}`"),
    };
    format!("{} `{path}{}`{header}", methods.join(", "), query(row))
}

/// The status of the answer to a request like that row.
fn asked(addr: SocketAddr, row: &Row) -> u16 {
    let target = format!("/{ACCOUNT}{}{}", path(row.levels[0]), query(row));
    let header = match row.when {
        When::Always => String::new(),
        When::Has(name) => format!("{name}: true\r\n"),
        When::Is(name, value) => format!("{name}: {value}\r\n"),
    };
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let common = format!("host: {addr}\r\ncontent-length: 0\r\nconnection: close\r\n");
    let method = verb(row.methods[0]);
    write!(stream, "{method} {target} HTTP/1.1\r\n{common}{header}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// `Share_Create`, as the service's own description has it.
fn name(operation: Operation) -> String {
    let name = format!("{operation:?}");
    let groups = ["Service", "Share", "Directory", "File"];
    let group = groups.into_iter().find(|group| name.starts_with(group)).unwrap();
    format!("{group}_{}", &name[group.len()..])
}

struct Entry {
    operation: Operation,
    shapes: Vec<String>,
    done: bool,
}

/// What the server does, operation by operation.
fn entries() -> Vec<Entry> {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path(), EngineOptions::default()).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = RestOptions { listen, ..RestOptions::new(Arc::new(Loose::new([ACCOUNT]))) };
    let engine = Arc::new(engine);
    let server = Server::start(Arc::clone(&engine), options).unwrap();
    let preflight = Operation::ServicePreflight;
    let shapes = vec!["OPTIONS of anything, `Origin`, `Access-Control-Request-Method`".to_owned()];
    let mut entries = vec![Entry { operation: preflight, shapes, done: true }];
    for row in &TABLE {
        // There is a share to ask about, also after a row that deletes it.
        let _ = engine.create_share("docs", NewShare::default());
        let status = asked(server.addr(), row);
        assert!(status < 500 || status == 501, "{}: {status}", shape(row));
        let done = status != 501;
        let known = entries.iter_mut().find(|entry| entry.operation == row.operation);
        if let Some(entry) = known {
            entry.shapes.push(shape(row));
            entry.done &= done;
        } else {
            let (operation, shapes) = (row.operation, vec![shape(row)]);
            entries.push(Entry { operation, shapes, done });
        }
    }
    entries
}

fn page() -> String {
    let entries = entries();
    let done = entries.iter().filter(|entry| entry.done).count();
    let mut page = format!(
        "# The REST API: what is covered\n\n\
         Written from the table of routes (`src/rest/route.rs`) and a server's answers, by a test \
         that fails\nwhen this page differs. Renew it with\n\n\
         ```sh\nLATCHFS_BLESS=1 cargo test --lib rest::coverage\n```\n\n\
         {done} of {} operations are there; the others answer 501. *501* is what a server \
         answered; *done*\nsays that it answered anything else to a request of that shape, not \
         that all of it is right. *Since*\nis the first version of the service that has the \
         operation; here any `x-ms-version` is accepted. A\nrequest that is signed by a header \
         must have one; a SAS brings its own.\n\n\
         Several `--account`s are several keys to one set of shares.\n\n\
         | operation | request | status | since | different here |\n|---|---|---|---|---|\n",
        entries.len(),
    );
    for Entry { operation, shapes, done } in entries {
        let status = if done { "done" } else { "501" };
        let (name, shapes) = (name(operation), shapes.join("<br>"));
        let (since, differs) = (since(operation), differs(operation));
        writeln!(page, "| {name} | {shapes} | {status} | {since} | {differs} |").unwrap();
    }
    page
}

#[test]
fn the_coverage_page_is_what_the_routes_and_the_server_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if std::env::var_os("LATCHFS_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "{PAGE} differs from the routes: LATCHFS_BLESS=1 cargo test --lib rest::coverage renews it"
    );
}
