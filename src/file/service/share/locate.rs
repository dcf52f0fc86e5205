//! Find, lock, check again: how an operation gets from a name to the lock of its file.
//!
//! A name is looked up without a lock. Under the lock of the file, the name must still lead to that
//! file; otherwise the operation starts again ([`retry`]). Every change of a name is made under the
//! lock of its file and counted before that lock is released ([`super::disk`]), so an unchanged
//! count proves that the name was not changed. What is done under the lock is decided by the
//! operations.

use std::sync::Arc;

use super::Share;
use crate::disk::StoreError;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::opens::table::{FileCell, Latched};
use crate::file::store::share::{FoundFile, FoundPlace};
use crate::rules::FileId;
use crate::sync::{AtomicU64, Ordering};

/// How often an operation is repeated because its name changed, before it answers "not found".
const NAME_RETRIES_MAX: u32 = 64;

/// Why an attempt gave no answer.
pub(crate) enum Missed {
    /// The name leads to another file now: look it up again.
    Moved,
    Failed(FileError),
}

/// The result of one attempt.
pub(crate) type TryResult<T> = std::result::Result<T, Missed>;

impl<E: Into<FileError>> From<E> for Missed {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// A file that a name led to, and when it did.
pub(crate) struct Seen {
    pub found: FoundFile,
    generation: u64,
    /// Where it was found, if by its name.
    place: Option<FoundPlace>,
}

impl Seen {
    fn id(&self) -> FileId {
        self.found.stat.id
    }
}

/// Runs `attempt`, again while names change under it.
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> TryResult<T>) -> Result<T> {
    for _ in 0..NAME_RETRIES_MAX {
        match attempt() {
            Ok(answer) => return Ok(answer),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Moved) => {}
        }
    }
    Err(Denial::NotFound.into())
}

impl Share {
    /// Runs `step` under the lock of the file of `path`, again while the name changes.
    pub(crate) fn at_file<T>(
        &self,
        path: &SharePath,
        mut step: impl FnMut(&FoundFile, &Arc<FileCell>, &mut Latched) -> Result<T>,
    ) -> Result<T> {
        retry(|| {
            let seen = self.see(path)?;
            self.lock_seen(&seen, |cell, latched| Ok(step(&seen.found, cell, latched)?))
        })
    }

    /// Finds the names of a move and runs `step` with them, again while they change. The name lock
    /// is held exclusively if a directory is among them, since every path below it changes.
    pub(crate) fn at_ends<N, T>(
        &self,
        find: impl Fn() -> Result<N>,
        any_directory: impl Fn(&N) -> bool,
        mut step: impl FnMut(&N, bool) -> TryResult<T>,
    ) -> Result<T> {
        retry(|| {
            let directory = any_directory(&find()?);
            let _alone = directory.then(|| self.names_alone()).transpose()?;
            let _shared = if directory { None } else { Some(self.names()?) };
            let names = find()?;
            if any_directory(&names) != directory {
                return Err(Missed::Moved);
            }
            step(&names, directory)
        })
    }

    /// Looks a name up for [`Share::lock_seen`].
    pub(crate) fn see(&self, path: &SharePath) -> std::result::Result<Seen, StoreError> {
        let generation = self.disk.generation();
        let (found, place) = self.find_at(path)?;
        Ok(Seen { found, generation, place })
    }

    /// Looks a file up with `find`, for [`Share::lock_seen`].
    pub(crate) fn see_by<E>(
        &self,
        find: impl FnOnce() -> std::result::Result<FoundFile, E>,
    ) -> std::result::Result<Seen, E> {
        let generation = self.disk.generation();
        Ok(Seen { found: find()?, generation, place: None })
    }

    /// The place of a name that no operation has changed since it was looked up; the caller holds
    /// the file's lock. None if it must be looked at again.
    pub(crate) fn place_of<'a>(&self, seen: &'a Seen) -> Option<&'a FoundPlace> {
        let holds = self.disk.generation() == seen.generation;
        seen.place.as_ref().filter(|place| holds && place.is_recent())
    }

    /// Runs `step` under the lock of a file, if its name still leads to it.
    pub(crate) fn lock_seen<T>(
        &self,
        seen: &Seen,
        step: impl FnOnce(&Arc<FileCell>, &mut Latched) -> TryResult<T>,
    ) -> TryResult<T> {
        self.table.with(seen.id(), |cell, latched| {
            self.check_still(seen)?;
            step(cell, latched)
        })
    }

    /// Runs `step` under the lock of the directory `path`, if it is known which directory that is
    /// without a look at the disk; `None` if it is not. The path is then spelled as on disk.
    pub(crate) fn lock_known_dir<T>(
        &self,
        path: &SharePath,
        step: impl FnOnce(&mut Latched) -> TryResult<T>,
    ) -> Option<TryResult<T>> {
        let generation = self.disk.generation();
        let id = self.disk.known_dir(path)?;
        // Its maker's open may not be in the table yet: see `Share::find`.
        if self.making.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.table.with(id, |_, latched| {
            let known = self.disk.generation() == generation;
            known.then(|| step(latched))
        })
    }

    /// Runs `step` under the locks of two different files, if both names still lead to them.
    pub(crate) fn lock_both<T>(
        &self,
        one: &Seen,
        other: &Seen,
        step: impl FnOnce(&mut Latched, &mut Latched) -> TryResult<T>,
    ) -> TryResult<T> {
        self.table.with_two(one.id(), other.id(), |first, second| {
            self.check_still(one)?;
            self.check_still(other)?;
            step(first, second)
        })
    }

    /// The caller holds the file's lock.
    fn check_still(&self, seen: &Seen) -> TryResult<()> {
        let same = |path| self.disk.stat(path).is_ok_and(|stat| stat.id == seen.id());
        if self.disk.generation() == seen.generation || same(&seen.found.path) {
            Ok(())
        } else {
            Err(Missed::Moved)
        }
    }

    /// Looks a name up for an operation that will act on its file and holds no file's lock yet.
    ///
    /// A new entry is on disk a moment before its maker's open is in the table. A caller that finds
    /// the entry in between waits here for the maker, which holds the lock of the directory until
    /// both are there: no other caller opens, deletes or moves a file before its maker has it open.
    pub(crate) fn find(&self, path: &SharePath) -> std::result::Result<FoundFile, StoreError> {
        self.find_at(path).map(|(found, _)| found)
    }

    fn find_at(
        &self,
        path: &SharePath,
    ) -> std::result::Result<(FoundFile, Option<FoundPlace>), StoreError> {
        let (found, place) = self.disk.lookup_at(path)?;
        if self.making.load(Ordering::SeqCst) > 0
            && let Some(parent) = found.path.parent()
            && let Ok(parent) = self.disk.lookup(&parent)
            && let Some(cell) = self.table().get(parent.stat.id)
        {
            drop(cell.latch());
        }
        Ok((found, place))
    }

    /// An entry is about to be made by the caller, who holds the lock of its directory until the
    /// guard is gone.
    pub(crate) fn making(&self) -> MakingEntry<'_> {
        self.making.fetch_add(1, Ordering::SeqCst);
        MakingEntry(&self.making)
    }
}

/// An entry is being made; see [`Share::find`].
pub(crate) struct MakingEntry<'a>(&'a AtomicU64);

impl Drop for MakingEntry<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
