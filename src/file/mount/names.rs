//! Names: lookup, making, removing, renaming, linking.

use std::sync::Arc;

use fuser::{Errno, Generation, RenameFlags, ReplyData, ReplyEmpty, ReplyEntry};
use rustix::fs::FileType;

use super::driver::Requester;
use super::errno::errno;
use super::gates_and_faults::{self, MountCall};
use super::opens::{tell_siblings, ttl};
use super::state::State;
use super::{UnlinkMode, cut};
use crate::file::rules::create::{Disposition, OpenRequest};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::{FileError, FoundFile, PosixOpen, Stat, Unlinked};

/// `lookup`. If the name is pending and all its opens are being released, waits for the releases:
/// the name is gone right after the last `close(2)`.
pub fn lookup(
    state: &Arc<State>,
    caller: Requester,
    (parent, name): (u64, &str),
    reply: ReplyEntry,
) {
    if state.to_cut.is_ours(parent, name) {
        return cut::lookup(state, parent, name, reply);
    }
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let (asked, again, name) = (Arc::clone(state), Arc::clone(state), name.to_owned());
    state.park.until(
        move |last| {
            let waits = !last && asked.share().is_on_its_way_out(&path);
            (!waits).then(|| asked.share().lookup(&path))
        },
        move |found| {
            if found.is_err() {
                again.retries.looked_up(caller.pid);
            }
            answer_lookup(&again, parent, &name, found, reply);
        },
    );
}

fn answer_lookup(
    state: &State,
    parent: u64,
    name: &str,
    found: Result<FoundFile, FileError>,
    reply: ReplyEntry,
) {
    match found {
        Ok(FoundFile { stat, .. }) => {
            let (node, generation) = state.enter(parent, name, &stat);
            let ttl = ttl(state, node, &stat);
            reply.entry(&ttl, &state.attr(node, &stat), Generation(generation));
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// Makes a new entry.
fn make(
    state: &Arc<State>,
    (parent, name): (u64, &str),
    mut make: impl FnMut(&State, &SharePath) -> Result<Stat, FileError> + Send + 'static,
    reply: ReplyEntry,
) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let (asked, again, name) = (Arc::clone(state), Arc::clone(state), name.to_owned());
    state.park.answer(
        move || make(&asked, &path).map(|stat| FoundFile { path: path.clone(), stat }),
        move |made| answer_lookup(&again, parent, &name, made, reply),
    );
}

/// `mkdir(2)`.
pub fn mkdir(state: &Arc<State>, caller: Requester, at: (u64, &str), mode: u32, reply: ReplyEntry) {
    let mkdir = move |state: &State, path: &SharePath| {
        let cx = state.context(caller.pid, "mkdir");
        state.share().mkdir(&cx, path, state.creation(caller, mode))
    };
    make(state, at, mkdir, reply);
}

/// `mknod(2)`: files, FIFOs and sockets; no devices on a share.
pub fn mknod(state: &Arc<State>, caller: Requester, at: (u64, &str), mode: u32, reply: ReplyEntry) {
    let kind = FileType::from_raw_mode(mode);
    if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) {
        return reply.error(Errno::EPERM); // As on any file system for who may not make them.
    }
    make(state, at, move |state, path| make_node(state, caller, path, (kind, mode)), reply);
}

fn make_node(
    state: &State,
    caller: Requester,
    path: &SharePath,
    (kind, mode): (FileType, u32),
) -> Result<Stat, FileError> {
    let cx = state.context(caller.pid, "mknod");
    let creation = state.creation(caller, mode);
    match kind {
        FileType::RegularFile => {
            let request = OpenRequest {
                disposition: Disposition::Create,
                ..OpenRequest::plain(Access::NONE, ShareMode::RWD)
            };
            let posix = PosixOpen { creation: Some(creation), ..PosixOpen::default() };
            let opened = state.share().open_posix(&cx, path, &request, posix);
            opened.and_then(|opened| state.share().close(&opened.handle).map(|()| opened.stat))
        }
        kind => state.share().mknod(&cx, path, kind, creation),
    }
}

/// `symlink(2)`: any target is stored as it is.
pub fn symlink(
    state: &Arc<State>,
    caller: Requester,
    at: (u64, &str),
    target: &str,
    reply: ReplyEntry,
) {
    let target = target.to_owned();
    let symlink = move |state: &State, path: &SharePath| {
        let cx = state.context(caller.pid, "symlink");
        state.share().symlink(&cx, path, &target, state.creation(caller, 0o777))
    };
    make(state, at, symlink, reply);
}

/// `readlink(2)`.
pub fn readlink(state: &Arc<State>, node: u64, reply: ReplyData) {
    let Some(path) = state.nodes.path(node) else { return reply.error(Errno::ESTALE) };
    let asked = Arc::clone(state);
    state.park.answer(
        move || asked.share().read_link(&path),
        move |read| match read {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(errno(&error)),
        },
    );
}

/// `link(2)`. Through `/proc/self/fd` the source may be a file whose own name is gone: another name
/// of the file is linked then.
///
/// A file that has lost its last name and is not open was named: the file that has the name now is
/// linked. With `ESTALE` the kernel would look the name up again, but only once a call.
pub fn link(state: &Arc<State>, caller: Requester, node: u64, at: (u64, &str), reply: ReplyEntry) {
    let another = || state.nodes.siblings(node).into_iter().find_map(|id| state.nodes.path(id));
    let named = || state.nodes.last_path(node).filter(|_| !state.is_open(node));
    let Some(from) = state.nodes.path(node).or_else(another).or_else(named) else {
        return reply.error(Errno::ENOENT);
    };
    let link = move |state: &State, to: &SharePath| {
        state.share().link(&state.context(caller.pid, "link"), &from, to)?;
        // One link more, under every name.
        state.notices.attributes(node);
        tell_siblings(state, node);
        // The link is made. A look that fails is repeated, so that a failure that passes does not
        // tell the program that nothing happened.
        let look = || state.share().lookup(to);
        Ok(look().or_else(|_| look())?.stat)
    };
    make(state, at, link, reply);
}

/// `unlink(2)` and `rmdir(2)`. Waits for opens that are being released.
pub fn remove(
    state: &Arc<State>,
    caller: Requester,
    (parent, name): (u64, &str),
    directory: bool,
    reply: ReplyEmpty,
) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let (at, name) = (path.clone(), name.to_owned());
    gates_and_faults::arrive(state, MountCall::Unlink, caller, &at, move |state, met| match met {
        Ok(()) => remove_now(state, caller, path, (parent, name), directory, reply),
        Err(errno) => reply.error(errno),
    });
}

