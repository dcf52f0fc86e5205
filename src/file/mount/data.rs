//! Data requests that the kernel sends to latchfs: reads and writes without passthrough and under
//! mandatory locks, and calls that are never passed through (holes, allocation, copies, flushes).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyLseek, ReplyWrite};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::ReadWriteFlags;

use super::driver::Requester;
use super::errno::{errno, of_system};
use super::gates_and_faults::{self, MountCall};
use super::open_files::{OpenDescriptor, OpenFile};
use super::opens::open_for;
use super::state::State;
use crate::file::rules::Denial;
use crate::file::rules::file_ranges::RangeUse;
use crate::file::rules::ranges::{ByteRange, LockOwner};
use crate::file::service::{Attempt, FileError, Stat, StoreError, read_at, write_at};

pub type Done<T> = Result<T, Errno>;

/// The most bytes one request copies: a program that is killed meanwhile ends only with it.
const COPY_MAX: usize = 16 << 20;

fn file(state: &State, fh: u64) -> Done<Arc<OpenFile>> {
    // One that is not known was closed by force, with its share.
    state.files.get(fh).ok_or(Errno::EIO)
}

/// A descriptor for the call: the open's own, or one made for it.
fn descriptor(state: &State, file: &Arc<OpenFile>) -> Done<OpenDescriptor> {
    // A force-closed handle is not in the table any more: its next use fails.
    state.share().describe(&file.handle).map_err(|error| errno(&error))?;
    if file.fd.is_some() {
        return Ok(OpenDescriptor::File(Arc::clone(file)));
    }
    if let Some(fd) = state.share().nameless(file.handle.file()) {
        return Ok(OpenDescriptor::Kept(fd));
    }
    let how = open_for(file.access);
    // By its name, which may be another file's by now if it was changed in the directory.
    let made = state.share().backing_of(&file.handle, how);
    made.map(OpenDescriptor::Made).map_err(|error| errno(&error))
}

fn on_file<T>(
    state: &State,
    fh: u64,
    call: impl FnOnce(&OwnedFd) -> rustix::io::Result<T>,
) -> Done<T> {
    let descriptor = descriptor(state, &file(state, fh)?)?;
    call(descriptor.fd()).map_err(of_system)
}

/// Does `work` on the bytes at an offset, or at the end of the file. Under mandatory locks a range
/// that another owner has locked is refused, in one step with the work; `None` if the lock goes
/// with a release that is on its way.
fn use_range<T>(
    state: &State,
    attempt: Attempt,
    (file, fd): (&OpenFile, &OwnedFd),
    (offset, length): (Option<u64>, usize),
    (lock_owner, using): (Option<u64>, RangeUse),
    work: impl FnOnce() -> Result<T, FileError>,
) -> Option<Done<T>> {
    let share = state.share();
    if !state.options.mandatory_locks {
        let counts = using == RangeUse::Write && share.has_coarse_times();
        let counted = if counts { share.count_write(&file.handle, fd) } else { Ok(()) };
        return Some(counted.and_then(|()| work()).map_err(|error| errno(&error)));
    }
    let range = || {
        let at = offset.map_or_else(|| Stat::of(fd).map(|stat| stat.size), Ok)?;
        let past = Denial::InvalidParameter("the range runs past the largest offset");
        ByteRange::new(at, length as u64).map_err(|_| past.into())
    };
    let by = (lock_owner.map(LockOwner::Posix), using);
    let done = share.mount_use_range(attempt, (&file.handle, fd), range, by, work)?;
    Some(done.map_err(|error| errno(&error)))
}

pub fn read(
    state: &Arc<State>,
    fh: u64,
    range: (u64, u32),
    lock_owner: Option<u64>,
    reply: ReplyData,
) {
    let asked = Arc::clone(state);
    let read = move |attempt| read_now(&asked, attempt, fh, range, lock_owner);
    state.park.until(read, move |done| match done {
        Ok(bytes) => reply.data(&bytes),
        Err(errno) => reply.error(errno),
    });
}

fn read_now(
    state: &State,
    attempt: Attempt,
    fh: u64,
    (offset, size): (u64, u32),
    lock_owner: Option<u64>,
) -> Option<Done<Vec<u8>>> {
    let opened = file(state, fh).and_then(|file| Ok((descriptor(state, &file)?, file)));
    let (descriptor, file) = match opened {
        Ok(opened) => opened,
        Err(errno) => return Some(Err(errno)),
    };
    let (at, by) = ((Some(offset), size as usize), (lock_owner, RangeUse::Read));
    use_range(state, attempt, (&file, descriptor.fd()), at, by, || {
        let mut bytes = vec![0; size as usize];
        let got = read_at(descriptor.fd(), &mut bytes, offset)?;
        bytes.truncate(got);
        Ok(bytes)
    })
}

