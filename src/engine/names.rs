//! Looking: what names there are and what they stand for. Takes part in no rule.

use super::error::Result;
use super::share::Share;
use crate::core::SharePath;
use crate::store::{Found, Listed, OpenDirectory, Stat};

impl Share {
    /// What a path stands for, in any spelling.
    pub fn lookup(&self, path: &SharePath) -> Result<Found> {
        let _names = self.names()?;
        Ok(self.dir.lookup(path)?)
    }

    /// What a path stands for, spelled as on disk.
    pub fn stat(&self, path: &SharePath) -> Result<Stat> {
        let _names = self.names()?;
        Ok(self.dir.stat(path)?)
    }

    /// A directory, spelled as on disk, whose entries are to be looked at one by one.
    pub fn entries(&self, dir: &SharePath) -> Result<OpenDirectory> {
        let _names = self.names()?;
        Ok(self.dir.entries(dir)?)
    }

    /// A page of a directory, in the order of folded names, delete-pending names included: the
    /// mount shows them, as SMB does (SMB-RULES section 2). REST leaves them out on its side.
    pub fn list(&self, dir: &SharePath, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let _names = self.names()?;
        Ok(self.dir.list(dir, after, limit)?)
    }
}
