//! The record's extended attribute, through any descriptor.
//!
//! Decides what the system's answers mean: no attribute, no room for it, or a file that cannot
//! have one. What is done about it is decided in [`super::records`].

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use super::super::{FileKind, Stat, proc_path};
use super::records::Records;
use crate::disk::error::{StoreError, doing};
use crate::sync::front_end;

/// Room for what ext4 can hold, so that one call does as a rule.
const TYPICAL_MAX: usize = 4096;

/// No Linux file system takes a longer value (`XATTR_SIZE_MAX`).
const VALUE_MAX: usize = 64 * 1024;

/// Whether a value fitted into the attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// It is the file's attribute now.
    Stored,
    /// Too large for this file system, or for what is left of the file's share of it.
    NoRoom,
    /// This file, or its file system, has no such attributes.
    Unsupported,
}

/// The value, if there is one.
pub(super) fn get(fd: BorrowedFd<'_>) -> Result<Option<Vec<u8>>, StoreError> {
    value_of(|buffer| read(fd, buffer))
}

/// The value of a file that is named by a path, a link at its end not followed.
pub(super) fn get_named(path: &str) -> Result<Option<Vec<u8>>, StoreError> {
    value_of(|buffer| {
        let (value, _) = rustix::fs::lgetxattr(path, Records::XATTR, buffer)?;
        Ok(value.to_vec())
    })
}

/// The value that `read` gives, with a larger buffer if it needs one.
fn value_of(
    read: impl Fn(&mut [MaybeUninit<u8>]) -> Result<Vec<u8>, Errno>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut buffer = [MaybeUninit::uninit(); TYPICAL_MAX];
    let answer = match read(&mut buffer) {
        Err(Errno::RANGE) => read(&mut vec![MaybeUninit::uninit(); VALUE_MAX]),
        other => other,
    };
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(StoreError::from_errno("reading a file's record", errno)),
    }
}

fn read(fd: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<Vec<u8>, Errno> {
    match rustix::fs::fgetxattr(fd, Records::XATTR, &mut *buffer) {
        Ok((value, _)) => Ok(value.to_vec()),
        Err(Errno::BADF) => {
            let (value, _) = rustix::fs::getxattr(proc_path(fd), Records::XATTR, buffer)?;
            Ok(value.to_vec())
        }
        Err(errno) => Err(errno),
    }
}

/// Sets the value, replacing any other at once.
pub(super) fn set(fd: BorrowedFd<'_>, value: &[u8]) -> Result<Fit, StoreError> {
    let flags = XattrFlags::empty();
    let answer = match rustix::fs::fsetxattr(fd, Records::XATTR, value, flags) {
        Err(Errno::BADF) => rustix::fs::setxattr(proc_path(fd), Records::XATTR, value, flags),
        other => other,
    };
    match answer {
        Ok(()) => Ok(Fit::Stored),
        Err(Errno::NOSPC | Errno::DQUOT | Errno::TOOBIG | Errno::RANGE) => Ok(Fit::NoRoom),
        Err(Errno::OPNOTSUPP) => Ok(Fit::Unsupported),
        Err(Errno::PERM) if cannot_have_any(fd)? => Ok(Fit::Unsupported),
        Err(errno) => Err(StoreError::from_errno("writing a file's record", errno)),
    }
}

/// Takes the value away, if there is one.
pub(super) fn remove(fd: BorrowedFd<'_>) -> Result<(), StoreError> {
    let answer = match rustix::fs::fremovexattr(fd, Records::XATTR) {
        Err(Errno::BADF) => rustix::fs::removexattr(proc_path(fd), Records::XATTR),
        other => other,
    };
    match answer {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(Errno::PERM) if cannot_have_any(fd)? => Ok(()),
        Err(errno) => Err(StoreError::from_errno("removing a file's record", errno)),
    }
}

/// Waits until the value is on the disk.
pub(super) fn flush(fd: BorrowedFd<'_>) -> Result<(), StoreError> {
    front_end::assert_may_block("the flush of a record");
    let what = doing("flushing a file's record");
    match rustix::fs::fsync(fd) {
        Err(Errno::BADF) => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let open = rustix::fs::open(proc_path(fd), flags, Mode::empty()).map_err(&what)?;
            rustix::fs::fsync(open).map_err(what)
        }
        other => other.map_err(what),
    }
}

/// `EPERM` means "not for this kind of file" on symbolic links and special files, but "not now"
/// on an immutable or append-only file, which may well have a record.
fn cannot_have_any(fd: BorrowedFd<'_>) -> Result<bool, StoreError> {
    Ok(matches!(Stat::of(fd)?.kind, FileKind::Symlink | FileKind::Special))
}
