//! The bytes of one file, through a descriptor.
//!
//! Decides how a read, a write, a cleared range and the list of written ranges map onto system
//! calls, and the replacement where a file system lacks one. The rules and the range were checked
//! before. Descriptors must not be open with `O_APPEND`: the kernel would ignore the offset of a
//! write.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FallocateFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::stat::Stat;
use crate::disk::error::{StoreError, doing};
use crate::rules::Timestamp;
use crate::sync::front_end;

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
    // The allocation may be longer than asked for.
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
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => at,
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

/// Makes sure that `range` can be written: reserves the space of its holes, also past the end of
/// the file, whose length stays. Without room it is [`StoreError::NoSpace`], with nothing changed.
/// Where the file system cannot reserve, the answer is [`Reserved::No`].
pub fn reserve(fd: impl AsFd, range: Range<u64>) -> Result<Reserved, StoreError> {
    if range.is_empty() {
        return Ok(Reserved::Yes);
    }
    // A file that has all its blocks has those of the range. Not reserved again: that would move
    // the change time, though the request may still be refused.
    let stat = Stat::of(&fd)?;
    if range.end <= stat.size && stat.allocated >= stat.size {
        return Ok(Reserved::Yes);
    }
    // Asked first: some file systems move the change time by a reservation that then fails.
    let free = free_bytes(&fd)?;
    let wanted = range.end - range.start;
    if free < wanted {
        let held: u64 =
            data_ranges(&fd, range.clone())?.iter().map(|data| data.end - data.start).sum();
        if free < wanted.saturating_sub(held) {
            return Err(StoreError::NoSpace);
        }
    }
    match fallocate(&fd, FallocateFlags::KEEP_SIZE, range) {
        Ok(()) => Ok(Reserved::Yes),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Reserved::No),
        Err(errno) => Err(StoreError::from_errno("reserving space", errno)),
    }
}

/// Whether space was reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserved {
    /// A write of that range does not fail for want of space.
    Yes,
    /// The file system cannot reserve: a write may fail half way.
    No,
}

/// Writes all of `bytes` at `offset`, within the file, or nothing: for a range that may not be
/// `reserved`, the old bytes are kept in memory and put back after a failure.
pub fn write_or_restore(
    fd: impl AsFd,
    bytes: &[u8],
    offset: u64,
    reserved: Reserved,
) -> Result<(), StoreError> {
    if reserved == Reserved::Yes {
        return write_at(fd, bytes, offset);
    }
    let old = read_bytes(&fd, offset, bytes.len())?;
    let size = Stat::of(&fd)?.size;
    write_at(&fd, bytes, offset).inspect_err(|_| {
        // What was overwritten has its space already. The first error is the one to tell.
        let _ = write_at(&fd, &old, offset);
        if Stat::of(&fd).is_ok_and(|stat| stat.size > size) {
            let _ = set_len(&fd, size);
        }
    })
}

/// Replaces all bytes of a file by `pieces`, ascending and apart from each other, and zeros up to
/// `size`. Their space was reserved; where it could not be, there is one piece. Steps that can
/// fail come before those that lose old bytes; what the pieces overwrite is put back if one does.
pub fn replace(
    fd: impl AsFd,
    pieces: &[(u64, &[u8])],
    size: u64,
    reserved: Reserved,
) -> Result<(), StoreError> {
    let before = Stat::of(&fd)?.size;
    let mut old = Vec::with_capacity(pieces.len());
    for (at, bytes) in pieces {
        let mut overwritten = vec![0; bytes.len()];
        let count = read_at(&fd, &mut overwritten, *at)?;
        overwritten.truncate(count);
        old.push((*at, overwritten));
    }
    let end = write_pieces(&fd, pieces, (before, size), reserved).inspect_err(|_| {
        // The first error is the one to tell.
        for (at, bytes) in &old {
            let _ = write_at(&fd, bytes, *at);
        }
        let _ = set_len(&fd, before);
    })?;
    if end == size {
        return Ok(());
    }
    // The old bytes are gone: a failure is not an answer any more, unless it lasts.
    set_len(&fd, size).or_else(|_| set_len(&fd, size))
}

/// Writes pieces over the bytes of a file, clears what is between them and cuts the file off after
/// the last one, whose end it gives back.
fn write_pieces(
    fd: impl AsFd,
    pieces: &[(u64, &[u8])],
    (before, size): (u64, u64),
    reserved: Reserved,
) -> Result<u64, StoreError> {
    if size > before {
        // Grown with a hole: too long for the file system is found out here.
        set_len(&fd, size)?;
    }
    for (at, bytes) in pieces {
        write_or_restore(&fd, bytes, *at, reserved)?;
    }
    let mut end = 0;
    for (at, bytes) in pieces {
        clear_range(&fd, end..*at)?;
        end = at + bytes.len() as u64;
    }
    set_len(&fd, end)?;
    Ok(end)
}

/// The written parts of the first `size` bytes of a file, each with its offset.
pub fn read_pieces(fd: impl AsFd, size: u64) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let read = |range: Range<u64>| {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        Ok((range.start, read_bytes(&fd, range.start, length)?))
    };
    data_ranges(&fd, 0..size)?.into_iter().map(read).collect()
}

/// Refuses with [`StoreError::NoSpace`] if `more` bytes cannot have room on the file system.
pub fn check_room(fd: impl AsFd, more: u64) -> Result<(), StoreError> {
    if free_bytes(fd)? < more { Err(StoreError::NoSpace) } else { Ok(()) }
}

/// How much room the file system has left, without the part that is kept for root. One that does
/// not count its blocks (ramfs) has room for everything.
fn free_bytes(fd: impl AsFd) -> Result<u64, StoreError> {
    let stat = rustix::fs::fstatvfs(fd).map_err(doing("asking for free space"))?;
    let counts = stat.f_blocks > 0;
    Ok(if counts { stat.f_bavail.saturating_mul(stat.f_frsize) } else { u64::MAX })
}

fn fallocate(fd: impl AsFd, flags: FallocateFlags, range: Range<u64>) -> Result<(), Errno> {
    let len = range.end - range.start;
    retry_on_intr(|| rustix::fs::fallocate(&fd, flags, range.start, len))
}

/// Waits until bytes and attributes are on the disk.
pub fn sync(fd: impl AsFd) -> Result<(), StoreError> {
    front_end::assert_may_block("a flush");
    retry_on_intr(|| rustix::fs::fsync(&fd)).map_err(doing("flushing"))
}

/// Sets the times that are given and leaves the others. An `O_PATH` descriptor will do, a
/// symbolic link's too.
pub fn set_times(
    fd: impl AsFd,
    accessed: Option<Timestamp>,
    written: Option<Timestamp>,
) -> Result<(), StoreError> {
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps {
        last_access: accessed.map_or(omitted, timespec),
        last_modification: written.map_or(omitted, timespec),
    };
    rustix::fs::utimensat(fd, "", &times, AtFlags::EMPTY_PATH).map_err(doing("setting times"))
}

/// A moment as system calls take it. Euclidean, so that the nanoseconds of a time before 1970 are
/// not negative.
pub fn timespec(Timestamp(nanos): Timestamp) -> Timespec {
    const SECOND: i64 = 1_000_000_000;
    Timespec { tv_sec: nanos.div_euclid(SECOND), tv_nsec: nanos.rem_euclid(SECOND) }
}

#[cfg(test)]
mod tests;