fn remove_now(
    state: &Arc<State>,
    caller: Requester,
    path: SharePath,
    (parent, name): (u64, String),
    directory: bool,
    reply: ReplyEmpty,
) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    let removed = path.clone();
    state.park.until(
        move |last| {
            let (cx, share) = (asked.context(caller.pid, "unlink"), asked.share());
            let answer = match (asked.options.unlink, last, directory) {
                (UnlinkMode::Nt, false, _) => {
                    share.delete_unless_released(&cx, &path, directory)?
                }
                (UnlinkMode::Nt, true, true) => share.rmdir(&cx, &path),
                (UnlinkMode::Nt, true, false) => share.unlink(&cx, &path),
                (UnlinkMode::Posix, ..) => {
                    share.remove_posix(&cx, &path, directory).map(|()| Unlinked::Removed)
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
                if directory {
                    again.nodes.set_gone(&gone);
                }
                again.let_go(&gone);
                if let Some(gone) = gone.first() {
                    tell_siblings(&again, gone.node); // One link less, under every other name.
                }
                let by_kernel = gone.iter().position(|gone| gone.is(parent, &name));
                // The kernel itself unlinks what it was asked to: a notice could come so late
                // that it drops the name as it was made anew.
                let by_kernel = by_kernel.map(|at| gone.swap_remove(at));
                // Before the answer: a request that comes after it must not see the old state. Of
                // a name that it removes the kernel drops the attributes too.
                again.notices.attributes_of(&gone);
                if done == Unlinked::Pending {
                    again.notices.attributes_of(by_kernel.as_slice());
                }
                reply.ok();
                again.notices.names(gone);
            }
            Err(error) => reply.error(errno(&error)),
        },
    );
}

/// True if the refusal may end when a release arrives.
fn passes_soon<T>(
    state: &State,
    path: &SharePath,
    access: Access,
    answer: &Result<T, FileError>,
) -> bool {
    let Err(FileError::Denied(denial)) = answer else { return false };
    state.share().only_flushed_in_the_way(path, denial, access, ShareMode::RWD)
}

/// `renameat2(2)`. Waits for opens that are being released: of the target, and of files below a
/// directory.
pub fn rename(
    state: &Arc<State>,
    caller: Requester,
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
    let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
    let (at, moved) = (source.clone(), Moved { source, target, from, to, exchange, replace });
    gates_and_faults::arrive(state, MountCall::Rename, caller, &at, move |state, met| match met {
        Ok(()) => rename_now(state, caller, moved, reply),
        Err(errno) => reply.error(errno),
    });
}

/// A rename on its way.
struct Moved {
    source: SharePath,
    target: SharePath,
    from: (u64, String),
    to: (u64, String),
    exchange: bool,
    replace: bool,
}

fn rename_now(state: &Arc<State>, caller: Requester, moved: Moved, reply: ReplyEmpty) {
    let Moved { source, target, from, to, exchange, replace } = moved;
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |last| {
            let cx = asked.context(caller.pid, "rename");
            let answer = match (asked.options.unlink, exchange) {
                (UnlinkMode::Nt, true) => asked.share().exchange(&cx, &source, &target),
                (UnlinkMode::Nt, false) => asked.share().rename(&cx, &source, &target, replace),
                (UnlinkMode::Posix, true) => asked.share().exchange_posix(&cx, &source, &target),
                (UnlinkMode::Posix, false) => {
                    asked.share().rename_posix(&cx, &source, &target, replace)
                }
            };
            let place = match &answer {
                Err(FileError::Denied(Denial::Open(_))) => &target,
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
