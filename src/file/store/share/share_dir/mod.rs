//! The namespace of one share: a plain directory, its names in any case.
//!
//! Decides how a path finds its spelling on disk (case-insensitive and case-preserving, as the
//! service is) and what is missing when it does not. Changes of the namespace are in [`change`],
//! the bounds of the share in [`super::beneath`], names that were read before in
//! [`super::name_cache`]. Who may open or delete what is left to the rules.

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};

use super::beneath::{Dir, Root};
use super::kept_dirs::BELIEVED_FOR;
use super::listing::{self, ListedName};
use super::name_cache::NameCache;
use super::proc_path::proc_path;
use super::stat::{Births, Stat};
use crate::disk::error::StoreError;
use crate::file::rules::SharePath;
use crate::rules::FileId;

mod change;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_outside;

pub use change::RenameHow;

/// Whether `File` and `file` are one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// One name, as on the service.
    Insensitive,
    /// Two names, for people who serve a source tree.
    Sensitive,
}

/// The file or directory that a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundFile {
    /// The path as spelled on disk.
    pub path: SharePath,
    /// Kind, identity, size and times.
    pub stat: Stat,
}

/// The directory in which a name was looked up, and when.
#[derive(Debug)]
pub struct FoundPlace {
    dir: Dir,
    at: Instant,
}

impl FoundPlace {
    /// True if the look is so recent that the name is taken for what it was then. A change that is
    /// made beside this process is seen that much later.
    pub fn is_recent(&self) -> bool {
        self.at.elapsed() < BELIEVED_FOR
    }
}

/// The intended use of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenFor {
    /// Reading a file or a directory.
    Read,
    /// Reading and writing a file.
    Write,
    /// Writing a file that need not be readable.
    WriteOnly,
    /// Attributes, and as a place to start from.
    Path,
}

impl OpenFor {
    const fn flags(self) -> OFlags {
        match self {
            Self::Read => OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY),
            Self::Write => OFlags::RDWR.union(OFlags::NONBLOCK).union(OFlags::NOCTTY),
            Self::WriteOnly => OFlags::WRONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY),
            Self::Path => OFlags::PATH,
        }
    }

    /// Opens the file of a descriptor once more, whether or not it still has a name.
    pub fn open_again(self, file: impl AsFd) -> Result<OwnedFd, StoreError> {
        let flags = self.flags() | OFlags::CLOEXEC;
        rustix::fs::open(proc_path(file), flags, Mode::empty())
            .map_err(|errno| StoreError::Io { what: "opening again", source: errno.into() })
    }
}

#[derive(Debug)]
pub struct OpenDirectory(OwnedFd);

impl OpenDirectory {
    /// The directory of a descriptor that may read it.
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Attributes of the directory itself.
    pub fn own(&self) -> Result<Stat, StoreError> {
        Stat::of(&self.0)
    }

    /// Attributes of an entry by its exact name.
    pub fn stat(&self, name: &str) -> Result<Stat, StoreError> {
        Stat::at(&self.0, name)
    }
}

/// Directories share this many locks for making names.
const NAMING_LOCKS: usize = 64;

/// The directory behind a share.
#[derive(Debug)]
pub struct ShareDir {
    root: Root,
    root_path: PathBuf,
    case: Case,
    names: NameCache,
    /// Held from "no spelling of it exists" until the name is made, by the directory's identity:
    /// two of us cannot make `a` and `A` at once.
    naming: [Mutex<()>; NAMING_LOCKS],
}

impl ShareDir {
    /// Serves the directory `root` as it is; nothing in it is changed.
    pub fn open(root: &Path, case: Case) -> Result<Self, StoreError> {
        Ok(Self {
            root: Root::open(root)?,
            root_path: root.to_owned(),
            case,
            names: NameCache::new(),
            naming: std::array::from_fn(|_| Mutex::default()),
        })
    }

    /// Where the share lies, as it was given.
    pub fn root_path(&self) -> &Path {
        &self.root_path
    }

    /// How reliably the birth times of the file system tell files apart.
    pub fn births(&self) -> Births {
        self.root.births()
    }

