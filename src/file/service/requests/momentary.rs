//! Momentary opens: a REST operation is an open made and closed inside the request.
//!
//! Finds the file, takes its lock, checks the rules in the documented order, and only then does the
//! work, still under the lock: no other request sees half of it, and no conflicting open is granted
//! in between. What each operation does is decided in the modules beside this one.
//!
//! A refusal that is caused only by handles that are being released waits for the releases: a
//! request that a program sends after it closed its file must not be refused by the program's own
//! handle (docs/semantics.md, "REST operations against opens").

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::super::error::{FileError, Result};
use super::super::opens::open::Wake;
use super::super::opens::table::{FileCell, Latched};
use super::super::share::{Missed, Seen, Share, TryResult, retry};
use crate::disk::StoreError;
use crate::file::rules::momentary::Circumstances;
use crate::file::rules::operation::{FileOperation, LeaseDemand};
use crate::file::rules::ranges::ByteRange;
use crate::file::rules::{Access, Attributes, Denial, SharePath};
use crate::file::store::share::{ETag, FileKind, FoundFile, OpenFor, Record, Stat};
use crate::rules::address::ObjectAddress;
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::LeaseId;
use crate::rules::{Context, Timestamp};

/// A request: its context, and the lease ID that came with it.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The caller and the time of the request.
    pub cx: &'a Context,
    /// The lease ID that came with the request.
    pub lease_id: Option<LeaseId>,
}

/// The file that an operation was admitted to; its lock is held.
pub(crate) struct Granted<'a> {
    /// The time at which the rules are checked.
    pub now: Timestamp,
    /// The path as spelled on disk, and the attributes of the inode now.
    pub found: &'a FoundFile,
    /// Open for what the operation does with the bytes; a path alone, if that is nothing.
    pub fd: OwnedFd,
    pub record: Record,
    /// Its cell, for the data latch.
    pub cell: &'a Arc<FileCell>,
    pub latched: &'a mut Latched,
}

/// Which kind of file an operation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WantedKind {
    File,
    Directory,
}

/// An operation on a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileVisit<'a> {
    pub operation: FileOperation,
    pub asking: Asking<'a>,
    pub wanted: WantedKind,
    /// The bytes to be read; all, if none are named.
    pub range: Option<ByteRange>,
}

