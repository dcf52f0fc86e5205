//! A server with two accounts, filled with something of every kind, and pictures of what is in it.

use std::collections::BTreeMap;
use std::path::Path;

use latchfs::Server;
use latchfs::rules::service::ServiceKind;
use latchfs::server::Builder;

use crate::common::http::{Got, Kept, ask_as_it_is};

pub const ACCOUNTS: [&str; 2] = ["first", "second"];

pub const LEASE: &str = "11111111-2222-3333-4444-555555555555";

/// More than fits into a row.
pub const LONG: usize = 2 << 20;

/// A server that accepts requests without a signature.
pub fn builder() -> Builder {
    let [first, second] = ACCOUNTS.map(|name| format!("{name}:Zmlyc3Q="));
    Server::builder().account(first).account(second).share("docs").no_auth()
}

/// One account of a server, as its clients see it.
pub struct Client<'a> {
    server: &'a Server,
    account: &'static str,
}

/// The clients of both accounts.
pub fn clients(server: &Server) -> [Client<'_>; 2] {
    ACCOUNTS.map(|account| Client { server, account })
}

/// The address of a service.
pub fn address(server: &Server, service: ServiceKind) -> std::net::SocketAddr {
    let endpoint = server.endpoint(service).unwrap();
    endpoint.split('/').nth(2).unwrap().parse().unwrap()
}

/// A connection to a service that is kept.
pub fn keep(server: &Server, service: ServiceKind) -> Kept {
    Kept::connect(address(server, service)).unwrap()
}

impl Client<'_> {
    pub fn ask(
        &self,
        service: ServiceKind,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Got {
        let addr = address(self.server, service);
        let target = format!("/{}{target}", self.account);
        ask_as_it_is(addr, &addr.to_string(), method, &target, headers, body)
    }

    pub fn blob(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        self.ask(ServiceKind::Blob, method, target, headers, body)
    }

    pub fn queue(&self, method: &str, target: &str, body: &[u8]) -> Got {
        self.ask(ServiceKind::Queue, method, target, &[], body)
    }

    pub fn table(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let json = [("content-type", "application/json"), ("accept", "application/json")];
        let headers: Vec<_> = json.into_iter().chain(headers.iter().copied()).collect();
        self.ask(ServiceKind::Table, method, target, &headers, body)
    }

    pub fn file(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        self.ask(ServiceKind::File, method, target, headers, body)
    }

    /// Puts something of every kind into the account. Returns all ETags and receipts.
    pub fn furnish(&self) -> Vec<String> {
        let mut issued = self.furnish_blobs();
        issued.push(self.furnish_queue());
        issued.push(self.furnish_table());
        self.furnish_files();
        issued
    }

    fn furnish_blobs(&self) -> Vec<String> {
        let block = ("x-ms-blob-type", "BlockBlob");
        let made = self.blob("PUT", "/box?restype=container", &[("x-ms-meta-a", "1")], b"").is(201);
        let mut etags = vec![made.header("etag").to_owned()];
        let put = self.blob("PUT", "/box/small", &[block, ("x-ms-meta-b", "2")], b"hello").is(201);
        etags.push(put.header("etag").to_owned());
        let put = self.blob("PUT", "/box/long", &[block], &vec![7; LONG]).is(201);
        etags.push(put.header("etag").to_owned());
        let snapshot = self.blob("PUT", "/box/small?comp=snapshot", &[], b"").is(201);
        etags.push(snapshot.header("x-ms-snapshot").to_owned());
        self.blob("PUT", "/box/parts?comp=block&blockid=QUFB", &[], &vec![3; 70_000]).is(201);
        let leased = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "60")];
        let leased: Vec<_> =
            leased.into_iter().chain([("x-ms-proposed-lease-id", LEASE)]).collect();
        self.blob("PUT", "/box/long?comp=lease", &leased, b"").is(201);
        etags
    }

    fn furnish_queue(&self) -> String {
        self.queue("PUT", "/jobs", b"").is(201);
        for text in ["one", "two"] {
            let message = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
            self.queue("POST", "/jobs/messages", message.as_bytes()).is(201);
        }
        let got = self.queue("GET", "/jobs/messages?visibilitytimeout=60", b"").is(200).text();
        element(&got, "PopReceipt")
    }

    fn furnish_table(&self) -> String {
        self.table("POST", "/Tables", &[], br#"{"TableName":"rows"}"#).is(201);
        let entity = br#"{"PartitionKey":"p","RowKey":"r","n":7}"#;
        self.table("POST", "/rows", &[], entity).is(201).header("etag").to_owned()
    }

    fn furnish_files(&self) {
        if self.file("GET", "/docs?restype=share", &[], b"").status == 404 {
            self.file("PUT", "/docs?restype=share", &[], b"").is(201);
        }
        self.file("PUT", "/docs/dir?restype=directory", &[], b"").is(201);
        let new = [("x-ms-type", "file"), ("x-ms-content-length", "5"), ("x-ms-meta-c", "3")];
        self.file("PUT", "/docs/dir/a.txt", &new, b"").is(201);
        let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
        self.file("PUT", "/docs/dir/a.txt?comp=range", &range, b"hello").is(201);
        let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let lease: Vec<_> = lease.into_iter().chain([("x-ms-proposed-lease-id", LEASE)]).collect();
        self.file("PUT", "/docs/dir/a.txt?comp=lease", &lease, b"").is(201);
    }

    /// The names of everything in the account.
    pub fn names(&self) -> BTreeMap<&'static str, Vec<String>> {
        let of = |got: Got| elements(&got.is(200).text(), "Name");
        let tables = self.table("GET", "/Tables", &[], b"").is(200).text();
        let tables: serde_json::Value = serde_json::from_str(&tables).unwrap();
        let tables = tables["value"].as_array().unwrap();
        let name = |table: &serde_json::Value| table["TableName"].as_str().unwrap().to_owned();
        BTreeMap::from([
            ("containers", of(self.blob("GET", "/?comp=list", &[], b""))),
            ("queues", of(self.queue("GET", "/?comp=list", b""))),
            ("tables", tables.iter().map(name).collect()),
            ("shares", of(self.file("GET", "/?comp=list", &[], b""))),
        ])
    }

    /// The names in a share.
    pub fn files(&self, share: &str) -> Vec<String> {
        let target = format!("/{share}?restype=directory&comp=list");
        elements(&self.file("GET", &target, &[], b"").is(200).text(), "Name")
    }
}

