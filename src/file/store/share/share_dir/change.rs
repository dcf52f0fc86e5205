//! Making, renaming and removing names in a share.
//!
//! Each call is one atomic step of the file system. Parents are given as spelled on disk, as
//! [`ShareDir::lookup`] returns them. Decides that a new name does not exist beside another
//! spelling of itself, and that a removal removes only the intended file.

use std::os::fd::OwnedFd;
use std::sync::{MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};

use super::super::beneath::Dir;
use super::super::stat::{FileKind, Stat};
use super::{Case, FoundFile, FoundPlace, NAMING_LOCKS, ShareDir};
use crate::disk::error::{StoreError, doing};
use crate::file::rules::SharePath;
use crate::rules::FileId;

/// The fate of an entry that has the new name of a rename.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenameHow {
    /// The rename is refused.
    NoReplace,
    /// It is replaced, at once. The target must be named as on disk, if it exists.
    Replace,
    /// The two change places. Both must be named as on disk.
    Exchange,
}

/// A name that none of us makes in another spelling while this lasts.
#[derive(Debug)]
struct SpellingClaim<'a> {
    _naming: MutexGuard<'a, ()>,
}

impl ShareDir {
    /// Makes an empty file, open for reading and writing. `mode` is subject to the umask.
    pub fn create_file(&self, path: &SharePath, mode: u32) -> Result<(OwnedFd, Stat), StoreError> {
        let (dir, name) = self.new_place(path)?;
        let _claim = self.claim(&dir, name, None)?;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let change = self.names.change(dir.id());
        let file = rustix::fs::openat(&dir, name, flags, Mode::from_raw_mode(mode))
            .map_err(doing("creating a file"))?;
        let stat = Stat::of(&file).inspect_err(|_| unmake(&dir, name, AtFlags::empty()))?;
        change.done(&dir, |names| names.insert(name, &stat));
        Ok((file, stat))
    }

