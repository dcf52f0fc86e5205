//! Names: lookup, making, removing, renaming, linking.

use std::sync::Arc;

use fuser::{Errno, Generation, RenameFlags, ReplyData, ReplyEmpty, ReplyEntry};
use rustix::fs::FileType;

use super::attr::attr;
use super::driver::Caller;
use super::errno::errno;
use super::opens::{forget_name, ttl};
use super::state::State;
use crate::core::create::{Disposition, OpenRequest};
use crate::core::{Access, ShareMode, SharePath};
use crate::engine::{Creation, Error, Found, PosixOpen, Stat, Unlinked};

/// What a name stands for. A pending name whose opens are all being released is waited for: right
/// after the last `close(2)` it is gone.
pub fn lookup(state: &Arc<State>, parent: u64, name: &str, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    if state.share.is_on_its_way_out(&path) {
        let (again, name) = (Arc::clone(state), name.to_owned());
        let mut reply = Some(reply);
        state.park.park(Box::new(move |last| {
            if !last && again.share.is_on_its_way_out(&path) {
                return false;
            }
            let reply = reply.take().expect("a parked request is answered once");
            answer_lookup(&again, parent, &name, again.share.lookup(&path), reply);
            true
        }));
        return;
    }
    answer_lookup(state, parent, name, state.share.lookup(&path), reply);
}

