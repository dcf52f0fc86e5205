//! User delegation keys: keys of limited life that a bearer asks for and signs a SAS with.
//!
//! Decides the value of such a key: a signature with the account's key over the fields that name
//! the user and the time. So nothing is stored, and a key of a changed account key is void.

use super::credential::{Credential, Key};
use super::error::AuthError;
use super::request::Query;
use crate::core::{Timestamp, time};

/// The fields of a SAS that name the key it is signed with, in the order they are signed.
pub const KEY_FIELDS: [&str; 6] = ["skoid", "sktid", "skt", "ske", "sks", "skv"];

/// The value of the key with these fields, in base64, as a client is given it.
pub fn key_value(account: &Key, fields: [&str; 6]) -> String {
    account.sign(&format!("user delegation key\n{}", fields.join("\n")))
}

/// The keys that a SAS with these fields may be signed with: one for each key of the account.
pub(super) fn keys_of(
    account: &Credential,
    query: &Query,
    now: Timestamp,
) -> Result<Vec<Key>, AuthError> {
    let mut fields = [""; 6];
    for (field, name) in fields.iter_mut().zip(KEY_FIELDS) {
        *field = query.get(name).ok_or(AuthError::SasIncomplete(name))?;
    }
    let date = |at: usize| {
        let unreadable =
            || AuthError::SasUnreadable { field: KEY_FIELDS[at], value: fields[at].to_owned() };
        time::parse_iso(fields[at]).ok_or_else(unreadable)
    };
    let (start, expiry) = (date(2)?, date(3)?);
    if now < start {
        return Err(AuthError::SasTooEarly { start, now });
    }
    if now >= expiry {
        return Err(AuthError::SasExpired { start: Some(start), expiry, now });
    }
    let keys = account.keys().iter();
    Ok(keys.filter_map(|key| Key::from_base64(&key_value(key, fields))).collect())
}
