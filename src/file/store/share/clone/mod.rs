//! Copies a file's bytes and attributes from one descriptor to another.
//!
//! Decides the method: shared extents (reflink) where the file system supports them, else the data
//! extents one by one so that holes stay holes. The name of the target, and what
//! happens to a half-written target, are decided by the caller.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::data::{self, timespec};
use super::stat::Stat;
use crate::disk::error::{StoreError, doing};
use crate::rules::FileId;

/// Bytes moved between two looks at [`Control`].
pub const CHUNK_BYTES: usize = 1 << 20;
/// The longest list of attribute names or attribute value the kernel hands out.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// How far a copy has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CloneProgress {
    /// Directories finished, with all below them.
    pub directories_done: u64,
    /// Files, links and hard links finished.
    pub files_done: u64,
    /// Logical bytes passed, holes included.
    pub bytes_done: u64,
    /// Sockets, FIFOs and devices left out.
    pub skipped: u64,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    Continue,
    /// Stop here; what was made is thrown away.
    Cancel,
}

/// Why a file was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// The progress callback said so.
    #[error("cancelled")]
    Cancelled,
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Counts what is done and asks the caller whether to go on.
pub struct Meter<'a> {
    done: CloneProgress,
    report: &'a mut dyn FnMut(CloneProgress) -> Control,
    copies: Option<&'a mut CopiedFileIds>,
}

/// Which file became which by a copy.
pub type CopiedFileIds = HashMap<FileId, FileId>;

impl<'a> Meter<'a> {
    /// A meter at zero.
    pub fn new(report: &'a mut dyn FnMut(CloneProgress) -> Control) -> Self {
        let done = CloneProgress::default();
        Self { done, report, copies: None }
    }

    /// A meter that notes which file became which.
    pub fn noting(
        report: &'a mut dyn FnMut(CloneProgress) -> Control,
        copies: &'a mut CopiedFileIds,
    ) -> Self {
        Self { copies: Some(copies), ..Self::new(report) }
    }

    /// A file was copied; `copy` looks at the copy, if that is noted.
    pub(crate) fn copied(
        &mut self,
        file: FileId,
        copy: impl FnOnce() -> Result<Stat, StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(copies) = &mut self.copies {
            copies.insert(file, copy()?.id);
        }
        Ok(())
    }

    /// The progress so far.
    pub fn done(&self) -> CloneProgress {
        self.done
    }

    /// Takes note of a step and asks whether to go on.
    pub fn count(&mut self, step: impl FnOnce(&mut CloneProgress)) -> Result<(), CloneError> {
        step(&mut self.done);
        match (self.report)(self.done) {
            Control::Continue => Ok(()),
            Control::Cancel => Err(CloneError::Cancelled),
        }
    }

    fn bytes(&mut self, count: u64) -> Result<(), CloneError> {
        self.count(|done| done.bytes_done += count)
    }
}

/// Copies bytes, user attributes, owner, mode and times of the regular file `source` into the
/// empty file `target`. Moves the file offset of `source`.
pub fn clone_file(
    source: impl AsFd,
    target: impl AsFd,
    meter: &mut Meter<'_>,
) -> Result<(), CloneError> {
    let (source, target) = (source.as_fd(), target.as_fd());
    let stat = Stat::of(source)?;
    if share_extents(source, target)? {
        meter.bytes(stat.size)?;
    } else {
        Pump::new(source, target, meter).run(0..stat.size)?;
        data::set_len(target, stat.size)?;
    }
    copy_xattrs(source, target)?;
    Ok(apply_stat(target, &stat)?)
}

/// Lets the empty file `target` share all extents of `source`: its bytes, and nothing else of it.
/// False, with nothing done, where the file system or this pair of files cannot.
pub fn share_extents(source: impl AsFd, target: impl AsFd) -> Result<bool, StoreError> {
    match rustix::fs::ioctl_ficlone(target, source) {
        Ok(()) => Ok(true),
        // These a plain copy would meet too; all others say that it cannot be done here.
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => {
            Err(StoreError::from_errno("sharing extents", errno))
        }
        Err(_) => Ok(false),
    }
}

/// Copies the bytes of `range`, and nothing else, to where `target` has nothing but zeros. Holes
/// are left out where the file system tells them. Moves the file offset of `source`.
pub fn copy_range(
    source: impl AsFd,
    target: impl AsFd,
    range: Range<u64>,
) -> Result<(), StoreError> {
    let mut go_on = |_| Control::Continue;
    let mut meter = Meter::new(&mut go_on);
    let copied = Pump::new(source.as_fd(), target.as_fd(), &mut meter).run(range);
    copied.map_err(|error| match error {
        CloneError::Store(error) => error,
        CloneError::Cancelled => unreachable!("the meter above never says so"),
    })
}

/// Moves ranges of bytes, in the kernel as long as it agrees to.
struct Pump<'a, 'm> {
    source: BorrowedFd<'a>,
    target: BorrowedFd<'a>,
    in_kernel: bool,
    buffer: Vec<u8>,
    meter: &'a mut Meter<'m>,
}

