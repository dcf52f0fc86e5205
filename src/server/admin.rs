//! The admin address of a server: the page, the HTTP API, metrics and health.
//!
//! Decides who needs a token, and which exposed addresses are refused. What is answered is decided
//! in `api/`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use super::address::OptionalAddress;
use super::error::StartError;
use super::listeners::ListenOptions;
use crate::api::{AdminOptions, IDENTITY_PATH, Identity, Metrics, Token};
use crate::http::auth::{Credential, OauthMode};
use crate::http::frame::{host_name, is_this_machine};
use crate::server::Accounts;

/// Listens on the admin address, and does not answer yet: services that start meanwhile are
/// observed from their first request. `None` if no address is wanted.
pub fn bind(
    address: OptionalAddress,
    accounts: &Arc<Accounts>,
    listen: &ListenOptions,
) -> Result<Option<AdminOptions>, StartError> {
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
    let files = accounts.iter().map(|account| Arc::clone(account.file()));
    let hosts = listen.hosts.clone();
    Ok(Some(AdminOptions {
        listener,
        metrics: Arc::new(Metrics::new(files.collect())),
        // Until the server has started.
        ailments: Box::new(Vec::new),
        serves_host: Box::new(move |host| {
            let name = host_name(host);
            is_this_machine(name) || hosts.iter().any(|one| one.eq_ignore_ascii_case(name))
        }),
        exposed,
        token: (exposed || is_private(listen)).then(Token::fresh),
        identity: (listen.oauth == OauthMode::Basic).then(Token::fresh),
    }))
}

/// The URL of the page, as clients on this machine reach it.
pub fn url(admin: &AdminOptions, listen: &ListenOptions) -> io::Result<String> {
    Ok(format!("http://{}", listen.public_address(admin.listener.local_addr()?)))
}

/// Where managed identities get tokens, at the URL of the page.
pub fn identity(admin: &AdminOptions, url: &str) -> Option<Identity> {
    let header = admin.identity.as_ref()?.text().to_owned();
    Some(Identity { endpoint: format!("{url}{IDENTITY_PATH}"), header })
}

/// Whether access to the services takes a secret: then access to the API must take one too. Without
/// any service, nobody but the owner of the control socket has access.
fn is_private(listen: &ListenOptions) -> bool {
    let well_known = listen.credentials.iter().all(Credential::has_development_key);
    !well_known || listen.addresses().is_empty()
}
