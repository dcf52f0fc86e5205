//! Requests as clients send them, good and spoilt.

mod any_input;
mod bearer;
mod credential;
mod sas;
mod sas_vectors;
mod shared_key;
mod shared_key_vectors;

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::rules::policy::StoredPolicy;
use crate::rules::{Timestamp, time};

/// Every request here is sent at that moment, unless it says otherwise.
const DATE: &str = "Mon, 05 Jan 2026 10:00:00 GMT";

fn at(stamp: &str) -> Timestamp {
    time::parse_iso(stamp).unwrap()
}

fn now() -> Timestamp {
    time::parse_rfc1123(DATE).unwrap()
}

/// A request that owns its parts, so that a test can change any of them.
#[derive(Clone)]
struct Sent {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    now: Timestamp,
    https: bool,
    client_ip: IpAddr,
}

impl Sent {
    fn new(method: &str, url: &str) -> Self {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        Self {
            method: method.into(),
            path: path.into(),
            query: query.into(),
            headers: Vec::new(),
            now: now(),
            https: false,
            client_ip: Ipv4Addr::LOCALHOST.into(),
        }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn view<T>(&self, look: impl FnOnce(&RequestView<'_>) -> T) -> T {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        look(&RequestView {
            method: &self.method,
            raw_path: &self.path,
            raw_query: &self.query,
            headers: &headers,
            now: self.now,
            outside: self.now,
            https: self.https,
            client_ip: self.client_ip,
        })
    }

    /// Signed by the development account.
    fn signed(self, scheme: Scheme) -> Self {
        let value = self.view(|view| sign(view, &Credential::development(), scheme));
        self.with("Authorization", &value)
    }

    fn authorize(&self, target: &AuthTarget<'_>) -> Result<Grant, AuthError> {
        self.view(|view| authorizer().authorize(view, target, &policies))
    }
}

/// Knows the development account and one other; takes tokens.
fn authorizer() -> Authorizer {
    let other = "other:b3RoZXIga2V5".parse().unwrap();
    let accounts = Credentials::new([Credential::development(), other]).unwrap();
    Authorizer { accounts, oauth: OauthMode::Basic }
}

/// The share `demo` has the policies `readers`, complete, and `lasting`, without letters.
fn policies(account: &str, share: &str, id: &str) -> Option<StoredPolicy> {
    let expiry = Some(at("2026-01-06T10:00:00Z"));
    let permission = match (account, share, id) {
        (DEVELOPMENT_NAME, "demo", "readers") => Some("rl".to_owned()),
        (DEVELOPMENT_NAME, "demo", "lasting") => None,
        _ => return None,
    };
    Some(StoredPolicy { id: id.to_owned(), start: None, expiry, permission })
}

const SERVICE: AuthTarget<'_> = AuthTarget {
    signatures: &FILE_SIGNATURES,
    account: DEVELOPMENT_NAME,
    container: None,
    path: "",
    level: ResourceLevel::Object,
};
const DEMO: AuthTarget<'_> = AuthTarget { container: Some("demo"), ..SERVICE };

fn in_demo(path: &str) -> AuthTarget<'_> {
    AuthTarget { path, ..DEMO }
}

fn string_signed(refused: Result<Grant, AuthError>) -> String {
    match refused {
        Err(AuthError::SignatureMismatch { string_to_sign }) => string_to_sign,
        other => panic!("not a mismatch of signatures: {other:?}"),
    }
}
