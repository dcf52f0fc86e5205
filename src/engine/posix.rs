//! What the mount asks for and SMB does not know: permission bits and owners of new files,
//! truncation at the open and by name, symbolic links and special files, the file behind a path.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Gid, Mode, Uid};

use super::error::{Error, Result};
use super::open::Handle;
use super::share::{Attempt, Share};
use crate::core::{Access, Denial, Owner, ShareMode, SharePath};
use crate::store::{Found, Kind, OpenFor, Stat, data, proc_path};

/// Permission bits and owner of a file to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Creation {
    /// Permission bits, with the caller's umask taken out already.
    pub mode: u32,
    /// Whose it is.
    pub uid: u32,
    /// Its group, unless the directory hands its own down.
    pub gid: u32,
}

/// What POSIX adds to an open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PosixOpen {
    /// `O_TRUNC`: cut the file, in the same step, and leave its attributes alone. The request
    /// must ask for W.
    pub truncate: bool,
    /// For a file that is made.
    pub creation: Option<Creation>,
}

impl Share {
    /// Makes a directory.
    pub fn mkdir(&self, who: &Owner, path: &SharePath, creation: Creation) -> Result<Stat> {
        self.make_noted("mkdir", who, path, |path| {
            let made = self.dir.create_dir(path, creation.mode)?;
            self.own(path, made, creation)
        })
    }

    /// Makes a symbolic link with any target.
    pub fn symlink(
        &self,
        who: &Owner,
        path: &SharePath,
        target: &str,
        creation: Creation,
    ) -> Result<Stat> {
        self.make_noted("symlink", who, path, |path| {
            let made = self.dir.create_symlink(path, target)?;
            self.own(path, made, creation)
        })
    }

    /// Makes a FIFO or socket.
    pub fn mknod(
        &self,
        who: &Owner,
        path: &SharePath,
        kind: FileType,
        creation: Creation,
    ) -> Result<Stat> {
        self.make_noted("mknod", who, path, |path| {
            let made = self.dir.create_special(path, kind, creation.mode)?;
            self.own(path, made, creation)
        })
    }

    /// The target of a symbolic link.
    pub fn read_link(&self, path: &SharePath) -> Result<String> {
        let found = self.dir.lookup(path)?;
        Ok(self.dir.read_link(&found.path)?)
    }

    /// Cuts or grows a file by name: a momentary open with W that shares everything.
    pub fn truncate(&self, who: &Owner, path: &SharePath, size: u64) -> Result<Stat> {
        let answer = {
            let _names = self.names()?;
            self.with_name(path, |found, generation| match found {
                Ok(Found { path, stat }) => self.table.with(stat.id, |cell, latched| {
                    if !self.is_still(&path, stat.id, generation) {
                        return Attempt::Again;
                    }
                    let mut cut = || {
                        if stat.kind == Kind::Directory {
                            return Err(Denial::IsDirectory.into());
                        }
                        latched.state.check_not_pending(&path)?;
                        if self.is_read_only(&path, stat.id)? {
                            return Err(Denial::ReadOnly.into());
                        }
                        latched.state.check_access(Access::W, ShareMode::RWD)?;
                        let fd = self.dir.open_file(&path, OpenFor::Write)?;
                        let _writing = cell.data.write().expect("nothing panics as bytes move");
                        data::set_len(&fd, size)?;
                        Ok(Stat::of(&fd)?)
                    };
                    Attempt::Done(cut())
                }),
                Err(error) => Attempt::Done(Err(error.into())),
            })
        };
        self.note_refusal("truncate", path, who, answer)
    }

    /// The file behind a path, in any spelling, for what takes part in no rule (permission bits,
    /// times, extended attributes) and for the kernel's own reads and writes.
    pub fn backing(&self, path: &SharePath, how: OpenFor) -> Result<OwnedFd> {
        if let Ok(fd) = self.dir.open_file(path, how) {
            return Ok(fd);
        }
        let found = self.dir.lookup(path)?;
        Ok(self.dir.open_file(&found.path, how)?)
    }

    /// The file that a handle is open on, by whatever name it has now.
    pub fn backing_of(&self, handle: &Handle, how: OpenFor) -> Result<OwnedFd> {
        // Under both locks the name stays the file's, unless somebody takes it away beside us.
        let _names = self.names()?;
        self.latched(handle, |_, path| {
            let fd = self.dir.open_file(path, how)?;
            if Stat::of(&fd)?.id != handle.file() {
                return Err(Denial::NotFound.into());
            }
            Ok(fd)
        })
    }

