//! Attributes: stat, chmod, chown, times, size, extended attributes, the share's size.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fuser::{AccessFlags, Errno, ReplyAttr, ReplyEmpty, ReplyStatfs, ReplyXattr, TimeOrNow};
use rustix::fs::{Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};

use super::attr::{NO_TTL, timestamp};
use super::driver::Requester;
use super::errno::{errno, of_system};
use super::open_files::OpenDescriptor;
use super::opens::{tell_siblings, ttl};
use super::state::State;
use super::{data, privileges};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::{
    Attempt, FileError, FileKind, FoundFile, OpenFor, Stat, proc_path, timespec,
};

/// The extended attribute with latchfs's own record, which is hidden from programs.
const HIDDEN: &str = crate::file::service::Records::XATTR;

/// `stat(2)`. If the name is pending and all its opens are being released, waits for the releases.
pub fn get(state: &Arc<State>, node: u64, reply: ReplyAttr) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |attempt| {
            let goes = |path: SharePath| asked.share().is_on_its_way_out(&path);
            let waits = attempt == Attempt::Repeatable && asked.nodes.path(node).is_some_and(goes);
            (!waits).then(|| stat_of(&asked, node))
        },
        move |seen| answer(&again, node, seen, reply),
    );
}

fn answer(state: &State, node: u64, seen: Result<Stat, Errno>, reply: ReplyAttr) {
    match seen {
        Ok(stat) => {
            let ttl = if state.nodes.is_alive(node) { ttl(state, node, &stat) } else { NO_TTL };
            // The number of the file, which all its names share.
            let number = state.nodes.number(node, stat.id);
            reply.attr(&ttl, &state.attr(number, &stat));
        }
        Err(errno) => reply.error(errno),
    }
}

/// The file of a node: by a descriptor of it, if there is one, else by the node's name. If that is
/// gone, a descriptor that was opened by it still has its file, which may have another name now.
fn stat_of(state: &State, node: u64) -> Result<Stat, Errno> {
    if let Some(held) = state.open_descriptor(node) {
        return Stat::of(&held).map_err(|error| errno(&error.into()));
    }
    if let Some(path) = state.nodes.path(node) {
        let seen = match state.share().lookup(&path) {
            Ok(FoundFile { stat, .. })
                if state.nodes.file(node).is_none_or(|file| file == stat.id) =>
            {
                return Ok(stat);
            }
            Ok(_) => Errno::ESTALE, // Another file stands there now.
            Err(error) => errno(&error),
        };
        // The name may have been moved or taken away just now, from under an open.
        return state.stat_open(node).ok_or(seen)?.map_err(|error| errno(&error));
    }
    match state.stat_open(node) {
        Some(stat) => stat.map_err(|error| errno(&error)),
        // The working directory of a program: no name is there to be looked up again.
        None if state.nodes.is_gone(node) => Err(Errno::ENOENT),
        None => Err(Errno::ESTALE),
    }
}

/// Where the file of a node is now. The name of an open is right also while the node is moved.
fn path_of(state: &State, node: u64) -> Result<SharePath, Errno> {
    state.path_open(node).or_else(|| state.nodes.path(node)).ok_or(Errno::ESTALE)
}

/// The attributes that a `setattr` request changes.
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
    caller: Requester,
    node: u64,
    fh: Option<u64>,
    changes: Changes,
    reply: ReplyAttr,
) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |attempt| {
            if let Some(size) = changes.size
                && let Err(refused) = resize(&asked, attempt, caller, (node, fh), size)?
            {
                return Some(Err(errno(&refused)));
            }
            // The change is made. A look that fails is repeated, so that a failure that passes
            // does not tell the program that nothing happened.
            let look = || stat_of(&asked, node).or_else(|_| stat_of(&asked, node));
            Some(change(&asked, caller, node, &changes).and_then(|()| look()))
        },
        move |seen| {
            tell_siblings(&again, node);
            answer(&again, node, seen, reply);
        },
    );
}