    /// [`StoreError::ReadOnly`] where the directory is mounted so.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        self.root.check_writable()
    }

    /// Finds a path in any spelling; a symbolic link at its end is not followed.
    ///
    /// An exact spelling wins; of several others, the first in byte order. `NotFound` if only the
    /// last component is missing, `ParentNotFound` if an earlier one is, or is no directory.
    pub fn lookup(&self, path: &SharePath) -> Result<FoundFile, StoreError> {
        self.lookup_at(path).map(|(found, _)| found)
    }

    /// As [`ShareDir::lookup`], with the place for [`ShareDir::remove_found`]. The root has none.
    pub fn lookup_at(
        &self,
        path: &SharePath,
    ) -> Result<(FoundFile, Option<FoundPlace>), StoreError> {
        let Some((parent, name)) = path.split() else {
            return Ok((FoundFile { path: path.clone(), stat: self.stat(path)? }, None));
        };
        let (parent, dir) = self.respell_dir(parent)?;
        let at = Instant::now();
        let (name, stat) = self.entry(&dir, name)?.ok_or(StoreError::NotFound)?;
        let path = match (&parent, &name) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => path.clone(),
            _ => joined(&parent, &name)?,
        };
        Ok((FoundFile { path, stat }, Some(FoundPlace { dir, at })))
    }

    /// The directory that an exact path leads to, by no link, if that was found out a moment ago. A
    /// change that is made beside this process is seen that much later.
    pub fn known_dir(&self, path: &SharePath) -> Option<FileId> {
        self.root.known_dir(path.as_str())
    }

    /// Attributes of an exact path; a symbolic link at its end is not followed.
    pub fn stat(&self, path: &SharePath) -> Result<Stat, StoreError> {
        self.root.stat(path.as_str())?.ok_or_else(|| self.root.missing(path.as_str()))
    }

    /// Opens an exact path; a symbolic link at its end is not followed (`NotFound`, but for
    /// [`OpenFor::Path`]). Never waits for the other end of a FIFO.
    pub fn open_file(&self, path: &SharePath, how: OpenFor) -> Result<OwnedFd, StoreError> {
        self.root
            .open_at(path.as_str(), how.flags() | OFlags::NOFOLLOW)
            .map_err(|errno| self.root.refusal(path.as_str(), "opening a file", errno))
    }

    /// Calls `with` with a path that names the entry `path` itself, for system calls that take no
    /// descriptor of a parent. They must not follow a link at its end. The root has no such path.
    pub fn at_place<T>(
        &self,
        path: &SharePath,
        with: impl FnOnce(&str) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let (parent, name) = path.split()?;
        let named = |dir: Dir| with(&format!("{}/{name}", proc_path(&dir)));
        Some(self.root.parent(parent).and_then(named))
    }

    /// To be called after the permissions of a directory were changed: what it permits is asked
    /// again.
    pub fn permissions_changed(&self, dir: &SharePath) {
        self.root.forget(dir.as_str());
    }

    /// True if the directory has no entries, those included that cannot be named here.
    pub fn is_empty(&self, dir: &SharePath) -> Result<bool, StoreError> {
        listing::is_empty(self.open_dir(dir)?)
    }

    /// Up to `limit` entries of a directory (exact path), ordered by folded name, then by exact
    /// name, from the one that follows `after`.
    ///
    /// `after` is the last name of the page before and need not exist any more: a name that exists
    /// throughout comes exactly once.
    pub fn list(
        &self,
        dir: &SharePath,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedName>, StoreError> {
        self.list_prefix(dir, "", after, limit)
    }

    /// As [`ShareDir::list`], for the names that begin with `prefix` in any case.
    pub fn list_prefix(
        &self,
        dir: &SharePath,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedName>, StoreError> {
        let dir = self.open_dir(dir)?;
        let id = Stat::of(&dir)?.id;
        self.names.page((&dir, id), (prefix, after), limit)
    }

    /// A directory (exact path) whose entries are to be looked at one by one.
    pub fn entries(&self, dir: &SharePath) -> Result<OpenDirectory, StoreError> {
        self.open_dir(dir).map(OpenDirectory)
    }

    /// All entries of the open directory `id`, in the same order.
    pub fn list_open(
        &self,
        dir: &OpenDirectory,
        id: FileId,
    ) -> Result<Vec<ListedName>, StoreError> {
        self.names.page((&dir.0, id), ("", None), usize::MAX)
    }

    fn open_dir(&self, path: &SharePath) -> Result<OwnedFd, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        self.root
            .open_at(path.as_str(), flags)
            .map_err(|errno| self.root.refusal(path.as_str(), "opening a directory", errno))
    }

    /// A directory in any spelling, as the parent of something: its path as on disk, and itself.
    fn respell_dir<'a>(&self, path: &'a str) -> Result<(Cow<'a, str>, Dir), StoreError> {
        match self.root.parent(path) {
            Ok(dir) => return Ok((path.into(), dir)),
            Err(StoreError::ParentNotFound) if self.case == Case::Insensitive => {}
            Err(error) => return Err(error),
        }
        let mut spelled = String::with_capacity(path.len());
        let mut dir = self.root.parent("")?;
        for component in path.split('/') {
            let (name, _) = self.entry(&dir, component)?.ok_or(StoreError::ParentNotFound)?;
            if !spelled.is_empty() {
                spelled.push('/');
            }
            spelled.push_str(&name);
            // From the root each time: a link may point elsewhere in the share.
            dir = self.root.parent(&spelled)?;
        }
        Ok((spelled.into(), dir))
    }

    /// The spelling of `name` in `dir` and its file, if the name exists.
    fn entry<'a>(
        &self,
        dir: &Dir,
        name: &'a str,
    ) -> Result<Option<(Cow<'a, str>, Stat)>, StoreError> {
        match Stat::at(dir, name) {
            Ok(stat) => return Ok(Some((name.into(), stat))),
            Err(StoreError::NotFound) if self.case == Case::Sensitive => return Ok(None),
            Err(StoreError::NotFound) => {}
            Err(error) => return Err(error),
        }
        let known =
            self.names.ask((dir, dir.id()), |names| names.spelling(name).map(str::to_owned))?;
        let Some(known) = known else { return Ok(None) };
        let stat = Stat::at(dir, &known)?;
        Ok(Some((known.into(), stat)))
    }
}

/// The path of an entry whose parent and name were both seen on disk.
fn joined(parent: &str, name: &str) -> Result<SharePath, StoreError> {
    SharePath::new(parent).and_then(|parent| parent.join(name)).map_err(|error| {
        StoreError::Damaged { what: format!("the name {name:?}"), why: error.to_string() }
    })
}
