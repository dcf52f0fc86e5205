//! The address of a request: account, container and path, read from its URL and Host.
//!
//! Decides between host style and path style, which addresses belong to the secondary location, and
//! which Host headers are accepted: the development key is public, so a web page whose name
//! resolves to this machine (DNS rebinding) must be refused.
//!
//! The path within the container stays as it was sent: each service decodes it by its own rules.

use std::borrow::Cow;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;

use super::refusal::Refusal;
use crate::http::auth::ResourceLevel;
use crate::rules::service::ServiceKind;

/// The end of an account's name in addresses of its secondary location.
pub(crate) const SECONDARY: &str = "-secondary";

/// The resource that a request names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    pub account: String,
    /// Whether the address is that of the secondary location, which has the same data and only
    /// reads.
    pub secondary: bool,
    /// The URL of the service, with a slash at the end.
    pub endpoint: String,
    /// The share, container, queue or table, if the path goes that far.
    pub container: Option<String>,
    /// The path after the container, percent-encoded as sent, without the slash between.
    pub rest: String,
}

/// The names that a listener is called by.
#[derive(Clone, Copy, Debug)]
pub struct ListenerNames<'a> {
    pub service: ServiceKind,
    pub accounts: &'a [String],
    pub hosts: &'a [String],
    /// Whether an account's name counts under any host suffix. Right for URLs in a request, which
    /// say what they mean; wrong for the Host that a browser was led to.
    pub any_suffix: bool,
    /// Whether a Host without a dot is accepted, such as the name of a container on its network.
    /// Nobody can register such a name, so a web page of a stranger cannot be behind it; on a
    /// listener that only this machine reaches no client has a use for one.
    pub any_label: bool,
    /// Whether the account is always the first segment of the path of a request.
    pub path_style: bool,
}

impl Address {
    /// Reads the address of a request from its scheme and host, and its path. `signer` is the
    /// account that the request claims to be signed by.
    pub fn read(
        names: ListenerNames<'_>,
        (scheme, host): (&str, &str),
        path: &str,
        signer: Option<&str>,
    ) -> Result<Self, Refusal> {
        let path = path.strip_prefix('/').unwrap_or(path);
        if !names.path_style
            && let Some((account, secondary)) = names.host_account(host)
        {
            let endpoint = format!("{scheme}://{host}/");
            return Self::within((account, secondary), endpoint, path);
        }
        let (first, after) = split(path);
        if let Some(found) = names.account(&first) {
            let endpoint = format!("{scheme}://{host}/{first}/");
            // The Python clients of tables, queues and blobs name the account again where they ask
            // the secondary location for statistics. A queue or container may have its name.
            let (second, rest) = split(after);
            let doubled = match names.service {
                ServiceKind::Table => true,
                ServiceKind::Queue | ServiceKind::Blob => rest.is_empty() && after.ends_with('/'),
                ServiceKind::File => false,
            };
            let again = found.1 && second == found.0 && doubled;
            return Self::within(found, endpoint, if again { rest } else { after });
        }
        // The JS client leaves the account out of a rename's target.
        match signer.and_then(|name| names.account(name)) {
            Some(found) => Self::within(found, format!("{scheme}://{host}/{}/", found.0), path),
            None => Err(Refusal::bad(
                "InvalidUri",
                format!(
                    "The requested URI does not represent any resource on the server. [latchfs: \
                     the path must start with an account of this server: {}]",
                    names.accounts.join(", ")
                ),
            )),
        }
    }

    fn within(
        (account, secondary): (&str, bool),
        endpoint: String,
        path: &str,
    ) -> Result<Self, Refusal> {
        let (container, rest) = split(path);
        let container = match container.is_empty() {
            true if rest.is_empty() => None,
            true => return Err(Refusal::bad("InvalidUri", "The name of the container is empty.")),
            false => Some(container),
        };
        let (account, rest) = (account.to_owned(), rest.to_owned());
        Ok(Self { account, secondary, endpoint, container, rest })
    }

    /// How far the path goes.
    pub fn level(&self) -> ResourceLevel {
        match (&self.container, self.rest.trim_start_matches('/').is_empty()) {
            (None, _) => ResourceLevel::Service,
            (Some(_), true) => ResourceLevel::Container,
            (Some(_), false) => ResourceLevel::Object,
        }
    }

    /// The path within the container, decoded, without slashes at its ends: as a SAS signs it.
    pub fn path(&self) -> Cow<'_, str> {
        percent_decode_str(self.rest.trim_matches('/')).decode_utf8_lossy()
    }
}

/// The first segment, decoded, and what follows the slash after it, as sent.
fn split(path: &str) -> (String, &str) {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    (percent_decode_str(first).decode_utf8_lossy().into_owned(), rest)
}

impl<'a> ListenerNames<'a> {
    /// The account of `name` in an address, and whether the name is that of its secondary location.
    fn account(self, name: &str) -> Option<(&'a str, bool)> {
        let find = |name: &str| {
            let found = self.accounts.iter().find(|account| account.eq_ignore_ascii_case(name));
            found.map(String::as_str)
        };
        let primary = find(name).map(|account| (account, false));
        primary.or_else(|| Some((find(name.strip_suffix(SECONDARY)?)?, true)))
    }

    /// The account of a host like `ACCOUNT.SERVICE.SUFFIX`, if this server is meant. The suffix
    /// must be `localhost` or one of the further host names: a stranger's domain can point here
    /// too.
    pub fn host_account(self, host: &str) -> Option<(&'a str, bool)> {
        let (first, rest) = host_name(host).split_once('.')?;
        let (second, suffix) = rest.split_once('.')?;
        let known =
            self.any_suffix || suffix.eq_ignore_ascii_case("localhost") || self.has_host(suffix);
        let ours = known && second.eq_ignore_ascii_case(self.service.label());
        if ours { self.account(first) } else { None }
    }

