//! REST's door: an operation is an open made and closed inside the request (LOCKING 2.1).
//!
//! Finds the file, takes its lock, asks the rules in the documented order, and only then does
//! the work, still under the lock: nobody sees a request half done, and no open that excludes it
//! can come in between. What each operation does is in the modules beside this one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::error::{Error, Result};
use super::share::{Attempt, Share};
use super::table::{FileCell, Latched};
use crate::core::lease::{FileLease, LeaseId};
use crate::core::momentary::Circumstances;
use crate::core::operation::{LeaseDemand, Operation};
use crate::core::ranges::ByteRange;
use crate::core::{Access, Attributes, Denial, Owner, SharePath};
use crate::store::{CopyStatus, Found, Kind, OpenFor, Record};

/// A request as far as the rules care: who asks, and with which lease ID.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// Who asks.
    pub who: &'a Owner,
    /// The lease ID that came with the request.
    pub lease_id: Option<LeaseId>,
}

/// The file an operation was let through to; its lock is held.
pub(super) struct Granted<'a> {
    /// Its path as on disk, and what the disk says of it.
    pub found: &'a Found,
    /// Open for writing if the operation writes bytes, else for reading.
    pub fd: OwnedFd,
    /// Its metadata record.
    pub record: Record,
    /// Its cell, for the data latch.
    pub cell: &'a Arc<FileCell>,
    /// Its state.
    pub latched: &'a mut Latched,
}

/// Which kind of file an operation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    File,
    Directory,
}

impl Share {
    /// Does `step` on the file behind `path` if the rules let `operation` through.
    pub(super) fn momentarily<T>(
        &self,
        name: &'static str,
        operation: Operation,
        asking: Asking<'_>,
        (path, wanted): (&SharePath, Wanted),
        range: Option<ByteRange>,
        step: impl FnOnce(Granted<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut step = Some(step);
        let answer = {
            let _names = self.names.read().expect("nothing panics under the name lock");
            self.with_name(path, |found, generation| match found {
                Ok(found) => self.table.with(found.stat.id, |cell, latched| {
                    if !self.is_still(&found.path, found.stat.id, generation) {
                        return Attempt::Again;
                    }
                    let step = step.take().expect("an operation is done once");
                    let door = Door { share: self, operation, asking, wanted, range };
                    Attempt::Done(door.enter(&found, cell, latched, step))
                }),
                Err(error) => Attempt::Done(Err(error.into())),
            })
        };
        self.note_refusal(name, path, asking.who, answer)
    }
}

/// One operation on its way to one file.
struct Door<'a> {
    share: &'a Share,
    operation: Operation,
    asking: Asking<'a>,
    wanted: Wanted,
    range: Option<ByteRange>,
}

impl Door<'_> {
    fn enter<T>(
        &self,
        found: &Found,
        cell: &Arc<FileCell>,
        latched: &mut Latched,
        step: impl FnOnce(Granted<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_kind(found.stat.kind)?;
        let demands = self.operation.demands();
        let writes = demands.access.contains(Access::W) && self.wanted == Wanted::File;
        let how = if writes { OpenFor::Write } else { OpenFor::Read };
        let fd = self.share.dir.open_file(&found.path, how)?;
        let record = self.share.load_record(&fd, found.stat.id)?;
        let attributes = record.attributes.unwrap_or_default();
        latched.state.check_operation(
            self.operation,
            &Circumstances {
                path: &found.path,
                lease_id: self.asking.lease_id,
                copy_pending: record.copy.as_ref().is_some_and(|c| c.status == CopyStatus::Pending),
                read_only: attributes.contains(Attributes::READ_ONLY),
                range: self.range,
            },
        )?;
        let answer = step(Granted { found, fd, record, cell, latched: &mut *latched })?;
        if demands.lease == LeaseDemand::Write {
            self.share.after_write(latched, cell)?;
        }
        Ok(answer)
    }

    fn check_kind(&self, kind: Kind) -> Result<()> {
        match (self.wanted, kind) {
            (Wanted::File, Kind::File) | (Wanted::Directory, Kind::Directory) => Ok(()),
            (Wanted::File, Kind::Directory) => Err(Denial::IsDirectory.into()),
            (Wanted::Directory, Kind::File) => Err(Denial::NotDirectory.into()),
            // Links and special files are the mount's: REST does not know them.
            (_, Kind::Symlink | Kind::Special) => Err(Error::Denied(Denial::NotFound)),
        }
    }
}

impl Share {
    /// A write forgets a broken lease (LOCKING 4.1, "write, no ID").
    fn after_write(&self, latched: &mut Latched, cell: &FileCell) -> Result<()> {
        let before = latched.state.lease();
        let mut lease = before;
        lease.after_write();
        if lease != before {
            latched.state.set_lease(lease);
            self.remember_lease(cell.id, lease)?;
        }
        Ok(())
    }

    /// Changes a file's lease by `action`, on disk first: a lease that was acknowledged outlives
    /// this process.
    pub(super) fn change_lease<T>(
        &self,
        granted: Granted<'_>,
        action: impl FnOnce(&mut FileLease) -> Result<T>,
    ) -> Result<T> {
        let mut lease = granted.latched.state.lease();
        let answer = action(&mut lease)?;
        if lease != granted.latched.state.lease() {
            self.remember_lease(granted.cell.id, lease)?;
            granted.latched.state.set_lease(lease);
        }
        Ok(answer)
    }
}
