//! The listeners of a server: one for each service that is offered, all with the same accounts.
//!
//! Decides which services listen where, which addresses are too exposed for the keys in use, and
//! which URLs clients are given. Answers are decided by the services.
//!
//! To add a service: a line in [`SERVICES`] here, and its option with a line in
//! `Listen::addresses` of `src/cli/serve/listen.rs`. Listeners, endpoints, connection strings,
//! certificates, the ready file and the start screen follow this list.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::address::{ListenAddress, OptionalAddress, ServiceAddresses, address_of};
use super::error::StartError;
use super::smb::Smb;
use super::tls::{Certificate, Secured};
use crate::blob::rest::operations::SERVICE_TABLE as BLOB;
use crate::file::rest::operations::SERVICE_TABLE as FILE;
use crate::http::auth::{Admission, Authorizer, Credential, Credentials, OauthMode};
use crate::http::fetch::CopySources;
use crate::http::frame::{ErrorNames, Service};
use crate::http::observer::Observer;
use crate::http::server::{RestOptions, RestServer};
use crate::queue::rest::operations::SERVICE_TABLE as QUEUE;
use crate::rules::service::ServiceKind;
use crate::server::Accounts;
use crate::table::rest::operations::SERVICE_TABLE as TABLE;

/// How long an SMB client that vanished keeps its opens, unless said otherwise.
pub const SMB_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How services are offered over HTTP.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct ListenOptions {
    /// The addresses that were named, by service.
    pub addresses: ServiceAddresses,
    /// Where SMB clients connect.
    pub smb: OptionalAddress,
    /// Whether their requests may come without a signature.
    pub smb_unsigned: bool,
    /// How long an SMB client that vanished keeps its opens.
    pub smb_keep_alive: Duration,
    /// The accounts, the default one first; at least one.
    pub credentials: Vec<Credential>,
    /// Whether requests need no signature.
    pub no_auth: bool,
    /// Whether bearer tokens are taken.
    pub oauth: OauthMode,
    /// Whether an address beyond this machine is taken though everybody could use it.
    pub expose: bool,
    /// Further host names of this server.
    pub hosts: Vec<String>,
    /// Whether the account is always the first segment of the path, whatever the host is.
    pub path_style: bool,
    /// Whether every value of `x-ms-version` is accepted.
    pub any_version: bool,
    /// How long a connection may wait for its next request, for services that differ from the rest.
    pub keep_alive: BTreeMap<ServiceKind, Duration>,
    /// The certificate for https; none for http.
    pub tls: Option<Certificate>,
    /// Where the sources of copies may be.
    pub copy_sources: CopySources,
    /// How long copies of files stay pending.
    pub copy_delay: Duration,
    /// How error codes are spelled where sources differ.
    pub error_names: ErrorNames,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            addresses: ServiceAddresses::new(),
            smb: OptionalAddress::Off,
            smb_unsigned: false,
            smb_keep_alive: SMB_KEEP_ALIVE,
            credentials: vec![Credential::development()],
            no_auth: false,
            oauth: OauthMode::Off,
            expose: false,
            hosts: Vec::new(),
            path_style: false,
            any_version: false,
            keep_alive: BTreeMap::new(),
            tls: None,
            copy_sources: CopySources::default(),
            copy_delay: Duration::ZERO,
            error_names: ErrorNames::default(),
        }
    }
}

/// The listeners of a server. They end when dropped.
pub struct Listeners {
    list: Vec<ServiceListener>,
    smb: Smb,
    /// The accounts, the default one first.
    pub credentials: Vec<Credential>,
    /// The file that clients must trust, if the certificate was made here.
    pub ca_file: Option<PathBuf>,
}

/// One service that listens.
struct ServiceListener {
    kind: ServiceKind,
    server: RestServer,
    /// Scheme, host and port.
    origin: String,
}

impl Listeners {
    /// No connection is taken any more, and what waits at a gate is refused when it goes on.
    pub fn begin_stop(&mut self) {
        self.list.iter_mut().for_each(|listener| listener.server.begin_stop());
        self.smb.begin_stop();
    }
}

impl Drop for Listeners {
    /// All are told before the first is waited for.
    fn drop(&mut self) {
        self.begin_stop();
    }
}

