//! What a URL names: account, share, and the path in it.
//!
//! Decides between host style and path style, and which Host a request may come with: the
//! development key is public, so a web page that has its own name point at this machine must not
//! get through (DESIGN, Security).
//!
//! The path within the share stays as it was sent; it is decoded once, by
//! [`crate::core::rest_path`].
//!
//! Source: FILEREST section 2.

use std::net::IpAddr;

use percent_encoding::percent_decode_str;

use super::refusal::Refusal;

/// What a request names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The account.
    pub account: String,
    /// The URL of the service, with a slash at the end.
    pub endpoint: String,
    /// The share, if the path goes that far.
    pub share: Option<String>,
    /// What follows the share, percent-encoded as sent, without the slash between.
    pub rest: String,
}

/// How far the path of a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// The account.
    Service,
    /// A share, which is its root directory too.
    Share,
    /// A file or directory in a share.
    Path,
}

impl Address {
    /// Reads the address of a request from its scheme and host, and its path. `signer` is the
    /// account that the request claims to be signed by.
    pub fn read(
        accounts: &[String],
        (scheme, host): (&str, &str),
        path: &str,
        signer: Option<&str>,
    ) -> Result<Self, Refusal> {
        let path = path.strip_prefix('/').unwrap_or(path);
        if let Some(account) = host_account(accounts, host) {
            return Self::within(account, format!("{scheme}://{host}/"), path);
        }
        let (first, after) = split(path);
        let known = |name: &str| accounts.iter().any(|account| account == name);
        if known(&first) {
            let endpoint = format!("{scheme}://{host}/{first}/");
            return Self::within(&first, endpoint, after);
        }
        // The JS client leaves the account out of a rename's target.
        match signer {
            Some(account) if known(account) => {
                Self::within(account, format!("{scheme}://{host}/{account}/"), path)
            }
            _ => Err(Refusal::bad(
                "InvalidUri",
                format!(
                    "The path does not start with an account of this server ({}).",
                    accounts.join(", ")
                ),
            )),
        }
    }

    fn within(account: &str, endpoint: String, path: &str) -> Result<Self, Refusal> {
        let (share, rest) = split(path);
        let share = match share.is_empty() {
            true if rest.is_empty() => None,
            true => return Err(Refusal::bad("InvalidUri", "The name of the share is empty.")),
            false => Some(share),
        };
        Ok(Self { account: account.to_owned(), endpoint, share, rest: rest.to_owned() })
    }

    /// How far it goes.
    pub fn level(&self) -> Level {
        match (&self.share, self.rest.trim_start_matches('/').is_empty()) {
            (None, _) => Level::Service,
            (Some(_), true) => Level::Share,
            (Some(_), false) => Level::Path,
        }
    }
}

/// The first segment, decoded, and what follows the slash after it, as sent.
fn split(path: &str) -> (String, &str) {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    (percent_decode_str(first).decode_utf8_lossy().into_owned(), rest)
}

/// The account of a host like `ACCOUNT.file.SUFFIX`, if it is one of ours.
pub fn host_account<'a>(accounts: &'a [String], host: &str) -> Option<&'a String> {
    let mut labels = host_name(host).split('.');
    let first = labels.next()?;
    let second = labels.next()?;
    labels.next()?;
    let account = accounts.iter().find(|account| account.eq_ignore_ascii_case(first))?;
    second.eq_ignore_ascii_case("file").then_some(account)
}

/// Refuses a Host that is neither this machine nor one of the accounts.
pub fn check_host(accounts: &[String], hosts: &[String], host: &str) -> Result<(), Refusal> {
    let name = host_name(host);
    let known = is_this_machine(name)
        || host_account(accounts, host).is_some()
        || hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    if known {
        return Ok(());
    }
    let why = "a request must name this machine or one of its accounts";
    Err(Refusal::header("Host", host, why))
}

/// True for an address literal, and for the names that mean this machine.
pub fn is_this_machine(name: &str) -> bool {
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    let name = name.to_ascii_lowercase();
    literal.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || name.ends_with(".localhost")
        || name == "host.docker.internal"
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

    fn accounts() -> Vec<String> {
        vec!["dev".to_owned()]
    }

    fn read(host: &str, path: &str, signer: Option<&str>) -> Result<Address, Refusal> {
        Address::read(&accounts(), ("http", host), path, signer)
    }

    #[test]
    fn path_style_has_the_account_first() {
        let address = read("127.0.0.1:10004", "/dev/docs/a%2Fb", None).unwrap();
        assert_eq!(address.endpoint, "http://127.0.0.1:10004/dev/");
        assert_eq!((address.share.as_deref(), &*address.rest), (Some("docs"), "a%2Fb"));
        assert_eq!(address.level(), Level::Path);
        assert_eq!(read("[::1]:1", "/dev", None).unwrap().level(), Level::Service);
        assert_eq!(read("[::1]:1", "/dev/", None).unwrap().level(), Level::Service);
        assert_eq!(read("localhost", "/dev/docs/", None).unwrap().level(), Level::Share);
        assert!(read("127.0.0.1", "/other/docs", None).is_err());
        assert!(read("127.0.0.1", "/dev//docs", None).is_err());
    }

    #[test]
    fn host_style_has_the_account_in_the_name() {
        let address = read("dev.file.localhost:9", "/docs/a", None).unwrap();
        assert_eq!((&*address.account, address.share.as_deref()), ("dev", Some("docs")));
        assert_eq!(address.endpoint, "http://dev.file.localhost:9/");
    }

    #[test]
    fn a_path_without_the_account_is_read_by_its_signer() {
        let address = read("127.0.0.1", "/docs/a", Some("dev")).unwrap();
        assert_eq!((address.share.as_deref(), &*address.rest), (Some("docs"), "a"));
        assert!(read("127.0.0.1", "/docs/a", Some("other")).is_err());
    }

    #[test]
    fn a_foreign_host_is_refused() {
        let check = |host| check_host(&accounts(), &["nas".to_owned()], host);
        for good in
            ["127.0.0.1:1", "[::1]:1", "[::1]", "localhost", "a.localhost:5", "dev.file.x", "NAS:1"]
        {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["evil.example", "dev.blob.x", "other.file.x", "", "dev.file", "::1"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
