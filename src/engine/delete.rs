//! Deleting: the mark through a handle, unlink and rmdir by name, taking a mark away.

use super::error::Result;
use super::events::Happening;
use super::open::{Handle, Wake};
use super::rename::check_momentary;
use super::share::{Attempt, Share};
use super::table::Latched;
use crate::core::file::DeleteFacts;
use crate::core::lease::FileLease;
use crate::core::{Denial, FileId, Owner, SharePath};
use crate::store::{Found, Kind};

/// What became of a name that was deleted through the mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlinked {
    /// It is gone.
    Removed,
    /// Others have it open: it is delete pending and goes with the last of them.
    Pending,
}

/// What becomes of a name that others have open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unlinking {
    /// It stays, delete pending.
    Nt,
    /// It goes.
    Posix,
}

impl Share {
    /// Sets or clears the delete-pending mark of the name the handle was opened by.
    pub fn set_disposition(&self, handle: &Handle, delete: bool) -> Result<()> {
        let mut noted = None;
        let answer = self.latched(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            noted = Some((path.clone(), open.owner.clone()));
            let facts = if delete {
                self.delete_facts(latched, path, handle.file())?
            } else {
                DeleteFacts::default()
            };
            let changed =
                latched.state.set_disposition(handle.slot(), handle.id(), delete, facts)?;
            if changed {
                let kept = if delete {
                    self.remember_pending(handle.file(), path)
                } else {
                    self.forget_pending(handle.file(), path)
                };
                if let Err(error) = kept {
                    // The disk and the table say the same, also where the disk could not.
                    let _ = latched.state.set_disposition(
                        handle.slot(),
                        handle.id(),
                        !delete,
                        DeleteFacts::default(),
                    );
                    return Err(error);
                }
            }
            Ok((changed, Wake::changed(latched)))
        });
        let Some((path, owner)) = noted else { return answer.map(|_| ()) };
        let (changed, wake) = self.note_refusal("delete", &path, &owner, answer)?;
        wake.call();
        if changed {
            let what = if delete { Happening::MarkedForDeletion } else { Happening::Unmarked };
            self.note(&path, &owner, what);
        }
        Ok(())
    }

    /// Deletes a file by name, as `unlink(2)` on the mount does: a momentary open with D that
    /// shares everything, marks the name, and closes (DESIGN section 4, "Unlink of an open
    /// file").
    pub fn unlink(&self, who: &Owner, path: &SharePath) -> Result<Unlinked> {
        self.delete_name("unlink", who, path, false, Unlinking::Nt)
    }

    /// Deletes an empty directory by name, likewise.
    pub fn rmdir(&self, who: &Owner, path: &SharePath) -> Result<Unlinked> {
        self.delete_name("rmdir", who, path, true, Unlinking::Nt)
    }

    /// Takes a name away at once, as POSIX has it: opens of the file go on without one. They must
    /// share D all the same (DESIGN section 4, `--unlink=posix`).
    pub fn remove_posix(&self, who: &Owner, path: &SharePath, directory: bool) -> Result<()> {
        let operation = if directory { "rmdir" } else { "unlink" };
        self.delete_name(operation, who, path, directory, Unlinking::Posix).map(drop)
    }

    fn delete_name(
        &self,
        operation: &'static str,
        who: &Owner,
        path: &SharePath,
        directory: bool,
        how: Unlinking,
    ) -> Result<Unlinked> {
        let answer = {
            let _names = self.names()?;
            self.with_name(path, |found, generation| match found {
                Ok(found) => self.table.with(found.stat.id, |_, latched| {
                    if !self.is_still(&found.path, found.stat.id, generation) {
                        return Attempt::Again;
                    }
                    Attempt::Done(self.delete_latched(latched, &found, directory, how))
                }),
                Err(error) => Attempt::Done(Err(error.into())),
            })
        };
        if let Ok(unlinked) = &answer {
            self.note(
                path,
                who,
                match unlinked {
                    Unlinked::Removed => Happening::Removed,
                    Unlinked::Pending => Happening::MarkedForDeletion,
                },
            );
        }
        self.note_refusal(operation, path, who, answer)
    }

    fn delete_latched(
        &self,
        latched: &mut Latched,
        found: &Found,
        directory: bool,
        how: Unlinking,
    ) -> Result<Unlinked> {
        let Found { path, stat } = found;
        match (directory, stat.kind == Kind::Directory) {
            (true, false) => return Err(Denial::NotDirectory.into()),
            (false, true) => return Err(Denial::IsDirectory.into()),
            _ => {}
        }
        if path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        check_momentary(latched, path)?;
        self.delete_facts_of(path, stat.id, directory)?.check()?;
        if how == Unlinking::Nt && latched.state.mark(path) {
            if let Err(error) = self.remember_pending(stat.id, path) {
                latched.state.undelete(path);
                return Err(error);
            }
            return Ok(Unlinked::Pending);
        }
        let links = self.links(path, stat.id, directory);
        self.remove_name(path, stat.id, directory)?;
        latched.state.detach(path);
        self.forget_file(latched, stat.id, links)?;
        Ok(Unlinked::Removed)
    }

    /// Takes the delete-pending mark of a name away; says whether there was one.
    pub fn undelete(&self, who: &Owner, path: &SharePath) -> Result<bool> {
        // Those who are told act at once: the name lock is let go before.
        let undone = {
            let _names = self.names()?;
            self.with_name(path, |found, generation| match found {
                Ok(Found { path, stat }) => self.table.with(stat.id, |_, latched| {
                    if !self.is_still(&path, stat.id, generation) {
                        return Attempt::Again;
                    }
                    Attempt::Done(self.undelete_latched(latched, stat.id, &path))
                }),
                Err(error) => Attempt::Done(Err(error.into())),
            })?
        };
        let Some(wake) = undone else { return Ok(false) };
        wake.call();
        self.note(path, who, Happening::Unmarked);
        Ok(true)
    }

    fn undelete_latched(
        &self,
        latched: &mut Latched,
        id: FileId,
        path: &SharePath,
    ) -> Result<Option<Wake>> {
        if !latched.state.undelete(path) {
            return Ok(None);
        }
        if let Err(error) = self.forget_pending(id, path) {
            latched.state.mark(path);
            return Err(error);
        }
        Ok(Some(Wake::changed(latched)))
    }

    fn delete_facts(&self, latched: &Latched, path: &SharePath, id: FileId) -> Result<DeleteFacts> {
        if path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        self.delete_facts_of(path, id, latched.state.is_directory())
    }

    pub(super) fn delete_facts_of(
        &self,
        path: &SharePath,
        id: FileId,
        directory: bool,
    ) -> Result<DeleteFacts> {
        let not_empty = directory && !self.dir.is_empty(path)?;
        Ok(DeleteFacts { read_only: self.is_read_only(path, id)?, not_empty })
    }

    /// How many names a file has; its lock is held, so that none of us changes it. A directory
    /// has one. If the name is not the file's any more, others are assumed.
    pub(super) fn links(&self, path: &SharePath, id: FileId, directory: bool) -> u32 {
        match self.dir.stat(path) {
            Ok(stat) if stat.id == id => {
                if directory {
                    1
                } else {
                    stat.links
                }
            }
            _ => u32::MAX,
        }
    }

    /// A name of the file was removed; `links` is how many it had before. With the last one goes
    /// what is kept beside the file: its sidecar and its lease.
    pub(super) fn forget_file(&self, latched: &mut Latched, id: FileId, links: u32) -> Result<()> {
        if links > 1 {
            return Ok(());
        }
        self.records.forget(id)?;
        if latched.state.lease() != FileLease::default() {
            latched.state.set_lease(FileLease::default());
            self.forget_lease(id)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{EventLog, ManualClock, ShareOptions};
    use super::*;
    use crate::core::create::{Disposition, OpenRequest, Options};
    use crate::core::{Access, Client, LeaseId, ShareMode};
    use crate::store::Drawer;

    /// A share with one file, `f`, whose lease was broken.
    fn leased(folder: &tempfile::TempDir) -> (Share, Owner, SharePath) {
        let root = folder.path().join("share");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("f"), "").unwrap();
        let share = Share::open_directory(
            "s",
            &root,
            &folder.path().join("state"),
            ShareOptions::default(),
            Arc::new(ManualClock::default()),
            Arc::new(EventLog::default()),
        )
        .unwrap();
        let client = Arc::new(Client { session: 1, name: "test".into() });
        let path = SharePath::new("f").unwrap();
        let id = share.stat(&path).unwrap().id;
        let lease = FileLease::Broken(LeaseId::from_random_bytes([1; 16]));
        share.table.with(id, |_, latched| latched.state.set_lease(lease));
        share.remember_lease(id, lease).unwrap();
        (share, Owner { client, pid: 0, program: None }, path)
    }

    fn leases(share: &Share) -> usize {
        share.disk_state.all::<serde_json::Value>(Drawer::Leases).unwrap().good.len()
    }

    #[test]
    fn a_broken_lease_goes_with_a_file_that_is_deleted_at_its_last_close() {
        let folder = tempfile::tempdir().unwrap();
        let (share, who, path) = leased(&folder);
        let request = OpenRequest {
            disposition: Disposition::Open,
            options: Options { delete_on_close: true, ..Options::default() },
            ..OpenRequest::plain(Access::D, ShareMode::RWD)
        };
        let opened = share.open(&who, &path, &request).unwrap();
        assert_eq!((share.files_in_use(), leases(&share)), (1, 1));
        share.close(&opened.handle).unwrap();
        assert!(share.lookup(&path).is_err());
        assert_eq!((share.files_in_use(), leases(&share)), (0, 0));
    }

    #[test]
    fn a_lease_stays_while_the_file_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let (share, who, path) = leased(&folder);
        share.link(&who, &path, &SharePath::new("g").unwrap()).unwrap();
        assert_eq!(share.unlink(&who, &path).unwrap(), Unlinked::Removed);
        assert_eq!((share.files_in_use(), leases(&share)), (1, 1));
        assert_eq!(share.unlink(&who, &SharePath::new("g").unwrap()).unwrap(), Unlinked::Removed);
        assert_eq!((share.files_in_use(), leases(&share)), (0, 0));
    }
}
