//! Attributes: stat, chmod, chown, times, size, extended attributes, the share's size.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{AccessFlags, Errno, ReplyAttr, ReplyEmpty, ReplyStatfs, ReplyXattr, TimeOrNow};
use rustix::fs::{Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};

use super::SpaceSource;
use super::attr::timestamp;
use super::driver::Caller;
use super::errno::{errno, of_system};
use super::opens::{tell_siblings, ttl};
use super::privileges;
use super::state::State;
use crate::core::{Access, Denial, ShareMode, SharePath};
use crate::engine::{Error, Found, Kind, OpenFor, Stat, StoreError, proc_path, set_len};

/// The record that latchfs keeps in an extended attribute is not for programs.
const HIDDEN: &str = crate::engine::Records::XATTR;

/// What `stat(2)` shows. A pending name whose opens are all being released is waited for.
pub fn get(state: &Arc<State>, node: u64, reply: ReplyAttr) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |last| {
            let path = asked.nodes.path(node);
            let waits = !last && path.is_some_and(|path| asked.share.is_on_its_way_out(&path));
            (!waits).then(|| stat_of(&asked, node))
        },
        move |seen| answer(&again, node, seen, reply),
    );
}

fn answer(
    state: &State,
    node: u64,
    seen: Result<(Option<SharePath>, Stat), Errno>,
    reply: ReplyAttr,
) {
    match seen {
        Ok((path, stat)) => {
            let ttl = path.map_or(super::attr::NO_TTL, |path| ttl(state, &path, &stat));
            reply.attr(&ttl, &state.attr(node, &stat));
        }
        Err(errno) => reply.error(errno),
    }
}

/// The file of a node, by the node's name. If that is gone, a descriptor that was opened by it
/// still has its file, which may have another name now.
fn stat_of(state: &State, node: u64) -> Result<(Option<SharePath>, Stat), Errno> {
    if let Some(path) = state.nodes.path(node) {
        let Found { path, stat } = state.share.lookup(&path).map_err(|error| errno(&error))?;
        if state.nodes.file(node).is_some_and(|file| file != stat.id) {
            return Err(Errno::ESTALE); // Another file stands there now.
        }
        return Ok((Some(path), stat));
    }
    let stat = state.stat_open(node).ok_or(Errno::ESTALE)?;
    stat.map(|stat| (None, stat)).map_err(|error| errno(&error))
}

/// Where the file of a node is now.
fn path_of(state: &State, node: u64) -> Result<SharePath, Errno> {
    match state.nodes.path(node) {
        Some(path) => Ok(path),
        None => state.path_open(node).ok_or(Errno::ESTALE),
    }
}

/// What `setattr` changes.
pub struct Changes {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<TimeOrNow>,
    pub mtime: Option<TimeOrNow>,
}

/// `chmod`, `chown`, `truncate`, `utimens`. Opens that are only being released and would refuse a
/// new size are waited for.
pub fn set(
    state: &Arc<State>,
    caller: Caller,
    node: u64,
    fh: Option<u64>,
    changes: Changes,
    reply: ReplyAttr,
) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |last| {
            let waits = |refused: &Error| {
                let (Error::Denied(denial), Ok(path)) = (refused, path_of(&asked, node)) else {
                    return false;
                };
                asked.share.only_flushed_in_the_way(&path, denial, Access::W, ShareMode::RWD)
            };
            if let Some(size) = changes.size
                && let Err(refused) = resize(&asked, caller, (node, fh), size)
            {
                return (last || !waits(&refused)).then(|| Err(errno(&refused)));
            }
            Some(change(&asked, caller, node, &changes).and_then(|()| stat_of(&asked, node)))
        },
        move |seen| {
            tell_siblings(&again, node);
            answer(&again, node, seen, reply);
        },
    );
}

fn change(state: &State, caller: Caller, node: u64, changes: &Changes) -> Result<(), Errno> {
    if let Some(fd) = state.orphan(node) {
        return change_inode(&fd, changes).map_err(of_system);
    }
    let path = path_of(state, node)?;
    if caller.uid != 0 && (changes.uid.is_some() || changes.gid.is_some()) {
        let (_, stat) = stat_of(state, node)?;
        privileges::strip(&state.share, &path, &stat).map_err(Errno::from)?;
    }
    let changes_inode = changes.mode.is_some()
        || changes.uid.is_some()
        || changes.gid.is_some()
        || changes.atime.is_some()
        || changes.mtime.is_some();
    if changes_inode {
        let fd = backing(state, &path)?;
        change_inode(&fd, changes).map_err(of_system)?;
    }
    Ok(())
}

/// Through a descriptor that may write, or else as a momentary open with W. Set-id bits go before
/// the first byte can change.
fn resize(
    state: &State,
    caller: Caller,
    (node, fh): (u64, Option<u64>),
    size: u64,
) -> Result<(), Error> {
    if let Some(fd) = state.orphan(node) {
        return Ok(set_len(&fd, size)?);
    }
    let path = path_of(state, node).map_err(|_| Denial::NotFound)?;
    if caller.uid != 0 {
        let stat = state.share.lookup(&path)?.stat;
        let stripped = privileges::strip(&state.share, &path, &stat);
        stripped.map_err(|source| Error::Store(StoreError::Io { what: "set-id bits", source }))?;
    }
    if let Some(file) = fh.and_then(|fh| state.file(fh)) {
        return state.share.set_size(&file.handle, size);
    }
    state.share.truncate(&state.owner(caller.pid), &path, size).map(drop)
}

