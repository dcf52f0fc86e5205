//! A server in this process, and what tests ask of it.

use std::ops::Deref;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use latchfs::clock::{ManualClock, SystemClock, TimeSource};
use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, ShareMode, SharePath};
use latchfs::file::service::shares::NewShare;
use latchfs::file::service::{FileError, FileOptions, FileService, Handle, Share};
use latchfs::http::auth::{AccountSas, Credential, ServiceSas};
use latchfs::http::frame::ErrorNames;
use latchfs::http::limits::Limits;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::journal::AccountJournal;
use latchfs::rules::{Client, Context, Owner, Timestamp};
use latchfs::server::{Account, Accounts};

use crate::common::http;
pub use crate::common::http::{ACCOUNT, Got};
use crate::common::rest::Rest;
use crate::service;

/// A server with the share `docs`.
pub struct Fixture {
    pub server: RestServer,
    pub engine: Arc<FileService>,
    rest: Rest,
    folder: tempfile::TempDir,
}

fn open(folder: &Path, clock: Arc<dyn TimeSource>) -> FileService {
    let journal = AccountJournal::default();
    FileService::open(folder, FileOptions::default(), clock, journal).unwrap()
}

impl Fixture {
    pub fn new() -> Self {
        Self::with_names(ErrorNames::Article)
    }

    pub fn with_names(error_names: ErrorNames) -> Self {
        Self::with(|options| options.error_names = error_names)
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self::with(|options| options.limits = limits)
    }

    /// With options as `choose` leaves them.
    pub fn with(choose: impl FnOnce(&mut RestOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path(), Arc::new(SystemClock));
        engine.create_share("docs", NewShare::default()).unwrap();
        Self::on(folder, engine, choose)
    }

    /// With a clock that the test moves.
    pub fn with_clock() -> (Self, Arc<ManualClock>) {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let engine = open(folder.path(), Arc::<ManualClock>::clone(&clock));
        engine.create_share("docs", NewShare::default()).unwrap();
        (Self::on(folder, engine, |_| {}), clock)
    }

    fn on(
        folder: tempfile::TempDir,
        engine: FileService,
        choose: impl FnOnce(&mut RestOptions),
    ) -> Self {
        let accounts = Accounts::new(Account::with_file(ACCOUNT, engine).unwrap(), []);
        let engine = Arc::clone(accounts.first().file());
        let table = &latchfs::file::rest::operations::SERVICE_TABLE;
        let server = service::listen(&Arc::new(accounts), table, choose);
        let rest = Rest::new(server.addr(), "docs");
        Self { server, engine, rest, folder }
    }

    /// Ends server and engine, and starts both on what is left.
    pub fn restart(self) -> Self {
        let Self { server, engine, folder, .. } = self;
        drop((server, engine));
        let engine = open(folder.path(), Arc::new(SystemClock));
        Self::on(folder, engine, |_| {})
    }

    /// Where only what is signed with the development key gets in.
    pub fn signed(choose: impl FnOnce(&mut RestOptions)) -> Self {
        Self::with(|options| {
            options.admission = service::signed();
            choose(options);
        })
    }

    pub fn share(&self) -> Arc<Share> {
        self.engine.share("docs").unwrap()
    }

    /// Where a file of `docs` lies.
    pub fn on_disk(&self, name: &str) -> PathBuf {
        self.folder.path().join("docs").join(name)
    }

    /// Opens a file as a mount would.
    pub fn open(&self, name: &str, access: &str, share: &str) -> Handle {
        self.try_open(name, access, share).unwrap()
    }

    /// The same, with the refusal, if it is refused.
    pub fn try_open(&self, name: &str, access: &str, share: &str) -> Result<Handle, FileError> {
        let client = Arc::new(Client { session: 7, name: "mount".to_owned() });
        let owner = Owner { client, pid: 4711, program: Some("excel".into()) };
        let (access, share) = (Access::parse(access).unwrap(), ShareMode::parse(share).unwrap());
        let request = OpenRequest::plain(access, share);
        let path = SharePath::new(name).unwrap();
        let share = self.share();
        let cx = Context::local(share.now(), owner, "test");
        Ok(share.open(&cx, &path, &request)?.handle)
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
        http::ask_as_it_is(self.server.addr(), host, method, target, headers, body)
    }
}

impl Deref for Fixture {
    type Target = Rest;

    fn deref(&self) -> &Rest {
        &self.rest
    }
}

/// The query of a SAS of the development account for everything, with these permissions.
pub fn sas(permissions: &str, https_only: bool) -> String {
    let sas = AccountSas { https_only, ..service::account_sas("f", "sco", permissions) };
    sas.token(&Credential::development())
}

/// The query of a service SAS of a container of the development account, with these permissions.
pub fn container_sas(container: &str, permissions: &str) -> String {
    let sas = ServiceSas {
        share: container.to_owned(),
        permissions: Some(permissions.to_owned()),
        expiry: Some(Timestamp(i64::MAX)),
        ..ServiceSas::default()
    };
    sas.token(&Credential::development())
}
