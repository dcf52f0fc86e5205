//! The running server as its controllers see it: accounts, mounts, the stop.
//!
//! Decides when a mount that cannot be made is an error. What a mount does is decided in
//! `file/mount`, what a request means in `api`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use super::listeners::SERVICES;
use super::load::Load;
use super::mounts::Mounts;
use super::running::Stop;
use crate::api::{
    About, ConnectionInfo, KnownOperation, Loaded, MountRow, Reached, SOCKET_NAME, ServedAccount,
    Serving,
};
use crate::bench::{Controls, States};
use crate::blob::service::{BlobResult, BlobService};
use crate::file::rest::error::denial_code;
use crate::file::rules::{Denial, ShareMode};
use crate::file::service::FileService;
use crate::http::frame::{ErrorNames, Service};
use crate::journal::Change;
use crate::queue::service::{QueueResult, QueueService};
use crate::rules::Spelled;
use crate::rules::address::ObjectAddress;
use crate::rules::service::ServiceKind;
use crate::server::{Account, Accounts, Listeners};
use crate::table::service::{TableResult, TableService};

/// A running server, as its controllers see it.
pub struct Host {
    /// The server as a whole.
    pub about: About,
    /// The server's own folder.
    pub folder: PathBuf,
    /// The accounts.
    pub accounts: Arc<Accounts>,
    /// The state as a whole; `None` where one existing directory is served.
    pub states: Option<States>,
    /// The mounts.
    pub mounts: Mounts,
    /// How clients find the services, by account.
    pub reached: OnceLock<BTreeMap<String, Reached>>,
    /// The requests of SMB clients that gates and faults can name.
    pub over_smb: Vec<KnownOperation>,
    /// Ends the server.
    pub stop: Sender<Stop>,
}

impl Host {
    /// The control socket.
    pub fn control(&self) -> PathBuf {
        self.folder.join(SOCKET_NAME)
    }
}

/// How clients of each account find the services.
pub fn reached(listeners: &Listeners) -> BTreeMap<String, Reached> {
    let mut reached = BTreeMap::new();
    if listeners.is_empty() {
        return reached;
    }
    for account in &listeners.credentials {
        let endpoints = listeners.endpoints(account);
        let file = endpoints.iter().find(|(kind, _)| *kind == ServiceKind::File);
        let info = ConnectionInfo {
            account: account.name().to_owned(),
            key: account.key().text().to_owned(),
            endpoint: file.map(|(_, endpoint)| endpoint.clone()),
            connection_string: account.connection_string(&endpoints),
            ca_file: listeners.ca_file.clone(),
            endpoints: endpoints
                .into_iter()
                .map(|(kind, url)| (kind.to_string(), url))
                .chain(listeners.smb().origin().map(|url| ("smb".to_owned(), url.to_owned())))
                .collect(),
        };
        let clients = Arc::clone(account.clients());
        reached.insert(account.name().to_owned(), Reached { info, clients });
    }
    reached
}

impl Serving for Host {
    fn first_account(&self) -> Arc<dyn ServedAccount> {
        Arc::clone(self.accounts.first()) as _
    }

    fn accounts(&self) -> Vec<Arc<dyn ServedAccount>> {
        self.accounts.iter().map(|account| Arc::clone(account) as _).collect()
    }

    fn controls(&self) -> &Arc<Controls> {
        self.accounts.controls()
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn states(&self) -> Option<&States> {
        self.states.as_ref()
    }

    fn load(&self, account: &str, file: &Path) -> Result<Loaded, String> {
        let account = self.accounts.get(account).expect("a session is of an account served here");
        Load::read(file)?.apply(account)
    }

    fn reached(&self, account: &str) -> Option<Reached> {
        self.reached.get()?.get(account).cloned()
    }

    fn operations(&self) -> Vec<KnownOperation> {
        let of = |service: &&'static Service| {
            let kind = service.kind;
            service.operations.iter().flat_map(move |operation| {
                let names = [operation.name, operation.title];
                names.map(|name| KnownOperation { service: kind, name, can_stop: true })
            })
        };
        let all = SERVICES.iter().flat_map(of).chain(self.mounts.operations());
        all.chain(self.over_smb.iter().copied()).collect()
    }

    fn mounts(&self) -> Vec<MountRow> {
        self.mounts.list()
    }

    fn start_run(
        &self,
        run: u64,
        pid: u32,
        share: ShareMode,
        path: Option<&Path>,
    ) -> Result<(), String> {
        self.mounts.start_run(run, pid, share, path)
    }

    fn end_run(&self, run: u64) {
        self.mounts.end_run(run);
    }

    fn unmount(&self, path: &Path, lazily: bool) -> Result<(), String> {
        if self.mounts.unmount(path, lazily)? {
            // The receiver goes with the server.
            let _ = self.stop.send(Stop::Unmounted);
        }
        Ok(())
    }

    fn shut_down(&self) {
        let _ = self.stop.send(Stop::Asked);
    }
}

impl ServedAccount for Account {
    fn file(&self) -> &Arc<FileService> {
        self.file()
    }

    fn blob(&self) -> BlobResult<Arc<BlobService>> {
        self.blob()
    }

    fn queue(&self) -> QueueResult<&QueueService> {
        self.queue()
    }

    fn table(&self) -> TableResult<&TableService> {
        self.table()
    }

    fn used_blob(&self) -> BlobResult<Option<Arc<BlobService>>> {
        self.has_used(ServiceKind::Blob).then(|| self.blob()).transpose()
    }

    fn used_queue(&self) -> QueueResult<Option<&QueueService>> {
        self.has_used(ServiceKind::Queue).then(|| self.queue()).transpose()
    }

    fn used_table(&self) -> TableResult<Option<&TableService>> {
        self.has_used(ServiceKind::Table).then(|| self.table()).transpose()
    }

    fn changes(&self, wanted: &dyn Fn(&ObjectAddress) -> bool) -> Vec<Change> {
        let wanted = |change: &Change| wanted(&change.object);
        // A service that is not open remembers nothing.
        let blob = self.open_blob().map(|blob| blob.changes(wanted));
        let queue = self.open_queue().map(|queue| queue.changes(wanted));
        let table = self.open_table().map(|table| table.changes(wanted));
        [blob, queue, table]
            .into_iter()
            .flatten()
            .flat_map(|newest| newest.into_iter().rev())
            .collect()
    }
}

/// How the faces spell a refusal, with these names of errors.
pub fn spelling(names: ErrorNames) -> fn(&Denial) -> Spelled {
    fn spelled(denial: &Denial, names: ErrorNames) -> Spelled {
        let (status, code) = denial_code(denial);
        Spelled { code: code.spelled(names), status: status.as_u16(), errno: errno(denial) }
    }
    match names {
        ErrorNames::Article => |denial| spelled(denial, ErrorNames::Article),
        ErrorNames::Service => |denial| spelled(denial, ErrorNames::Service),
    }
}

#[cfg(feature = "fuse")]
fn errno(denial: &Denial) -> &'static str {
    crate::file::mount::errno_name(denial)
}

/// Without mounts a refusal has no errno.
#[cfg(not(feature = "fuse"))]
fn errno(_: &Denial) -> &'static str {
    ""
}
