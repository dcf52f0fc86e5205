//! Walking and removing whole directory trees on descriptors.
//!
//! Decides how a tree is walked safely: no symbolic link is followed, nothing outside the root is
//! reached, and the number of open descriptors does not grow with the depth. Each directory is
//! opened again from the root, name by name; that costs one `openat` a level, and a directory
//! moved away meanwhile is simply not found.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::disk::error::{StoreError, doing};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory at `path`; the last component may be a symbolic link, as the user gave it.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(doing("opening a directory"))
}

/// Opens the entry `name` of `dir` for reading, without touching its access time where that is
/// allowed, and without following or waiting for anything.
pub(crate) fn open_entry(dir: impl AsFd, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may leave the access time alone.
        Err(Errno::PERM) => rustix::fs::openat(&dir, name, flags, Mode::empty()),
        answer => answer,
    }
}

/// Opens the directory at `path` below `root`, name by name.
pub(crate) fn descend(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut dir = open_entry(root, c".", DIRECTORY)?;
    for name in path {
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        dir = open_entry(dir, &name, DIRECTORY)?;
    }
    Ok(dir)
}

/// The entries of an open directory, without `.` and `..`.
pub(crate) fn entries(
    dir: impl AsFd,
) -> Result<impl Iterator<Item = Result<CString, StoreError>>, StoreError> {
    let listing = descend(dir, Path::new("")).and_then(Dir::new);
    let listing = listing.map_err(doing("listing a directory"))?;
    Ok(listing.filter_map(|entry| match entry {
        Ok(entry) if entry.file_name() == c"." || entry.file_name() == c".." => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(errno) => Some(Err(doing("listing a directory")(errno))),
    }))
}

/// The names in the directory `path` that are valid UTF-8; none if there is no such directory.
pub(crate) fn names(path: &Path) -> Result<Vec<String>, StoreError> {
    let dir = match open_root(path) {
        Err(StoreError::NotFound) => return Ok(Vec::new()),
        dir => dir?,
    };
    let mut found = Vec::new();
    for name in entries(&dir)? {
        found.extend(name?.into_string());
    }
    Ok(found)
}

/// The kind of the entry `name`; `None` if the entry is gone.
pub(crate) fn kind_at(dir: impl AsFd, name: &CStr) -> Result<Option<FileType>, StoreError> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(doing("reading attributes")(errno)),
    }
}

/// `path` with the entry `name` appended.
pub(crate) fn child(path: &Path, name: &CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}

/// Removes the entry `name` of `parent` with all below it; done if there is none. For folders of
/// our own: directories are made writable on the way, so that a copied mode cannot stop it.
pub(crate) fn remove(parent: impl AsFd, name: &str) -> Result<(), StoreError> {
    remove_until(parent, name, || false).map(drop)
}

/// As [`remove`], asking `stop` before each directory; false if it said so.
pub(crate) fn remove_until(
    parent: impl AsFd,
    name: &str,
    stop: impl Fn() -> bool,
) -> Result<bool, StoreError> {
    enum RemoveStep {
        Enter(PathBuf),
        Leave(PathBuf),
    }
    let mut steps = vec![RemoveStep::Enter(PathBuf::from(name))];
    while let Some(step) = steps.pop() {
        if stop() {
            return Ok(false);
        }
        match step {
            RemoveStep::Enter(path) => {
                let below = empty(&parent, &path)?;
                steps.push(RemoveStep::Leave(path));
                steps.extend(below.into_iter().map(RemoveStep::Enter));
            }
            RemoveStep::Leave(path) => unlink(&parent, &path, AtFlags::REMOVEDIR)?,
        }
    }
    Ok(true)
}

/// Unlinks all but the directories in `path`, which it returns.
fn empty(root: impl AsFd, path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if let Err(errno) = on_parent(&root, path, |dir, name| {
        rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty())
    }) && errno == Errno::NOENT
    {
        return Ok(Vec::new());
    }
    let dir = descend(&root, path).map_err(doing("opening a directory"))?;
    let mut below = Vec::new();
    for name in entries(&dir)? {
        let name = name?;
        if kind_at(&dir, &name)? == Some(FileType::Directory) {
            below.push(child(path, &name));
        } else {
            ignore_gone(rustix::fs::unlinkat(&dir, &*name, AtFlags::empty()))?;
        }
    }
    Ok(below)
}

fn unlink(root: impl AsFd, path: &Path, flags: AtFlags) -> Result<(), StoreError> {
    ignore_gone(on_parent(root, path, |dir, name| rustix::fs::unlinkat(dir, name, flags)))
}

fn ignore_gone(answer: Result<(), Errno>) -> Result<(), StoreError> {
    match answer {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(doing("removing a folder")(errno)),
    }
}

/// Calls `act` with the opened parent directory of `path` and its last name.
pub(crate) fn on_parent<T>(
    root: impl AsFd,
    path: &Path,
    act: impl FnOnce(&OwnedFd, &OsStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let parent = descend(root, path.parent().unwrap_or(Path::new("")))?;
    act(&parent, path.file_name().unwrap_or(OsStr::new(".")))
}