impl ListenOptions {
    /// Offers no service but File unless it was named: one directory has no place for the others.
    pub fn files_alone(&mut self) {
        for kind in kinds().filter(|kind| *kind != ServiceKind::File) {
            self.addresses.entry(kind).or_insert(ListenAddress::Off);
        }
    }

    /// The services that are offered, and where.
    pub fn addresses(&self) -> Vec<(ServiceKind, SocketAddr)> {
        let kinds = kinds();
        kinds.filter_map(|kind| Some((kind, address_of(&self.addresses, kind)?))).collect()
    }

    /// Starts every service that is offered. `state` is where keys of certificates are kept.
    pub fn start(
        &self,
        accounts: &Arc<Accounts>,
        state: &Path,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Result<Listeners, StartError> {
        let offered = self.addresses();
        let credentials = self.credentials.clone();
        self.check_exposure(&offered)?;
        let smb = Smb::start(self, accounts)?;
        if offered.is_empty() {
            return Ok(Listeners { list: Vec::new(), smb, credentials, ca_file: None });
        }
        let secured = self.tls.as_ref().map(|from| from.load(state, self)).transpose()?;
        let options = self.rest_options(secured.as_ref(), observer)?;
        let mut list = Vec::new();
        for (kind, listen) in offered {
            let service = SERVICES.iter().find(|service| service.kind == kind);
            let service = service.expect("offered services come from the list");
            let mut options = RestOptions { listen, ..options.clone() };
            if let Some(wait) = self.keep_alive.get(&kind) {
                options.limits.idle_wait = *wait;
            }
            let server = RestServer::start(Arc::clone(accounts), service, options)
                .map_err(|source| StartError::Listen { kind, address: listen, source })?;
            let scheme = if secured.is_some() { "https" } else { "http" };
            let origin = format!("{scheme}://{}", self.public_address(server.addr()));
            list.push(ServiceListener { kind, server, origin });
        }
        let ca_file = secured.and_then(|secured| secured.ca_file);
        Ok(Listeners { list, smb, credentials, ca_file })
    }

    fn rest_options(
        &self,
        secured: Option<&Secured>,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Result<RestOptions, StartError> {
        let admission = if self.no_auth {
            Admission::Everyone
        } else {
            let accounts = Credentials::new(self.credentials.iter().cloned())?;
            Admission::Signed(Authorizer { accounts, oauth: self.oauth })
        };
        Ok(RestOptions {
            tls: secured.map(|secured| secured.tls.clone()),
            copy_sources: self.copy_sources,
            copy_delay: self.copy_delay,
            hosts: self.hosts.clone(),
            path_style: self.path_style,
            any_version: self.any_version,
            error_names: self.error_names,
            observer: observer.cloned(),
            ..RestOptions::new(admission)
        })
    }

    /// The address that clients are told. No client can connect to "every address".
    pub(super) fn public_address(&self, address: SocketAddr) -> String {
        if !address.ip().is_unspecified() {
            return address.to_string();
        }
        match (self.hosts.first(), address.ip()) {
            (Some(host), _) => format!("{host}:{}", address.port()),
            (None, IpAddr::V4(_)) => format!("{}:{}", Ipv4Addr::LOCALHOST, address.port()),
            (None, IpAddr::V6(_)) => format!("[{}]:{}", Ipv6Addr::LOCALHOST, address.port()),
        }
    }

    /// Refuses addresses beyond this machine where anybody could get in, unless that is meant.
    fn check_exposure(&self, offered: &[(ServiceKind, SocketAddr)]) -> Result<(), StartError> {
        let exposed = offered.iter().find(|(_, address)| !address.ip().is_loopback());
        let exposed = exposed.map(|(_, address)| *address).zip(self.open_to_all());
        let smb = self.exposed_smb().zip(self.known_key());
        match exposed.or(smb) {
            Some((address, (why, cure))) if !self.expose => {
                Err(StartError::Exposed { address, why, cure })
            }
            _ => Ok(()),
        }
    }

    /// Where SMB clients of other machines connect.
    fn exposed_smb(&self) -> Option<SocketAddr> {
        self.smb.wanted().filter(|address| !address.ip().is_loopback())
    }

    fn known_key(&self) -> Option<(&'static str, &'static str)> {
        let known = self.credentials.iter().any(Credential::has_development_key);
        known.then_some(("everybody knows the key", "give --account NAME:KEY"))
    }

    /// Why everybody who reaches a service has access, and the advice to the user; `None` if a
    /// secret is needed.
    fn open_to_all(&self) -> Option<(&'static str, &'static str)> {
        if self.no_auth {
            Some(("--no-auth lets everybody in", "leave it out"))
        } else if self.oauth == OauthMode::Basic {
            Some(("--oauth basic accepts tokens that anybody can write", "leave it out"))
        } else {
            self.known_key()
        }
    }

    /// The note that other machines reach services, and which.
    fn exposure_note(&self) -> Option<String> {
        let offered = self.addresses().into_iter();
        let exposed: Vec<_> = offered
            .filter(|(_, address)| !address.ip().is_loopback())
            .map(|(kind, _)| kind.to_string())
            .chain(self.exposed_smb().map(|_| "smb".to_owned()))
            .collect();
        if exposed.is_empty() {
            return None;
        }
        let services = exposed.join(", ");
        Some(match self.open_to_all() {
            Some((why, _)) => format!("--expose: other machines can reach {services}, and {why}"),
            None => format!("other machines can reach {services}"),
        })
    }

    /// Notes for the user on these options.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::from_iter(self.exposure_note());
        if self.no_auth {
            notes.push("--no-auth: requests need no signature".to_owned());
        }
        if self.oauth == OauthMode::Basic {
            notes.push("--oauth basic: anybody can write a token that is accepted".to_owned());
        }
        if self.oauth == OauthMode::Basic && self.tls.is_none() {
            notes.push("--oauth basic: SDKs send tokens over https only; add --tls self".into());
        }
        notes
    }
}

impl Listeners {
    /// Whether no service listens.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The services that listen, and where.
    pub fn addresses(&self) -> Vec<(ServiceKind, SocketAddr)> {
        self.list.iter().map(|one| (one.kind, one.server.addr())).collect()
    }

