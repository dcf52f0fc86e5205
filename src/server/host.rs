//! The running server as its controllers see it: accounts, mounts, the stop.
//!
//! Decides when a mount that cannot be made is an error. What a mount does is decided in
//! `file/mount`, what a request means in `api/control`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use super::mounts::Mounts;
use super::running::Stop;
use super::services::SERVICES;
use crate::api::control::rows::ConnectionInfo;
use crate::api::control::{About, KnownOperation, MountedAt, SOCKET_NAME, Serving};
use crate::bench::States;
use crate::file::rules::{Denial, ShareMode};
use crate::http::frame::{ErrorNames, Refusal, Service, documented_name};
use crate::rules::Spelled;
use crate::rules::service::ServiceKind;
use crate::server::{Accounts, Listeners};

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
    pub connections: OnceLock<BTreeMap<String, ConnectionInfo>>,
    /// How error codes are spelled.
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
pub fn connections(listeners: &Listeners) -> BTreeMap<String, ConnectionInfo> {
    let mut connections = BTreeMap::new();
    if listeners.is_empty() {
        return connections;
    }
    for account in &listeners.credentials {
        let endpoints = listeners.endpoints(account);
        let file = endpoints.iter().find(|(kind, _)| *kind == ServiceKind::File);
        let connection = ConnectionInfo {
            account: account.name().to_owned(),
            key: account.key().text().to_owned(),
            endpoint: file.map(|(_, endpoint)| endpoint.clone()),
            connection_string: account.connection_string(&endpoints),
            ca_file: listeners.ca_file.clone(),
            endpoints: endpoints.into_iter().map(|(kind, url)| (kind.to_string(), url)).collect(),
        };
        connections.insert(account.name().to_owned(), connection);
    }
    connections
}

impl Serving for Host {
    fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn states(&self) -> Option<&States> {
        self.states.as_ref()
    }

    fn connection(&self, account: &str) -> Option<ConnectionInfo> {
        self.connections.get()?.get(account).cloned()
    }

    fn operations(&self) -> Vec<KnownOperation> {
        let of = |service: &&'static Service| {
            let kind = service.kind;
            service.operations.iter().flat_map(move |operation| {
                let names = [operation.name, documented_name(kind, operation.name)];
                names.map(|name| KnownOperation { service: kind, name, can_stop: true })
            })
        };
        SERVICES.iter().flat_map(of).chain(self.mounts.operations()).collect()
    }

    fn mounts(&self) -> Vec<MountedAt> {
        self.mounts.list()
    }

    fn start_run(&self, pid: u32, share: ShareMode, path: Option<&Path>) -> Result<(), String> {
        self.mounts.start_run(pid, share, path)
    }

    fn end_run(&self, pid: u32) {
        self.mounts.end_run(pid);
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

/// How the faces spell a refusal, with these names of errors.
pub fn spelling(names: ErrorNames) -> fn(&Denial) -> Spelled {
    fn spelled(denial: &Denial, names: ErrorNames) -> Spelled {
        let Refusal { code, status, .. } = denial.clone().into();
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
