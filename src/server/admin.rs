//! The admin address of a server: the page, the HTTP API, metrics and health.
//!
//! Decides who needs a token, and which exposed addresses are refused. What is answered is decided
//! in `api/`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use super::address::OptionalAddress;
use super::error::StartError;
use super::health::ailments;
use super::host::Host;
use super::listeners::ListenOptions;
use crate::api::{AdminOptions, IDENTITY_PATH, Identity, Metrics, Token};
use crate::http::auth::{Credential, OauthMode};
use crate::http::frame::{host_name, is_this_machine};
use crate::http::observer::Observer;
use crate::rules::service::ServiceKind;
use crate::server::Accounts;

/// An admin address that listens and does not answer yet: services that start meanwhile are
/// observed from their first request.
pub struct AdminStart {
    listener: TcpListener,
    metrics: Arc<Metrics>,
    token: Option<Token>,
    identity: Option<Token>,
    hosts: Vec<String>,
    exposed: bool,
}

/// Passes what services tell on.
struct Counted(Arc<Metrics>);

impl Observer for Counted {
    fn answered(&self, operation: &'static str, status: u16, took: Duration) {
        self.0.answered(operation, status, took);
    }
}

impl AdminStart {
    /// Listens; `None` if no address is wanted.
    pub fn bind(
        address: OptionalAddress,
        accounts: &Arc<Accounts>,
        listen: &ListenOptions,
    ) -> Result<Option<Self>, StartError> {
        let Some(wanted) = address.wanted() else { return Ok(None) };
        let exposed = !wanted.ip().is_loopback();
        if exposed && !listen.expose {
            return Err(StartError::Options(format!(
                "--admin {wanted} is reachable from other machines: give a loopback address, or \
                 --expose if that is meant"
            )));
        }
        let Some(listener) = address.listen(TcpListener::bind::<SocketAddr>) else {
            return Ok(None);
        };
        let listener =
            listener.map_err(StartError::system(format!("cannot listen on --admin {wanted}")))?;
        let token = (exposed || is_private(listen)).then(Token::fresh);
        let identity = (listen.oauth == OauthMode::Basic).then(Token::fresh);
        let files = accounts.iter().map(|account| Arc::clone(account.file()));
        let metrics = Arc::new(Metrics::new(files.collect()));
        let hosts = listen.hosts.clone();
        Ok(Some(Self { listener, metrics, token, identity, hosts, exposed }))
    }

    /// The token that clients need, if they need one.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// The URL of the page, as clients on this machine reach it.
    pub fn url(&self, listen: &ListenOptions) -> io::Result<String> {
        Ok(format!("http://{}", listen.public_address(self.listener.local_addr()?)))
    }

    /// The counters, for listeners that are asked at each scrape.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Where managed identities get tokens, at the URL of the page.
    pub fn identity(&self, url: &str) -> Option<Identity> {
        let header = self.identity.as_ref()?.text().to_owned();
        Some(Identity { endpoint: format!("{url}{IDENTITY_PATH}"), header })
    }

    /// The observer that services tell of their answers.
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(Counted(Arc::clone(&self.metrics)))
    }

    /// The options of the address. `services` is where the services listen.
    pub fn options(
        self,
        host: &Arc<Host>,
        services: Vec<(ServiceKind, SocketAddr)>,
    ) -> AdminOptions {
        let looked_at = Arc::clone(host);
        let hosts = self.hosts;
        AdminOptions {
            listener: self.listener,
            metrics: self.metrics,
            ailments: Box::new(move || ailments(&looked_at, &services)),
            serves_host: Box::new(move |host| {
                let name = host_name(host);
                is_this_machine(name) || hosts.iter().any(|one| one.eq_ignore_ascii_case(name))
            }),
            exposed: self.exposed,
            token: self.token,
            identity: self.identity,
        }
    }
}

/// Whether access to the services takes a secret: then access to the API must take one too. Without
/// any service, nobody but the owner of the control socket has access.
fn is_private(listen: &ListenOptions) -> bool {
    let well_known = listen.credentials.iter().all(Credential::has_development_key);
    !well_known || listen.addresses().is_empty()
}
