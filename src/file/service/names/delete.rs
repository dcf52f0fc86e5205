//! Deleting: the mark through a handle, unlink and rmdir by name, taking a mark away.

use super::super::error::Result;
use super::super::opens::open::{Handle, Wake};
use super::super::opens::table::Latched;
use super::super::share::{Attempt, Seen, Share, Target, awaits_release};
use super::rename::check_momentary;
use crate::file::rules::file::DeleteFacts;
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::store::share::{FileKind, FoundFile};
use crate::journal::Happening;
use crate::rules::{Context, FileId, Owner};

/// What a momentary open with D that shares everything asks for.
pub(crate) const REMOVES: (Access, ShareMode) = (Access::D, ShareMode::RWD);

/// Whether opens keep a name, as on a real share, or not, as POSIX programs expect
/// (`--unlink=posix`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameRules {
    Nt,
    Posix,
}

/// The outcome of a deletion by name on the mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlinked {
    /// The name is gone.
    Removed,
    /// The file is open: the name is delete pending until the last handle closes.
    Pending,
}

impl Share {
    /// Sets or clears the delete-pending mark of the name the handle was opened by.
    pub fn set_disposition(&self, handle: &Handle, delete: bool) -> Result<()> {
        let owner = self.latched(handle, |latched, _| {
            Ok(latched.state.get(handle.slot(), handle.id())?.0.owner.clone())
        })?;
        let path = self.path_of(handle)?;
        let answer = self.change_mark(&owner, handle, delete, |latched, path| {
            let facts = if delete {
                self.delete_facts(latched, path, handle.file())?
            } else {
                DeleteFacts::default()
            };
            let state = &latched.state;
            Ok(state.check_disposition(handle.slot(), handle.id(), delete, facts)?)
        });
        self.note_refusal("delete", &path, &owner, answer)
    }

    /// Marks the name of an open for deletion, or takes the mark away, though the open lacks the
    /// DELETE right: a momentary open with D is checked beside it. Returns the name.
    pub fn mount_mark(
        &self,
        attempt: Attempt,
        cx: &Context,
        handle: &Handle,
        delete: bool,
    ) -> Option<Result<SharePath>> {
        let path = match self.path_of(handle) {
            Ok(path) => path,
            Err(error) => return Some(Err(error)),
        };
        let answer = self.change_mark(cx.owner(), handle, delete, |latched, path| {
            if !delete {
                return Ok(true);
            }
            if latched.state.check_not_pending(path).is_err() {
                return Ok(false);
            }
            latched.state.check_access(Access::D, ShareMode::RWD)?;
            let directory = latched.state.is_directory();
            self.delete_facts_of(path, handle.file(), directory)?.check()?;
            Ok(true)
        });
        let told = ("delete", &path, cx.owner());
        let wants = (Target::Open(handle), REMOVES);
        self.final_answer(attempt, told, wants, answer.map(|()| path.clone()))
    }

    /// Marks the name of a handle, or takes the mark away, if `check` allows it and says that
    /// something changes.
    fn change_mark(
        &self,
        who: &Owner,
        handle: &Handle,
        delete: bool,
        check: impl FnOnce(&mut Latched, &SharePath) -> Result<bool>,
    ) -> Result<()> {
        let (changed, path, wake) = self.latched(handle, |latched, path| {
            let changed = check(latched, path)?
                && if delete {
                    self.mark(latched, handle.file(), path)?
                } else {
                    self.unmark(latched, handle.file(), path)?
                };
            Ok((changed, path.clone(), Wake::changed(latched)))
        })?;
        self.wake(wake);
        if changed {
            let what = if delete { Happening::MarkedForDeletion } else { Happening::Unmarked };
            self.note(None, &path, who, what);
        }
        Ok(())
    }