/// A body without the port of its server; a long one by its length and a sum.
fn shown(got: &Got) -> String {
    if got.body.len() > 100_000 {
        let sum: u64 = got.body.iter().map(|byte| u64::from(*byte)).sum();
        return format!("{} bytes, sum {sum}", got.body.len());
    }
    let text = got.text();
    let mut parts = text.split("http://127.0.0.1:");
    let mut shown = parts.next().unwrap().to_owned();
    for part in parts {
        shown += part.trim_start_matches(|letter: char| letter.is_ascii_digit());
    }
    shown
}

/// The text of the first element of that name.
pub fn element(xml: &str, name: &str) -> String {
    elements(xml, name).remove(0)
}

/// The texts of all elements of that name.
pub fn elements(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts = xml.split(&open).skip(1);
    parts.map(|part| part.split(&close).next().unwrap().to_owned()).collect()
}

/// The names in a folder.
pub fn listed(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Puts `count` files, blobs and entities into the first account.
pub fn fill(server: &Server, data: &Path, count: usize) {
    let share = data.join(ACCOUNTS[0]).join("files/docs");
    for number in 0..count {
        std::fs::write(share.join(format!("{number}.txt")), [b'x'; 1_000]).unwrap();
    }
    let [client, _] = clients(server);
    client.blob("PUT", "/many?restype=container", &[], b"").is(201);
    client.table("POST", "/Tables", &[], br#"{"TableName":"many"}"#).is(201);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let mut blob = keep(server, ServiceKind::Blob);
            let mut table = keep(server, ServiceKind::Table);
            scope.spawn(move || {
                for number in (0..count).filter(|number| number % 4 == part) {
                    let kind = [("x-ms-blob-type", "BlockBlob")];
                    let target = format!("/many/{number}");
                    let put = blob.ask_of(ACCOUNTS[0], "PUT", &target, &kind, &[b'x'; 1_000]);
                    put.unwrap().is(201);
                    let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{number}","n":7}}"#);
                    let json = [("content-type", "application/json")];
                    let put = table.ask_of(ACCOUNTS[0], "POST", "/many", &json, entity.as_bytes());
                    put.unwrap().is(201);
                }
            });
        }
    });
}

