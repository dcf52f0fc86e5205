//! Names: lookup, making, removing, renaming, linking.

use std::sync::Arc;

use fuser::{Errno, Generation, RenameFlags, ReplyData, ReplyEmpty, ReplyEntry};
use rustix::fs::FileType;

use super::UnlinkMode;
use super::driver::Caller;
use super::errno::errno;
use super::opens::{tell_siblings, ttl};
use super::state::State;
use crate::core::create::{Disposition, OpenRequest};
use crate::core::{Access, Denial, ShareMode, SharePath};
use crate::engine::{Error, Found, PosixOpen, Stat, Unlinked};

/// What a name stands for. A pending name whose opens are all being released is waited for: right
/// after the last `close(2)` it is gone.
pub fn lookup(state: &Arc<State>, parent: u64, name: &str, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let (asked, again, name) = (Arc::clone(state), Arc::clone(state), name.to_owned());
    state.park.until(
        move |last| {
            let waits = !last && asked.share.is_on_its_way_out(&path);
            (!waits).then(|| asked.share.lookup(&path))
        },
        move |found| answer_lookup(&again, parent, &name, found, reply),
    );
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
            let ttl = ttl(state, &path, &stat);
            reply.entry(&ttl, &state.attr(node, &stat), Generation(generation));
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// A new entry was made, or not.
fn answer_made(
    state: &State,
    (parent, name): (u64, &str),
    path: SharePath,
    made: Result<Stat, Error>,
    reply: ReplyEntry,
) {
    answer_lookup(state, parent, name, made.map(|stat| Found { path, stat }), reply);
}

/// `mkdir(2)`.
pub fn mkdir(state: &State, caller: Caller, at: (u64, &str), mode: u32, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(at.0, at.1) else { return reply.error(Errno::ESTALE) };
    let who = state.owner(caller.pid);
    let stat = state.share.mkdir(&who, &path, state.creation(caller, mode));
    answer_made(state, at, path, stat, reply);
}

/// `mknod(2)`: files, FIFOs and sockets; no devices on a share.
pub fn mknod(state: &State, caller: Caller, at: (u64, &str), mode: u32, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(at.0, at.1) else { return reply.error(Errno::ESTALE) };
    let who = state.owner(caller.pid);
    let creation = state.creation(caller, mode);
    let stat = match FileType::from_raw_mode(mode) {
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
    answer_made(state, at, path, stat, reply);
}

/// `symlink(2)`: any target is stored as it is.
pub fn symlink(state: &State, caller: Caller, at: (u64, &str), target: &str, reply: ReplyEntry) {
    let Some(path) = state.nodes.child(at.0, at.1) else { return reply.error(Errno::ESTALE) };
    let who = state.owner(caller.pid);
    let made = state.share.symlink(&who, &path, target, state.creation(caller, 0o777));
    answer_made(state, at, path, made, reply);
}

/// `readlink(2)`.
pub fn readlink(state: &State, node: u64, reply: ReplyData) {
    let Some(path) = state.nodes.path(node) else { return reply.error(Errno::ESTALE) };
    match state.share.read_link(&path) {
        Ok(target) => reply.data(target.as_bytes()),
        Err(error) => reply.error(errno(&error)),
    }
}

/// `link(2)`. By `/proc/self/fd` it reaches a file whose own name is gone: another name will do.
pub fn link(state: &State, caller: Caller, node: u64, at: (u64, &str), reply: ReplyEntry) {
    let another = || state.nodes.siblings(node).into_iter().find_map(|id| state.nodes.path(id));
    let from = state.nodes.path(node).or_else(another);
    let (Some(from), Some(to)) = (from, state.nodes.child(at.0, at.1)) else {
        let nameless = state.orphan(node).is_some();
        return reply.error(if nameless { Errno::ENOENT } else { Errno::ESTALE });
    };
    let who = state.owner(caller.pid);
    let made = state.share.link(&who, &from, &to).and_then(|()| Ok(state.share.lookup(&to)?.stat));
    // One link more, under every name.
    state.notices.attributes(node);
    tell_siblings(state, node);
    answer_made(state, at, to, made, reply);
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
    let (asked, again, name) = (Arc::clone(state), Arc::clone(state), name.to_owned());
    let removed = path.clone();
    state.park.until(
        move |last| {
            let pends = asked.options.unlink == UnlinkMode::Nt;
            if pends && !last && asked.share.awaits_release(&path) {
                return None;
            }
            let who = asked.owner(caller.pid);
            let answer = match (asked.options.unlink, directory) {
                (UnlinkMode::Nt, true) => asked.share.rmdir(&who, &path),
                (UnlinkMode::Nt, false) => asked.share.unlink(&who, &path),
                (UnlinkMode::Posix, _) => {
                    asked.before_loss(&path);
                    let gone = asked.share.remove_posix(&who, &path, directory);
                    gone.map(|()| Unlinked::Removed)
                }
            };
            let waits = !last && passes_soon(&asked, &path, Access::D, &answer);
            (!waits).then_some(answer)
        },
        move |answer| match answer {
            Ok(done) => {
                let mut gone = match done {
                    // The kernel takes a removed directory for dead and lets nothing be made in
                    // it: if it is only pending, it goes on under another number.
                    Unlinked::Pending if !directory => again.nodes.spellings(&removed),
                    _ => again.nodes.removed(parent, &name),
                };
                again.let_go(&gone);
                // Before the answer: whoever asks after it must not be told what was.
                again.notices.attributes_of(&gone);
                if let Some(gone) = gone.first() {
                    tell_siblings(&again, gone.node); // One link less, under every other name.
                }
                // The kernel itself unlinks what it was asked to: a notice could come so late
                // that it drops the name as it was made anew.
                gone.retain(|gone| !gone.is(parent, &name));
                reply.ok();
                again.notices.names(gone);
            }
            Err(error) => reply.error(errno(&error)),
        },
    );
}

/// True if the refusal of a request for `access` may be over as soon as a release arrives.
fn passes_soon<T>(
    state: &State,
    path: &SharePath,
    access: Access,
    answer: &Result<T, Error>,
) -> bool {
    let Err(Error::Denied(denial)) = answer else { return false };
    state.share.only_flushed_in_the_way(path, denial, access, ShareMode::RWD)
}

/// `renameat2(2)`. Opens in the way that are only being released are waited for: of the target, and
/// of files below a directory.
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
    let exchange = flags == RenameFlags::RENAME_EXCHANGE;
    if !exchange && !RenameFlags::RENAME_NOREPLACE.contains(flags) {
        return reply.error(Errno::EINVAL);
    }
    let replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
    state.park.until(
        move |last| {
            let who = asked.owner(caller.pid);
            let answer = match (asked.options.unlink, exchange) {
                (UnlinkMode::Nt, true) => asked.share.exchange(&who, &source, &target),
                (UnlinkMode::Nt, false) => asked.share.rename(&who, &source, &target, replace),
                (UnlinkMode::Posix, true) => asked.share.exchange_posix(&who, &source, &target),
                (UnlinkMode::Posix, false) => {
                    asked.before_loss(&target);
                    asked.share.rename_posix(&who, &source, &target, replace)
                }
            };
            let place = match &answer {
                Err(Error::Denied(Denial::Open(_))) => &target,
                _ => &source,
            };
            let waits = !last && passes_soon(&asked, place, Access::D, &answer);
            (!waits).then_some(answer)
        },
        move |answer| match answer {
            Ok(()) if exchange => {
                again.nodes.exchanged((from.0, &from.1), (to.0, &to.1));
                reply.ok();
            }
            Ok(()) => {
                let mut gone = again.nodes.moved((from.0, &from.1), (to.0, &to.1));
                again.let_go(&gone);
                again.notices.attributes_of(&gone);
                for gone in &gone {
                    tell_siblings(&again, gone.node); // What was replaced may have other names.
                }
                // The kernel itself moves what it was asked to, over what that replaces.
                gone.retain(|gone| !gone.is(to.0, &to.1));
                reply.ok();
                again.notices.names(gone);
            }
            Err(error) => reply.error(errno(&error)),
        },
    );
}
