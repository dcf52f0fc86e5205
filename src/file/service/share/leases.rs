//! Leases of files on disk: saved, loaded at the start, removed.
//!
//! Decides that a lease is kept as long as its file is in the share, and never in the file's
//! inode: lease operations change neither `ETag` nor Last-Modified. What an action does to a lease
//! is decided in [`crate::rules::lease`].

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use super::Share;
use crate::disk::{Drawer, Durability, Entries};
use crate::file::rules::SharePath;
use crate::file::service::error::{FileError, Result};
use crate::file::service::opens::table::Latched;
use crate::file::store::share::{FileKind, OpenFor, Stat};
use crate::rules::lease::FileLease;
use crate::rules::{FileId, LeaseId};
use crate::sync::MutexGuard;

/// A lease as it is kept on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LeaseEntry {
    id: FileId,
    lease: FileLease,
    /// Where the file was when the lease was last changed.
    #[serde(default)]
    path: Option<SharePath>,
}

impl Share {
    /// A lock that is held while a lease is changed and saved; the lease is saved with no file's
    /// lock held.
    pub(crate) fn changing_leases(&self) -> MutexGuard<'_, ()> {
        self.lease_changes.lock().expect("nothing panics while leases change")
    }

    /// After a write: drops a broken lease. If its entry on disk cannot be removed, that is only
    /// logged, since the write is done and a broken lease refuses nothing.
    pub(crate) fn after_write(&self, latched: &mut Latched, id: FileId) {
        let before = latched.state.lease();
        let mut lease = before;
        lease.after_write();
        if lease != before {
            latched.state.set_lease(lease);
            latched.anchor = None;
            if let Err(error) = self.forget_lease(id) {
                log::warn!("share {}: a broken lease stays written down: {error}", self.name());
            }
        }
    }

    /// The files that are leased, by path, and how many leased files were moved since their lease
    /// was last changed, so that their path is not known.
    pub fn leased_files(&self) -> Result<(Vec<(SharePath, LeaseId)>, usize)> {
        let _names = self.names()?;
        let Entries { good, .. } = self.state.all::<LeaseEntry>(Drawer::Leases)?;
        let (mut leased, mut moved) = (Vec::new(), 0);
        for (_, entry) in good {
            let Some(cell) = self.table().get(entry.id) else { continue };
            let (lease, name) = {
                let latched = cell.latch();
                let name = latched.state.names().map(|(path, _)| path.clone()).next();
                (latched.state.lease(), name)
            };
            let FileLease::Leased(id) = lease else { continue };
            let is_at = |path: &SharePath| self.disk.stat(path).is_ok_and(|at| at.id == entry.id);
            match name.or(entry.path.filter(is_at)) {
                Some(path) => leased.push((path, id)),
                None => moved += 1,
            }
        }
        leased.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        Ok((leased, moved))
    }

    /// At the start: loads the leases of the files that are still in the share.
    pub(super) fn load_leases(&self) -> Result<()> {
        let Entries { good, damaged } = self.state.all::<LeaseEntry>(Drawer::Leases)?;
        for name in damaged {
            log::warn!("share {}: lease entry {name} is damaged and left alone", self.name());
        }
        let is_at = |path: &SharePath, id| self.disk.stat(path).is_ok_and(|stat| stat.id == id);
        let (found, mut moved): (Vec<_>, Vec<_>) = good
            .into_iter()
            .partition(|(_, entry)| entry.path.as_ref().is_some_and(|path| is_at(path, entry.id)));
        for (_, entry) in found {
            self.load_lease(&entry);
        }
        // The whole tree is looked at only if a leased file was moved or removed directly in the
        // directory.
        if !moved.is_empty() {
            self.each_file(|path, id| {
                for (_, entry) in moved.extract_if(.., |(_, entry)| entry.id == id) {
                    self.load_lease(&LeaseEntry { path: Some(path.clone()), ..entry });
                }
            })?;
        }
        for (key, _) in moved {
            log::warn!("share {}: the file of lease {key} is gone: forgotten", self.name());
            // At worst the next start says the same.
            let _ = self.state.remove(Drawer::Leases, &key, Durability::Cached);
        }
        Ok(())
    }

    fn load_lease(&self, entry: &LeaseEntry) {
        let anchor = entry.path.as_ref().and_then(|path| self.anchor_of(path, entry.id));
        self.table.with(entry.id, |_, latched| {
            latched.state.set_lease(entry.lease);
            latched.anchor = anchor;
        });
    }

    /// A descriptor that keeps the inode number of a leased file from being given to another file,
    /// for file systems where the number alone is the identity. None where it is not, or if no
    /// descriptor can be had.
    pub(crate) fn anchor_of(&self, path: &SharePath, id: FileId) -> Option<OwnedFd> {
        if id.born != 0 {
            return None;
        }
        let fd = self.disk.open_file(path, OpenFor::Path).ok()?;
        Stat::of(&fd).is_ok_and(|stat| stat.id == id).then_some(fd)
    }

    /// Shows every file of the share, by its path and identity.
    fn each_file(&self, mut show: impl FnMut(&SharePath, FileId)) -> Result<()> {
        const PAGE: usize = 1_000;
        let mut directories = vec![SharePath::root()];
        while let Some(dir) = directories.pop() {
            let Ok(entries) = self.disk.entries(&dir) else { continue }; // Removed meanwhile.
            let mut after: Option<String> = None;
            loop {
                let page = self.disk.list(&dir, after.as_deref(), PAGE)?;
                let Some(last) = page.last() else { break };
                after = Some(last.name.clone());
                for listed in &page {
                    let Ok(path) = dir.join(&listed.name) else { continue };
                    match entries.stat(&listed.name) {
                        Ok(stat) if stat.kind == FileKind::Directory => directories.push(path),
                        Ok(stat) => show(&path, stat.id),
                        Err(_) => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Saves a file's lease. The inode is not touched: lease operations change neither `ETag` nor
    /// Last-Modified.
    pub(crate) fn remember_lease(
        &self,
        id: FileId,
        path: &SharePath,
        lease: FileLease,
    ) -> Result<()> {
        if lease == FileLease::default() {
            return self.drop_lease(id, Durability::Synced);
        }
        let entry = LeaseEntry { id, lease, path: Some(path.clone()) };
        let kept = self.state.put(Drawer::Leases, &id.to_string(), &entry, Durability::Synced);
        kept.map_err(FileError::Store)
    }

    /// Removes the saved entry of a lease that has no effect any more, since the file is gone or
    /// the lease was broken. Not flushed, since the file's lock is held: after a power cut the next
    /// start drops the lease of a missing file, and a broken lease is still broken.
    pub(crate) fn forget_lease(&self, id: FileId) -> Result<()> {
        self.drop_lease(id, Durability::Cached)
    }

    fn drop_lease(&self, id: FileId, durability: Durability) -> Result<()> {
        let removed = self.state.remove(Drawer::Leases, &id.to_string(), durability);
        removed.map(drop).map_err(FileError::Store)
    }
}