/// What is looked at to see that a state is equal.
impl Client<'_> {
    /// Blobs of every type, a copy, tags, versions of a file, a large record, properties.
    pub fn furnish_more(&self) {
        let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
        self.blob("PUT", "/box/pages", &page, b"").is(201);
        let range = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
        self.blob("PUT", "/box/pages?comp=page", &range, &[9; 512]).is(201);
        self.blob("PUT", "/box/log", &[("x-ms-blob-type", "AppendBlob")], b"").is(201);
        self.blob("PUT", "/box/log?comp=appendblock", &[], b"line").is(201);
        let tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
        self.blob("PUT", "/box/small?comp=tags", &[], tags).is(204);
        let cors = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
            <AllowedMethods>GET</AllowedMethods><AllowedHeaders /><ExposedHeaders />\
            <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
        self.blob("PUT", "/?restype=service&comp=properties", &[], cors).is(202);
        // More than fits into an extended attribute.
        let large = "x".repeat(6_000);
        let large = [("x-ms-meta-large", large.as_str()), ("x-ms-lease-id", LEASE)];
        self.file("PUT", "/docs/dir/a.txt?comp=metadata", &large, b"").is(200);
        self.file("PUT", "/docs?restype=share&comp=snapshot", &[], b"").is(201);
        self.file("PUT", "/docs?restype=share&comp=metadata", &[("x-ms-meta-s", "t")], b"").is(200);
        self.file("PUT", "/gone?restype=share", &[], b"").is(201);
        self.file("DELETE", "/gone?restype=share", &[], b"").is(202);
    }

    /// Everything that must be the same: answers without their dates and IDs.
    pub fn picture(&self) -> Vec<String> {
        let mut seen = Vec::new();
        let mut add = |got: Got, headers: &[&str]| {
            let headers: Vec<_> = headers.iter().map(|name| got.header(name)).collect();
            seen.push(format!("{} {headers:?} {}", got.status, shown(&got)));
        };
        add(self.blob("GET", "/?comp=list&include=metadata", &[], b""), &[]);
        let list = "/box?restype=container&comp=list\
            &include=metadata,snapshots,uncommittedblobs,tags,copy";
        add(self.blob("GET", list, &[], b""), &[]);
        let headers = ["etag", "last-modified", "x-ms-lease-state", "x-ms-meta-b"];
        for name in ["small", "long", "pages", "log"] {
            add(self.blob("GET", &format!("/box/{name}"), &[], b""), &headers);
        }
        let blocks = "/box/parts?comp=blocklist&blocklisttype=all";
        add(self.blob("GET", blocks, &[], b""), &[]);
        add(self.blob("GET", "/?restype=service&comp=properties", &[], b""), &[]);
        add(self.queue("GET", "/?comp=list&include=metadata", b""), &[]);
        add(self.queue("GET", "/jobs/messages?peekonly=true&numofmessages=9", b""), &[]);
        add(self.queue("GET", "/jobs?comp=metadata", b""), &["x-ms-approximate-messages-count"]);
        add(self.table("GET", "/Tables", &[], b""), &[]);
        let full = [("accept", "application/json;odata=fullmetadata")];
        add(self.ask(ServiceKind::Table, "GET", "/rows", &full, b""), &[]);
        let shares = self.file("GET", "/?comp=list&include=metadata,snapshots,deleted", &[], b"");
        add(shares, &[]);
        let headers = ["x-ms-meta-c", "x-ms-lease-state", "x-ms-lease-status"];
        let file = self.file("GET", "/docs/dir/a.txt", &[], b"");
        let large = file.header("x-ms-meta-large").len();
        add(file, &headers);
        seen.push(large.to_string());
        seen.push(format!("{:?}", self.files("docs")));
        let snapshots = self.file("GET", "/?comp=list&include=snapshots", &[], b"").is(200).text();
        for snapshot in elements(&snapshots, "Snapshot") {
            let target = format!("/docs/dir/a.txt?sharesnapshot={snapshot}");
            let got = self.file("GET", &target, &[], b"").is(200);
            seen.push(format!("{} {}", got.header("x-ms-meta-large").len(), got.text()));
        }
        seen
    }

    /// Changes something in every service.
    pub fn change(&self) {
        let lease = [("x-ms-lease-id", LEASE)];
        self.blob("DELETE", "/box/long", &lease, b"").is(202);
        let block = [("x-ms-blob-type", "BlockBlob")];
        let snapshots = [("x-ms-delete-snapshots", "include")];
        self.blob("DELETE", "/box/small", &snapshots, b"").is(202);
        self.blob("PUT", "/box/small", &block, b"other").is(201);
        self.blob("PUT", "/box/parts?comp=block&blockid=QkJC", &[], &[4; 9]).is(201);
        self.blob("PUT", "/more?restype=container", &[], b"").is(201);
        self.queue("DELETE", "/jobs/messages", b"").is(204);
        self.table("DELETE", "/rows(PartitionKey='p',RowKey='r')", &[("if-match", "*")], b"")
            .is(204);
        self.file("DELETE", "/docs/dir/a.txt", &lease, b"").is(202);
        let new = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
        self.file("PUT", "/docs/b.txt", &new, b"").is(201);
        self.file("PUT", "/other?restype=share", &[], b"").is(201);
    }

    /// Changes what is there, so that a later restore has something to undo.
    pub fn use_all(&self) {
        self.change();
        let put = [("x-ms-blob-type", "BlockBlob")];
        self.blob("PUT", "/box/long", &put, &vec![5; LONG]).is(201);
    }

    /// Has every service issue something that must never come again.
    pub fn issue(&self) -> Vec<String> {
        let mut issued = Vec::new();
        // Services count for themselves.
        let mut add = |got: Got, what: &str| {
            let header = what.split(' ').next_back().unwrap();
            assert!(!got.header(header).is_empty(), "{header} of {got:?}");
            issued.push(format!("{what} {}", got.header(header)));
        };
        let block = [("x-ms-blob-type", "BlockBlob")];
        add(self.blob("PUT", "/box/small", &block, b"new").is(201), "blob etag");
        add(self.blob("PUT", "/box/small?comp=snapshot", &[], b"").is(201), "x-ms-snapshot");
        add(self.blob("PUT", "/fresh?restype=container", &[], b"").is(201), "blob etag");
        let entity = br#"{"PartitionKey":"p","RowKey":"new"}"#;
        add(self.table("POST", "/rows", &[], entity).is(201), "entity etag");
        add(self.file("PUT", "/docs?restype=share&comp=metadata", &[], b"").is(200), "docs etag");
        for _ in 0..2 {
            let taken = self.file("PUT", "/docs?restype=share&comp=snapshot", &[], b"").is(201);
            add(taken, "share x-ms-snapshot");
        }
        add(self.file("PUT", "/fresh?restype=share", &[], b"").is(201), "fresh etag");
        let new = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
        add(self.file("PUT", "/docs/new", &new, b"").is(201), "file etag");
        let got = self.queue("GET", "/jobs/messages?visibilitytimeout=60", b"").is(200).text();
        issued.push(format!("receipt {}", element(&got, "PopReceipt")));
        for share in ["docs", "fresh"] {
            let path = if share == "docs" { "new" } else { "" };
            let options = latchfs::server::HoldOptions {
                disposition: latchfs::file::rules::create::Disposition::OpenIf,
                ..latchfs::server::HoldOptions::new(share, format!("{path}x"))
            };
            issued.push(format!("handle {share} {}", self.server.hold(&options).unwrap().id()));
        }
        issued
    }
}
