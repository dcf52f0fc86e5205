//! The bytes of one file, through a descriptor.
//!
//! Decides how a read, a write, a cleared range and the list of written ranges map onto system
//! calls, and what stands in where a file system lacks one. Who may do it, and whether a range
//! is legal, was decided before. Descriptors must not be open with `O_APPEND`: the kernel would
//! ignore the offset of a write.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FallocateFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::error::{StoreError, doing};
use super::stat::Stat;
use crate::core::Timestamp;

/// What happens to the length when space past the end is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// The file grows to the end of the range.
    Grows,
    /// The length stays; the space waits behind the end.
    Stays,
}

/// Reads from `offset` on until `buffer` is full or the file ends; the number of bytes read.
pub fn read_at(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, StoreError> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        match retry_on_intr(|| rustix::io::pread(&fd, &mut *rest, offset + done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(errno) => return Err(StoreError::from_errno("reading", errno)),
        }
    }
    Ok(done)
}

/// Reads `length` bytes from `offset` on, or as many as the file has. Into memory that nobody
/// clears first: for a long range that costs as much as the reading.
pub fn read_bytes(fd: impl AsFd, offset: u64, length: usize) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = offset + bytes.len() as u64;
        match retry_on_intr(|| rustix::io::pread(&fd, spare_capacity(&mut bytes), at)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(errno) => return Err(StoreError::from_errno("reading", errno)),
        }
    }
    // An allocation may be longer than asked for.
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads what can be had from `offset` on without waiting for the disk; zero bytes at the end of
/// the file. None if nothing can be had so, or if the file system cannot tell.
pub fn read_now(
    fd: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
) -> Result<Option<usize>, StoreError> {
    let mut buffers = [IoSliceMut::new(buffer)];
    let flags = ReadWriteFlags::NOWAIT;
    match retry_on_intr(|| rustix::io::preadv2(&fd, &mut buffers, offset, flags)) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
        Err(errno) => Err(StoreError::from_errno("reading", errno)),
    }
}

/// Reads up to `length` bytes from `offset` on without waiting for the disk; fewer at the end of
/// the file. None if that cannot be done. Where the file system cannot tell, they are read all
/// the same: most that cannot are in memory.
pub fn read_bytes_now(
    fd: impl AsFd,
    offset: u64,
    length: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        let mut buffers = [IoSliceMut::new(&mut bytes[done..])];
        let (at, flags) = (offset + done as u64, ReadWriteFlags::NOWAIT);
        match retry_on_intr(|| rustix::io::preadv2(&fd, &mut buffers, at, flags)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                return read_bytes(fd, offset, length).map(Some);
            }
            Err(errno) => return Err(StoreError::from_errno("reading", errno)),
        }
    }
    bytes.truncate(done);
    Ok(Some(bytes))
}

/// Writes all of `bytes` at `offset`; the file grows if need be.
pub fn write_at(fd: impl AsFd, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        match retry_on_intr(|| rustix::io::pwrite(&fd, rest, offset + done as u64)) {
            // Never seen on a regular file; an endless loop would be the worse answer.
            Ok(0) => return Err(StoreError::from_errno("writing", Errno::IO)),
            Ok(count) => done += count,
            Err(errno) => return Err(StoreError::from_errno("writing", errno)),
        }
    }
    Ok(())
}

/// Cuts the file off at `len`, or lets it grow to it with zeros.
pub fn set_len(fd: impl AsFd, len: u64) -> Result<(), StoreError> {
    retry_on_intr(|| rustix::fs::ftruncate(&fd, len)).map_err(doing("setting the length"))
}

/// Makes the part of `range` that lies within the file read as zeros, and gives its space back
/// where the file system can. The length stays.
pub fn clear_range(fd: impl AsFd, range: Range<u64>) -> Result<(), StoreError> {
    let end = range.end.min(Stat::of(&fd)?.size);
    if range.start >= end {
        return Ok(());
    }
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(&fd, punch, range.start..end) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(fd, range.start..end),
        other => other.map_err(doing("clearing a range")),
    }
}

fn write_zeros(fd: impl AsFd, range: Range<u64>) -> Result<(), StoreError> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut at = range.start;
    while at < range.end {
        let count = ZEROS.len().min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
        write_at(&fd, &ZEROS[..count], at)?;
        at += count as u64;
    }
    Ok(())
}

/// The parts of `window` that were written, as far as the file system knows: ascending, apart
/// from each other, clipped to the window and the file. A file system that keeps no account of
/// holes gives one range.
///
/// Moves the descriptor's own position, which nothing here uses.
pub fn data_ranges(fd: impl AsFd, window: Range<u64>) -> Result<Vec<Range<u64>>, StoreError> {
    let end = window.end.min(Stat::of(&fd)?.size);
    let mut at = window.start;
    let mut ranges = Vec::new();
    while at < end {
        let data = match rustix::fs::seek(&fd, SeekFrom::Data(at)) {
            Ok(data) if data < end => data,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(StoreError::from_errno("looking for data", errno)),
        };
        let hole = match rustix::fs::seek(&fd, SeekFrom::Hole(data)) {
            Ok(hole) => hole.min(end),
            Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => end,
            Err(errno) => return Err(StoreError::from_errno("looking for a hole", errno)),
        };
        // Equal if the data was cleared between the two calls.
        if hole > data {
            ranges.push(data..hole);
        }
        at = hole.max(at + 1);
    }
    Ok(ranges)
}

/// Reserves disk space for `range`. An empty range needs none; a file system that cannot
/// reserve says so (`EOPNOTSUPP` in [`StoreError::Io`]).
pub fn allocate(fd: impl AsFd, range: Range<u64>, length: Length) -> Result<(), StoreError> {
    if range.is_empty() {
        return Ok(());
    }
    let flags = match length {
        Length::Grows => FallocateFlags::empty(),
        Length::Stays => FallocateFlags::KEEP_SIZE,
    };
    fallocate(&fd, flags, range).map_err(doing("allocating"))
}

fn fallocate(fd: impl AsFd, flags: FallocateFlags, range: Range<u64>) -> Result<(), Errno> {
    let len = range.end - range.start;
    retry_on_intr(|| rustix::fs::fallocate(&fd, flags, range.start, len))
}

/// Waits until bytes and attributes are on the disk.
pub fn sync(fd: impl AsFd) -> Result<(), StoreError> {
    retry_on_intr(|| rustix::fs::fsync(&fd)).map_err(doing("flushing"))
}

/// Sets the times that are given and leaves the others. An `O_PATH` descriptor will do, a
/// symbolic link's too.
pub fn set_times(
    fd: impl AsFd,
    accessed: Option<Timestamp>,
    written: Option<Timestamp>,
) -> Result<(), StoreError> {
    let times =
        Timestamps { last_access: timespec(accessed), last_modification: timespec(written) };
    rustix::fs::utimensat(fd, "", &times, AtFlags::EMPTY_PATH).map_err(doing("setting times"))
}

fn timespec(time: Option<Timestamp>) -> Timespec {
    const SECOND: i64 = 1_000_000_000;
    match time {
        // Euclidean, so that the nanoseconds of a time before 1970 are not negative.
        Some(Timestamp(nanos)) => {
            Timespec { tv_sec: nanos.div_euclid(SECOND), tv_nsec: nanos.rem_euclid(SECOND) }
        }
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    }
}

#[cfg(test)]
mod tests;
