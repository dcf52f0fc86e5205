//! A share's directory, with a count of the changes of names in it.
//!
//! Decides that every change of a name is counted: if the count is the same under the file's lock
//! as before the lookup, the name still leads to that file ([`super::locate`]). What a change needs
//! of opens and records is decided by the callers.

use std::ops::Deref;

use crate::disk::StoreError;
use crate::file::rules::SharePath;
use crate::file::store::share::{FoundFile, FoundPlace, RenameHow, ShareDir};
use crate::rules::FileId;
use crate::sync::{AtomicU64, Ordering};

/// The directory. Reads go to the [`ShareDir`] itself; every change of the file that a name leads
/// to is a method here.
pub(crate) struct Disk {
    dir: ShareDir,
    generation: AtomicU64,
}

impl Deref for Disk {
    type Target = ShareDir;

    fn deref(&self) -> &ShareDir {
        &self.dir
    }
}

impl Disk {
    pub(super) fn new(dir: ShareDir) -> Self {
        Self { dir, generation: AtomicU64::new(0) }
    }

    /// The number of changes of names so far.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Moves or exchanges names. The caller holds the locks of the files.
    pub(crate) fn rename(
        &self,
        from: &SharePath,
        to: &SharePath,
        how: RenameHow,
    ) -> Result<(), StoreError> {
        self.counted(self.dir.rename(from, to, how))
    }

    /// Makes one more name for a file. The caller holds its lock.
    pub(crate) fn link(&self, from: &SharePath, to: &SharePath) -> Result<(), StoreError> {
        self.counted(self.dir.link(from, to))
    }

    /// Removes a name if it still leads to `id`. The caller holds the file's lock.
    pub(super) fn remove(
        &self,
        path: &SharePath,
        id: FileId,
        directory: bool,
    ) -> Result<(), StoreError> {
        let removed =
            if directory { self.dir.remove_dir(path, id) } else { self.dir.remove_file(path, id) };
        self.counted(removed)
    }

    /// Removes the name of a file as it was looked up at `place`. The caller holds the file's lock,
    /// and no name was changed since.
    pub(super) fn remove_found(
        &self,
        found: &FoundFile,
        place: &FoundPlace,
    ) -> Result<(), StoreError> {
        self.counted(self.dir.remove_found(found, place))
    }

    /// Counts a change, also one that may have failed half way.
    fn counted<T>(&self, changed: Result<T, StoreError>) -> Result<T, StoreError> {
        self.generation.fetch_add(1, Ordering::Release);
        changed
    }
}