    /// An error where the backing directory is read-only: for a front end whose kernel opens the
    /// file itself.
    pub fn check_writable(&self) -> Result<()> {
        Ok(self.dir.check_writable()?)
    }

    fn make_noted(
        &self,
        operation: &'static str,
        who: &Owner,
        path: &SharePath,
        make: impl FnOnce(&SharePath) -> Result<Stat>,
    ) -> Result<Stat> {
        let answer = {
            let _names = self.names()?;
            self.make_entry(path, make, |_, stat| Ok(stat))
        };
        self.note_refusal(operation, path, who, answer)
    }

    /// Gives a new file, which is as `new` says, its owner and its permission bits, whatever the
    /// umask of this process.
    pub(super) fn own(&self, path: &SharePath, new: Stat, creation: Creation) -> Result<Stat> {
        // The common case costs nothing: a file that is as its caller wants it. Below a directory
        // that hands its group down it then has that very group.
        let as_wanted = (new.uid, new.gid) == (creation.uid, creation.gid)
            && new.mode & 0o7777 == creation.mode & 0o7777;
        if as_wanted && new.kind == Kind::File {
            return Ok(new);
        }
        let parent = self.dir.stat(&path.parent().unwrap_or_default())?;
        let inherits = parent.mode & SET_GROUP_ID != 0;
        let gid = if inherits { parent.gid } else { creation.gid };
        let mut mode = creation.mode & 0o7777;
        if inherits && new.kind == Kind::Directory {
            mode |= SET_GROUP_ID;
        }
        let other_owner = (new.uid, new.gid) != (creation.uid, gid);
        let other_mode = new.kind != Kind::Symlink && new.mode & 0o7777 != mode;
        if !other_owner && !other_mode {
            return Ok(new);
        }
        let fd = self.dir.open_file(path, OpenFor::Path)?;
        if other_owner {
            let (uid, gid) = (Uid::from_raw(creation.uid), Gid::from_raw(gid));
            let empty = rustix::fs::AtFlags::EMPTY_PATH;
            match rustix::fs::chownat(&fd, "", Some(uid), Some(gid), empty) {
                // Without the privilege it stays this process's, as any program's file would.
                Ok(()) | Err(rustix::io::Errno::PERM) => {}
                Err(errno) => return Err(store_error("changing the owner", errno)),
            }
        }
        // After the owner: changing that takes set-id bits away.
        if new.kind != Kind::Symlink && (other_mode || mode & SET_ID != 0) {
            rustix::fs::chmod(proc_path(&fd), Mode::from_raw_mode(mode))
                .map_err(|errno| store_error("setting permission bits", errno))?;
        }
        Ok(Stat::of(&fd)?)
    }
}

const SET_ID: u32 = 0o6000;
const SET_GROUP_ID: u32 = 0o2000;

fn store_error(what: &'static str, errno: rustix::io::Errno) -> Error {
    crate::store::StoreError::from_errno(what, errno).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::Client;
    use crate::engine::{EventLog, ShareOptions, SystemClock, Unlinked};

    #[test]
    fn links_and_sockets_can_be_replaced_and_removed_though_they_cannot_be_read() {
        let place = tempfile::tempdir().unwrap();
        let (root, state) = (place.path().join("root"), place.path().join("state"));
        std::fs::create_dir(&root).unwrap();
        let (options, clock) = (ShareOptions::default(), Arc::new(SystemClock));
        let events = Arc::new(EventLog::default());
        let share = Share::open_directory("s", &root, &state, options, clock, events).unwrap();
        let client = Arc::new(Client { session: 1, name: "test".into() });
        let who = Owner { client, pid: 1, program: None };
        let path = |path: &str| SharePath::new(path).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&root).unwrap());
        let creation = Creation { mode: 0o644, uid: owner, gid: owner };

        share.symlink(&who, &path("old"), "nowhere", creation).unwrap();
        share.symlink(&who, &path("new"), "elsewhere", creation).unwrap();
        share.rename(&who, &path("new"), &path("old"), true).unwrap();
        assert_eq!(share.read_link(&path("old")).unwrap(), "elsewhere");
        share.mknod(&who, &path("socket"), FileType::Socket, creation).unwrap();
        for name in ["old", "socket"] {
            assert_eq!(share.unlink(&who, &path(name)).unwrap(), Unlinked::Removed);
        }
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    }
}
