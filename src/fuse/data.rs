//! Bytes that come to us: without passthrough, under mandatory locks, and the calls the kernel
//! never passes through (holes, allocation, copying, flushing).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyLseek, ReplyWrite};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::ReadWriteFlags;

use super::errno::{errno, of_system};
use super::state::{OpenFile, State};
use crate::core::Access;
use crate::core::file_ranges::RangeUse;
use crate::core::ranges::{ByteRange, LockOwner};
use crate::engine::{Error, OpenFor, Stat, StoreError, read_at, write_at};

type Done<T> = Result<T, Errno>;

fn store_errno(error: StoreError) -> Errno {
    errno(&Error::Store(error))
}

fn file(state: &State, fh: u64) -> Done<Arc<OpenFile>> {
    state.file(fh).ok_or(Errno::EBADF)
}

/// A descriptor for the call: the open's own, or one made for it.
enum Descriptor {
    Own(Arc<OpenFile>),
    Kept(Arc<OwnedFd>),
    Made(OwnedFd),
}

impl Descriptor {
    fn of(state: &State, file: Arc<OpenFile>) -> Done<Self> {
        // A force-closed handle is not in the table any more: its next use fails.
        state.share.describe(&file.handle).map_err(|error| errno(&error))?;
        if file.fd.is_some() {
            return Ok(Self::Own(file));
        }
        if let Some(fd) = state.orphans.get(file.handle.file()) {
            return Ok(Self::Kept(fd));
        }
        let how = if file.access.contains(Access::W) { OpenFor::Write } else { OpenFor::Read };
        // By its name, which another file may have by now if it was taken beside us.
        state.share.backing_of(&file.handle, how).map(Self::Made).map_err(|error| errno(&error))
    }

    fn fd(&self) -> &OwnedFd {
        match self {
            Self::Own(file) => file.fd.as_ref().expect("only an open with a descriptor is its own"),
            Self::Kept(fd) => fd,
            Self::Made(fd) => fd,
        }
    }
}

fn on_file<T>(
    state: &State,
    fh: u64,
    call: impl FnOnce(&OwnedFd) -> rustix::io::Result<T>,
) -> Done<T> {
    let descriptor = Descriptor::of(state, file(state, fh)?)?;
    call(descriptor.fd()).map_err(of_system)
}

/// Under mandatory locks a range that another owner locked refuses.
fn check_range(
    state: &State,
    file: &OpenFile,
    (offset, length): (u64, usize),
    lock_owner: Option<u64>,
    using: RangeUse,
) -> Done<()> {
    if !state.options.mandatory_locks {
        return Ok(());
    }
    let range = ByteRange::new(offset, length as u64).map_err(|_| Errno::EINVAL)?;
    let by = lock_owner.map(LockOwner::Posix);
    state.share.check_range(&file.handle, range, by, using).map_err(|error| errno(&error))
}

/// `read(2)`.
pub fn read(
    state: &State,
    fh: u64,
    (offset, size): (u64, u32),
    lock_owner: Option<u64>,
    reply: ReplyData,
) {
    let done = file(state, fh).and_then(|file| {
        check_range(state, &file, (offset, size as usize), lock_owner, RangeUse::Read)?;
        let mut bytes = vec![0; size as usize];
        let descriptor = Descriptor::of(state, file)?;
        let got = read_at(descriptor.fd(), &mut bytes, offset).map_err(store_errno)?;
        bytes.truncate(got);
        Ok(bytes)
    });
    match done {
        Ok(bytes) => reply.data(&bytes),
        Err(errno) => reply.error(errno),
    }
}

/// `write(2)`: at an offset, or at the end of the file as it is now. The kernel's idea of the end
/// may be old: others write through other names, through REST and beside us.
pub fn write(
    state: &State,
    fh: u64,
    (offset, bytes): (Option<u64>, &[u8]),
    lock_owner: Option<u64>,
    reply: ReplyWrite,
) {
    let done = file(state, fh).and_then(|file| {
        let descriptor = Descriptor::of(state, Arc::clone(&file))?;
        let end = || Stat::of(descriptor.fd()).map(|stat| stat.size).map_err(store_errno);
        let at = offset.map_or_else(end, Ok)?;
        check_range(state, &file, (at, bytes.len()), lock_owner, RangeUse::Write)?;
        match offset {
            Some(offset) => write_at(descriptor.fd(), bytes, offset).map_err(store_errno),
            None => append(descriptor.fd(), bytes).map_err(Errno::from),
        }
    });
    match done {
        Ok(()) => reply.written(u32::try_from(bytes.len()).expect("writes are at most 1 MiB")),
        Err(errno) => reply.error(errno),
    }
}

/// Writes all bytes at the end, which the system finds in the same step.
fn append(fd: &OwnedFd, bytes: &[u8]) -> std::io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let slices = [std::io::IoSlice::new(left)];
        match rustix::io::pwritev2(fd, &slices, 0, ReadWriteFlags::APPEND) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// `fsync(2)` and `fdatasync(2)`.
pub fn sync(state: &State, fh: u64, data_only: bool, reply: ReplyEmpty) {
    let flush = |fd: &OwnedFd| {
        if data_only { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }
    };
    match on_file(state, fh, flush) {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// `fallocate(2)`: reserve, punch, zero, with and without growing.
pub fn allocate(
    state: &State,
    fh: u64,
    (offset, length): (u64, u64),
    mode: i32,
    reply: ReplyEmpty,
) {
    let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
    match on_file(state, fh, |fd| rustix::fs::fallocate(fd, flags, offset, length)) {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// `lseek(2)` for data and holes; the kernel knows the other kinds itself.
pub fn seek(state: &State, fh: u64, offset: i64, whence: i32, reply: ReplyLseek) {
    let Ok(from) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
    let to = match whence {
        libc::SEEK_DATA => SeekFrom::Data(from),
        libc::SEEK_HOLE => SeekFrom::Hole(from),
        _ => return reply.error(Errno::EINVAL),
    };
    match on_file(state, fh, |fd| rustix::fs::seek(fd, to)) {
        Ok(at) => reply.offset(i64::try_from(at).unwrap_or(i64::MAX)),
        Err(errno) => reply.error(errno),
    }
}

/// `copy_file_range(2)` between two files of the mount.
pub fn copy(
    state: &State,
    (from, mut from_at): (u64, u64),
    (to, mut to_at): (u64, u64),
    length: u64,
    reply: ReplyWrite,
) {
    let done = Descriptor::of(
        state,
        match file(state, from) {
            Ok(file) => file,
            Err(errno) => return reply.error(errno),
        },
    )
    .and_then(|source| {
        on_file(state, to, |target| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (from_at, to_at) = (Some(&mut from_at), Some(&mut to_at));
            rustix::fs::copy_file_range(source.fd(), from_at, target, to_at, length)
        })
    });
    match done {
        Ok(copied) => reply.written(u32::try_from(copied).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(errno),
    }
}
