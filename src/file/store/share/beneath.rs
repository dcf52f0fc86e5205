//! Opens paths within a share, never outside its root.
//!
//! The one place that resolves a path of more than one component: `openat2` with
//! `RESOLVE_BENEATH`, and no link on the way is followed: rules know a directory by one path.
//! Decides what a failed resolution means; spelling is left to [`super::share_dir`].

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::{Errno, retry_on_intr};

use super::kept_dirs::{KeptDir, KeptDirs, KnownDir};
use super::stat::{Births, Stat};
use crate::disk::error::{StoreError, doing, failing};
use crate::rules::FileId;

const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// The most roots of shares that this process keeps open; the one opened first is closed for the
/// next, and opened again when its share is used. Thousands of idle shares cost no descriptors.
const ROOTS_OPEN_MAX: usize = 64;

/// The roots that are open, in the order of their opening.
static OPEN_ROOTS: Mutex<VecDeque<Weak<RootDescriptor>>> = Mutex::new(VecDeque::new());
/// How long a directory that could be written is taken to be writable.
const WRITABLE_FOR: Duration = Duration::from_millis(100);
/// The longest path a system call takes, without the zero at its end.
const PATH_BYTES_MAX: usize = 4095;

/// The root of a share; all paths start here.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    id: FileId,
    births: Births,
    descriptor: Arc<RootDescriptor>,
    kept: KeptDirs,
    /// Until when the directory is taken to be writable, since it was a moment ago.
    writable_until: Mutex<Option<Instant>>,
}

/// The descriptor of a root, while it is open.
#[derive(Debug, Default)]
struct RootDescriptor(RwLock<Option<Arc<OwnedFd>>>);

impl RootDescriptor {
    fn get(&self) -> Option<Arc<OwnedFd>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a descriptor until others need its place.
    fn keep(self: &Arc<Self>, fd: Arc<OwnedFd>) {
        let before = self.0.write().unwrap_or_else(PoisonError::into_inner).replace(fd);
        if before.is_some() {
            return; // Another thread opened it too: it is in the list.
        }
        let mut open = OPEN_ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back(Arc::downgrade(self));
        while open.len() > ROOTS_OPEN_MAX {
            // A share that is gone has closed its own. A caller that uses the descriptor just now
            // has a reference to it.
            if let Some(oldest) = open.pop_front().and_then(|root| root.upgrade()) {
                *oldest.0.write().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }
}

/// An open directory: the root itself, or one below.
#[derive(Debug)]
pub(crate) struct Dir(KeptDir);

impl Dir {
    /// Which directory it is.
    pub(crate) fn id(&self) -> FileId {
        self.0.id
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

impl Root {
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        let what = "opening the share's directory";
        let path = std::path::absolute(root).map_err(failing(what))?;
        let fd = open_root(&path).map_err(doing(what))?;
        let births = Births::learn(&fd)?;
        let id = Stat::of(&fd)?.id;
        let descriptor = Arc::<RootDescriptor>::default();
        descriptor.keep(Arc::new(fd));
        let kept = KeptDirs::new();
        Ok(Self { path, id, births, descriptor, kept, writable_until: Mutex::default() })
    }

    /// The root, opened if it is not. `ENOENT` if another directory has its name by now.
    fn fd(&self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(fd) = self.descriptor.get() {
            return Ok(fd);
        }
        let fd = Arc::new(open_root(&self.path)?);
        if !Stat::of(&fd).is_ok_and(|stat| stat.id == self.id) {
            return Err(Errno::NOENT);
        }
        self.descriptor.keep(Arc::clone(&fd));
        Ok(fd)
    }

    /// How reliably the birth times of the file system tell files apart.
    pub(crate) fn births(&self) -> Births {
        self.births
    }

    /// [`StoreError::ReadOnly`] where nothing can be written, by whomever.
    /// Asked again after [`WRITABLE_FOR`]: every open for writing wants to know.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        let now = Instant::now();
        let found = *self.writable_until.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_some_and(|until| now < until) {
            return Ok(());
        }
        let stat = self.fd().and_then(rustix::fs::fstatvfs);
        let stat = stat.map_err(doing("asking for the mount's flags"))?;
        if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(StoreError::ReadOnly);
        }
        *self.writable_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(now + WRITABLE_FOR);
        Ok(())
    }

    /// Opens `path` (empty for the root) with `flags`, a link at its end not followed.
    pub(crate) fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW;
        match path.rsplit_once('/') {
            None if path.is_empty() => open_below(self.fd()?.as_fd(), ".", flags),
            None => open_below(self.fd()?.as_fd(), path, flags),
            Some((parent, name)) => open_below(self.dir(parent)?.as_fd(), name, flags),
        }
    }