    fn has_host(self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    /// Refuses a Host that is neither this machine nor one of the names.
    pub fn check_host(self, host: &str) -> Result<(), Refusal> {
        let name = host_name(host);
        let known = is_this_machine(name) || self.has_host(name);
        if known || self.host_account(host).is_some() || (self.any_label && is_label(name)) {
            return Ok(());
        }
        let why = "the request must name this machine, one of its accounts, or a name given with \
                   --host";
        Err(Refusal::header("Host", host, why))
    }
}

/// True for an address literal, and for the names that mean this machine.
pub fn is_this_machine(name: &str) -> bool {
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    let end = name.rsplit('.').next().unwrap_or(name);
    literal.parse::<IpAddr>().is_ok()
        // Alone, or behind a dot.
        || end.eq_ignore_ascii_case("localhost")
        || name.eq_ignore_ascii_case("host.docker.internal")
}

/// True for a host name without a dot.
fn is_label(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(letter)
}

/// A host without its port.
pub fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_names<T>(use_them: impl FnOnce(ListenerNames<'_>) -> T) -> T {
        let (accounts, hosts) = (["dev".to_owned()], ["nas".to_owned()]);
        use_them(ListenerNames {
            service: ServiceKind::File,
            accounts: &accounts,
            hosts: &hosts,
            any_suffix: false,
            any_label: false,
            path_style: false,
        })
    }

    fn read(host: &str, path: &str, signer: Option<&str>) -> Result<Address, Refusal> {
        with_names(|names| Address::read(names, ("http", host), path, signer))
    }

    #[test]
    fn path_style_has_the_account_first() {
        let address = read("127.0.0.1:10004", "/dev/docs/a%2Fb", None).unwrap();
        assert_eq!(address.endpoint, "http://127.0.0.1:10004/dev/");
        assert_eq!((address.container.as_deref(), &*address.rest), (Some("docs"), "a%2Fb"));
        assert_eq!((address.level(), address.path()), (ResourceLevel::Object, "a/b".into()));
        assert_eq!(read("[::1]:1", "/dev", None).unwrap().level(), ResourceLevel::Service);
        assert_eq!(read("[::1]:1", "/dev/", None).unwrap().level(), ResourceLevel::Service);
        assert_eq!(
            read("localhost", "/dev/docs/", None).unwrap().level(),
            ResourceLevel::Container
        );
        assert!(read("127.0.0.1", "/dev//docs", None).is_err());
    }

    #[test]
    fn host_style_has_the_account_in_the_name() {
        for host in ["dev.file.localhost:9", "dev.file.nas", "DEV.File.NAS:1"] {
            let address = read(host, "/docs/a", None).unwrap();
            assert_eq!((&*address.account, address.container.as_deref()), ("dev", Some("docs")));
            assert_eq!(address.endpoint, format!("http://{host}/"));
        }
    }

    #[test]
    fn the_secondary_location_is_the_same_account() {
        for (host, path) in
            [("127.0.0.1", "/dev-secondary/docs/a"), ("dev-secondary.file.localhost", "/docs/a")]
        {
            let address = read(host, path, None).unwrap();
            assert!(address.secondary && address.account == "dev", "{address:?}");
        }
        assert!(!read("127.0.0.1", "/dev/docs", None).unwrap().secondary);
    }

    #[test]
    fn a_path_without_the_account_is_read_by_its_signer() {
        let address = read("127.0.0.1", "/docs/a", Some("dev")).unwrap();
        assert_eq!((address.container.as_deref(), &*address.rest), (Some("docs"), "a"));
        assert!(read("127.0.0.1", "/docs/a", Some("other")).is_err());
        assert!(read("127.0.0.1", "/docs/a", None).is_err());
    }

    #[test]
    fn a_url_in_a_request_may_have_any_suffix() {
        let host = "dev.file.core.windows.net";
        assert!(with_names(|names| names.host_account(host).is_none()));
        let any = with_names(|names| {
            ListenerNames { any_suffix: true, ..names }.host_account(host).is_some()
        });
        assert!(any);
    }

    #[test]
    fn a_foreign_host_is_refused() {
        let check = |host: &str| with_names(|names| names.check_host(host));
        for good in [
            "127.0.0.1:1",
            "[::1]:1",
            "[::1]",
            "localhost",
            "a.localhost:5",
            "dev.file.localhost",
            "NAS:1",
            "dev.file.nas",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "evil.example",
            "dev.file.evil.example",
            "dev.file.x",
            "dev.blob.nas",
            "other.file.nas",
            "",
            "dev.file",
            "::1",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_listener_beyond_this_machine_is_called_by_names_without_a_dot() {
        let check = |host: &str| {
            with_names(|names| ListenerNames { any_label: true, ..names }.check_host(host))
        };
        for good in ["azurite:10000", "storage-1", "a_b:1"] {
            assert!(check(good).is_ok(), "{good}");
            assert!(with_names(|names| names.check_host(good)).is_err(), "{good}");
        }
        for bad in ["evil.example", "com.", "", ":1", "::1", "dev.file.x"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn with_path_style_alone_the_host_never_names_the_account() {
        let (host, path) = ("dev.file.localhost", "/dev/docs/a");
        let read = |path_style| {
            let address = with_names(|names| {
                Address::read(ListenerNames { path_style, ..names }, ("http", host), path, None)
            });
            address.unwrap().container
        };
        assert_eq!((read(true).as_deref(), read(false).as_deref()), (Some("docs"), Some("dev")));
    }
}
