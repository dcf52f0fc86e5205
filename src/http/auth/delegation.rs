//! User delegation keys: keys of limited life that a bearer asks for and signs a SAS with.
//!
//! Decides the value of such a key: a signature with the account's key over the fields that name
//! the user, the service and the time. So nothing is stored, and a key of a changed account key is
//! void. Decides also who may use a SAS that is made for one user.

use super::credential::{AccountKey, Credential};
use super::error::AuthError;
use super::grant::GrantedBy;
use super::request::SignedQuery;
use crate::rules::service::ServiceKind;
use crate::rules::{Timestamp, time};

/// The fields of a SAS that name the key it is signed with, in the order they are signed.
pub const KEY_FIELDS: [&str; 6] = ["skoid", "sktid", "skt", "ske", "sks", "skv"];

/// The value of the key with these fields, in base64, as a client is given it.
pub fn key_value(account: &AccountKey, fields: [&str; 6]) -> String {
    account.sign(&format!("user delegation key\n{}", fields.join("\n")))
}

/// The keys that a SAS with these fields may be signed with: one for each key of the account.
pub(super) fn keys_of(
    account: &Credential,
    service: ServiceKind,
    query: &SignedQuery,
    now: Timestamp,
) -> Result<Vec<AccountKey>, AuthError> {
    let mut fields = [""; 6];
    for (field, name) in fields.iter_mut().zip(KEY_FIELDS) {
        *field = query.get(name).ok_or(AuthError::SasIncomplete(name))?;
    }
    let date = |at: usize| {
        let unreadable = || AuthError::unreadable(KEY_FIELDS[at], fields[at]);
        time::parse_iso(fields[at]).ok_or_else(unreadable)
    };
    let (start, expiry) = (date(2)?, date(3)?);
    if now < start {
        return Err(AuthError::SasTooEarly { start, now });
    }
    if now >= expiry {
        return Err(AuthError::SasExpired { start: Some(start), expiry, now });
    }
    // A key of one service signs nothing for another.
    if fields[4] != service.letter().to_string() {
        return Err(AuthError::ServiceMismatch { allowed: fields[4].to_owned(), service });
    }
    let keys = account.keys().iter();
    Ok(keys.filter_map(|key| AccountKey::from_base64(&key_value(key, fields))).collect())
}

/// Refuses a SAS that is made for one user (`sduoid`, of the directory `skdutid`) to others than
/// the bearer of that user's token.
pub(super) fn check_user(query: &SignedQuery, by: Option<&GrantedBy>) -> Result<(), AuthError> {
    let Some(user) = query.get("sduoid") else { return Ok(()) };
    match by {
        Some(GrantedBy::Bearer { subject, tenant })
            if subject == user && query.get("skdutid").is_none_or(|wanted| wanted == tenant) =>
        {
            Ok(())
        }
        _ => Err(AuthError::OtherUser(user.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_one_service_signs_nothing_for_another() {
        let now = time::parse_iso("2026-01-05T10:00:00Z").unwrap();
        let query = SignedQuery::of(
            "skoid=me&sktid=here&skt=2026-01-05T00:00:00Z&ske=2026-01-06T00:00:00Z&sks=b\
             &skv=2026-04-06",
        );
        let keys = |service| keys_of(&Credential::development(), service, &query, now);
        assert_eq!(keys(ServiceKind::Blob).unwrap().len(), 1);
        for service in [ServiceKind::Queue, ServiceKind::File] {
            let error = keys(service).unwrap_err();
            assert_eq!(error.code(), "AuthorizationServiceMismatch", "{service}");
        }
    }
}
