//! New shared access signatures, as a client appends them to a URL.
//!
//! Decides spelling and order of the parameters. What to put in is the caller's; nothing is
//! refused here, since the server refuses what is wrong.

use crate::core::{Timestamp, stamp};

use super::super::account::Account;
use super::super::grant::Overrides;
use super::super::request::{Query, Target, encoded};
use super::{account_text, file_resource, service_text, share_resource};

/// The `sv` of what is made here.
pub const SAS_VERSION: &str = "2026-10-06";

type Pairs = Vec<(&'static str, String)>;

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
    pub fn token(&self, account: &Account) -> String {
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
    /// The share.
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
    pub fn token(&self, account: &Account) -> String {
        let resource = match &self.file {
            None => share_resource(account.name(), &self.share),
            Some(path) => {
                let share = Some(self.share.as_str());
                file_resource(&Target { account: account.name(), share, path }, &self.share)
            }
        };
        signed(account, self.pairs(), |query| service_text(&resource, query))
    }

    fn pairs(&self) -> Pairs {
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

fn signed(account: &Account, pairs: Pairs, text: impl Fn(&Query) -> String) -> String {
    let query = Query::of_pairs(pairs.into_iter().filter(|(_, value)| !value.is_empty()));
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
    const SECONDS_LENGTH: usize = "2026-01-02T03:04:05".len();
    let text = moment.map(stamp::iso).unwrap_or_default();
    text.get(..SECONDS_LENGTH).map(|whole| format!("{whole}Z")).unwrap_or_default()
}

/// Both protocols are the default and go unsaid.
fn protocol(https_only: bool) -> String {
    if https_only { "https".to_owned() } else { String::new() }
}
