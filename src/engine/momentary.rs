//! REST's door: an operation is an open made and closed inside the request (LOCKING 2.1).
//!
//! Finds the file, takes its lock, asks the rules in the documented order, and only then does
//! the work, still under the lock: nobody sees a request half done, and no open that excludes it
//! can come in between. What each operation does is in the modules beside this one.
//!
//! A refusal that is due only to handles whose release is on its way is waited for: a program
//! that closed its file must not be met again by the request that it sends next (DESIGN section
//! 4, "End of an open").

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::error::Result;
use super::open::Wake;
use super::releases::{Asked, REST_PATIENCE};
use super::share::{Attempt, Share};
use super::table::{FileCell, Latched};
use crate::core::lease::{FileLease, LeaseId};
use crate::core::momentary::Circumstances;
use crate::core::operation::{Demands, LeaseDemand, Operation};
use crate::core::ranges::ByteRange;
use crate::core::{Access, Attributes, Denial, FileId, Owner, SharePath};
use crate::store::{CopyStatus, Found, Kind, OpenFor, Record, Stat, StoreError};

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
    /// Its path as on disk, and what the disk says of it now.
    pub found: &'a Found,
    /// Open for what the operation does with the bytes; a path alone, if that is nothing.
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

/// One operation on its way to a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<'a> {
    pub operation: Operation,
    pub asking: Asking<'a>,
    pub wanted: Wanted,
    /// The bytes to be read; all, if none are named.
    pub range: Option<ByteRange>,
}

/// The answer of a visit, and who is to be told once no lock is held.
pub(super) struct Visited<T> {
    answer: T,
    wake: Option<Wake>,
}

