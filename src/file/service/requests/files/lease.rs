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
use crate::rules::FileId;
use crate::rules::lease::{FileLease, LeaseAction, Leased};

impl Share {
    /// Lease File. The lease is changed on disk first, so that a lease that was acknowledged
    /// outlives this process. The disk is waited for with no file's lock held: the rules are asked
    /// before, and again when the lease takes effect. Returns the file, which it left as it was.
    pub fn lease_file(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        action: LeaseAction,
    ) -> Result<(Leased, FileProperties)> {
        let operation = match action {
            LeaseAction::Acquire { .. } => FileOperation::LeaseAcquire,
            _ => FileOperation::LeaseOther,
        };
        let name = "Lease File";
        let _changing = self.changing_leases();
        let target = (path, WantedKind::File);
        retry(|| {
            let plan = |granted: Granted<'_>| {
                let before = granted.latched.state.lease();
                let mut after = before;
                let answer = action.apply_to_file(&mut after)?;
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
