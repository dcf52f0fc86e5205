//! The state that all requests to one listener share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Semaphore;

use super::address::ListenerNames;
use super::host::{Host, HostedAccount};
use super::service::Service;
use crate::clock::TimeSource;
use crate::http::cors::Cors;
use crate::http::fetch::Fetcher;
use crate::http::server::RestOptions;
use crate::http::xml::Element;
use crate::rules::{Client, Owner, Timestamp};

/// The part of the service properties that says which other origins are served.
pub const CORS: &str = "Cors";

/// The state that all requests to one listener share.
pub struct Site {
    /// The service that is served here.
    pub service: &'static Service,
    /// The accounts that requests may address.
    pub accounts: Arc<dyn Host>,
    account_names: Vec<String>,
    /// The clock that operations are decided by.
    pub clock: Arc<dyn TimeSource>,
    pub options: RestOptions,
    pub addr: SocketAddr,
    /// The listener is ending: work that goes on after its answer ends too.
    pub stopping: AtomicBool,
    /// Places for copies that go on after their answer.
    pub copies: Arc<Semaphore>,
    /// Asks other servers for sources of copies.
    pub fetcher: Fetcher,
    sessions: AtomicU64,
}

impl Site {
    /// The state of a listener on `addr`.
    pub fn new(
        accounts: Arc<dyn Host>,
        service: &'static Service,
        options: RestOptions,
        addr: SocketAddr,
    ) -> Self {
        Self {
            service,
            account_names: accounts.names(),
            clock: accounts.clock(),
            accounts,
            fetcher: Fetcher::new(
                options.copy_sources,
                options.siblings.clone(),
                options.source_wait,
            ),
            addr,
            stopping: AtomicBool::new(false),
            copies: Arc::new(Semaphore::new(options.limits.copies)),
            options,
            sessions: AtomicU64::new(1),
        }
    }

    /// A connection as the log of events names it.
    pub fn client(&self, peer: SocketAddr) -> Owner {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client { session, name: format!("REST {peer}") });
        Owner { client, pid: 0, program: None }
    }

    /// The account, if there is one alone.
    pub fn only_account(&self) -> Option<&str> {
        match self.account_names.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The names that requests may address.
    pub fn names(&self) -> ListenerNames<'_> {
        ListenerNames {
            service: self.service.kind,
            accounts: &self.account_names,
            hosts: &self.options.hosts,
            any_suffix: false,
            any_label: !self.addr.ip().is_loopback(),
            path_style: self.options.path_style,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The CORS rules of the service in that account.
    pub fn cors(&self, account: &dyn HostedAccount) -> Cors {
        let parts = account.properties(self.service.kind);
        let Some(text) = parts.get(CORS) else { return Cors::default() };
        let rules = Element::read(text.as_bytes(), CORS).and_then(|element| Cors::read(&element));
        rules.unwrap_or_default()
    }
}
