//! Checks the shared access signature of a request.
//!
//! The order of the checks is: signature, time, stored policy, caller's address, protocol, service.
//! A caller learns about the fields of a SAS only if its signature is right. The operation checks
//! level and letters, with the [`Grant`].

use std::net::IpAddr;
use std::sync::Arc;

use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;
use crate::rules::{Timestamp, time};

use super::super::credential::{Credential, Signer};
use super::super::delegation::keys_of;
use super::super::error::AuthError;
use super::super::grant::{Grant, GrantedBy, Overrides, SasScope};
use super::super::permission::Permissions;
use super::super::request::{AuthTarget, RequestView, SignedQuery};
use super::super::signatures::SCOPE_SINCE;
use super::{account_text, signed_text};

/// Where stored access policies are found.
pub trait Policies {
    /// The policy `id` of the share.
    fn policy(&self, account: &str, share: &str, id: &str) -> Option<StoredPolicy>;
}

impl<F: Fn(&str, &str, &str) -> Option<StoredPolicy>> Policies for F {
    fn policy(&self, account: &str, share: &str, id: &str) -> Option<StoredPolicy> {
        self(account, share, id)
    }
}

/// Every parameter that a SAS signs. None may hold a line feed: it would let the same text be
/// cut into other fields.
const SIGNED: [&str; 36] = [
    "sp", "ss", "srt", "sr", "st", "se", "sip", "spr", "sv", "si", "ses", "sig", "rscc", "rscd",
    "rsce", "rscl", "rsct", "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid",
    "skdutid", "sduoid", "srh", "srq", "tn", "spk", "srk", "epk", "erk", "sdd",
];

/// Checks the SAS in `query` and returns its grant.
pub(in crate::http::auth) fn verify(
    request: &RequestView<'_>,
    target: &AuthTarget<'_>,
    account: &Credential,
    query: &SignedQuery,
    policies: &dyn Policies,
) -> Result<Grant, AuthError> {
    for field in SIGNED {
        if let Some(value) = query.get(field).filter(|value| value.contains(char::is_control)) {
            return Err(AuthError::unreadable(field, value));
        }
    }
    let (scope, client) = verify_signature(request, target, account, query)?;
    let terms = Terms::of(target, query, policies)?;
    terms.check_time(request.now)?;
    check_source(request.client_ip, query)?;
    check_protocol(request.https, query)?;
    if let SasScope::Account { .. } = scope {
        check_service(target.signatures.kind, query)?;
    }
    let overrides = match scope {
        SasScope::Account { .. } => Overrides::default(),
        SasScope::Container | SasScope::Object | SasScope::Table(_) => overrides(query),
    };
    let permissions = Permissions::of_letters(&terms.permission);
    let by = GrantedBy::Sas { scope, permissions };
    // Older versions do not sign it.
    let signed = query.get("sv").is_some_and(|version| version >= SCOPE_SINCE);
    let encryption_scope = query.get("ses").filter(|_| signed).map(str::to_owned);
    Ok(Grant { overrides, client, encryption_scope, ..Grant::new(account.name(), by) })
}

/// What a SAS covers, and the client whose key signed it. An account SAS has `ss` and `srt`; a user
/// delegation SAS names its key.
fn verify_signature(
    request: &RequestView<'_>,
    target: &AuthTarget<'_>,
    account: &Credential,
    query: &SignedQuery,
) -> Result<(SasScope, Option<Arc<str>>), AuthError> {
    check_version(query)?;
    let signature = query.get("sig").ok_or(AuthError::SasIncomplete("sig"))?;
    let signatures = target.signatures;
    let (signer, (scope, text)) = match (query.get("ss"), query.get("srt")) {
        (Some(_), Some(levels)) => {
            let scope = SasScope::Account { levels: levels.to_owned() };
            let text = account_text(account.name(), query);
            (account.signer(&text, signature), (scope, text))
        }
        (Some(_), None) => return Err(AuthError::SasIncomplete("srt")),
        (None, Some(_)) => return Err(AuthError::SasIncomplete("ss")),
        (None, None) if query.get("skoid").is_some() => {
            if signatures.delegation_sas.is_empty() {
                return Err(AuthError::unreadable("skoid", ""));
            }
            let (scope, resource) = (signatures.reach)(target, query)?;
            let text = signed_text(signatures.delegation_sas, &resource, Some(request), query)?;
            let keys = keys_of(account, signatures.kind, query, request.now)?;
            let signed = keys.iter().any(|key| key.verifies(&text, signature));
            (signed.then_some(Signer { client: None }), (scope, text))
        }
        (None, None) => {
            let (scope, resource) = (signatures.reach)(target, query)?;
            let text = signed_text(signatures.service_sas, &resource, Some(request), query)?;
            (account.signer(&text, signature), (scope, text))
        }
    };
    match signer {
        Some(Signer { client }) => Ok((scope, client)),
        None => Err(AuthError::SignatureMismatch { string_to_sign: text }),
    }
}

