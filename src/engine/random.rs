//! Fresh identities that nobody can guess. The one place that asks the system for randomness.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::core::LeaseId;
use crate::store::StoreError;

/// A lease ID for those who propose none.
pub(super) fn lease_id() -> Result<LeaseId, StoreError> {
    let what = "asking for random bytes";
    let mut bytes = [0; 16];
    let got = getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| StoreError::from_errno(what, errno))?;
    // Up to 256 bytes come whole (getrandom(2)).
    if got < bytes.len() {
        return Err(StoreError::from_errno(what, Errno::IO));
    }
    Ok(LeaseId::from_random_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ids_are_alike() {
        assert_ne!(lease_id().unwrap(), lease_id().unwrap());
    }
}