    /// The account that is meant where none is named.
    pub fn first_account(&self) -> &Credential {
        self.credentials.first().expect("a server has at least one account")
    }

    /// The URL of each service, with the account.
    pub fn endpoints(&self, account: &Credential) -> Vec<(ServiceKind, String)> {
        self.list.iter().map(|one| (one.kind, account.endpoint(&one.origin))).collect()
    }

    /// The listener for SMB clients.
    pub fn smb(&self) -> &Smb {
        &self.smb
    }

    /// The connection string of an account: its name, its key and all endpoints.
    pub fn connection_string(&self, account: &Credential) -> String {
        account.connection_string(&self.endpoints(account))
    }
}

/// Every service that exists.
pub static SERVICES: &[&Service] = &[&FILE, &BLOB, &QUEUE, &TABLE];

/// The kinds of [`SERVICES`].
pub fn kinds() -> impl Iterator<Item = ServiceKind> {
    SERVICES.iter().map(|service| service.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_an_address_that_they_can_connect_to() {
        let of = |hosts: &[&str], address: &str| {
            let hosts = hosts.iter().map(ToString::to_string).collect();
            let options = ListenOptions { hosts, ..ListenOptions::default() };
            options.public_address(address.parse().unwrap())
        };
        assert_eq!(of(&["nas"], "127.0.0.1:1"), "127.0.0.1:1");
        assert_eq!(of(&["nas", "other"], "0.0.0.0:1"), "nas:1");
        assert_eq!(of(&[], "0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(of(&[], "[::]:1"), "[::1]:1");
    }

    #[test]
    fn a_note_names_the_services_that_other_machines_reach() {
        let mut options = ListenOptions { expose: true, ..ListenOptions::default() };
        assert_eq!(options.notes(), Vec::<String>::new());
        let everywhere = ListenAddress::At("0.0.0.0:0".parse().unwrap());
        let here = ListenAddress::At("127.0.0.1:0".parse().unwrap());
        let at = |kind| if kind == ServiceKind::File { everywhere } else { here };
        options.addresses = ServiceKind::ALL.map(|kind| (kind, at(kind))).into();
        let note = "--expose: other machines can reach file, and everybody knows the key";
        assert_eq!(options.notes(), [note]);
        options.credentials = vec!["private:a2V5".parse().unwrap()];
        assert_eq!(options.notes(), ["other machines can reach file"]);
    }
}
