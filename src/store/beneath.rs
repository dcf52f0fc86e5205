//! Paths to descriptors, never outside the share's root.
//!
//! The one place that resolves a path of more than one component: `openat2` with
//! `RESOLVE_BENEATH`, so that a link on the way is followed only while it stays inside. Decides
//! what a failed resolution means; spelling is left to [`super::share_dir`].

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::Errno;

use super::error::{StoreError, doing};
use super::stat::Stat;
use crate::core::FileId;

const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The kernel answers `EAGAIN` when a rename elsewhere raced with a `..` in a link's target, and
/// asks to try again.
const RESOLVE_TRIES: u32 = 64;

/// The root of a share; all paths start here.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    id: FileId,
}

/// A directory: the root itself, which needs no opening, or one below.
#[derive(Debug)]
pub(super) enum Dir<'root> {
    Root(&'root Root),
    Below(OwnedFd),
}

impl Dir<'_> {
    /// Which directory it is.
    pub(super) fn id(&self) -> Result<FileId, StoreError> {
        match self {
            Self::Root(root) => Ok(root.id),
            Self::Below(fd) => Ok(Stat::of(fd)?.id),
        }
    }
}

impl AsFd for Dir<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(root) => root.fd.as_fd(),
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

impl Root {
    pub(super) fn open(root: &std::path::Path) -> Result<Self, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(root, flags, Mode::empty())
            .map_err(doing("opening the share's directory"))?;
        let id = Stat::of(&fd)?.id;
        Ok(Self { fd, id })
    }

    /// [`StoreError::ReadOnly`] where nothing can be written, by whomever.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        let stat = rustix::fs::fstatvfs(&self.fd).map_err(doing("asking for the mount's flags"))?;
        if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(StoreError::ReadOnly);
        }
        Ok(())
    }

    /// Opens `path` (empty for the root) with `flags`.
    pub(super) fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { "." } else { path };
        let flags = flags | OFlags::CLOEXEC;
        let mut tries = 1;
        loop {
            match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), INSIDE) {
                Err(Errno::AGAIN | Errno::INTR) if tries < RESOLVE_TRIES => tries += 1,
                answer => return answer,
            }
        }
    }

    /// The directory `path`, for use as the start of further calls.
    pub(super) fn dir(&self, path: &str) -> Result<Dir<'_>, Errno> {
        if path.is_empty() {
            return Ok(Dir::Root(self));
        }
        self.open_at(path, OFlags::PATH | OFlags::DIRECTORY).map(Dir::Below)
    }

    /// The directory `path` as the parent of something.
    pub(super) fn parent(&self, path: &str) -> Result<Dir<'_>, StoreError> {
        self.dir(path).map_err(|errno| {
            if is_miss(errno) {
                StoreError::ParentNotFound
            } else {
                StoreError::from_errno("opening a directory", errno)
            }
        })
    }

    /// Attributes of `path`, a link at its end not followed; none if there is nothing.
    pub(super) fn stat(&self, path: &str) -> Result<Option<Stat>, StoreError> {
        let stat = if path.is_empty() {
            Stat::of(&self.fd)
        } else if path.contains('/') {
            match self.open_at(path, OFlags::PATH | OFlags::NOFOLLOW) {
                Ok(fd) => Stat::of(fd),
                Err(errno) if is_miss(errno) => return Ok(None),
                Err(errno) => Err(StoreError::from_errno("reading attributes", errno)),
            }
        } else {
            Stat::at(&self.fd, path)
        };
        match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Which part of `path`, where nothing was found, is missing.
    pub(super) fn missing(&self, path: &str) -> StoreError {
        self.refusal(path, "opening a directory", Errno::NOENT)
    }

    /// What it means that `path` could not be opened: is it the name or its parent that is
    /// missing? A path that leads outside is as good as missing.
    pub(super) fn refusal(&self, path: &str, what: &'static str, errno: Errno) -> StoreError {
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

/// True if a resolution that failed so found nothing inside the share: a component is missing, is
/// no directory, leads outside (`EXDEV`) or in circles (`ELOOP`).
fn is_miss(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP)
}
