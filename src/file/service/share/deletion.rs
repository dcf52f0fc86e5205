//! The delete mark of a name, and the removal of names.
//!
//! Decides that a mark is on disk before it is acknowledged, so that it outlives a killed process,
//! and that a name is removed in two steps: it is marked, then removed if it still leads to that
//! file. Whether a name may be deleted is decided by the rules, which the operations ask (`names/`,
//! `requests/`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Seen, Share};
use crate::disk::{Drawer, Durability, Entries, StoreError, fnv1a};
use crate::file::rules::file::{Closed, FileState};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::opens::table::{FileCell, Latched};
use crate::file::store::share::{FileKind, FoundFile, Stat};
use crate::rules::FileId;
use crate::rules::lease::FileLease;
use crate::sync::Ordering;

/// A pending name as it is kept on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PendingEntry {
    id: FileId,
    path: SharePath,
}

impl PendingEntry {
    /// One file may have several pending names: the path is part of the key, as a checksum since
    /// it may be longer than a file name.
    fn key(&self) -> String {
        let hash = fnv1a(self.path.as_str().as_bytes());
        format!("{}-{hash:016x}", self.id)
    }
}

impl Share {
    /// True if any name is delete pending.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) > 0
    }

    /// True if a name of the file is delete pending.
    pub fn has_pending_name(&self, id: FileId) -> bool {
        let pending = |cell: Arc<FileCell>| cell.latch().state.names().any(|(_, pending)| pending);
        self.has_pending() && self.table().get(id).is_some_and(pending)
    }

    /// Marks a name that has opens as delete pending: on disk first, so that a mark that cannot be
    /// saved is not made. False if the name has no opens and can be removed at once.
    pub(crate) fn mark(&self, latched: &mut Latched, id: FileId, path: &SharePath) -> Result<bool> {
        if !latched.state.is_open_by(path) {
            return Ok(false);
        }
        self.write_mark(id, path)?;
        Ok(latched.state.mark(path))
    }

    /// Clears the mark of a name, on disk first. False if there was none.
    pub(crate) fn unmark(
        &self,
        latched: &mut Latched,
        id: FileId,
        path: &SharePath,
    ) -> Result<bool> {
        if latched.state.pending_holder(path).is_none() {
            return Ok(false);
        }
        self.erase_mark(id, path)?;
        Ok(latched.state.undelete(path))
    }

    /// After the end of an open: saves its delete-on-close mark, or removes a name that waited for
    /// this end.
    pub(crate) fn carry_out_end(
        &self,
        file: FileId,
        latched: &mut Latched,
        closed: &Closed,
        directory: bool,
    ) -> Result<()> {
        if closed.marked {
            self.write_mark(file, &closed.path)?;
        }
        if !closed.remove {
            return Ok(());
        }
        let path = &closed.path;
        let links = self.links(path, file, directory);
        match self.remove_name(path, file, directory) {
            // Filled directly in the directory meanwhile: it stays, and is ordinary again.
            Err(FileError::Denied(Denial::DirectoryNotEmpty)) => {
                log::warn!("{path}: marked for deletion, but no longer empty: kept");
            }
            done => {
                done?;
                self.forget_file(latched, file, links);
            }
        }
        self.erase_mark(file, path)
    }

    /// Moves the names of all files in use by `step`, and their marks on disk with them: the
    /// deletion was promised for wherever the name is.
    pub(crate) fn follow_directories(&self, step: impl Fn(&mut FileState)) {
        for cell in self.table().cells() {
            let state = &mut cell.latch().state;
            let before = pending_names(state);
            step(state);
            for (from, to) in before.iter().zip(&pending_names(state)) {
                if from != to
                    && let Err(error) =
                        self.write_mark(cell.id, to).and_then(|()| self.erase_mark(cell.id, from))
                {
                    log::error!("{to}: a restart may not know that it is to be deleted: {error}");
                }
            }
        }
    }

    /// Not flushed to the disk: after a power failure a file that was never removed is simply back.
    fn write_mark(&self, id: FileId, path: &SharePath) -> Result<()> {
        let entry = PendingEntry { id, path: path.clone() };
        let key = entry.key();
        // Not by `?`: what the state folder lacks is no answer about the file.
        let kept = self.state.put(Drawer::Pending, &key, &entry, Durability::Cached);
        kept.map_err(FileError::Store)?;
        self.pending.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn erase_mark(&self, id: FileId, path: &SharePath) -> Result<()> {
        let key = PendingEntry { id, path: path.clone() }.key();
        let removed = self.state.remove(Drawer::Pending, &key, Durability::Cached);
        // A name that goes with the very close that marks it was never written down.
        if removed.map_err(FileError::Store)? {
            self.pending.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }

    /// Removes a name whose file's lock the caller holds, if it still is that file.
    pub(crate) fn remove_name(&self, path: &SharePath, id: FileId, directory: bool) -> Result<()> {
        match self.disk.remove(path, id, directory) {
            // Somebody took or replaced the name directly in the directory: it is not ours now.
            Ok(()) | Err(StoreError::NotFound | StoreError::Replaced) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Share::remove_name`], for a file that was looked up a moment ago: if that still holds,
    /// it is not looked at again. Says how many names the file had, as [`Share::links`] does.
    pub(crate) fn remove_seen(&self, seen: &Seen, directory: bool) -> Result<u32> {
        let FoundFile { path, stat } = &seen.found;
        let Some(place) = self.place_of(seen).filter(|_| !directory) else {
            let links = self.links(path, stat.id, directory);
            self.remove_name(path, stat.id, directory)?;
            return Ok(links);
        };
        match self.disk.remove_found(&seen.found, place) {
            Ok(()) => Ok(stat.links),
            // As in `remove_name`. The file may have another name.
            Err(StoreError::NotFound | StoreError::Replaced) => Ok(u32::MAX),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a new entry that could not be finished.
    pub(crate) fn unmake(&self, path: &SharePath, stat: Stat) {
        let removed = self
            .remove_name(path, stat.id, stat.kind == FileKind::Directory)
            .and_then(|()| Ok(self.records.forget(stat.id)?));
        if let Err(error) = removed {
            log::warn!("{path}: made, could not be finished, and stays: {error}");
        }
    }

    /// How many names a file has; the caller holds its lock, so that no operation changes it. A
    /// directory has one. If the name does not lead to the file any more, it counts as having
    /// others.
    pub(crate) fn links(&self, path: &SharePath, id: FileId, directory: bool) -> u32 {
        match self.disk.stat(path) {
            Ok(stat) if stat.id == id && directory => 1,
            Ok(stat) if stat.id == id => stat.links,
            _ => u32::MAX,
        }
    }

    /// A name of the file was removed; `links` is how many it had before. With the last one goes
    /// what is kept beside the file: its sidecar and its lease. The file is gone, so a failure is
    /// only logged; a later start removes the rest.
    pub(crate) fn forget_file(&self, latched: &mut Latched, id: FileId, links: u32) {
        if links > 1 {
            return;
        }
        let leased = latched.state.lease() != FileLease::default();
        latched.state.set_lease(FileLease::default());
        latched.anchor = None;
        let lease = if leased { self.forget_lease(id) } else { Ok(()) };
        if let Err(error) = self.records.forget(id).map_err(Into::into).and(lease) {
            log::warn!("share {}: kept beside a file that is gone: {error}", self.name());
        }
    }

    /// At the start: deletes the names whose deletion had been acknowledged when the last process
    /// died.
    pub(super) fn finish_deletions(&self) -> Result<()> {
        let Entries { good, damaged } = self.state.all::<PendingEntry>(Drawer::Pending)?;
        for name in damaged {
            log::warn!("share {}: pending entry {name} is damaged and left alone", self.name());
        }
        for (key, PendingEntry { id, path }) in good {
            let finished = self
                .finish_deletion(id, &path)
                .and_then(|()| self.state.remove(Drawer::Pending, &key, Durability::Cached));
            if let Err(error) = finished {
                // One entry must not keep the share from being served. The next start tries again.
                log::warn!("{path}: not removed, though its deletion was acknowledged: {error}");
            }
        }
        Ok(())
    }

    /// Removes a name whose deletion was promised, if it still is that file. What is kept beside
    /// the file goes only with its last name: a file that is not here may be elsewhere.
    fn finish_deletion(&self, id: FileId, path: &SharePath) -> std::result::Result<(), StoreError> {
        let stat = match self.disk.stat(path) {
            Ok(stat) if stat.id == id => stat,
            Ok(_) | Err(StoreError::NotFound | StoreError::ParentNotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        let directory = stat.kind == FileKind::Directory;
        match self.disk.remove(path, id, directory) {
            Ok(()) if directory || stat.links <= 1 => self.records.forget(id),
            Ok(()) => Ok(()),
            Err(StoreError::NotEmpty) => {
                log::warn!(
                    "{path}: kept although its deletion was acknowledged: the directory has entries"
                );
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// The names of a file that are delete pending, in an order that their moving does not change.
fn pending_names(state: &FileState) -> Vec<SharePath> {
    state.names().filter(|(_, pending)| *pending).map(|(path, _)| path.clone()).collect()
}