    /// `unlink(2)` and `rmdir(2)`.
    pub fn mount_remove(
        &self,
        attempt: Attempt,
        cx: &Context,
        path: &SharePath,
        (directory, rules): (bool, NameRules),
    ) -> Option<Result<Unlinked>> {
        let answer = self.at_name(path, |seen| {
            let seen = seen?;
            self.lock_seen(&seen, |_, latched| {
                Ok(self.delete_latched(latched, &seen, directory, (rules, attempt))?)
            })
        });
        if let Ok(Some(unlinked)) = &answer {
            let what = match unlinked {
                Unlinked::Removed => Happening::Removed,
                Unlinked::Pending => Happening::MarkedForDeletion,
            };
            self.note(None, path, cx.owner(), what);
        }
        let told = (if directory { "rmdir" } else { "unlink" }, path, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[path]), REMOVES), answer.transpose()?)
    }

    /// `None`, and nothing is done, if the name would be marked, may be asked for again, and all
    /// opens of the file are being released.
    fn delete_latched(
        &self,
        latched: &mut Latched,
        seen: &Seen,
        directory: bool,
        (rules, attempt): (NameRules, Attempt),
    ) -> Result<Option<Unlinked>> {
        let FoundFile { path, stat } = &seen.found;
        match (directory, stat.kind == FileKind::Directory) {
            (true, false) => return Err(Denial::NotDirectory.into()),
            (false, true) => return Err(Denial::IsDirectory.into()),
            _ => {}
        }
        if path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        let may_wait = attempt == Attempt::Repeatable && rules == NameRules::Nt;
        if may_wait && awaits_release(latched, self.now()) {
            return Ok(None);
        }
        check_momentary(latched, path)?;
        let not_empty = directory && !self.disk().is_empty(path)?;
        DeleteFacts { read_only: self.is_seen_read_only(seen)?, not_empty }.check()?;
        if rules == NameRules::Nt && self.mark(latched, stat.id, path)? {
            return Ok(Some(Unlinked::Pending));
        }
        self.keep_nameless(latched, path, directory);
        let links = self.remove_seen(seen, directory)?;
        latched.state.detach(path);
        self.forget_file(latched, stat.id, links);
        Ok(Some(Unlinked::Removed))
    }

    /// Clears the delete-pending mark of a name; true if there was one.
    pub fn undelete(&self, cx: &Context, path: &SharePath) -> Result<bool> {
        // Listeners act at once, so the name lock is released before.
        let undone = {
            let _names = self.names()?;
            self.at_file(path, |FoundFile { path, stat }, _, latched| {
                let undone = self.unmark(latched, stat.id, path)?;
                Ok(undone.then(|| Wake::changed(latched)))
            })?
        };
        let Some(wake) = undone else { return Ok(false) };
        self.wake(wake);
        self.note(None, path, cx.owner(), Happening::Unmarked);
        Ok(true)
    }

    fn delete_facts(&self, latched: &Latched, path: &SharePath, id: FileId) -> Result<DeleteFacts> {
        if path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        self.delete_facts_of(path, id, latched.state.is_directory())
    }

    pub(crate) fn delete_facts_of(
        &self,
        path: &SharePath,
        id: FileId,
        directory: bool,
    ) -> Result<DeleteFacts> {
        let not_empty = directory && !self.disk().is_empty(path)?;
        Ok(DeleteFacts { read_only: self.is_read_only(path, id)?, not_empty })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;
    use crate::disk::Drawer;
    use crate::file::rules::Attributes;
    use crate::file::rules::create::{Disposition, OpenRequest, Options};
    use crate::file::service::ShareOptions;
    use crate::file::service::error::FileError;
    use crate::file::store::share::{OpenFor, Record, Records};
    use crate::journal::AccountJournal;
    use crate::rules::lease::FileLease;
    use crate::rules::{Client, LeaseId};

    fn unlink(share: &Share, cx: &Context, path: &SharePath) -> Result<Unlinked> {
        share.mount_remove(Attempt::Last, cx, path, (false, NameRules::Nt)).unwrap()
    }

    /// A share with one file, `f`, whose lease was broken.
    fn leased(folder: &tempfile::TempDir) -> (Share, Context, SharePath) {
        let root = folder.path().join("share");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("f"), "").unwrap();
        let share = Share::open_directory(
            "s",
            &root,
            &folder.path().join("state"),
            ShareOptions::default(),
            Arc::new(ManualClock::default()),
            AccountJournal::default(),
        )
        .unwrap();
        let client = Arc::new(Client { session: 1, name: "test".into() });
        let path = SharePath::new("f").unwrap();
        let id = share.stat(&path).unwrap().id;
        let lease = FileLease::Broken(LeaseId::from_random_bytes([1; 16]));
        share.table().with(id, |_, latched| latched.state.set_lease(lease));
        share.remember_lease(id, &path, lease).unwrap();
        let cx = Context::local(share.now(), Owner { client, pid: 0, program: None }, "test");
        (share, cx, path)
    }

    fn leases(share: &Share) -> usize {
        share.state().all::<serde_json::Value>(Drawer::Leases).unwrap().good.len()
    }

    #[test]
    fn a_broken_lease_goes_with_a_file_that_is_deleted_at_its_last_close() {
        let folder = tempfile::tempdir().unwrap();
        let (share, cx, path) = leased(&folder);
        let request = OpenRequest {
            disposition: Disposition::Open,
            options: Options { delete_on_close: true, ..Options::default() },
            ..OpenRequest::plain(Access::D, ShareMode::RWD)
        };
        let opened = share.open(&cx, &path, &request).unwrap();
        assert_eq!((share.files_in_use(), leases(&share)), (1, 1));
        share.close(&opened.handle).unwrap();
        assert!(share.lookup(&path).is_err());
        assert_eq!((share.files_in_use(), leases(&share)), (0, 0));
    }

    #[test]
    fn a_file_whose_opens_are_all_being_released_is_neither_removed_nor_marked() {
        let folder = tempfile::tempdir().unwrap();
        let (share, cx, path) = leased(&folder);
        let request = OpenRequest::plain(Access::R, ShareMode::RWD);
        let opened = share.open(&cx, &path, &request).unwrap();
        share.set_flushed(&opened.handle).unwrap();
        let delete = || share.mount_remove(Attempt::Repeatable, &cx, &path, (false, NameRules::Nt));
        assert!(delete().is_none());
        assert!(!share.has_pending() && share.lookup(&path).is_ok());
        share.close(&opened.handle).unwrap();
        assert_eq!(delete().unwrap().unwrap(), Unlinked::Removed);
    }

    /// Makes a file, has `change` give it its record, and deletes it.
    fn delete_made(change: impl FnOnce(&Share, &OwnedFd, FileId, &mut Record)) -> Result<Unlinked> {
        let folder = tempfile::tempdir().unwrap();
        let (share, cx, _) = leased(&folder);
        let path = SharePath::new("made").unwrap();
        let request = OpenRequest {
            disposition: Disposition::Create,
            ..OpenRequest::plain(Access::RW, ShareMode::RWD)
        };
        let opened = share.open(&cx, &path, &request).unwrap();
        share.close(&opened.handle).unwrap();
        let fd = share.disk().open_file(&path, OpenFor::Write).unwrap();
        let attributes = Some(Attributes::READ_ONLY);
        let mut record = Record { attributes, ..Record::default() };
        change(&share, &fd, opened.stat.id, &mut record);
        unlink(&share, &cx, &path)
    }

    #[test]
    fn a_file_that_was_made_here_is_not_deleted_once_it_is_read_only() {
        assert_eq!(delete_made(|_, _, _, _| {}).unwrap(), Unlinked::Removed);
        let by_share = delete_made(|share, fd, id, record| {
            share.save_record(fd, id, record).unwrap();
        });
        let beside_it = delete_made(|_, fd, id, record| {
            let other = tempfile::tempdir().unwrap();
            Records::new(other.path()).unwrap().save(fd, id, record).unwrap();
        });
        for refused in [by_share, beside_it] {
            assert!(matches!(refused, Err(FileError::Denied(Denial::CannotDelete))), "{refused:?}");
        }
    }

    #[test]
    fn a_lease_stays_while_the_file_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let (share, cx, path) = leased(&folder);
        share.link(&cx, &path, &SharePath::new("g").unwrap()).unwrap();
        assert_eq!(unlink(&share, &cx, &path).unwrap(), Unlinked::Removed);
        assert_eq!((share.files_in_use(), leases(&share)), (1, 1));
        assert_eq!(unlink(&share, &cx, &SharePath::new("g").unwrap()).unwrap(), Unlinked::Removed);
        assert_eq!((share.files_in_use(), leases(&share)), (0, 0));
    }
}
