//! New shared access signatures, as a client appends them to a URL.
//!
//! Decides spelling and order of the parameters. The caller decides their values; nothing is
//! refused here, since the server refuses a SAS that is wrong.

use crate::rules::{Timestamp, time};

use super::super::credential::Credential;
use super::super::error::AuthError;
use super::super::grant::Overrides;
use super::super::request::{AuthTarget, SignedQuery, encoded};
use super::super::signatures::FILE;
use super::{account_text, signed_text};

/// The `sv` of what is made here.
pub const SAS_VERSION: &str = "2026-10-06";

type SasParameters = Vec<(&'static str, String)>;

/// An account SAS to be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountSas {
    /// `sp`: letters.
    pub permissions: String,
    /// `ss`: letters of services, `f` for files.
    pub services: String,
    /// `srt`: letters of levels, of `sco`.
    pub levels: String,
    /// `st`.
    pub start: Option<Timestamp>,
    /// `se`.
    pub expiry: Timestamp,
    /// `sip`: an address, or `FIRST-LAST`.
    pub addresses: Option<String>,
    /// `spr=https`.
    pub https_only: bool,
}

impl AccountSas {
    /// The query, signed with the account's first key.
    pub fn token(&self, account: &Credential) -> String {
        let pairs = vec![
            ("ss", self.services.clone()),
            ("srt", self.levels.clone()),
            ("sp", self.permissions.clone()),
            ("st", seconds(self.start)),
            ("se", seconds(Some(self.expiry))),
            ("sip", self.addresses.clone().unwrap_or_default()),
            ("spr", protocol(self.https_only)),
            ("sv", SAS_VERSION.to_owned()),
        ];
        signed(account, pairs, |query| account_text(account.name(), query))
    }
}

/// A service SAS to be, of a share or of a file. What its stored policy says is left out here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServiceSas {
    pub share: String,
    /// The file's path in it, neither encoded nor with a slash before it; none for the share.
    pub file: Option<String>,
    /// `sp`: letters.
    pub permissions: Option<String>,
    /// `st`.
    pub start: Option<Timestamp>,
    /// `se`.
    pub expiry: Option<Timestamp>,
    /// `si`: a stored policy of the share.
    pub policy: Option<String>,
    /// `sip`: an address, or `FIRST-LAST`.
    pub addresses: Option<String>,
    /// `spr=https`.
    pub https_only: bool,
    /// `rscc` and the others.
    pub overrides: Overrides,
}

impl ServiceSas {
    /// The query, signed with the account's first key.
    pub fn token(&self, account: &Credential) -> String {
        let mut resource = format!("/file/{}/{}", account.name(), self.share);
        if let Some(path) = &self.file {
            resource = format!("{resource}/{path}");
        }
        signed(account, self.pairs(), |query| {
            let text = signed_text(FILE.service_sas, &resource, None, query);
            text.expect("a text without a request")
        })
    }

    fn pairs(&self) -> SasParameters {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let kind = if self.file.is_some() { "f" } else { "s" };
        vec![
            ("sr", kind.to_owned()),
            ("sp", text(&self.permissions)),
            ("st", seconds(self.start)),
            ("se", seconds(self.expiry)),
            ("si", text(&self.policy)),
            ("sip", text(&self.addresses)),
            ("spr", protocol(self.https_only)),
            ("sv", SAS_VERSION.to_owned()),
            ("rscc", text(&self.overrides.cache_control)),
            ("rscd", text(&self.overrides.content_disposition)),
            ("rsce", text(&self.overrides.content_encoding)),
            ("rscl", text(&self.overrides.content_language)),
            ("rsct", text(&self.overrides.content_type)),
        ]
    }
}

/// The query of a service SAS of any service for what `target` names, with these parameters, signed
/// with the account's first key.
pub fn service_token(
    account: &Credential,
    target: &AuthTarget<'_>,
    mut pairs: Vec<(&'static str, String)>,
) -> Result<String, AuthError> {
    pairs.push(("sv", SAS_VERSION.to_owned()));
    let query = SignedQuery::of_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()).cloned());
    let (_, resource) = (target.signatures.reach)(target, &query)?;
    let text = signed_text(target.signatures.service_sas, &resource, None, &query)?;
    Ok(signed(account, pairs, |_| text.clone()))
}

fn signed(
    account: &Credential,
    pairs: SasParameters,
    text: impl Fn(&SignedQuery) -> String,
) -> String {
    let query = SignedQuery::of_pairs(pairs.into_iter().filter(|(_, value)| !value.is_empty()));
    let mut token = String::new();
    for (name, value) in query.pairs() {
        token.push_str(name);
        token.push('=');
        token.push_str(&encoded(value));
        token.push('&');
    }
    token.push_str("sig=");
    token.push_str(&encoded(&account.key().sign(&text(&query))));
    token
}

/// To the second, as every client writes it; empty for none.
fn seconds(moment: Option<Timestamp>) -> String {
    moment.map(time::iso_seconds).unwrap_or_default()
}

/// Both protocols are the default and go unsaid.
fn protocol(https_only: bool) -> String {
    if https_only { "https".to_owned() } else { String::new() }
}
