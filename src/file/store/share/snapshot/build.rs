//! Copies one directory tree into an empty folder, on descriptors.
//!
//! Decides what a snapshot holds: directories, files, symbolic links as they are, hard links as
//! hard links, times and user attributes; each copy notes which file it is of. Sockets, FIFOs and
//! devices are left out. At most a dozen descriptors are open at a time, however deep the tree.
//! What is created, moved or removed while the copy runs may or may not be in it.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::clone::{
    CloneError, Meter, apply_link_stat, apply_stat, clone_file, copy_xattrs,
};
use super::super::stat::{FileKind, Stat};
use super::{SnapshotError, origin};
use crate::disk::error::{StoreError, doing};
use crate::disk::tree;

/// How often an entry that changes its kind under our hands is looked at again.
const LOOKS_MAX: u32 = 8;

/// The trees a snapshot is made from and into.
pub(crate) struct Trees {
    pub source: OwnedFd,
    /// The empty folder that becomes the snapshot.
    pub target: OwnedFd,
    /// Whether each copy notes the file that it is of.
    pub origins: bool,
    /// A folder beside it with one name for each copied file that has several in the source, so
    /// that the next name is linked and not copied. Empty it afterwards.
    pub links: OwnedFd,
}

enum CopyTreeStep {
    Enter(PathBuf),
    /// Last of a directory: its mode and times, which its children would have moved.
    Leave(PathBuf, Stat),
}

/// Copies the whole tree. `Meter::copied` is told of each file and directory.
pub(crate) fn copy_tree(trees: &Trees, meter: &mut Meter<'_>) -> Result<(), SnapshotError> {
    let mut steps = vec![CopyTreeStep::Enter(PathBuf::new())];
    while let Some(step) = steps.pop() {
        match step {
            CopyTreeStep::Enter(path) => enter(trees, path, &mut steps, meter)?,
            CopyTreeStep::Leave(path, stat) => {
                let done = tree::descend(&trees.target, &path)
                    .map_err(doing("opening a directory"))
                    .and_then(|dir| apply_stat(dir, &stat));
                done.map_err(|error| SnapshotError::at(&path, error.into()))?;
                meter
                    .count(|done| done.directories_done += 1)
                    .map_err(|error| SnapshotError::at(&path, error))?;
            }
        }
    }
    Ok(())
}

/// Makes the directory `path`, copies what is no directory in it, and plans the rest.
fn enter(
    trees: &Trees,
    path: PathBuf,
    steps: &mut Vec<CopyTreeStep>,
    meter: &mut Meter<'_>,
) -> Result<(), SnapshotError> {
    let here = |error: StoreError| SnapshotError::at(&path, error.into());
    let source = match tree::descend(&trees.source, &path) {
        // Gone, or no directory any more, since its parent was listed.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.as_os_str().is_empty() => {
            return Ok(());
        }
        source => source.map_err(|errno| here(doing("opening a directory")(errno)))?,
    };
    let stat = Stat::of(&source).map_err(here)?;
    let target = make_directory(trees, &path).map_err(here)?;
    copy_xattrs(&source, &target).map_err(here)?;
    meter.copied(stat.id, || Stat::of(&target)).map_err(here)?;

    let mut below = Vec::new();
    let folder = DirectoryPair { source, target, trees };
    for name in tree::entries(&folder.source).map_err(here)? {
        let name = name.map_err(here)?;
        let copied = folder.copy_entry(&name, meter);
        match copied.map_err(|error| SnapshotError::at(&tree::child(&path, &name), error))? {
            CopiedEntry::Directory => below.push(CopyTreeStep::Enter(tree::child(&path, &name))),
            CopiedEntry::Done => {}
        }
    }
    steps.push(CopyTreeStep::Leave(path, stat));
    steps.append(&mut below);
    Ok(())
}

fn make_directory(trees: &Trees, path: &Path) -> Result<OwnedFd, StoreError> {
    if !path.as_os_str().is_empty() {
        tree::on_parent(&trees.target, path, |dir, name| {
            rustix::fs::mkdirat(dir, name, Mode::RWXU)
        })
        .map_err(doing("making a directory"))?;
    }
    tree::descend(&trees.target, path).map_err(doing("opening a directory"))
}

