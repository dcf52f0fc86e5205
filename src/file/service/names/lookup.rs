//! Lookups and listings: which names exist and which files they lead to. No rule applies to them.

use super::super::error::{FileError, Result};
use super::super::share::{Attempt, Share};
use crate::disk::StoreError;
use crate::file::rules::SharePath;
use crate::file::store::share::{FoundFile, ListedName, OpenDirectory, Stat};
use crate::rules::FileId;

/// The space of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSystemSpace {
    pub total: u64,
    pub free: u64,
    /// The most files it can hold.
    pub files: u64,
    /// How many more files it can hold.
    pub files_free: u64,
}

impl Share {
    /// The file of a path in any spelling.
    pub fn lookup(&self, path: &SharePath) -> Result<FoundFile> {
        let _names = self.names_to_look()?;
        Ok(self.disk().lookup(path)?)
    }

    /// A lookup by the mount. It waits while the name is delete pending and goes with the releases.
    pub fn mount_lookup(&self, attempt: Attempt, path: &SharePath) -> Option<Result<FoundFile>> {
        let waits = attempt == Attempt::Repeatable && self.is_on_its_way_out(path);
        (!waits).then(|| self.lookup(path))
    }

    /// The number of names removed, moved or linked so far, from a number on that no other share
    /// of this name began with. A name that was looked up is certainly current while it is
    /// unchanged, also across a reset or a restore.
    pub fn name_changes(&self) -> u64 {
        (u64::from(self.epoch()) << u32::BITS).wrapping_add(self.disk().generation())
    }

    /// The file of a path that is spelled as on disk.
    pub fn stat(&self, path: &SharePath) -> Result<Stat> {
        let _names = self.names_to_look()?;
        Ok(self.disk().stat(path)?)
    }

    /// All entries of an open directory, as [`Share::list`] orders them. A directory that was
    /// removed has none.
    pub fn list_open(&self, dir: &OpenDirectory, id: FileId) -> Result<Vec<ListedName>> {
        let _names = self.names_to_look()?;
        match self.disk().list_open(dir, id) {
            Err(StoreError::NotFound) => Ok(Vec::new()),
            listed => Ok(listed?),
        }
    }

    /// A page of a directory, in the order of folded names, delete-pending names included: the
    /// mount shows them, as SMB does. REST leaves them out on its side.
    pub fn list(
        &self,
        dir: &SharePath,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedName>> {
        let _names = self.names_to_look()?;
        Ok(self.disk().list(dir, after, limit)?)
    }

    /// The space of the file system below the share.
    pub fn space(&self) -> Result<FileSystemSpace> {
        let stat = rustix::fs::statvfs(self.disk().root_path())
            .map_err(|errno| FileError::Store(StoreError::from_errno("statfs", errno)))?;
        Ok(FileSystemSpace {
            total: stat.f_blocks * stat.f_frsize,
            free: stat.f_bavail * stat.f_frsize,
            files: stat.f_files,
            files_free: stat.f_ffree,
        })
    }
}