    /// The directory `path`, for use as the start of further calls.
    pub(crate) fn dir(&self, path: &str) -> Result<Dir, Errno> {
        const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
        if path.is_empty() {
            return Ok(Dir(KeptDir { fd: self.fd()?, id: self.id }));
        }
        let root = self.fd()?;
        let generation = match self.kept.get(path) {
            KnownDir::Fresh(dir) => return Ok(Dir(dir)),
            KnownDir::Check(dir, generation) if leads_to(&root, path, dir.id) => {
                self.kept.keep(path, dir.clone(), generation);
                return Ok(Dir(dir));
            }
            KnownDir::Check(_, generation) | KnownDir::Unknown(generation) => generation,
        };
        let fd = open_below(root.as_fd(), path, FLAGS)?;
        let id = Stat::of(&fd).map_err(|_| Errno::NOENT)?.id;
        let dir = KeptDir { fd: Arc::new(fd), id };
        // Without birth times a new directory may have the identity of a removed one.
        if self.births == Births::Kept {
            self.kept.keep(path, dir.clone(), generation);
        }
        Ok(Dir(dir))
    }

    /// The identity of the directory `path`, if it is known without a look at the disk.
    pub(crate) fn known_dir(&self, path: &str) -> Option<FileId> {
        if path.is_empty() {
            return Some(self.id);
        }
        match self.kept.get(path) {
            KnownDir::Fresh(dir) => Some(dir.id),
            KnownDir::Check(..) | KnownDir::Unknown(_) => None,
        }
    }

    /// Forgets the open directories at `path` and below it, after `path` was moved, removed or
    /// given other permissions.
    pub(crate) fn forget(&self, path: &str) {
        self.kept.forget(path);
    }

    /// The directory `path` as the parent of something.
    pub(crate) fn parent(&self, path: &str) -> Result<Dir, StoreError> {
        self.dir(path).map_err(|errno| {
            if is_miss(errno) {
                StoreError::ParentNotFound
            } else {
                StoreError::from_errno("opening a directory", errno)
            }
        })
    }

    /// Attributes of `path`, a link at its end not followed; none if there is nothing.
    pub(crate) fn stat(&self, path: &str) -> Result<Option<Stat>, StoreError> {
        let stat = match path.rsplit_once('/') {
            None => {
                let root = self.fd().map_err(doing("opening the share's directory"))?;
                if path.is_empty() { Stat::of(root) } else { Stat::at(root, path) }
            }
            Some((parent, name)) => match self.dir(parent) {
                Ok(dir) => Stat::at(dir, name),
                Err(errno) if is_miss(errno) => return Ok(None),
                Err(errno) => Err(StoreError::from_errno("reading attributes", errno)),
            },
        };
        match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Which part of `path`, where nothing was found, is missing.
    pub(crate) fn missing(&self, path: &str) -> StoreError {
        self.refusal(path, "opening a directory", Errno::NOENT)
    }

    /// The error for a path that could not be opened: the name is missing, or its parent is. A path
    /// that leads outside the share counts as missing.
    pub(crate) fn refusal(&self, path: &str, what: &'static str, errno: Errno) -> StoreError {
        if !is_miss(errno) {
            return StoreError::from_errno(what, errno);
        }
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        match self.parent(parent) {
            Err(error) => error,
            Ok(_) if errno == Errno::NOTDIR => StoreError::NotADirectory,
            Ok(_) => StoreError::NotFound,
        }
    }
}

/// True if `path` is one name, and that of the directory `id`. `statx` follows links in the middle
/// of a path, also those that lead outside: a path of several names is to be opened again instead.
fn leads_to(root: &OwnedFd, path: &str, id: FileId) -> bool {
    !path.contains('/') && Stat::at(root, path).is_ok_and(|stat| stat.id == id)
}

fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Opens a path below `dir`. One that is longer than a system call takes is opened in parts, as
/// a program reaches it that walks down: trees that deep can be made, also by moving one.
fn open_below(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    if path.len() > PATH_BYTES_MAX {
        let most = &path.as_bytes()[..PATH_BYTES_MAX];
        // A slash is never part of another character.
        let Some(cut) = most.iter().rposition(|byte| *byte == b'/') else {
            return Err(Errno::NAMETOOLONG);
        };
        let first = open_below(dir, &path[..cut], OFlags::PATH | OFlags::DIRECTORY)?;
        return open_below(first.as_fd(), &path[cut + 1..], flags);
    }
    let flags = flags | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat2(dir, path, flags, Mode::empty(), INSIDE))
}

/// True if a resolution that failed so found nothing inside the share: a component is missing, is
/// no directory, is a link (`ELOOP`) or leads outside (`EXDEV`).
fn is_miss(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP)
}
