//! The mount's operations that SMB does not have: permission bits and owners of new files,
//! truncation at the open and by name, symbolic links and special files, descriptors of files.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FileType, Gid, Mode, Uid};

use super::super::error::{FileError, Result};
use super::super::share::{Attempt, Share, Target};
use super::io::BeforeResize;
use super::open::{Handle, OpenedFile};
use super::table::Latched;
use crate::file::rules::create::{CreateAction, OpenRequest};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::store::share::{FileKind, FoundFile, OpenFor, Stat, data, proc_path};
use crate::rules::{Context, FileId};

/// Permission bits and owner of a file to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Creation {
    /// Permission bits, with the caller's umask taken out already.
    pub mode: u32,
    pub uid: u32,
    /// Its group, unless the directory has the set-group-ID bit.
    pub gid: u32,
}

/// The options of an open that only the mount has.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixOpen {
    /// `O_TRUNC`: cut the file, in the same step, and leave its attributes alone. The request
    /// must ask for W.
    pub truncate: bool,
    /// Cut only this file: the caller's right to write was checked for no other.
    pub cuts_only: Option<FileId>,
    /// The step before the file is cut, once no rule refuses the open any more. If the step fails,
    /// the file is not cut and the open fails.
    pub before_cut: Option<fn(&OwnedFd) -> Result<()>>,
    /// For a file that is made.
    pub creation: Option<Creation>,
    /// No flush will announce the release: it counts as on its way from the grant on.
    pub without_flush: bool,
    /// The kernel may look the name up again: a missing file is then not noted as a refusal.
    pub by_lost_name: bool,
}

impl Share {
    pub fn mkdir(&self, cx: &Context, path: &SharePath, creation: Creation) -> Result<Stat> {
        self.make_noted("mkdir", cx, path, |path| {
            let made = self.disk().create_dir(path, creation.mode)?;
            self.own(path, made, creation).inspect_err(|_| self.unmake(path, made))
        })
    }

    /// Makes a symbolic link with any target.
    pub fn symlink(
        &self,
        cx: &Context,
        path: &SharePath,
        target: &str,
        creation: Creation,
    ) -> Result<Stat> {
        self.make_noted("symlink", cx, path, |path| self.make_symlink(path, target, creation))
    }

    /// Makes a symbolic link under the lock of its directory.
    pub(crate) fn make_symlink(
        &self,
        path: &SharePath,
        target: &str,
        creation: Creation,
    ) -> Result<Stat> {
        let made = self.disk().create_symlink(path, target)?;
        self.own(path, made, creation).inspect_err(|_| self.unmake(path, made))
    }

    /// Makes a FIFO or socket.
    pub fn mknod(
        &self,
        cx: &Context,
        path: &SharePath,
        kind: FileType,
        creation: Creation,
    ) -> Result<Stat> {
        self.make_noted("mknod", cx, path, |path| {
            let made = self.disk().create_special(path, kind, creation.mode)?;
            self.own(path, made, creation).inspect_err(|_| self.unmake(path, made))
        })
    }

    /// The target of a symbolic link.
    pub fn read_link(&self, path: &SharePath) -> Result<String> {
        let found = self.disk().lookup(path)?;
        Ok(self.disk().read_link(&found.path)?)
    }