fn change(state: &State, caller: Requester, node: u64, changes: &Changes) -> Result<(), Errno> {
    let changes_owner = changes.uid.is_some() || changes.gid.is_some();
    let changes_inode = changes_owner
        || changes.mode.is_some()
        || changes.atime.is_some()
        || changes.mtime.is_some();
    if !changes_inode {
        return Ok(());
    }
    let fd = descriptor(state, node)?;
    if caller.uid != 0 && changes_owner {
        privileges::strip(&fd).map_err(Errno::from)?;
    }
    let done = change_inode(&fd, changes).map_err(of_system);
    if (changes_owner || changes.mode.is_some())
        && let Ok(path) = path_of(state, node)
    {
        state.share().permissions_changed(&path);
    }
    done
}

/// Through a descriptor that may write, or else as a momentary open with W. Set-id bits go when no
/// rule refuses the new size any more, and before the first byte can change.
fn resize(
    state: &State,
    attempt: Attempt,
    caller: Requester,
    (node, fh): (u64, Option<u64>),
    size: u64,
) -> Option<Result<(), FileError>> {
    let strip = |fd: &OwnedFd| {
        if caller.uid == 0 { Ok(()) } else { privileges::strip_to_resize(fd) }
    };
    let share = state.share();
    if let Some(file) = fh.and_then(|fh| state.files.get(fh)) {
        let nameless = share.nameless(file.handle.file());
        let fd = file.fd.as_ref().or(nameless.as_deref());
        return Some(share.resize(None, (&file.handle, fd), size, &strip));
    }
    let Ok(path) = path_of(state, node) else { return Some(Err(Denial::NotFound.into())) };
    let cx = state.context(caller.pid, "truncate");
    share.mount_truncate(attempt, &cx, &path, size, &strip)
}

fn change_inode(fd: &OpenDescriptor, changes: &Changes) -> rustix::io::Result<()> {
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
            last_access: time_to_set(changes.atime),
            last_modification: time_to_set(changes.mtime),
        };
        rustix::fs::utimensat(fd, "", &times, rustix::fs::AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

fn time_to_set(time: Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => timespec(timestamp(time)),
    }
}

/// A descriptor of a node's file, for what takes part in no rule: one that is there, or one made
/// by the node's name.
fn descriptor(state: &State, node: u64) -> Result<OpenDescriptor, Errno> {
    if let Some(held) = state.open_descriptor(node) {
        return Ok(held);
    }
    let made = state.share().backing(&path_of(state, node)?, OpenFor::Path);
    made.map(OpenDescriptor::Made).map_err(|error| errno(&error))
}

/// Does `call` on a path that means the node's file itself.
fn on_file<T>(
    state: &State,
    node: u64,
    call: impl FnOnce(&str) -> rustix::io::Result<T>,
) -> Result<T, Errno> {
    call(&proc_path(&descriptor(state, node)?)).map_err(of_system)
}

/// True for attributes that the mount does not support: access control lists would be stored and
/// not enforced, and the label of a security module belongs to the mount, not to a file.
fn is_unsupported(name: &str) -> bool {
    name == "security.selinux" || name.starts_with("system.posix_acl_")
}

/// True if programs may see an attribute of that name.
fn is_listed(name: &[u8]) -> bool {
    str::from_utf8(name).is_ok_and(|name| name != HIDDEN && !is_unsupported(name))
}

/// Room for the names of the attributes that a file has as a rule, so that one call lists them.
const TYPICAL_NAMES: usize = 1024;

/// The answer about extended attributes: the length, and the bytes if the caller asked for them.
type XattrAnswer = Result<(usize, Vec<u8>), Errno>;

/// `getxattr(2)`.
pub fn get_xattr(state: &Arc<State>, node: u64, name: &str, size: u32, reply: ReplyXattr) {
    if is_unsupported(name) {
        return reply.error(Errno::EOPNOTSUPP);
    }
    if name == HIDDEN {
        return reply.error(Errno::NO_XATTR);
    }
    let get = || {
        let mut value = vec![0; size as usize];
        let got = on_file(state, node, |file| match size {
            0 => rustix::fs::getxattr_query(file, name),
            _ => rustix::fs::getxattr(file, name, &mut value[..]),
        });
        got.map(|length| (length, value))
    };
    state.park.answer(get, |got| answer_xattr(got, size, reply));
}