/// A directory and its copy, both open.
struct DirectoryPair<'a> {
    source: OwnedFd,
    target: OwnedFd,
    trees: &'a Trees,
}

enum CopiedEntry {
    Directory,
    Done,
}

impl DirectoryPair<'_> {
    fn copy_entry(&self, name: &CStr, meter: &mut Meter<'_>) -> Result<CopiedEntry, CloneError> {
        for _ in 0..LOOKS_MAX {
            let Some(kind) = tree::kind_at(&self.source, name)? else {
                return Ok(CopiedEntry::Done);
            };
            let copied = match kind {
                FileType::Directory => return Ok(CopiedEntry::Directory),
                FileType::RegularFile => self.copy_file(name, meter)?,
                FileType::Symlink => self.copy_symlink(name, meter)?,
                _ => {
                    meter.count(|done| done.skipped += 1)?;
                    return Ok(CopiedEntry::Done);
                }
            };
            if copied {
                meter.count(|done| done.files_done += 1)?;
                return Ok(CopiedEntry::Done);
            }
        }
        Err(StoreError::Replaced.into())
    }

    /// False if there is no regular file of that name any more.
    fn copy_file(&self, name: &CStr, meter: &mut Meter<'_>) -> Result<bool, CloneError> {
        let source = match tree::open_entry(&self.source, name, OFlags::RDONLY) {
            Ok(source) => source,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(false),
            Err(errno) => return Err(doing("opening a file")(errno).into()),
        };
        let stat = Stat::of(&source)?;
        if stat.kind != FileKind::File {
            return Ok(false);
        }
        let alias = if stat.links > 1 { Some(alias(&source, &stat)?) } else { None };
        if let Some(alias) = &alias
            && link(&self.trees.links, alias, &self.target, name)?
        {
            return Ok(true);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = rustix::fs::openat(&self.target, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| StoreError::from_errno("making a file", errno))?;
        clone_file(source, &target, meter)?;
        if self.trees.origins {
            origin::set(&target, stat.id);
        }
        meter.copied(stat.id, || Stat::of(&target))?;
        if let Some(alias) = &alias {
            remember(&self.target, name, &self.trees.links, alias)?;
        }
        Ok(true)
    }

    /// False if there is no symbolic link of that name any more.
    fn copy_symlink(&self, name: &CStr, meter: &mut Meter<'_>) -> Result<bool, StoreError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let source = match rustix::fs::openat(&self.source, name, flags, Mode::empty()) {
            Ok(source) => source,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(doing("opening a link")(errno)),
        };
        let stat = Stat::of(&source)?;
        if stat.kind != FileKind::Symlink {
            return Ok(false);
        }
        let text =
            rustix::fs::readlinkat(&source, c"", Vec::new()).map_err(doing("reading a link"))?;
        rustix::fs::symlinkat(&*text, &self.target, name).map_err(doing("making a link"))?;
        apply_link_stat(&self.target, name, &stat)?;
        meter.copied(stat.id, || Stat::at(&self.target, name))?;
        Ok(true)
    }
}

/// The name under which a file with several names is remembered: its identity, birth time
/// included, since an inode number may be handed out again while the copy runs.
fn alias(source: &OwnedFd, stat: &Stat) -> Result<String, StoreError> {
    let device = rustix::fs::fstat(source).map_err(doing("reading attributes"))?.st_dev;
    Ok(format!("{device:x}-{:x}-{:x}", stat.id.ino, stat.id.born))
}

/// False if no copy is remembered under `alias`, or it can take no further name.
fn link(links: &OwnedFd, alias: &str, target: &OwnedFd, name: &CStr) -> Result<bool, StoreError> {
    match rustix::fs::linkat(links, alias, target, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::MLINK) => Ok(false),
        Err(errno) => Err(doing("making a hard link")(errno)),
    }
}

fn remember(target: &OwnedFd, name: &CStr, links: &OwnedFd, alias: &str) -> Result<(), StoreError> {
    match rustix::fs::linkat(target, name, links, alias, AtFlags::empty()) {
        // Taken: the remembered copy is full, and stays.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(doing("making a hard link")(errno)),
    }
}