    /// Makes an empty directory. `mode` is subject to the umask.
    pub fn create_dir(&self, path: &SharePath, mode: u32) -> Result<Stat, StoreError> {
        let (dir, name) = self.new_place(path)?;
        let _claim = self.claim(&dir, name, None)?;
        let change = self.names.change(dir.id());
        rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(mode))
            .map_err(doing("creating a directory"))?;
        let stat = Stat::at(&dir, name).inspect_err(|_| unmake(&dir, name, AtFlags::REMOVEDIR))?;
        change.done(&dir, |names| names.insert(name, &stat));
        Ok(stat)
    }

    /// Makes a symbolic link; any target is stored as it is.
    pub fn create_symlink(&self, path: &SharePath, target: &str) -> Result<Stat, StoreError> {
        let (dir, name) = self.new_place(path)?;
        let _claim = self.claim(&dir, name, None)?;
        let _change = self.names.change(dir.id());
        rustix::fs::symlinkat(target, &dir, name).map_err(doing("creating a link"))?;
        Stat::at(&dir, name).inspect_err(|_| unmake(&dir, name, AtFlags::empty()))
    }

    /// Makes a FIFO or socket. `mode` is subject to the umask; devices are refused.
    pub fn create_special(
        &self,
        path: &SharePath,
        kind: FileType,
        mode: u32,
    ) -> Result<Stat, StoreError> {
        if !matches!(kind, FileType::Fifo | FileType::Socket) {
            return Err(StoreError::PermissionDenied);
        }
        let (dir, name) = self.new_place(path)?;
        let _claim = self.claim(&dir, name, None)?;
        let _change = self.names.change(dir.id());
        rustix::fs::mknodat(&dir, name, kind, Mode::from_raw_mode(mode), 0)
            .map_err(doing("creating a special file"))?;
        Stat::at(&dir, name).inspect_err(|_| unmake(&dir, name, AtFlags::empty()))
    }

    /// The target of a symbolic link. `Damaged` if it is no UTF-8.
    pub fn read_link(&self, path: &SharePath) -> Result<String, StoreError> {
        let (dir, name) = self.old_place(path)?;
        let target =
            rustix::fs::readlinkat(&dir, name, Vec::new()).map_err(doing("reading a link"))?;
        target.into_string().map_err(|_| StoreError::Damaged {
            what: format!("the link {path}"),
            why: "its target is no UTF-8".into(),
        })
    }

    /// Gives a file one more name. A symbolic link is linked itself.
    pub fn link(&self, from: &SharePath, to: &SharePath) -> Result<(), StoreError> {
        let (from_dir, from_name) = self.old_place(from)?;
        let (to_dir, to_name) = self.new_place(to)?;
        let _claim = self.claim(&to_dir, to_name, None)?;
        let _change = self.names.change(to_dir.id());
        rustix::fs::linkat(&from_dir, from_name, &to_dir, to_name, AtFlags::empty())
            .map_err(doing("linking a file"))
    }

    /// Moves an entry, also to another spelling of its own name. `AlreadyExists` if another
    /// spelling of the target stands there, unless that is the entry itself.
    pub fn rename(
        &self,
        from: &SharePath,
        to: &SharePath,
        how: RenameHow,
    ) -> Result<(), StoreError> {
        let (from_dir, from_name) = self.old_place(from)?;
        let (to_dir, to_name) = self.new_place(to)?;
        let (flags, _claim) = match how {
            RenameHow::Exchange => (RenameFlags::EXCHANGE, None),
            RenameHow::NoReplace | RenameHow::Replace => {
                let same_dir = from_dir.id() == to_dir.id();
                let itself = same_dir.then_some(from_name);
                let flags = match how {
                    RenameHow::NoReplace => RenameFlags::NOREPLACE,
                    _ => RenameFlags::empty(),
                };
                (flags, self.claim(&to_dir, to_name, itself)?)
            }
        };
        let same_dir = from_dir.id() == to_dir.id();
        let change = self.names.change(to_dir.id());
        let _left = (!same_dir).then(|| self.names.change(from_dir.id()));
        let renamed = rustix::fs::renameat_with(&from_dir, from_name, &to_dir, to_name, flags)
            .map_err(doing("renaming"));
        // Two names of one file are both left as they are.
        let is_gone = || matches!(Stat::at(&from_dir, from_name), Err(StoreError::NotFound));
        if renamed.is_ok() && same_dir && is_gone() {
            change.done(&to_dir, |names| names.rename(from_name, to_name));
        }
        self.root.forget(from.as_str());
        self.root.forget(to.as_str());
        renamed
    }

    /// Removes a file's name, if it still leads to the file `expect`; `Replaced` otherwise.
    pub fn remove_file(&self, path: &SharePath, expect: FileId) -> Result<(), StoreError> {
        let (dir, name) = self.old_place(path)?;
        let stat = expected(&dir, name, expect)?;
        self.unlink_file(&dir, name, &stat)
    }

    /// Removes the name of a file that was looked up at `place`, in the directory in which it was
    /// found. If that was not a moment ago, the name must still lead to the file, as for
    /// [`ShareDir::remove_file`].
    pub fn remove_found(&self, found: &FoundFile, place: &FoundPlace) -> Result<(), StoreError> {
        match found.path.split() {
            Some((_, name)) if place.is_recent() => self.unlink_file(&place.dir, name, &found.stat),
            _ => self.remove_file(&found.path, found.stat.id),
        }
    }

    /// Removes an empty directory, if it still is the directory `expect`; `Replaced` otherwise.
    pub fn remove_dir(&self, path: &SharePath, expect: FileId) -> Result<(), StoreError> {
        let (dir, name) = self.old_place(path)?;
        if expected(&dir, name, expect)?.kind != FileKind::Directory {
            return Err(StoreError::NotADirectory);
        }
        let change = self.names.change(dir.id());
        let removed = rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)
            .map_err(doing("removing a directory"));
        self.root.forget(path.as_str());
        removed.map(|()| change.done(&dir, |names| names.remove(name)))
    }

    /// Parent and name of an entry that is there; the root itself cannot be moved or removed.
    fn old_place<'a>(&self, path: &'a SharePath) -> Result<(Dir, &'a str), StoreError> {
        let (parent, name) = path.split().ok_or(StoreError::PermissionDenied)?;
        Ok((self.root.parent(parent)?, name))
    }

    /// Parent and name of an entry to come; the root is always there.
    fn new_place<'a>(&self, path: &'a SharePath) -> Result<(Dir, &'a str), StoreError> {
        let (parent, name) = path.split().ok_or(StoreError::AlreadyExists)?;
        Ok((self.root.parent(parent)?, name))
    }

    /// Checks that `dir` has no other spelling of `name`, except `itself`, and keeps this process
    /// from making one until the claim is dropped. The exact name is checked by the system call.
    fn claim(
        &self,
        dir: &Dir,
        name: &str,
        itself: Option<&str>,
    ) -> Result<Option<SpellingClaim<'_>>, StoreError> {
        if self.case == Case::Sensitive {
            return Ok(None);
        }
        let id = dir.id();
        let which = id.ino % NAMING_LOCKS as u64;
        let lock = &self.naming[usize::try_from(which).unwrap_or_default()];
        // It guards no data, so a panic elsewhere left nothing half done.
        let naming = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.names.ask((dir, id), |names| {
            names.spellings(name).any(|spelling| spelling != name && Some(spelling) != itself)
        })?;
        if taken {
            return Err(StoreError::AlreadyExists);
        }
        Ok(Some(SpellingClaim { _naming: naming }))
    }

    /// Removes the name of a file that was looked at.
    fn unlink_file(&self, dir: &Dir, name: &str, stat: &Stat) -> Result<(), StoreError> {
        if stat.kind == FileKind::Directory {
            return Err(StoreError::IsADirectory);
        }
        let change = self.names.change(dir.id());
        rustix::fs::unlinkat(dir, name, AtFlags::empty()).map_err(doing("removing a file"))?;
        change.done(dir, |names| names.remove(name));
        Ok(())
    }
}

/// Takes an entry back that was made just now and cannot be looked at. The lock of names is held,
/// so that it is the one that was made, unless another program changes the directory at that
/// moment.
fn unmake(dir: &Dir, name: &str, how: AtFlags) {
    if let Err(errno) = rustix::fs::unlinkat(dir, name, how) {
        log::warn!("{name}: made, could not be looked at, and stays: {errno}");
    }
}

/// The entry `name`, if it is the file `expect`.
fn expected(dir: &Dir, name: &str, expect: FileId) -> Result<Stat, StoreError> {
    let stat = Stat::at(dir, name)?;
    if stat.id != expect {
        return Err(StoreError::Replaced);
    }
    Ok(stat)
}
