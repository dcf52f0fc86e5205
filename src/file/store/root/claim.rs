//! The claim on the directory of a share: one server alone serves it, by whatever path.
//!
//! The lock on the data directory keeps other servers from the same data directory. A share's own
//! directory can also be reached otherwise: through a bind mount, or because it is a mount or a
//! link itself. The lock is decided in [`crate::disk::lock`].

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::RootError;
use crate::disk::lock::lock_served;

/// The most share directories that this process keeps locked, since each costs a descriptor. The
/// directories of further shares are guarded by the lock on the data directory alone.
const CLAIMS_MAX: usize = 64;

static CLAIMS: AtomicUsize = AtomicUsize::new(0);

/// The directory of a share, held by this process alone for as long as the value lives.
#[derive(Debug)]
pub struct ShareClaim {
    _lock: OwnedFd,
    _counted: Counted,
}

impl ShareClaim {
    /// Claims the directory; `None` if it cannot be locked, or if enough are.
    pub(super) fn take(directory: &Path, state: &Path) -> Result<Option<Self>, RootError> {
        let Some(counted) = Counted::below_max(&CLAIMS) else { return Ok(None) };
        let lock = lock_served(directory, state)?;
        Ok(lock.map(|lock| Self { _lock: lock, _counted: counted }))
    }
}

/// One of the claims that are counted.
#[derive(Debug)]
struct Counted(&'static AtomicUsize);

impl Counted {
    fn below_max(claims: &'static AtomicUsize) -> Option<Self> {
        let one = Self(claims);
        (claims.fetch_add(1, Ordering::Relaxed) < CLAIMS_MAX).then_some(one)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_counted_to_their_bound_and_not_past_it() {
        static CLAIMS: AtomicUsize = AtomicUsize::new(0);
        let mut all: Vec<_> =
            (0..CLAIMS_MAX).map(|_| Counted::below_max(&CLAIMS).unwrap()).collect();
        assert!(Counted::below_max(&CLAIMS).is_none());
        assert_eq!(CLAIMS.load(Ordering::Relaxed), CLAIMS_MAX);
        all.pop();
        assert!(Counted::below_max(&CLAIMS).is_some());
    }
}
