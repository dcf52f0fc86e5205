//! Reads the source that a request names: a URL, percent-encoded, whose query may carry a
//! signature.
//!
//! Decides which URLs are this listener's, whatever host they are spelled with, which are those of
//! another listener of this server ([`Siblings`]), and that both name a file or a blob, not another
//! answer to a GET. Decides also when the credentials of the request are good for its source, and
//! what the client is told of a source that refuses. The check of signatures and the operations ask
//! the same question here: what the one takes for foreign must not be read by the other. Other
//! listeners are asked by HTTP ([`crate::http::fetch`]), since services do not know each other, and
//! decide themselves who may read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use hyper::{StatusCode, Uri};

use super::address::{Address, ListenerNames, SECONDARY, host_name, is_this_machine};
use super::call::Call;
use super::refusal::Refusal;
use super::wording;
use crate::http::auth::{AuthError, GrantedBy};
use crate::http::request::Query;
use crate::rules::service::ServiceKind;

/// The header of Copy File and Put Range From URL.
pub const COPY_SOURCE: &str = "x-ms-copy-source";
/// The header of a rename.
pub const RENAME_SOURCE: &str = "x-ms-file-rename-source";

/// The header with the authorization for the server of a copy's source.
const SOURCE_AUTHORIZATION: &str = "x-ms-copy-source-authorization";
/// The header that a bearer token for a file needs beside it.
const INTENT: &str = "x-ms-file-request-intent";

const SOURCE_BYTES_MAX: usize = 2_048;

/// The source that a URL names.
pub enum NamedSource {
    /// A resource of this listener.
    Own(Box<OwnSource>),
    /// Something else; what another listener of this server has, by the address it is asked at.
    Elsewhere(Uri),
}

/// A resource of this listener that a request names as its source.
pub struct OwnSource {
    pub uri: Uri,
    /// The resource that the URL names.
    pub address: Address,
}

impl Call<'_> {
    /// The source that the URL in header `name` addresses; the header is required.
    pub fn source_in(&self, name: &str) -> Result<NamedSource, Refusal> {
        let url = self.required(name)?;
        if url.len() > SOURCE_BYTES_MAX {
            return Err(Refusal::header(name, "", "it is longer than 2 KiB"));
        }
        let invalid = || Refusal::header(name, url, "it is no URL of a resource");
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let scheme = uri.scheme_str().ok_or_else(invalid)?;
        if !matches!(scheme, "http" | "https") {
            return Err(Refusal::header(name, url, "it must begin with http:// or https://"));
        }
        let authority = uri.authority().ok_or_else(invalid)?.as_str();
        if !self.is_own(authority) {
            let Some((beside, by_port)) = self.beside(&uri, authority) else {
                return Ok(NamedSource::Elsewhere(uri));
            };
            if by_port && beside.scheme() != uri.scheme() {
                let spoken = beside.scheme_str().unwrap_or_default();
                let why = format!("the listener on that port speaks {spoken}");
                return Err(Refusal::header(name, "", &why));
            }
            check_object(name, &uri)?;
            return Ok(NamedSource::Elsewhere(beside));
        }
        if name == COPY_SOURCE {
            check_object(name, &uri)?;
        }
        let names = ListenerNames { any_suffix: true, ..self.site.names() };
        let address = Address::read(names, (scheme, authority), uri.path(), None);
        let address = address.map_err(|_| invalid())?;
        Ok(NamedSource::Own(Box::new(OwnSource { uri, address })))
    }

    /// The headers with which the source is asked for: the token that the request brings for it.
    pub fn source_credentials(&self) -> Result<Vec<(&'static str, &str)>, Refusal> {
        let Some(token) = self.header(SOURCE_AUTHORIZATION)? else { return Ok(Vec::new()) };
        let intent = self.header(INTENT)?.map(|intent| (INTENT, intent));
        Ok([("authorization", token)].into_iter().chain(intent).collect())
    }

    /// Whether the credentials of the request are good for its source too: a token in its account
    /// is, and the account's key where the operation takes it (`by_key`), as Copy Blob and Copy
    /// File do and the operations that read a URL do not. A SAS in the URL of the source speaks for
    /// the source alone.
    pub fn covers_source(&self, own: &OwnSource, by_key: bool) -> bool {
        let signed = Query::read(own.uri.query().unwrap_or_default()).names("sig");
        let same_account = own.address.account == self.address.account;
        match self.grant.by {
            GrantedBy::Nothing => true,
            _ if signed => false,
            GrantedBy::SharedKey => same_account && by_key,
            GrantedBy::Bearer { .. } => same_account,
            GrantedBy::Sas { .. } | GrantedBy::Anonymous => false,
        }
    }

    /// True for the host of this request, this machine at our port, and our accounts.
    fn is_own(&self, authority: &str) -> bool {
        let host = self.headers.get("host").and_then(|host| host.to_str().ok());
        host == Some(authority)
            || ListenerNames { any_suffix: true, ..self.site.names() }
                .host_account(authority)
                .is_some()
            || is_at(authority, self.site.addr)
    }

    /// The URL at which another listener of this server is asked for what `uri` names, and whether
    /// `uri` names that listener by its port. The host that this request was sent to is that of the
    /// other listeners too.
    fn beside(&self, uri: &Uri, authority: &str) -> Option<(Uri, bool)> {
        let sent_to = self.headers.get("host").and_then(|host| host.to_str().ok()).map(host_name);
        let scheme = if self.site.options.tls.is_some() { "https" } else { "http" };
        let siblings = self.site.options.siblings.sources();
        siblings.into_iter().find_map(|(service, addr)| {
            let names = ListenerNames { service, any_suffix: true, ..self.site.names() };
            let (account, by_port) = match names.host_account(authority) {
                Some((account, secondary)) => {
                    (format!("/{account}{}", if secondary { SECONDARY } else { "" }), false)
                }
                None if is_at(authority, addr) => (String::new(), true),
                None if sent_to == Some(host_name(authority)) && has_port(authority, addr) => {
                    (String::new(), true)
                }
                None => return None,
            };
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            let url = format!("{scheme}://{}{account}{path}", asked_at(addr)).parse().ok()?;
            Some((url, by_port))
        })
    }
}

