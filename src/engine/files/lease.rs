//! Lease File: acquire, change, release, break.
//!
//! What each does in which state is decided in [`crate::core::lease`]. A lease is on the disk
//! before it is acknowledged, and never in the file's inode: neither `ETag` nor Last-Modified
//! moves (LOCKING 4.1).

use super::super::error::Result;
use super::super::momentary::{Asking, Granted, Wanted};
use super::super::random;
use super::super::share::Share;
use super::shown::FileProperties;
use crate::core::lease::FileLease;
use crate::core::operation::Operation;
use crate::core::{LeaseId, SharePath};

/// A lease that is held now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leased {
    /// Its ID.
    pub id: LeaseId,
    /// The file, which it left as it was.
    pub properties: FileProperties,
}

impl Share {
    /// Takes the lease under the proposed ID, or under a fresh one. `duration` is as in the
    /// request: it must be there and be -1.
    pub fn lease_acquire(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        duration: Option<i64>,
        proposed: Option<LeaseId>,
    ) -> Result<Leased> {
        let operation = ("acquire lease", Operation::LeaseAcquire);
        let (id, properties) = self.lease_action(operation, asking, path, |lease| {
            let fresh = random::lease_id()?;
            Ok(lease.acquire(duration, proposed, fresh)?)
        })?;
        Ok(Leased { id, properties })
    }

    /// Gives the lease another ID.
    pub fn lease_change(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        current: LeaseId,
        proposed: LeaseId,
    ) -> Result<Leased> {
        let operation = ("change lease", Operation::LeaseOther);
        let (id, properties) = self
            .lease_action(operation, asking, path, |lease| Ok(lease.change(current, proposed)?))?;
        Ok(Leased { id, properties })
    }

    /// Gives the lease up.
    pub fn lease_release(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        id: LeaseId,
    ) -> Result<FileProperties> {
        let operation = ("release lease", Operation::LeaseOther);
        let ((), properties) =
            self.lease_action(operation, asking, path, |lease| Ok(lease.release(id)?))?;
        Ok(properties)
    }

    /// Ends the lease at once; anyone may.
    pub fn lease_break(&self, asking: Asking<'_>, path: &SharePath) -> Result<FileProperties> {
        let operation = ("break lease", Operation::LeaseOther);
        let ((), properties) =
            self.lease_action(operation, asking, path, |lease| Ok(lease.break_now()?))?;
        Ok(properties)
    }

    fn lease_action<T>(
        &self,
        (name, operation): (&'static str, Operation),
        asking: Asking<'_>,
        path: &SharePath,
        action: impl FnOnce(&mut FileLease) -> Result<T>,
    ) -> Result<(T, FileProperties)> {
        let step = |mut granted: Granted<'_>| {
            let answer = self.change_lease(&mut granted, action)?;
            Ok((answer, self.shown(&granted)?))
        };
        self.momentarily(name, operation, asking, (path, Wanted::File), None, step)
    }
}