fn answer_xattr(got: XattrAnswer, size: u32, reply: ReplyXattr) {
    match got {
        Ok((length, _)) if size == 0 => reply.size(u32::try_from(length).unwrap_or(u32::MAX)),
        Ok((length, value)) => reply.data(&value[..length]),
        Err(errno) => reply.error(errno),
    }
}

/// `setxattr(2)`.
pub fn set_xattr(
    state: &Arc<State>,
    node: u64,
    (name, value): (&str, &[u8]),
    flags: i32,
    reply: ReplyEmpty,
) {
    if is_unsupported(name) {
        return reply.error(Errno::EOPNOTSUPP);
    }
    if name == HIDDEN {
        return reply.error(Errno::EPERM);
    }
    let flags = XattrFlags::from_bits_truncate(flags.cast_unsigned());
    let set = || on_file(state, node, |file| rustix::fs::setxattr(file, name, value, flags));
    state.park.answer(set, |done| data::answer(done, reply));
}

/// `removexattr(2)`.
pub fn remove_xattr(state: &Arc<State>, node: u64, name: &str, reply: ReplyEmpty) {
    if is_unsupported(name) {
        return reply.error(Errno::EOPNOTSUPP);
    }
    if name == HIDDEN {
        return reply.error(Errno::NO_XATTR);
    }
    let remove = || on_file(state, node, |file| rustix::fs::removexattr(file, name));
    state.park.answer(remove, |done| data::answer(done, reply));
}

/// `listxattr(2)`, without the attribute of latchfs.
pub fn list_xattr(state: &Arc<State>, node: u64, size: u32, reply: ReplyXattr) {
    let list = || {
        let names = on_file(state, node, |file| {
            let mut names = vec![0_u8; TYPICAL_NAMES];
            let mut listed = rustix::fs::listxattr(file, &mut names[..]);
            if listed == Err(rustix::io::Errno::RANGE) {
                names.resize(rustix::fs::listxattr_query(file)?, 0);
                listed = rustix::fs::listxattr(file, &mut names[..]);
            }
            names.truncate(listed?);
            Ok(names)
        })?;
        let shown: Vec<u8> = names
            .split_inclusive(|byte| *byte == 0)
            .filter(|name| is_listed(name.strip_suffix(&[0]).unwrap_or(name)))
            .flatten()
            .copied()
            .collect();
        if size != 0 && shown.len() > size as usize {
            return Err(Errno::ERANGE);
        }
        Ok((shown.len(), shown))
    };
    state.park.answer(list, |listed| answer_xattr(listed, size, reply));
}

/// `statfs(2)`: the share's quota and use.
pub fn statfs(state: &State, reply: ReplyStatfs) {
    const BLOCK: u64 = 4096;
    const NAME_MAX: u32 = 255;
    let told = state.options.space.as_ref().and_then(|source| source());
    match told.map_or_else(|| state.share().space(), Ok) {
        Ok(space) => {
            let (total, free) = (space.total / BLOCK, space.free / BLOCK);
            let block = u32::try_from(BLOCK).expect("4096");
            reply.statfs(total, free, free, space.files, space.files_free, block, NAME_MAX, block);
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// `fsync(2)` of a directory.
pub fn sync_dir(state: &Arc<State>, fh: u64, reply: ReplyEmpty) {
    let sync = move |state: &Arc<State>| {
        let dir = state.dirs.get(fh).ok_or(Errno::EIO)?;
        rustix::fs::fsync(dir.dir.fd()).map_err(of_system)
    };
    data::on_pool(state, sync, |done| data::answer(done, reply));
}

/// `access(2)` where the kernel does not check permission bits. Only the server's own user reaches
/// the mount then, and has the server's rights; execution still needs an execute bit.
pub fn access(state: &Arc<State>, node: u64, mask: AccessFlags, reply: ReplyEmpty) {
    let check = || {
        let stat = stat_of(state, node)?;
        let executes = mask.contains(AccessFlags::X_OK) && stat.kind == FileKind::File;
        if executes && stat.mode & 0o111 == 0 { Err(Errno::EACCES) } else { Ok(()) }
    };
    state.park.answer(check, |done| data::answer(done, reply));
}