/// The refusal of a request that has no right to read its source.
pub fn unauthorised_source(error: &AuthError) -> Refusal {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::FORBIDDEN);
    let why = format_args!("the source needs a right of its own: {error}");
    let refusal = Refusal::explained(status, "CannotVerifyCopySource", why);
    let code = error.code();
    let refusal = refusal.of_source(status, Some(code), wording::of(code));
    Refusal { sender_only: error.repeats_request(), ..refusal }
}

impl Refusal {
    /// This refusal, with what the source of the request answered.
    #[must_use]
    pub fn of_source(self, status: StatusCode, code: Option<&str>, message: Option<&str>) -> Self {
        let told = [("CopySourceErrorCode", code), ("CopySourceErrorMessage", message)];
        let told = told.into_iter().filter_map(|(name, text)| Some((name, text?.to_owned())));
        let refusal = self.with("CopySourceStatusCode", status.as_u16().to_string());
        told.fold(refusal, |refusal, (name, text)| refusal.with(name, text))
    }
}

/// Refuses a URL of this server that asks for something else than a file or a blob: a list,
/// properties, policies.
fn check_object(name: &str, uri: &Uri) -> Result<(), Refusal> {
    let query = Query::read(uri.query().unwrap_or_default());
    let Some(asks) = ["restype", "comp"].into_iter().find(|asks| query.names(asks)) else {
        return Ok(());
    };
    let why = format!("a source is a file or a blob, and its URL has no '{asks}'");
    Err(Refusal::header(name, "", &why))
}

/// True for a name or address of the listener on `addr`. Another machine may have its port too.
fn is_at(authority: &str, addr: SocketAddr) -> bool {
    let name = host_name(authority);
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let this_machine = match literal {
        Ok(ip) => ip.is_loopback() || ip == addr.ip(),
        Err(_) => is_this_machine(name),
    };
    this_machine && has_port(authority, addr)
}

fn has_port(authority: &str, addr: SocketAddr) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, given)| given == addr.port().to_string())
}

/// The listeners of a server. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Siblings(Arc<RwLock<Vec<(ServiceKind, SocketAddr)>>>);

impl Siblings {
    /// A listener has begun.
    pub fn add(&self, kind: ServiceKind, addr: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push((kind, addr));
    }

    /// A listener has ended. Another program may get its port.
    pub fn remove(&self, addr: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|(_, one)| *one != addr);
    }

    /// The listeners whose objects have bytes to copy.
    pub fn sources(&self) -> Vec<(ServiceKind, SocketAddr)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let has_bytes = |kind| matches!(kind, ServiceKind::File | ServiceKind::Blob);
        all.iter().filter(|(kind, _)| has_bytes(*kind)).copied().collect()
    }

    /// True for the address that one of them is asked at.
    pub fn has(&self, authority: &str) -> bool {
        self.sources().iter().any(|(_, addr)| asked_at(*addr).to_string() == authority)
    }
}

/// Where this process reaches a listener: one on all addresses, by loopback.
pub fn asked_at(mut addr: SocketAddr) -> SocketAddr {
    if addr.ip().is_unspecified() {
        addr.set_ip(match addr {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    addr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_asked_by_loopback() {
        let at = |text: &str| asked_at(text.parse().unwrap()).to_string();
        assert_eq!(at("0.0.0.0:7"), "127.0.0.1:7");
        assert_eq!(at("[::]:7"), "[::1]:7");
        assert_eq!(at("10.0.0.1:7"), "10.0.0.1:7");
    }

    #[test]
    fn only_listeners_with_bytes_are_asked_and_none_that_has_ended() {
        let siblings = Siblings::default();
        let addr = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let kinds = [ServiceKind::File, ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table];
        for (port, kind) in (1..).zip(kinds) {
            siblings.add(kind, addr(port));
        }
        let has = |port: u16| siblings.has(&addr(port).to_string());
        assert!(has(1) && has(2) && !has(3) && !has(4) && !has(5));
        siblings.remove(addr(2));
        assert!(has(1) && !has(2));
    }
}
