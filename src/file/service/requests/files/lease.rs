//! Lease File: acquire, change, release, break.
//!
//! What each does in which state is decided in [`crate::rules::lease`]. A lease is on the disk
//! before it is acknowledged, and never in the file's inode: neither `ETag` nor Last-Modified
//! moves.

use super::super::file_properties::FileProperties;
use super::super::momentary::{Asking, Granted, WantedKind};
use crate::file::rules::SharePath;
use crate::file::rules::operation::FileOperation;
use crate::file::service::error::Result;
use crate::file::service::share::{Missed, Share, retry};
use crate::rules::lease::FileLease;
use crate::rules::{FileId, LeaseId};
use crate::sync::random;

/// A lease that is held now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeasedFile {
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
    ) -> Result<LeasedFile> {
        let operation = ("Lease File", FileOperation::LeaseAcquire);
        let (id, properties) = self.lease_action(operation, asking, path, |lease| {
            Ok(lease.acquire(duration, proposed, random::lease_id())?)
        })?;
        Ok(LeasedFile { id, properties })
    }

    /// Gives the lease another ID.
    pub fn lease_change(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        current: LeaseId,
        proposed: LeaseId,
    ) -> Result<LeasedFile> {
        let operation = ("Lease File", FileOperation::LeaseOther);
        let (id, properties) = self
            .lease_action(operation, asking, path, |lease| Ok(lease.change(current, proposed)?))?;
        Ok(LeasedFile { id, properties })
    }

    /// Gives the lease up.
    pub fn lease_release(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        id: LeaseId,
    ) -> Result<FileProperties> {
        let operation = ("Lease File", FileOperation::LeaseOther);
        let ((), properties) =
            self.lease_action(operation, asking, path, |lease| Ok(lease.release(id)?))?;
        Ok(properties)
    }

    /// Ends the lease at once; anyone may.
    pub fn lease_break(&self, asking: Asking<'_>, path: &SharePath) -> Result<FileProperties> {
        let operation = ("Lease File", FileOperation::LeaseOther);
        let ((), properties) =
            self.lease_action(operation, asking, path, |lease| Ok(lease.break_now()?))?;
        Ok(properties)
    }

    /// Changes a file's lease: on disk first, so that a lease that was acknowledged outlives this
    /// process. The disk is waited for with no file's lock held: the rules are asked before, and
    /// again when the lease takes effect.
    fn lease_action<T>(
        &self,
        (name, operation): (&'static str, FileOperation),
        asking: Asking<'_>,
        path: &SharePath,
        action: impl Fn(&mut FileLease) -> Result<T>,
    ) -> Result<(T, FileProperties)> {
        let _changing = self.changing_leases();
        let target = (path, WantedKind::File);
        retry(|| {
            let plan = |granted: Granted<'_>| {
                let before = granted.latched.state.lease();
                let mut after = before;
                let answer = action(&mut after)?;
                let at = (granted.cell.id, granted.found.path.clone());
                Ok((answer, (before, after), at, self.properties_of(&granted)?))
            };
            let (answer, (before, after), (id, spelled), properties) =
                self.momentarily(name, operation, asking, target, None, plan)?;
            if after == before {
                return Ok((answer, properties));
            }
            self.remember_lease(id, &spelled, after)?;
            let anchor = match after {
                FileLease::Available => None,
                _ => self.anchor_of(&spelled, id),
            };
            let publish = |granted: Granted<'_>| {
                let latched = granted.latched;
                if granted.cell.id != id || latched.state.lease() != before {
                    return Ok(None); // Replaced, or written to: its broken lease is forgotten.
                }
                latched.state.set_lease(after);
                latched.anchor = anchor;
                let granted = Granted { latched, ..granted };
                self.properties_of(&granted).map(Some)
            };
            match self.momentarily(name, operation, asking, target, None, publish) {
                Ok(Some(properties)) => Ok((answer, properties)),
                Ok(None) => {
                    self.restore_lease(id, &spelled);
                    Err(Missed::Moved)
                }
                Err(error) => {
                    self.restore_lease(id, &spelled);
                    Err(error.into())
                }
            }
        })
    }

    /// After a lease that was saved and did not take effect: saves the lease that the table has.
    fn restore_lease(&self, id: FileId, path: &SharePath) {
        let lease = self.table().get(id).map(|cell| cell.latch().state.lease()).unwrap_or_default();
        if let Err(error) = self.remember_lease(id, path, lease) {
            log::error!("{path}: a restart may find a lease that was refused: {error}");
        }
    }
}