fn answer_lookup(
    state: &State,
    parent: u64,
    name: &str,
    found: Result<Found, Error>,
    reply: ReplyEntry,
) {
    match found {
        Ok(Found { path, stat }) => {
            let (node, generation) = state.nodes.enter(parent, name, stat.id);
            let ttl = ttl(state, &path, stat.id);
            reply.entry(&ttl, &attr(node, &stat), Generation(generation));
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// A new entry was made, or not.
fn answer_made(
    state: &State,
    (parent, name): (u64, &str),
    made: Result<Stat, Error>,
    reply: ReplyEntry,
) {
    match made {
        Ok(stat) => {
            let (node, generation) = state.nodes.enter(parent, name, stat.id);
            reply.entry(&super::attr::TTL, &attr(node, &stat), Generation(generation));
        }
        Err(error) => reply.error(errno(&error)),
    }
}

fn creation(caller: Caller, mode: u32) -> Creation {
    Creation { mode: mode & 0o7777, uid: caller.uid, gid: caller.gid }
}

/// `mkdir(2)`.
pub fn mkdir(state: &State, caller: Caller, at: (u64, &str), mode: u32, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(at.0, at.1) else { return reply.error(Errno::ESTALE) };
    let who = state.owner(caller.pid);
    let made = state.share.mkdir(&who, &path, creation(caller, mode));
    answer_made(state, at, made, reply);
}

/// `mknod(2)`: files, FIFOs and sockets; no devices on a share.
pub fn mknod(state: &State, caller: Caller, at: (u64, &str), mode: u32, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(at.0, at.1) else { return reply.error(Errno::ESTALE) };
    let who = state.owner(caller.pid);
    let creation = creation(caller, mode);
    let made = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => {
            let request = OpenRequest {
                disposition: Disposition::Create,
                ..OpenRequest::plain(Access::NONE, ShareMode::RWD)
            };
            let posix = PosixOpen { creation: Some(creation), ..PosixOpen::default() };
            let opened = state.share.open_posix(&who, &path, &request, posix);
            opened.and_then(|opened| state.share.close(&opened.handle).map(|()| opened.stat))
        }
        kind => state.share.mknod(&who, &path, kind, creation),
    };
    answer_made(state, at, made, reply);
}

/// `symlink(2)`: any target is stored as it is.
pub fn symlink(state: &State, caller: Caller, at: (u64, &str), target: &str, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(at.0, at.1) else { return reply.error(Errno::ESTALE) };
    let who = state.owner(caller.pid);
    let made = state.share.symlink(&who, &path, target, creation(caller, 0o777));
    answer_made(state, at, made, reply);
}

/// `readlink(2)`.
pub fn readlink(state: &State, node: u64, reply: ReplyData) {
    let Some(path) = state.nodes.path(node) else { return reply.error(Errno::ESTALE) };
    match state.share.read_link(&path) {
        Ok(target) => reply.data(target.as_bytes()),
        Err(error) => reply.error(errno(&error)),
    }
}

/// `link(2)`.
pub fn link(state: &State, caller: Caller, node: u64, at: (u64, &str), reply: ReplyEntry) {
    let (Some(from), Some(to)) = (state.nodes.path(node), state.nodes.child(at.0, at.1)) else {
        return reply.error(Errno::ESTALE);
    };
    let who = state.owner(caller.pid);
    let made = state.share.link(&who, &from, &to).and_then(|()| Ok(state.share.lookup(&to)?.stat));
    state.notices.attributes(node); // One link more.
    answer_made(state, at, made, reply);
}

/// `unlink(2)` and `rmdir(2)`. Opens that are only being released are waited for.
pub fn remove(
    state: &Arc<State>,
    caller: Caller,
    (parent, name): (u64, &str),
    directory: bool,
    reply: ReplyEmpty,
) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let (again, name) = (Arc::clone(state), name.to_owned());
    let mut reply = Some(reply);
    let mut attempt = move |last: bool| {
        if !last && again.share.awaits_release(&path) {
            return false;
        }
        let who = again.owner(caller.pid);
        let removed = if directory {
            again.share.rmdir(&who, &path)
        } else {
            again.share.unlink(&who, &path)
        };
        let reply = reply.take().expect("a request is answered once");
        match removed {
            Ok(Unlinked::Removed) => {
                let stale = again.nodes.removed(parent, &name);
                reply.ok();
                again.notices.names(stale);
            }
            Ok(Unlinked::Pending) => {
                // The name stays: the kernel must ask again, and go on asking.
                let stale = again.nodes.spellings(&path);
                stale.iter().for_each(|stale| again.notices.attributes(stale.node));
                reply.ok();
                again.notices.names(stale);
            }
            Err(error) => reply.error(errno(&error)),
        }
        true
    };
    if !attempt(false) {
        state.park.park(Box::new(attempt));
    }
}

/// `renameat2(2)`. An open target that is only being released is waited for.
pub fn rename(
    state: &Arc<State>,
    caller: Caller,
    from: (u64, &str),
    to: (u64, &str),
    flags: RenameFlags,
    reply: ReplyEmpty,
) {
    let (Some(source), Some(target)) =
        (state.nodes.child(from.0, from.1), state.nodes.child(to.0, to.1))
    else {
        return reply.error(Errno::ESTALE);
    };
    let move_ = Move { caller, source, target, flags };
    let (again, from, to) =
        (Arc::clone(state), (from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
    let mut reply = Some(reply);
    let mut attempt = move |last: bool| {
        if !last
            && (again.share.awaits_release(&move_.source)
                || again.share.awaits_release(&move_.target))
        {
            return false;
        }
        let moved = move_.carry_out(&again);
        let reply = reply.take().expect("a request is answered once");
        match moved {
            Ok(()) if move_.flags.contains(RenameFlags::RENAME_EXCHANGE) => {
                again.nodes.exchanged((from.0, &from.1), (to.0, &to.1));
                reply.ok();
            }
            Ok(()) => {
                let stale = again.nodes.moved((from.0, &from.1), (to.0, &to.1));
                stale.iter().for_each(|stale| again.notices.attributes(stale.node));
                reply.ok();
                again.notices.names(stale);
            }
            Err(errno) => reply.error(errno),
        }
        true
    };
    if !attempt(false) {
        state.park.park(Box::new(attempt));
    }
}

struct Move {
    caller: Caller,
    source: SharePath,
    target: SharePath,
    flags: RenameFlags,
}

impl Move {
    fn carry_out(&self, state: &State) -> Result<(), Errno> {
        let who = state.owner(self.caller.pid);
        let known = RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_NOREPLACE;
        if !known.contains(self.flags) {
            return Err(Errno::EINVAL);
        }
        let done = if self.flags.contains(RenameFlags::RENAME_EXCHANGE) {
            state.share.exchange(&who, &self.source, &self.target)
        } else {
            let replace = !self.flags.contains(RenameFlags::RENAME_NOREPLACE);
            state.share.rename(&who, &self.source, &self.target, replace)
        };
        done.map_err(|error| errno(&error))
    }
}

/// A name was changed beside the mount: the kernel asks again.
pub fn changed_outside(state: &State, path: &SharePath, gone: bool) {
    if gone {
        forget_name(state, path);
        return;
    }
    for stale in state.nodes.spellings(path) {
        state.notices.attributes(stale.node);
    }
}
