//! Fresh identities that nobody can guess. The one place that asks the system for randomness.

use rustix::rand::{GetRandomFlags, getrandom};
use uuid::Uuid;

use crate::rules::LeaseId;

/// Bytes that nobody can guess, 256 at most.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let got = getrandom(&mut bytes, GetRandomFlags::empty());
    assert_eq!(got, Ok(N), "up to 256 random bytes come whole (getrandom(2))");
    bytes
}

/// A lease ID for a request that proposes none.
pub fn lease_id() -> LeaseId {
    Uuid::new_v4().into()
}

/// A secret of 256 bits, in hexadecimal digits.
pub fn new_secret() -> String {
    let bytes: [u8; 32] = bytes();
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A fresh GUID for requests and copies: an ID, not a secret.
pub fn new_guid() -> String {
    Uuid::new_v4().to_string()
}