    /// `truncate(2)` by name, after the step `before`: a momentary open with W that shares
    /// everything.
    pub fn mount_truncate(
        &self,
        attempt: Attempt,
        cx: &Context,
        path: &SharePath,
        size: u64,
        before: BeforeResize<'_>,
    ) -> Option<Result<()>> {
        let wants = (Access::W, ShareMode::RWD);
        let answer = self.names().and_then(|_names| {
            self.at_file(path, |FoundFile { path, stat }, _, latched| {
                if stat.kind == FileKind::Directory {
                    return Err(Denial::IsDirectory.into());
                }
                latched.state.check_not_pending(path)?;
                if self.is_read_only(path, stat.id)? {
                    return Err(Denial::ReadOnly.into());
                }
                latched.state.check_access(wants.0, wants.1)?;
                let fd = self.disk().open_file(path, OpenFor::WriteOnly)?;
                let _writing = self.table().lock_to_write(stat.id);
                before(&fd)?;
                Ok(data::set_len(&fd, size)?)
            })
        });
        let told = ("truncate", path, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[path]), wants), answer)
    }

    /// A descriptor of the file of a path, in any spelling, for calls that no rule applies to
    /// (permission bits, times, extended attributes) and for the kernel's own reads and writes.
    pub fn backing(&self, path: &SharePath, how: OpenFor) -> Result<OwnedFd> {
        if let Ok(fd) = self.disk().open_file(path, how) {
            return Ok(fd);
        }
        let found = self.disk().lookup(path)?;
        Ok(self.disk().open_file(&found.path, how)?)
    }

    /// A descriptor of the handle's file, by the name that the file has now, or by the one that was
    /// kept when its name went.
    pub fn backing_of(&self, handle: &Handle, how: OpenFor) -> Result<OwnedFd> {
        // Under both locks the name stays the file's, unless it is changed directly on the disk.
        let _names = self.names()?;
        self.latched(handle, |latched, path| {
            if let Some(kept) = &latched.nameless {
                return Ok(how.open_again(kept)?);
            }
            let fd = self.disk().open_file(path, how)?;
            if Stat::of(&fd)?.id != handle.file() {
                return Err(Denial::NotFound.into());
            }
            Ok(fd)
        })
    }

    /// Before a name is removed while it has opens: keeps a descriptor of the file, through which
    /// the opens keep working. Opens of directories have their own descriptor.
    pub(crate) fn keep_nameless(&self, latched: &mut Latched, path: &SharePath, directory: bool) {
        if directory || latched.nameless.is_some() || !latched.state.is_open_by(path) {
            return;
        }
        let opened = self.disk().open_file(path, OpenFor::Write);
        match opened.or_else(|_| self.disk().open_file(path, OpenFor::Read)) {
            Ok(fd) => latched.nameless = Some(Arc::new(fd)),
            Err(error) => log::warn!("{path}: its name goes while it is open: {error}"),
        }
    }

    /// The descriptor of a file that lost a name while it was open.
    pub fn nameless(&self, file: FileId) -> Option<Arc<OwnedFd>> {
        self.table().get(file)?.latch().nameless.clone()
    }

    /// Opens the file of an open again, as programs can through `/proc/self/fd`, whether or not the
    /// name of that open still exists. `stat` are the attributes of the file.
    pub fn open_again(
        &self,
        cx: &Context,
        handle: &Handle,
        request: &OpenRequest,
        stat: Stat,
    ) -> Result<OpenedFile> {
        let _names = self.names()?;
        let (path, answer) = self.latched(handle, |latched, path| {
            let grant = self.grant(cx);
            let id = grant.id;
            let opened = latched.state.open_again((handle.slot(), handle.id()), request, grant);
            let opened = opened.map(|slot| {
                self.note_grant(cx, (stat.id, path), id, request);
                let handle = Handle::new(id, slot, handle.cell());
                let (action, path) = (CreateAction::Opened, path.clone());
                OpenedFile { handle, action, path, stat, made: None }
            });
            Ok((path.clone(), opened))
        })?;
        self.note_refusal("open", &path, cx.owner(), answer.map_err(FileError::from))
    }

    /// An error where the backing directory is read-only: for a front end whose kernel opens the
    /// file itself.
    pub fn check_writable(&self) -> Result<()> {
        Ok(self.disk().check_writable()?)
    }

    fn make_noted(
        &self,
        operation: &'static str,
        cx: &Context,
        path: &SharePath,
        make: impl FnOnce(&SharePath) -> Result<Stat>,
    ) -> Result<Stat> {
        let answer = {
            let _names = self.names()?;
            self.make_entry(path, make, |_, stat| Ok(stat))
        };
        self.note_refusal(operation, path, cx.owner(), answer)
    }

    /// Gives a new file, which is as `new` says, its owner and its permission bits, whatever the
    /// umask of this process.
    pub(crate) fn own(&self, path: &SharePath, new: Stat, creation: Creation) -> Result<Stat> {
        // The common case costs nothing: a file that is as its caller wants it. Below a directory
        // that hands its group down it then has that very group.
        let as_wanted = (new.uid, new.gid) == (creation.uid, creation.gid)
            && new.mode & 0o7777 == creation.mode & 0o7777;
        if as_wanted && new.kind == FileKind::File {
            return Ok(new);
        }
        let parent = self.disk().stat(&path.parent().unwrap_or_default())?;
        let inherits = parent.mode & SET_GROUP_ID != 0;
        let gid = if inherits { parent.gid } else { creation.gid };
        let mut mode = creation.mode & 0o7777;
        if inherits && new.kind == FileKind::Directory {
            mode |= SET_GROUP_ID;
        }
        let other_owner = (new.uid, new.gid) != (creation.uid, gid);
        let other_mode = new.kind != FileKind::Symlink && new.mode & 0o7777 != mode;
        if !other_owner && !other_mode {
            return Ok(new);
        }
        let fd = self.disk().open_file(path, OpenFor::Path)?;
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
        if new.kind != FileKind::Symlink && (other_mode || mode & SET_ID != 0) {
            rustix::fs::chmod(proc_path(&fd), Mode::from_raw_mode(mode))
                .map_err(|errno| store_error("setting permission bits", errno))?;
        }
        Ok(Stat::of(&fd)?)
    }
}

