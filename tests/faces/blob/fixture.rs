//! A server of blobs in this process, with a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use latchfs::blob::service::{BlobOptions, BlobService};
use latchfs::clock::{ManualClock, SystemClock, TimeSource};
use latchfs::disk::DataRoot;
use latchfs::http::auth::Admission;
use latchfs::http::fetch::CopySources;
use latchfs::http::server::RestServer;
use latchfs::rules::time::{parse_rfc1123, rfc1123};
use latchfs::rules::{Caller, Client, Context, Owner, Timestamp};
use latchfs::server::{AccountOptions, Accounts};

use crate::common::http;
pub use crate::common::http::{ACCOUNT, Got};
pub use crate::leases::{A, B};
use crate::service::listen;

/// Headers of two customer-provided keys.
pub const KEYS: [[(&str, &str); 3]; 2] = [
    [
        ("x-ms-encryption-key", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="),
        ("x-ms-encryption-key-sha256", "cs1uhCLEB/ttCYaQ8RMLfe1+wvf14dML2dUh8BU2N5M="),
        ("x-ms-encryption-algorithm", "AES256"),
    ],
    [
        ("x-ms-encryption-key", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="),
        ("x-ms-encryption-key-sha256", "dYd7tB05O1+4RVzmDs2N2gAdBjFklrFN+n+JVlbuyko="),
        ("x-ms-encryption-algorithm", "AES256"),
    ],
];

/// The code of a condition that does not hold.
pub const NOT_MET: &str = "ConditionNotMet";

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A server with the container `c`.
pub struct Blobs {
    server: Option<RestServer>,
    pub clock: Arc<ManualClock>,
    options: BlobOptions,
    admission: Admission,
    sources: CopySources,
    folder: tempfile::TempDir,
}

impl Blobs {
    pub fn new() -> Self {
        Self::with(BlobOptions::default())
    }

    pub fn with(options: BlobOptions) -> Self {
        Self::admitting(options, Admission::Everyone)
    }

    pub fn admitting(options: BlobOptions, admission: Admission) -> Self {
        let blobs = Self::empty(options, admission);
        blobs.put("/con?restype=container", &[]).is(201);
        blobs
    }

    pub fn empty(options: BlobOptions, admission: Admission) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let sources = CopySources::Local;
        let mut blobs = Self { server: None, clock, options, admission, sources, folder };
        blobs.start();
        blobs
    }

    /// The same server, started again so that it asks other servers for sources of copies.
    pub fn reaching_out(mut self) -> Self {
        self.sources = CopySources::Any;
        self.restart();
        self
    }

    fn start(&mut self) {
        let root = DataRoot::open(self.folder.path()).unwrap();
        let clock: Arc<dyn TimeSource> = self.clock.clone();
        let blob = self.options.clone();
        let options = AccountOptions { clock, blob, ..AccountOptions::default() };
        let accounts = Accounts::open(&root, ACCOUNT, ["second"], &options).unwrap();
        let table = &latchfs::blob::rest::operations::SERVICE_TABLE;
        self.server = Some(listen(&Arc::new(accounts), table, |options| {
            options.copy_sources = self.sources;
            options.admission = self.admission.clone();
        }));
    }

    /// Without a server, while `work` is done to the service.
    pub fn aside(&mut self, work: impl AsyncFnOnce(&BlobService, &Context)) {
        self.server = None;
        let root = DataRoot::open(self.folder.path()).unwrap();
        let options = AccountOptions::default();
        let accounts = Accounts::open(&root, ACCOUNT, ["second"], &options).unwrap();
        let service = accounts.first().blob().unwrap();
        let client = Client { session: 1, name: "test".to_owned() };
        let owner = Owner { client: Arc::new(client), pid: 0, program: None };
        let caller = Caller::local(Arc::new(owner), "test");
        let cx = Context::new(self.clock.now(), caller);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work(&service, &cx));
        drop((service, accounts, root));
        self.start();
    }

    /// Ends the server and starts it on what is left.
    pub fn restart(&mut self) {
        self.server = None;
        self.start();
    }

    pub fn addr(&self) -> std::net::SocketAddr {
        self.server.as_ref().unwrap().addr()
    }

    pub fn data(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The address of a blob in the container `c`.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{ACCOUNT}/con/{name}", self.addr())
    }

    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub fn ask(&self, method: &str, target: &str, headers: Headers<'_>, body: &[u8]) -> Got {
        http::ask(self.addr(), method, target, headers, body)
    }

    pub fn get(&self, target: &str, headers: Headers<'_>) -> Got {
        self.ask("GET", target, headers, b"")
    }

    pub fn head(&self, target: &str, headers: Headers<'_>) -> Got {
        self.ask("HEAD", target, headers, b"")
    }

    pub fn put(&self, target: &str, headers: Headers<'_>) -> Got {
        self.ask("PUT", target, headers, b"")
    }

    pub fn delete(&self, target: &str, headers: Headers<'_>) -> Got {
        self.ask("DELETE", target, headers, b"")
    }

    /// Put Blob of a block blob in `c`.
    pub fn upload(&self, name: &str, body: &str, headers: Headers<'_>) -> Got {
        let mut all = vec![("x-ms-blob-type", "BlockBlob")];
        all.extend(headers);
        self.ask("PUT", &format!("/con/{name}"), &all, body.as_bytes())
    }

    /// A block blob `b` in `c`; its ETag.
    pub fn blob(&self, body: &str) -> String {
        self.upload("b", body, &[]).is(201).header("etag").to_owned()
    }

    pub fn text(&self, name: &str) -> String {
        self.get(&format!("/con/{name}"), &[]).is(200).text()
    }

    pub fn etag(&self, target: &str) -> String {
        self.head(target, &[]).is(200).header("etag").to_owned()
    }

    /// A lease request on `target` (`/con/b?` or `/con?restype=container&`).
    pub fn lease(&self, target: &str, action: &str, headers: Headers<'_>) -> Got {
        let mut all = vec![("x-ms-lease-action", action)];
        all.extend(headers);
        self.put(&format!("{target}comp=lease"), &all)
    }

    /// Leases `target` under A for that many seconds.
    pub fn leased(&self, target: &str, seconds: &str) {
        let headers = [("x-ms-lease-duration", seconds), ("x-ms-proposed-lease-id", A)];
        self.lease(target, "acquire", &headers).is(201);
    }

    /// Last-Modified of a target, moved by so many seconds.
    pub fn modified(&self, target: &str, by: i64) -> String {
        let got = self.head(target, &[]).is(200);
        let moment = parse_rfc1123(got.header("last-modified")).unwrap();
        rfc1123(Timestamp(moment.0 + by * 1_000_000_000))
    }
}