/// `sv` is a date; any, as for `x-ms-version`.
fn check_version(query: &SignedQuery) -> Result<(), AuthError> {
    let version = query.get("sv").ok_or(AuthError::SasIncomplete("sv"))?;
    let dated = version.len() == 10 && time::parse_short_iso(version).is_some();
    if dated { Ok(()) } else { Err(AuthError::unreadable("sv", version)) }
}

/// The terms of the SAS and its stored policy together; each field is given by one of them.
struct Terms {
    permission: String,
    start: Option<Timestamp>,
    expiry: Timestamp,
}

impl Terms {
    fn of(
        target: &AuthTarget<'_>,
        query: &SignedQuery,
        policies: &dyn Policies,
    ) -> Result<Self, AuthError> {
        // An account SAS has no policy: it signs no `si`.
        let policy = match query.get("si").filter(|_| query.get("srt").is_none()) {
            Some(id) => {
                // A table SAS names its table itself: a transaction is at another address.
                let container = match target.signatures.kind {
                    ServiceKind::Table => query.get("tn"),
                    _ => target.container,
                };
                let container = container.unwrap_or_default();
                let found = policies.policy(target.account, container, id);
                found.ok_or_else(|| AuthError::PolicyMissing(id.to_owned()))?
            }
            None => StoredPolicy::default(),
        };
        let letters = query.get("sp").map(str::to_owned);
        let stored = policy.permission.filter(|letters| !letters.is_empty());
        let permission = one_of("sp", letters, stored)?;
        let start = one_of("st", date(query, "st")?, policy.start)?;
        let expiry = one_of("se", date(query, "se")?, policy.expiry)?;
        Ok(Self {
            permission: permission.ok_or(AuthError::SasIncomplete("sp"))?,
            start,
            expiry: expiry.ok_or(AuthError::SasIncomplete("se"))?,
        })
    }

    fn check_time(&self, now: Timestamp) -> Result<(), AuthError> {
        match self.start {
            Some(start) if now < start => Err(AuthError::SasTooEarly { start, now }),
            _ if now >= self.expiry => {
                Err(AuthError::SasExpired { start: self.start, expiry: self.expiry, now })
            }
            _ => Ok(()),
        }
    }
}

fn one_of<T>(
    field: &'static str,
    signed: Option<T>,
    stored: Option<T>,
) -> Result<Option<T>, AuthError> {
    match (signed, stored) {
        (Some(_), Some(_)) => Err(AuthError::PolicyDoubled(field)),
        (one, other) => Ok(one.or(other)),
    }
}

fn date(query: &SignedQuery, field: &'static str) -> Result<Option<Timestamp>, AuthError> {
    let Some(text) = query.get(field) else { return Ok(None) };
    time::parse_short_iso(text).map(Some).ok_or_else(|| AuthError::unreadable(field, text))
}

/// `sip` is an address, or a first and a last one.
fn check_source(client: IpAddr, query: &SignedQuery) -> Result<(), AuthError> {
    let Some(allowed) = query.get("sip") else { return Ok(()) };
    let (first, last) = allowed.split_once('-').unwrap_or((allowed, allowed));
    let (Ok(first), Ok(last)) = (first.parse::<IpAddr>(), last.parse::<IpAddr>()) else {
        return Err(AuthError::unreadable("sip", allowed));
    };
    // An IPv4 caller on a socket for both families comes as an IPv6 one.
    let client = client.to_canonical();
    let same_family = client.is_ipv4() == first.is_ipv4() && client.is_ipv4() == last.is_ipv4();
    if same_family && (first..=last).contains(&client) {
        Ok(())
    } else {
        Err(AuthError::SourceIpMismatch { allowed: allowed.to_owned() })
    }
}

fn check_protocol(https: bool, query: &SignedQuery) -> Result<(), AuthError> {
    match query.get("spr") {
        None | Some("https,http" | "http,https") => Ok(()),
        Some("https") if https => Ok(()),
        Some("https") => Err(AuthError::ProtocolMismatch),
        Some(other) => Err(AuthError::unreadable("spr", other)),
    }
}

fn check_service(service: ServiceKind, query: &SignedQuery) -> Result<(), AuthError> {
    let allowed = query.get("ss").unwrap_or_default();
    if allowed.contains(service.letter()) {
        Ok(())
    } else {
        Err(AuthError::ServiceMismatch { allowed: allowed.to_owned(), service })
    }
}

fn overrides(query: &SignedQuery) -> Overrides {
    let value = |name| query.get(name).map(str::to_owned);
    Overrides {
        cache_control: value("rscc"),
        content_disposition: value("rscd"),
        content_encoding: value("rsce"),
        content_language: value("rscl"),
        content_type: value("rsct"),
    }
}