const SET_ID: u32 = 0o6000;
const SET_GROUP_ID: u32 = 0o2000;

fn store_error(what: &'static str, errno: rustix::io::Errno) -> FileError {
    crate::disk::StoreError::from_errno(what, errno).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::file::rules::create::OpenRequest;
    use crate::file::service::{Attempt, MoveHow, NameRules, ShareOptions, Unlinked};
    use crate::journal::AccountJournal;
    use crate::rules::{Client, Owner};

    fn share_in(place: &std::path::Path) -> (Share, Context) {
        let (root, state) = (place.join("root"), place.join("state"));
        std::fs::create_dir(&root).unwrap();
        let (options, clock) = (ShareOptions::default(), Arc::new(SystemClock));
        let events = AccountJournal::default();
        let share = Share::open_directory("s", &root, &state, options, clock, events).unwrap();
        let client = Arc::new(Client { session: 1, name: "test".into() });
        let who = Owner { client, pid: 1, program: None };
        let cx = Context::local(share.now(), who, "test");
        (share, cx)
    }

    #[test]
    fn an_open_that_cuts_one_file_only_cuts_no_other_that_has_its_name() {
        let place = tempfile::tempdir().unwrap();
        let (share, cx) = share_in(place.path());
        let (meant, other) = (place.path().join("root/f"), place.path().join("root/g"));
        std::fs::write(&meant, "meant").unwrap();
        std::fs::write(&other, "other").unwrap();
        let path = SharePath::new("f").unwrap();
        let file = share.lookup(&path).unwrap().stat.id;
        let request = OpenRequest::plain(Access::W, ShareMode::RWD);
        let posix = PosixOpen { truncate: true, cuts_only: Some(file), ..PosixOpen::default() };
        let open = || share.open_unnoted(&cx, &path, &request, posix).unwrap();
        let opened = open();
        assert_eq!((opened.stat.size, std::fs::read(&meant).unwrap()), (0, Vec::new()));
        // By the descriptor that the open goes on with.
        assert!(opened.made.is_some());
        share.close(&opened.handle).unwrap();
        std::fs::rename(&other, &meant).unwrap();
        let opened = open();
        assert_ne!(opened.stat.id, file);
        assert_eq!(std::fs::read(&meant).unwrap(), b"other");
    }

    #[test]
    fn a_step_before_the_cut_sees_the_whole_file_and_may_prevent_the_cut() {
        let place = tempfile::tempdir().unwrap();
        let (share, cx) = share_in(place.path());
        let file = place.path().join("root/f");
        std::fs::write(&file, "bytes").unwrap();
        let path = SharePath::new("f").unwrap();
        let request = OpenRequest::plain(Access::W, ShareMode::RWD);
        let open = |before_cut: fn(&OwnedFd) -> Result<()>| {
            let before_cut = Some(before_cut);
            let posix = PosixOpen { truncate: true, before_cut, ..PosixOpen::default() };
            share.open_unnoted(&cx, &path, &request, posix)
        };
        assert!(open(|_| Err(Denial::ReadOnly.into())).is_err());
        assert_eq!((std::fs::read(&file).unwrap(), share.files_in_use()), (b"bytes".to_vec(), 0));
        let opened = open(|fd| {
            assert_eq!(Stat::of(fd).unwrap().size, 5);
            Ok(())
        });
        share.close(&opened.unwrap().handle).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"");
    }

    #[test]
    fn links_and_sockets_can_be_replaced_and_removed_though_they_cannot_be_read() {
        let place = tempfile::tempdir().unwrap();
        let (share, cx) = share_in(place.path());
        let root = place.path().join("root");
        let path = |path: &str| SharePath::new(path).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&root).unwrap());
        let creation = Creation { mode: 0o644, uid: owner, gid: owner };

        share.symlink(&cx, &path("old"), "nowhere", creation).unwrap();
        share.symlink(&cx, &path("new"), "elsewhere", creation).unwrap();
        let (ends, how) = ((&path("new"), &path("old")), (MoveHow::Replace, NameRules::Nt));
        share.mount_rename(Attempt::Last, &cx, ends, how, &|| ()).unwrap().unwrap();
        assert_eq!(share.read_link(&path("old")).unwrap(), "elsewhere");
        share.mknod(&cx, &path("socket"), FileType::Socket, creation).unwrap();
        for name in ["old", "socket"] {
            let how = (false, NameRules::Nt);
            let removed = share.mount_remove(Attempt::Last, &cx, &path(name), how);
            assert_eq!(removed.unwrap().unwrap(), Unlinked::Removed);
        }
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    }
}
