//! A mount whose server died: it answers `ENOTCONN` to everything until it is taken away.
//!
//! Decides that the mount which takes its place is put below it first, where the kernel can do that
//! (Linux 6.5, and the privilege to mount): in a moment without a mount a program could write into
//! the bare directory, beside the share. How a mount is made is decided in [`super::attach`].

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::mount::OpenTreeFlags;

use super::attach::{Attachment, Detach, detach};
use super::mounts::{self, openers_of};
use super::session::MountError;

/// Whether a dead mount is there. It has to be the only one: one that something else is mounted
/// below is refused.
pub fn is_dead(path: &Path) -> Result<bool, MountError> {
    let dead = fs::metadata(path).is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN));
    if !dead {
        return Ok(false);
    }
    let openers = openers_of(path);
    if !openers.is_empty() {
        log::warn!(
            "{}: {} still hold descriptors of the dead mount and can write to its files",
            path.display(),
            openers.join(", ")
        );
    }
    let below = mounts::all().into_iter().map(|mount| mount.path);
    let mut below = below.filter(|other| other != path && other.starts_with(path));
    match below.next() {
        Some(by) => Err(MountError::Covered { path: path.to_owned(), by }),
        None => Ok(true),
    }
}

/// Takes a dead mount away, if there is one.
pub fn clear_dead(path: &Path) -> Result<(), MountError> {
    if is_dead(path)? {
        take_away(path)?;
    }
    Ok(())
}

/// Mounts in the place of the dead mount on `path`, which has no links in it. `None` where that
/// cannot be done without a moment in which nothing is mounted; the dead mount is gone then.
pub fn replace(path: &Path, attachment: &Attachment) -> Result<Option<OwnedFd>, MountError> {
    let only = mounts::all().iter().filter(|mount| mount.path == path).count() == 1;
    let below = if only { beneath(path, attachment)? } else { None };
    take_away(path)?;
    Ok(below)
}

/// Mounts below the dead mount; `None` if that cannot be done.
fn beneath(path: &Path, attachment: &Attachment) -> Result<Option<OwnedFd>, MountError> {
    match has_entries(path) {
        Ok(false) => {}
        Ok(true) => return Err(MountError::NotEmpty(path.to_owned())),
        Err(errno) => {
            log::debug!("{}: the directory below is not seen: {errno}", path.display());
            return Ok(None);
        }
    }
    let mounted = attachment.attach_beneath(path);
    let failed = |errno| log::debug!("{}: mounting below: {errno}", path.display());
    Ok(mounted.map_err(failed).ok())
}

/// Whether the directory that a mount hides has entries: seen through a copy of the tree above it
/// that has no mounts in it.
fn has_entries(path: &Path) -> rustix::io::Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, parent, flags)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let directory = rustix::fs::openat(tree, name, flags, Mode::empty())?;
    for entry in Dir::new(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn take_away(path: &Path) -> Result<(), MountError> {
    let system = |source| MountError::System { path: path.to_owned(), source };
    detach(path, Detach::Lazily).map_err(system)
}