impl<T> Visited<T> {
    /// An answer that lets nobody else through.
    pub(super) fn quietly(answer: T) -> Self {
        Self { answer, wake: None }
    }
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
        let visit = Visit { operation, asking, wanted, range };
        let mut step = Some(step);
        let visited = self.once_released(REST_PATIENCE, &[path], operation.wants(), || {
            let visited = self.at_name(path, |found, generation| match found {
                Ok(found) => self.visit(&visit, found, generation, &mut step),
                Err(error) => Attempt::Done(Err(error.into())),
            });
            // Refused by its own step it was done as far as it goes.
            Asked { answer: visited, repeatable: step.is_some() }
        });
        let answer = self.visited(name, asking, path, visited)?;
        self.tell_done(operation, path);
        Ok(answer)
    }

    /// Looks `path` up and does `step` with what was found, again while the name keeps changing.
    pub(super) fn at_name<T>(
        &self,
        path: &SharePath,
        step: impl FnMut(std::result::Result<Found, StoreError>, u64) -> Attempt<T>,
    ) -> Result<T> {
        let _names = self.names()?;
        self.with_name(path, step)
    }

    /// After a visit: notes a refusal and wakes whom the answer concerns.
    pub(super) fn visited<T>(
        &self,
        name: &'static str,
        asking: Asking<'_>,
        path: &SharePath,
        visited: Result<Visited<T>>,
    ) -> Result<T> {
        let Visited { answer, wake } = self.note_refusal(name, path, asking.who, visited)?;
        if let Some(wake) = wake {
            wake.call();
        }
        Ok(answer)
    }

    /// Locks the file that was found and does `step` there, if it still is that file and the
    /// rules let the visit through. `step` is taken when it is done.
    pub(super) fn visit<T, S: FnOnce(Granted<'_>) -> Result<T>>(
        &self,
        visit: &Visit<'_>,
        mut found: Found,
        generation: u64,
        step: &mut Option<S>,
    ) -> Attempt<Visited<T>> {
        let id = found.stat.id;
        self.table.with(id, |cell, latched| {
            if !self.is_still(&found.path, id, generation) {
                return Attempt::Again;
            }
            let fd = match self.open_for(visit, &found) {
                Ok(fd) => fd,
                Err(error) => return Attempt::Done(Err(error)),
            };
            // The name was looked up before the lock was had: somebody may have written since,
            // or put another file in its place directly in the directory.
            match Stat::of(&fd) {
                Ok(stat) if stat.id == id => found.stat = stat,
                Ok(_) => return Attempt::Again,
                Err(error) => return Attempt::Done(Err(error.into())),
            }
            let before = latched.state.seq;
            let answer = self.enter(visit, &found, fd, (cell, latched), step);
            let changed = latched.state.seq != before;
            let wake = changed.then(|| Wake::changed(latched));
            Attempt::Done(answer.map(|answer| Visited { answer, wake }))
        })
    }

    fn open_for(&self, visit: &Visit<'_>, found: &Found) -> Result<OwnedFd> {
        check_kind(visit.wanted, found.stat.kind)?;
        let Demands { access, lease, .. } = visit.operation.demands();
        // A lease asks for all access and writes nothing.
        let writes = access.contains(Access::W) && lease == LeaseDemand::Write;
        let how = match visit.wanted {
            Wanted::File if writes => OpenFor::Write,
            // No bytes are touched: a file that this process may not read has properties too.
            Wanted::File if !access.contains(Access::R) => OpenFor::Path,
            Wanted::File | Wanted::Directory => OpenFor::Read,
        };
        Ok(self.dir.open_file(&found.path, how)?)
    }

    fn enter<T, S: FnOnce(Granted<'_>) -> Result<T>>(
        &self,
        visit: &Visit<'_>,
        found: &Found,
        fd: OwnedFd,
        (cell, latched): (&Arc<FileCell>, &mut Latched),
        step: &mut Option<S>,
    ) -> Result<T> {
        let record = self.load_record(&fd, found.stat.id)?;
        let at = (&found.path, &record);
        ask(visit.operation, latched, at, visit.asking.lease_id, visit.range)?;
        let step = step.take().expect("an operation is done once");
        let answer = step(Granted { found, fd, record, cell, latched: &mut *latched })?;
        if visit.operation.demands().lease == LeaseDemand::Write {
            self.after_write(latched, cell.id)?;
        }
        Ok(answer)
    }

    /// A write forgets a broken lease (LOCKING 4.1, "write, no ID").
    pub(super) fn after_write(&self, latched: &mut Latched, id: FileId) -> Result<()> {
        let before = latched.state.lease();
        let mut lease = before;
        lease.after_write();
        if lease != before {
            latched.state.set_lease(lease);
            self.remember_lease(id, lease)?;
        }
        Ok(())
    }

    /// Changes a file's lease by `action`, on disk first: a lease that was acknowledged outlives
    /// this process.
    pub(super) fn change_lease<T>(
        &self,
        granted: &mut Granted<'_>,
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

/// Asks the rules about an operation on the file behind `path`, whose lock the caller holds.
pub(super) fn ask(
    operation: Operation,
    latched: &mut Latched,
    (path, record): (&SharePath, &Record),
    lease_id: Option<LeaseId>,
    range: Option<ByteRange>,
) -> Result<()> {
    let attributes = record.attributes.unwrap_or_default();
    let at = Circumstances {
        path,
        lease_id,
        copy_pending: record.copy.as_ref().is_some_and(|c| c.status == CopyStatus::Pending),
        read_only: attributes.contains(Attributes::READ_ONLY),
        range,
    };
    Ok(latched.state.check_operation(operation, &at)?)
}

fn check_kind(wanted: Wanted, kind: Kind) -> Result<()> {
    match (wanted, kind) {
        (Wanted::File, Kind::File) | (Wanted::Directory, Kind::Directory) => Ok(()),
        (Wanted::File, Kind::Directory) => Err(Denial::IsDirectory.into()),
        (Wanted::Directory, Kind::File) => Err(Denial::NotDirectory.into()),
        // Links and special files are the mount's: REST does not know them.
        (_, Kind::Symlink | Kind::Special) => Err(Denial::NotFound.into()),
    }
}