impl Share {
    /// Runs `step` on the file of `path` if the rules allow `operation`.
    pub(crate) fn momentarily<T>(
        &self,
        name: &'static str,
        operation: FileOperation,
        asking: Asking<'_>,
        (path, wanted): (&SharePath, WantedKind),
        range: Option<ByteRange>,
        step: impl FnOnce(Granted<'_>) -> Result<T>,
    ) -> Result<T> {
        let visit = FileVisit { operation, asking, wanted, range };
        let mut step = Some(step);
        let visited = self.when_free(&[path], operation.wants(), || {
            let visited = self.at_name(path, |seen| self.visit(&visit, &seen?, &mut step));
            // If the step itself refuses, the refusal is final: do not ask again.
            if step.is_some() { visited.map(Ok) } else { Ok(visited) }
        });
        let answer = self.visited(name, asking, path, visited.flatten())?;
        self.tell_done(operation, path);
        Ok(answer)
    }

    /// Looks `path` up and runs `step` with the file; repeated while the name changes.
    pub(crate) fn at_name<T>(
        &self,
        path: &SharePath,
        mut step: impl FnMut(std::result::Result<Seen, StoreError>) -> TryResult<T>,
    ) -> Result<T> {
        let _names = self.names()?;
        retry(|| step(self.see(path)))
    }

    /// Makes an entry of a name that must be free; repeated while the name changes.
    pub(super) fn make_free<T>(
        &self,
        name: &'static str,
        (cx, path): (&Context, &SharePath),
        operation: FileOperation,
        mut make: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let answer = self.when_free(&[path], operation.wants(), || {
            self.at_name(path, |seen| match seen {
                Ok(seen) => self.refuse_taken(&seen),
                Err(StoreError::NotFound) => match make() {
                    // Somebody else made it in between: it exists now.
                    Err(FileError::Denied(Denial::NameTaken)) => Err(Missed::Moved),
                    made => Ok(made?),
                },
                Err(error) => Err(error.into()),
            })
        });
        self.note_refusal(name, path, cx.owner(), answer)
    }

    /// After an operation: notes a refusal and wakes waiting requests.
    pub(crate) fn visited<T>(
        &self,
        name: &'static str,
        asking: Asking<'_>,
        path: &SharePath,
        visited: Result<(T, Wake)>,
    ) -> Result<T> {
        let (answer, wake) = self.note_refusal(name, path, asking.cx.owner(), visited)?;
        self.wake(wake);
        Ok(answer)
    }

    /// Locks the file that was found and runs `step`, if the name still leads to that file and the
    /// rules allow the operation. `step` is taken when it runs. Returns its answer, and the waiting
    /// requests to wake when no lock is held.
    pub(crate) fn visit<T, S: FnOnce(Granted<'_>) -> Result<T>>(
        &self,
        visit: &FileVisit<'_>,
        seen: &Seen,
        step: &mut Option<S>,
    ) -> TryResult<(T, Wake)> {
        self.lock_seen(seen, |cell, latched| {
            let mut found = seen.found.clone();
            let fd = self.open_to_ask(visit, &found)?;
            // The name was looked up before the lock was taken: a program may have written since,
            // or put another file in its place directly in the directory.
            found.stat = Stat::of(&fd)?;
            if found.stat.id != cell.id {
                return Err(Missed::Moved);
            }
            let before = latched.state.seq;
            let answer = self.enter(visit, &found, fd, (cell, latched), step)?;
            let changed = latched.state.seq != before;
            Ok((answer, if changed { Wake::changed(latched) } else { Wake::nobody() }))
        })
    }

    /// Opens the file for the checks: not for writing, since that alone can change the file
    /// (overlayfs copies it) although the rules refuse.
    fn open_to_ask(&self, visit: &FileVisit<'_>, found: &FoundFile) -> Result<OwnedFd> {
        // What Create Symbolic Link makes, Delete File removes.
        let kind = found.stat.kind;
        if kind != FileKind::Symlink || visit.operation != FileOperation::DeleteFile {
            check_kind(kind, visit.wanted == WantedKind::Directory)?;
        }
        let reads = visit.operation.demands().access.contains(Access::R);
        let how = match visit.wanted {
            // A file that this process may not read has properties too.
            WantedKind::File if !reads || writes_bytes(visit.operation) => OpenFor::Path,
            WantedKind::File | WantedKind::Directory => OpenFor::Read,
        };
        Ok(self.disk().open_file(&found.path, how)?)
    }

    /// Opens the same file for the operation itself.
    fn open_to_act(
        &self,
        visit: &FileVisit<'_>,
        found: &FoundFile,
        asked: OwnedFd,
    ) -> Result<OwnedFd> {
        if visit.wanted == WantedKind::Directory || !writes_bytes(visit.operation) {
            return Ok(asked);
        }
        let fd = self.disk().open_file(&found.path, OpenFor::Write)?;
        if Stat::of(&fd)?.id != found.stat.id {
            // Replaced directly in the directory since the questions.
            return Err(Denial::NotFound.into());
        }
        Ok(fd)
    }

    fn enter<T, S: FnOnce(Granted<'_>) -> Result<T>>(
        &self,
        visit: &FileVisit<'_>,
        found: &FoundFile,
        fd: OwnedFd,
        (cell, latched): (&Arc<FileCell>, &mut Latched),
        step: &mut Option<S>,
    ) -> Result<T> {
        let record = self.load_record(&fd, found.stat.id)?;
        let at = (&found.path, &record);
        ask(visit.operation, latched, at, visit.asking.lease_id, visit.range)?;
        let fd = self.open_to_act(visit, found, fd)?;
        let step = step.take().expect("an operation is done once");
        let now = visit.asking.cx.now;
        let etag_before = Some(ETag::of(&found.stat, &record));
        let answer = step(Granted { now, found, fd, record, cell, latched: &mut *latched })?;
        if visit.operation.demands().lease == LeaseDemand::Write {
            self.after_write(latched, cell.id);
            self.note_change(visit.asking.cx, &found.path, (etag_before, None));
        }
        Ok(answer)
    }
}

impl Share {
    /// Notes a change of a file, under its lock: its `ETag` before and after, as far as they are
    /// known. That of a REST answer is added with the answer.
    pub(crate) fn note_change(
        &self,
        cx: &Context,
        path: &SharePath,
        (before, after): (Option<ETag>, Option<ETag>),
    ) {
        let (share, path) = (self.name().to_string(), path.as_str().to_owned());
        let etags = [before, after].map(|etag| etag.map(|etag| etag.to_string()));
        cx.changed(&ObjectAddress::File { share, path }, etags.into(), None);
    }
}

/// Checks the rules for an operation on the file of `path`, whose lock the caller holds.
pub(crate) fn ask(
    operation: FileOperation,
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

/// Checks the rules for a name that is free: a lease ID in the request matches no file.
pub(crate) fn ask_new(lease_id: Option<LeaseId>, path: &SharePath) -> Result<()> {
    let (operation, record) = (FileOperation::CreateFileNew, Record::default());
    ask(operation, &mut Latched::default(), (path, &record), lease_id, None)
}

/// Refuses what is no directory, or no file. Special files are the mount's, and of symbolic links
/// REST knows the text alone.
pub(crate) fn check_kind(kind: FileKind, directory: bool) -> Result<()> {
    match (kind, directory) {
        (FileKind::File, false) | (FileKind::Directory, true) => Ok(()),
        (FileKind::File, true) => Err(Denial::NotDirectory.into()),
        (FileKind::Directory, false) => Err(Denial::IsDirectory.into()),
        (FileKind::Symlink | FileKind::Special, _) => Err(Denial::NotFound.into()),
    }
}

/// True if the operation changes bytes, attributes or the record. A lease asks for all access and
/// changes none of them.
fn writes_bytes(operation: FileOperation) -> bool {
    let demands = operation.demands();
    demands.access.contains(Access::W) && demands.lease == LeaseDemand::Write
}
