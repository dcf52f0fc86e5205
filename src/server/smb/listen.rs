//! Starts the SMB listener, and lets clients log on with the keys of the accounts.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::api::{KnownOperation, Metrics, SmbCounts};
use crate::bench::Controls;
use crate::file::service::FileService;
use crate::file::smb::{Password, SmbAccounts, SmbOptions, SmbServer, SmbTally, call_names};
use crate::http::auth::Credential;
use crate::rules::service::ServiceKind;
use crate::server::error::StartError;
use crate::server::{Accounts, ListenOptions};

/// The listener, if there is one. Ends when dropped.
#[derive(Default)]
pub struct Smb(Option<Listening>);

struct Listening {
    server: SmbServer,
    /// Scheme, host and port.
    origin: String,
}

/// The accounts of a server with their keys.
struct Logins {
    accounts: Arc<Accounts>,
    credentials: Vec<Credential>,
}

impl SmbAccounts for Logins {
    fn passwords(&self, user: &str) -> Vec<Password> {
        let known = self.credentials.iter().find(|one| one.name().eq_ignore_ascii_case(user));
        let Some(account) = known else { return Vec::new() };
        let own = account.keys().iter().map(|key| (key.text().to_owned(), None));
        let clients = account.clients().list().into_iter();
        let clients = clients.map(|client| (client.key.text().to_owned(), Some(client.name)));
        own.chain(clients).map(|(text, client)| Password { text, client }).collect()
    }

    fn files(&self, user: &str) -> Option<Arc<FileService>> {
        self.accounts.get(user).map(|account| Arc::clone(account.file()))
    }

    fn controls(&self) -> &Arc<Controls> {
        self.accounts.controls()
    }

    fn halted(&self) -> Option<&str> {
        self.accounts.halted()
    }
}

impl Smb {
    /// Starts the listener, if one is wanted.
    pub fn start(options: &ListenOptions, accounts: &Arc<Accounts>) -> Result<Self, StartError> {
        let credentials = options.credentials.clone();
        let logins: Arc<dyn SmbAccounts> =
            Arc::new(Logins { accounts: Arc::clone(accounts), credentials });
        let start = |listen: SocketAddr| {
            let signing = !options.smb_unsigned;
            let options = SmbOptions { listen, signing, keep_alive: options.smb_keep_alive };
            SmbServer::start(Arc::clone(&logins), options)
        };
        let Some(started) = options.smb.listen(start) else { return Ok(Self::default()) };
        let what = || {
            let wanted = options.smb.wanted().map(|address| address.to_string());
            let wanted = wanted.unwrap_or_default();
            format!(
                "cannot listen on --smb {wanted} (--smb 127.0.0.1:0 takes any free port, --smb \
                 off none)"
            )
        };
        let server = started.map_err(|source| StartError::system(what())(source))?;
        let origin = format!("smb://{}", options.public_address(server.addr()));
        Ok(Self(Some(Listening { server, origin })))
    }

    pub fn begin_stop(&mut self) {
        if let Some(listening) = &mut self.0 {
            listening.server.begin_stop();
        }
    }

    /// Has the metrics tell what the listener holds and refused.
    pub fn watch(&self, metrics: &Metrics) {
        let Some(listening) = &self.0 else { return };
        let tally = listening.server.tally();
        metrics.watch_smb(move || {
            let SmbTally { connections, sessions, refusals } = tally();
            SmbCounts { connections, sessions, refusals }
        });
    }

    /// The requests that gates and faults can name.
    pub fn operations(&self) -> Vec<KnownOperation> {
        if self.0.is_none() {
            return Vec::new();
        }
        let known = |name| KnownOperation { service: ServiceKind::File, name, can_stop: true };
        call_names().map(known).collect()
    }

    /// Where clients connect: `smb://127.0.0.1:10445`.
    pub fn origin(&self) -> Option<&str> {
        self.0.as_ref().map(|listening| listening.origin.as_str())
    }
}
