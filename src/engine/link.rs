//! Linking: one more name for a file.
//!
//! Rules: SMB-RULES "Rename and link". A name that is to be replaced must be free to go, by the
//! same rule as a rename's target.

use super::error::{Error, Result};
use super::open::Handle;
use super::share::Share;
use crate::core::{Denial, FileId, Owner, SharePath};
use crate::store::Kind;

impl Share {
    /// Makes another name for the file a handle is open on; any handle will do (di35).
    pub fn link_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let path = self.latched(handle, |latched, path| {
            if latched.state.is_directory() {
                return Err(Denial::IsDirectory.into());
            }
            Ok(path.clone())
        })?;
        self.link_file(&path, handle.file(), to, replace)
    }

    /// Makes another name for a file, as `link(2)` on the mount does.
    pub fn link(&self, who: &Owner, from: &SharePath, to: &SharePath) -> Result<()> {
        let answer = self.dir.lookup(from).map_err(Error::from).and_then(|found| {
            if found.stat.kind == Kind::Directory {
                return Err(Denial::IsDirectory.into());
            }
            self.link_file(&found.path, found.stat.id, to, false)
        });
        self.note_refusal("link", from, who, answer)
    }

    fn link_file(&self, from: &SharePath, id: FileId, to: &SharePath, replace: bool) -> Result<()> {
        let _names = self.names.read().expect("nothing panics under the name lock");
        if replace && let Ok(target) = self.dir.lookup(to) {
            if target.stat.kind == Kind::Directory {
                return Err(Denial::NameTaken.into());
            }
            if target.stat.id == id {
                return Ok(());
            }
            self.table.with(target.stat.id, |_, latched| {
                self.check_replaced(latched, &target)?;
                self.remove_name(&target.path, target.stat.id, false)?;
                self.forget_file(latched, target.stat.id, target.stat.links)
            })?;
        }
        let make = |to: &SharePath| {
            self.dir.link(from, to)?;
            Ok(self.dir.stat(to)?)
        };
        self.make_entry(to, make, |_, _| Ok(()))
    }
}