/// `write(2)`: at an offset, or at the current end of the file. The end that the kernel knows may
/// be out of date: the file is also written through other names, through REST and directly.
pub fn write(
    state: &Arc<State>,
    caller: Requester,
    fh: u64,
    (offset, bytes): (Option<u64>, &[u8]),
    lock_owner: Option<u64>,
    reply: ReplyWrite,
) {
    let length = u32::try_from(bytes.len()).expect("writes are at most 1 MiB");
    let answer = move |done: Done<()>| match done {
        Ok(()) => reply.written(length),
        Err(errno) => reply.error(errno),
    };
    if !gates_and_faults::are_set(state) {
        return write_or_wait(state, fh, (offset, bytes), lock_owner, answer);
    }
    let path = file(state, fh)
        .and_then(|file| state.share().path_of(&file.handle).map_err(|error| errno(&error)));
    let path = match path {
        Ok(path) => path,
        Err(errno) => return answer(Err(errno)),
    };
    let bytes = bytes.to_vec();
    gates_and_faults::arrive(state, MountCall::Write, caller, &path, move |state, met| match met {
        Ok(()) => write_or_wait(state, fh, (offset, &bytes), lock_owner, answer),
        Err(errno) => answer(Err(errno)),
    });
}

/// Writes, and copies the bytes only if the write waits for a release.
fn write_or_wait(
    state: &Arc<State>,
    fh: u64,
    (offset, bytes): (Option<u64>, &[u8]),
    lock_owner: Option<u64>,
    answer: impl FnOnce(Done<()>) + Send + 'static,
) {
    let nudges = state.park.nudges();
    let done = write_now(state, Attempt::Repeatable, fh, (offset, bytes), lock_owner);
    if let Some(done) = done {
        return answer(done);
    }
    let (asked, bytes) = (Arc::clone(state), bytes.to_vec());
    let write = move |attempt| write_now(&asked, attempt, fh, (offset, &bytes), lock_owner);
    state.park.later(nudges, write, answer);
}

fn write_now(
    state: &State,
    attempt: Attempt,
    fh: u64,
    (offset, bytes): (Option<u64>, &[u8]),
    lock_owner: Option<u64>,
) -> Option<Done<()>> {
    let opened = file(state, fh).and_then(|file| Ok((descriptor(state, &file)?, file)));
    let (descriptor, file) = match opened {
        Ok(opened) => opened,
        Err(errno) => return Some(Err(errno)),
    };
    let (at, by) = ((offset, bytes.len()), (lock_owner, RangeUse::Write));
    use_range(state, attempt, (&file, descriptor.fd()), at, by, || match offset {
        Some(offset) => Ok(write_at(descriptor.fd(), bytes, offset)?),
        None => append(descriptor.fd(), bytes)
            .map_err(|source| StoreError::Io { what: "appending", source }.into()),
    })
}

/// Appends all bytes; the system call finds the end of the file itself.
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

/// Runs `call`, which takes long by its kind, on a thread of the pool.
pub fn on_pool<T>(
    state: &Arc<State>,
    call: impl FnOnce(&Arc<State>) -> Done<T> + Send + 'static,
    answer: impl FnOnce(Done<T>) + Send + 'static,
) {
    let on = Arc::clone(state);
    state.pool.run(move || answer(call(&on)));
}

/// Answers a call that returns success or an errno.
pub fn answer(done: Done<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// `fsync(2)` and `fdatasync(2)`.
pub fn sync(state: &Arc<State>, fh: u64, data_only: bool, reply: ReplyEmpty) {
    let flush = move |fd: &OwnedFd| {
        if data_only { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }
    };
    on_pool(state, move |state| on_file(state, fh, flush), |done| answer(done, reply));
}

/// `fallocate(2)`: reserve, punch, zero, with and without growing.
pub fn allocate(
    state: &Arc<State>,
    fh: u64,
    (offset, length): (u64, u64),
    mode: i32,
    reply: ReplyEmpty,
) {
    let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
    let reserve = move |state: &Arc<State>| {
        let file = file(state, fh)?;
        let descriptor = descriptor(state, &file)?;
        let fd = descriptor.fd();
        let reserve = || Ok(rustix::fs::fallocate(fd, flags, offset, length).map_err(of_system));
        let at = (Some(offset), usize::try_from(length).unwrap_or(usize::MAX));
        match use_range(state, Attempt::Last, (&file, fd), at, (None, RangeUse::Write), reserve) {
            Some(Ok(done)) => done,
            // The call does not say who holds a lock: the caller writes instead, as it does where
            // nothing can be reserved.
            _ => Err(Errno::EOPNOTSUPP),
        }
    };
    on_pool(state, reserve, |done| answer(done, reply));
}

/// `lseek(2)` for data and holes; the kernel knows the other kinds itself.
pub fn seek(state: &Arc<State>, fh: u64, offset: i64, whence: i32, reply: ReplyLseek) {
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

/// `copy_file_range(2)` between two files of the mount: at most [`COPY_MAX`] bytes, after which
/// the caller asks again. Under mandatory locks the kernel is left to read and write, which say who
/// holds a lock.
pub fn copy(
    state: &Arc<State>,
    (from, mut from_at): (u64, u64),
    (to, mut to_at): (u64, u64),
    length: u64,
    reply: ReplyWrite,
) {
    if state.options.mandatory_locks {
        return reply.error(Errno::EOPNOTSUPP);
    }
    let copy = move |state: &Arc<State>| {
        let source = descriptor(state, &file(state, from)?)?;
        on_file(state, to, |target| {
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(COPY_MAX);
            let (from_at, to_at) = (Some(&mut from_at), Some(&mut to_at));
            rustix::fs::copy_file_range(source.fd(), from_at, target, to_at, length)
        })
    };
    on_pool(state, copy, |done| match done {
        Ok(copied) => reply.written(u32::try_from(copied).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(errno),
    });
}
