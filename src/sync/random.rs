//! Fresh identities that nobody can guess. The one place that asks the system for randomness.

use std::cell::RefCell;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::disk::StoreError;
use crate::rules::LeaseId;

/// Bytes that nobody can guess.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], StoreError> {
    let what = "asking for random bytes";
    let mut bytes = [0; N];
    let got = getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| StoreError::from_errno(what, errno))?;
    // Up to 256 bytes come whole (getrandom(2)).
    if got < bytes.len() {
        return Err(StoreError::from_errno(what, Errno::IO));
    }
    Ok(bytes)
}

/// Bytes for an identity, which nobody can guess. A thread gets those of several at once.
pub(crate) fn identity() -> Result<[u8; 10], StoreError> {
    const IDENTITIES: usize = 24;
    thread_local! {
        /// Random bytes of this thread that were not used yet.
        static UNUSED: RefCell<Vec<[u8; 10]>> = const { RefCell::new(Vec::new()) };
    }
    UNUSED.with_borrow_mut(|unused| {
        if let Some(identity) = unused.pop() {
            return Ok(identity);
        }
        let fresh: [u8; 10 * IDENTITIES] = bytes()?;
        unused.extend_from_slice(fresh.as_chunks().0);
        unused.pop().ok_or_else(|| StoreError::from_errno("random bytes", Errno::IO))
    })
}

/// A lease ID for a request that proposes none.
pub(crate) fn lease_id() -> Result<LeaseId, StoreError> {
    bytes().map(LeaseId::from_random_bytes)
}

/// A secret of 256 bits, in hexadecimal digits.
pub fn new_secret() -> Result<String, StoreError> {
    let bytes: [u8; 32] = bytes()?;
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    Ok(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
}

/// GUIDs that a thread makes of one call to the system: every request has one.
const GUIDS: usize = 16;

thread_local! {
    /// Random bytes of this thread, and how many GUIDs were made of them.
    static POOL: RefCell<([[u8; 16]; GUIDS], usize)> =
        const { RefCell::new(([[0; 16]; GUIDS], GUIDS)) };
}

/// A fresh GUID for requests and copies: an ID, not a secret.
pub fn new_guid() -> String {
    let bytes = POOL.with_borrow_mut(|(pool, used)| {
        if *used == GUIDS {
            // Short only before the system has any randomness at all; an ID that is used twice
            // then is still an ID.
            let _ = getrandom(pool.as_flattened_mut(), GetRandomFlags::empty());
            *used = 0;
        }
        *used += 1;
        pool[*used - 1]
    });
    LeaseId::from_random_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ids_are_alike() {
        assert_ne!(lease_id().unwrap(), lease_id().unwrap());
        let mut guids: Vec<_> = (0..GUIDS * 3).map(|_| new_guid()).collect();
        guids.sort();
        guids.dedup();
        assert_eq!(guids.len(), GUIDS * 3);
        let mut identities: Vec<_> = (0..100).map(|_| identity().unwrap()).collect();
        identities.sort_unstable();
        identities.dedup();
        assert_eq!(identities.len(), 100);
    }
}