fn change_inode(fd: &OwnedFd, changes: &Changes) -> rustix::io::Result<()> {
    let name = proc_path(fd);
    if changes.uid.is_some() || changes.gid.is_some() {
        let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
        rustix::fs::chownat(fd, "", uid, gid, rustix::fs::AtFlags::EMPTY_PATH)?;
    }
    if let Some(mode) = changes.mode {
        rustix::fs::chmod(&name, Mode::from_raw_mode(mode & 0o7777))?;
    }
    if changes.atime.is_some() || changes.mtime.is_some() {
        let times = Timestamps {
            last_access: timespec(changes.atime),
            last_modification: timespec(changes.mtime),
        };
        rustix::fs::utimensat(fd, "", &times, rustix::fs::AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let at = |time: SystemTime| {
        let nanos = timestamp(time).0;
        Timespec {
            tv_sec: nanos.div_euclid(1_000_000_000),
            tv_nsec: nanos.rem_euclid(1_000_000_000),
        }
    };
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => at(time),
    }
}

fn backing(state: &State, path: &SharePath) -> Result<OwnedFd, Errno> {
    state.share.backing(path, OpenFor::Path).map_err(|error| errno(&error))
}

/// Does `call` on a path that means the node's file itself.
fn on_file<T>(
    state: &State,
    node: u64,
    call: impl FnOnce(&str) -> rustix::io::Result<T>,
) -> Result<T, Errno> {
    if let Some(fd) = state.orphan(node) {
        return call(&proc_path(&fd)).map_err(of_system);
    }
    let path = path_of(state, node)?;
    let fd = backing(state, &path)?;
    call(&proc_path(&fd)).map_err(of_system)
}

/// `getxattr(2)`.
pub fn get_xattr(state: &State, node: u64, name: &str, size: u32, reply: ReplyXattr) {
    if name == HIDDEN {
        return reply.error(Errno::NO_XATTR);
    }
    let mut value = vec![0; size as usize];
    let got = on_file(state, node, |file| match size {
        0 => rustix::fs::getxattr_query(file, name),
        _ => rustix::fs::getxattr(file, name, &mut value[..]),
    });
    answer_xattr(got, size, &value, reply);
}

fn answer_xattr(got: Result<usize, Errno>, size: u32, value: &[u8], reply: ReplyXattr) {
    match got {
        Ok(length) if size == 0 => reply.size(u32::try_from(length).unwrap_or(u32::MAX)),
        Ok(length) => reply.data(&value[..length]),
        Err(errno) => reply.error(errno),
    }
}

/// `setxattr(2)`.
pub fn set_xattr(
    state: &State,
    node: u64,
    (name, value): (&str, &[u8]),
    flags: i32,
    reply: ReplyEmpty,
) {
    if name == HIDDEN {
        return reply.error(Errno::EPERM);
    }
    let flags = XattrFlags::from_bits_truncate(flags.cast_unsigned());
    match on_file(state, node, |file| rustix::fs::setxattr(file, name, value, flags)) {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// `removexattr(2)`.
pub fn remove_xattr(state: &State, node: u64, name: &str, reply: ReplyEmpty) {
    if name == HIDDEN {
        return reply.error(Errno::NO_XATTR);
    }
    match on_file(state, node, |file| rustix::fs::removexattr(file, name)) {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// `listxattr(2)`, without our own.
pub fn list_xattr(state: &State, node: u64, size: u32, reply: ReplyXattr) {
    let listed = on_file(state, node, |file| {
        let length = rustix::fs::listxattr_query(file)?;
        let mut names = vec![0_u8; length];
        let length = rustix::fs::listxattr(file, &mut names[..])?;
        names.truncate(length);
        Ok(names)
    });
    let names = match listed {
        Ok(names) => names,
        Err(errno) => return reply.error(errno),
    };
    let shown: Vec<u8> = names
        .split_inclusive(|byte| *byte == 0)
        .filter(|name| name.strip_suffix(&[0]) != Some(HIDDEN.as_bytes()))
        .flatten()
        .copied()
        .collect();
    if size != 0 && shown.len() > size as usize {
        return reply.error(Errno::ERANGE);
    }
    answer_xattr(Ok(shown.len()), size, &shown, reply);
}

/// `statfs(2)`: the share's quota and use.
pub fn statfs(state: &State, reply: ReplyStatfs) {
    const BLOCK: u64 = 4096;
    const NAME_MAX: u32 = 255;
    let told = state.options.space.as_ref().and_then(SpaceSource::ask);
    match told.map_or_else(|| state.share.space(), Ok) {
        Ok(space) => {
            let (total, free) = (space.total / BLOCK, space.free / BLOCK);
            let block = u32::try_from(BLOCK).expect("4096");
            reply.statfs(total, free, free, space.files, space.files_free, block, NAME_MAX, block);
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// `fsync(2)` of a directory.
pub fn sync_dir(state: &State, node: u64, reply: ReplyEmpty) {
    let opened = match state.orphan(node) {
        Some(fd) => Ok(fd),
        None => path_of(state, node).and_then(|path| {
            let opened = state.share.backing(&path, OpenFor::Read);
            opened.map(Arc::new).map_err(|error| errno(&error))
        }),
    };
    let done = opened.and_then(|fd| rustix::fs::fsync(&fd).map_err(of_system));
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// `access(2)` where the kernel does not check permission bits itself: only the owner is here,
/// who may do what the server may, but for executing what nobody may execute.
pub fn access(state: &State, node: u64, mask: AccessFlags, reply: ReplyEmpty) {
    match stat_of(state, node) {
        Ok((_, stat)) => {
            let executes = mask.contains(AccessFlags::X_OK) && stat.kind == Kind::File;
            if executes && stat.mode & 0o111 == 0 {
                return reply.error(Errno::EACCES);
            }
            reply.ok();
        }
        Err(errno) => reply.error(errno),
    }
}