impl<'a, 'm> Pump<'a, 'm> {
    fn new(source: BorrowedFd<'a>, target: BorrowedFd<'a>, meter: &'a mut Meter<'m>) -> Self {
        Self { source, target, in_kernel: true, buffer: Vec::new(), meter }
    }

    /// Copies the parts of `range` that hold data; all of it where the file system does not tell.
    fn run(&mut self, range: Range<u64>) -> Result<(), CloneError> {
        let mut at = range.start;
        for part in data::data_ranges(self.source, range.clone())? {
            self.meter.bytes(part.start - at)?;
            self.part(part.clone())?;
            at = part.end;
        }
        self.meter.bytes(range.end - at)
    }

    /// Copies a part; stops early where the source has shrunk meanwhile.
    fn part(&mut self, part: Range<u64>) -> Result<(), CloneError> {
        let mut at = part.start;
        while at < part.end {
            let left = usize::try_from(part.end - at).unwrap_or(CHUNK_BYTES);
            let want = left.min(CHUNK_BYTES);
            let count = match self.chunk_in_kernel(at, want)? {
                0 => self.chunk_by_hand(at, want)?,
                count => count,
            };
            if count == 0 {
                break;
            }
            at += count as u64;
            self.meter.bytes(count as u64)?;
        }
        Ok(())
    }

    /// Zero at the end of the file, and where the kernel does not copy between these two files.
    fn chunk_in_kernel(&mut self, at: u64, want: usize) -> Result<usize, StoreError> {
        if !self.in_kernel {
            return Ok(0);
        }
        let (mut from, mut to) = (at, at);
        match rustix::fs::copy_file_range(
            self.source,
            Some(&mut from),
            self.target,
            Some(&mut to),
            want,
        ) {
            Ok(count) => Ok(count),
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::FBIG)) => {
                Err(StoreError::from_errno("copying", errno))
            }
            Err(Errno::INTR) => Ok(0),
            Err(_) => {
                self.in_kernel = false;
                Ok(0)
            }
        }
    }

    fn chunk_by_hand(&mut self, at: u64, want: usize) -> Result<usize, StoreError> {
        self.buffer.resize(CHUNK_BYTES, 0);
        let count = data::read_at(self.source, &mut self.buffer[..want], at)?;
        data::write_at(self.target, &self.buffer[..count], at)?;
        Ok(count)
    }
}

/// Copies every `user.*` attribute. A source that can have none has none; a target that cannot
/// take one is an error, since the file's record would be lost.
pub(crate) fn copy_xattrs(source: impl AsFd, target: impl AsFd) -> Result<(), StoreError> {
    let mut names = vec![0; XATTR_BYTES_MAX];
    let length = match rustix::fs::flistxattr(&source, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => 0,
        Err(errno) => return Err(doing("listing attributes")(errno)),
    };
    if length == 0 {
        return Ok(());
    }
    let mut value = vec![0; XATTR_BYTES_MAX];
    for name in names[..length].split(|byte| *byte == 0) {
        if !name.starts_with(b"user.") {
            continue;
        }
        let size = match rustix::fs::fgetxattr(&source, name, &mut value[..]) {
            Ok(size) => size,
            // Removed since it was listed.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(doing("reading an attribute")(errno)),
        };
        rustix::fs::fsetxattr(&target, name, &value[..size], XattrFlags::empty())
            .map_err(doing("writing an attribute"))?;
    }
    Ok(())
}

/// Gives an open file or directory the owner, mode and times of `stat`; times last, as the others
/// would move them. Who may not give files away keeps them, without set-id bits.
pub(crate) fn apply_stat(target: impl AsFd, stat: &Stat) -> Result<(), StoreError> {
    let (uid, gid) = (Uid::from_raw(stat.uid), Gid::from_raw(stat.gid));
    let mut mode = Mode::from_raw_mode(stat.mode);
    match rustix::fs::fchown(&target, Some(uid), Some(gid)) {
        Ok(()) => {}
        Err(Errno::PERM | Errno::INVAL) => mode.remove(Mode::SUID | Mode::SGID),
        Err(errno) => return Err(doing("setting the owner")(errno)),
    }
    rustix::fs::fchmod(&target, mode).map_err(doing("setting the mode"))?;
    rustix::fs::futimens(&target, &times(stat)).map_err(doing("setting the times"))
}

/// Gives the symbolic link `name` of the directory `dir` the owner and times of `stat`.
pub(crate) fn apply_link_stat(
    dir: impl AsFd,
    name: &std::ffi::CStr,
    stat: &Stat,
) -> Result<(), StoreError> {
    let (uid, gid) = (Uid::from_raw(stat.uid), Gid::from_raw(stat.gid));
    match rustix::fs::chownat(&dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
        Err(errno) => return Err(doing("setting the owner")(errno)),
    }
    rustix::fs::utimensat(&dir, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(doing("setting the times"))
}

fn times(stat: &Stat) -> Timestamps {
    Timestamps { last_access: timespec(stat.accessed), last_modification: timespec(stat.written) }
}
