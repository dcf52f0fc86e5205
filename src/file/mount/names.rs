//! Names: lookup, making, removing, renaming, linking.

use std::cell::Cell;
use std::sync::Arc;

use fuser::{Errno, Generation, RenameFlags, ReplyData, ReplyEmpty, ReplyEntry};
use rustix::fs::FileType;

use super::cut;
use super::driver::Requester;
use super::errno::errno;
use super::gates_and_faults::{self, MountCall};
use super::opens::{tell_siblings, ttl_since};
use super::state::State;
use crate::file::rules::create::{Disposition, OpenRequest};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::{FileError, MoveHow, PosixOpen, Stat, Unlinked};

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
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    let (wanted, name) = (name.to_owned(), name.to_owned());
    state.park.until(
        move |attempt| {
            let path = match asked.child(parent, &wanted) {
                Ok(path) => path,
                Err(errno) => return Some(Err(errno)),
            };
            let changes = asked.share().name_changes();
            let found = asked.share().mount_lookup(attempt, &path)?;
            Some(found.map(|found| (found.stat, changes)).map_err(|error| errno(&error)))
        },
        move |found| {
            if found.is_err() {
                again.retries.looked_up(caller.pid);
            }
            answer_lookup(&again, parent, &name, found, reply);
        },
    );
}

/// Answers with a file and with [`crate::file::service::Share::name_changes`] before it was found.
fn answer_lookup(
    state: &State,
    parent: u64,
    name: &str,
    found: Result<(Stat, u64), Errno>,
    reply: ReplyEntry,
) {
    match found {
        Ok((stat, changes)) => {
            let (node, generation) = state.enter(parent, name, &stat);
            let ttl = ttl_since(state, node, &stat, changes);
            reply.entry(&ttl, &state.attr(node, &stat), Generation(generation));
        }
        Err(errno) => reply.error(errno),
    }
}

/// Makes a new entry.
fn make(
    state: &Arc<State>,
    (parent, name): (u64, &str),
    mut make: impl FnMut(&State, &SharePath) -> Result<Stat, FileError>,
    reply: ReplyEntry,
) {
    let changes = state.share().name_changes();
    state.park.answer(
        || {
            let path = state.child(parent, name)?;
            make(state, &path).map(|stat| (stat, changes)).map_err(|error| errno(&error))
        },
        |made| answer_lookup(state, parent, name, made, reply),
    );
}

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
    let symlink = |state: &State, path: &SharePath| {
        let cx = state.context(caller.pid, "symlink");
        state.share().symlink(&cx, path, target, state.creation(caller, 0o777))
    };
    make(state, at, symlink, reply);
}

pub fn readlink(state: &Arc<State>, node: u64, reply: ReplyData) {
    let read = || {
        let path = state.nodes.path(node).ok_or(Errno::ESTALE)?;
        state.share().read_link(&path).map_err(|error| errno(&error))
    };
    state.park.answer(read, |read| match read {
        Ok(target) => reply.data(target.as_bytes()),
        Err(errno) => reply.error(errno),
    });
}

/// `link(2)`. Through `/proc/self/fd` the source may be a file whose own name is gone: another name
/// of the file is linked then.
///
/// A file that has lost its last name and is not open was named: the file that has the name now is
/// linked. With `ESTALE` the kernel would look the name up again, but only once a call.
pub fn link(state: &Arc<State>, caller: Requester, node: u64, at: (u64, &str), reply: ReplyEntry) {
    let another = || state.nodes.siblings(node).into_iter().find_map(|id| state.nodes.path(id));
    let named = || state.nodes.last_path(node).filter(|_| !state.is_open(node));
    let link = |state: &State, to: &SharePath| {
        let from = state.nodes.path(node).or_else(another).or_else(named);
        let from = from.ok_or(Denial::NotFound)?;
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
    let name = name.to_owned();
    gates_and_faults::arrive(
        state,
        MountCall::Unlink,
        caller,
        &path,
        move |state, met| match met {
            Ok(()) => remove_now(state, caller, (parent, name), directory, reply),
            Err(errno) => reply.error(errno),
        },
    );
}

fn remove_now(
    state: &Arc<State>,
    caller: Requester,
    (parent, name): (u64, String),
    directory: bool,
    reply: ReplyEmpty,
) {
    let (asked, again, wanted) = (Arc::clone(state), Arc::clone(state), name.clone());
    state.park.until(
        move |attempt| {
            let path = match asked.child(parent, &wanted) {
                Ok(path) => path,
                Err(errno) => return Some(Err(errno)),
            };
            let cx = asked.context(caller.pid, "unlink");
            let how = (directory, asked.options.unlink.into());
            let removed = asked.share().mount_remove(attempt, &cx, &path, how)?;
            Some(removed.map(|done| (done, path)).map_err(|error| errno(&error)))
        },
        move |answer| match answer {
            Ok((done, removed)) => {
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
            Err(errno) => reply.error(errno),
        },
    );
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
    let Some(source) = state.nodes.child(from.0, from.1) else {
        return reply.error(Errno::ESTALE);
    };
    let how = match flags {
        RenameFlags::RENAME_EXCHANGE => MoveHow::Exchange,
        RenameFlags::RENAME_NOREPLACE => MoveHow::NoReplace,
        none if none.is_empty() => MoveHow::Replace,
        _ => return reply.error(Errno::EINVAL),
    };
    let ends = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
    let call = MountCall::Rename;
    gates_and_faults::arrive(state, call, caller, &source, move |state, met| match met {
        Ok(()) => rename_now(state, caller, ends, how, reply),
        Err(errno) => reply.error(errno),
    });
}

fn rename_now(
    state: &Arc<State>,
    caller: Requester,
    (from, to): ((u64, String), (u64, String)),
    how: MoveHow,
    reply: ReplyEmpty,
) {
    let (asked, again, target) = (Arc::clone(state), Arc::clone(state), to.clone());
    state.park.until(
        move |attempt| {
            let (from, to) = ((from.0, from.1.as_str()), (to.0, to.1.as_str()));
            let ends =
                asked.child(from.0, from.1).and_then(|one| Ok((one, asked.child(to.0, to.1)?)));
            let (source, target) = match ends {
                Ok(ends) => ends,
                Err(errno) => return Some(Err(errno)),
            };
            let gone = Cell::new(Vec::new());
            let moved = || match how {
                MoveHow::Exchange => asked.nodes.exchanged(from, to),
                MoveHow::NoReplace | MoveHow::Replace => gone.set(asked.nodes.moved(from, to)),
            };
            let cx = asked.context(caller.pid, "rename");
            let how = (how, asked.options.unlink.into());
            let ends = (&source, &target);
            let renamed = asked.share().mount_rename(attempt, &cx, ends, how, &moved)?;
            Some(renamed.map(|()| gone.take()).map_err(|error| errno(&error)))
        },
        move |answer| match answer {
            Ok(mut gone) => {
                again.let_go(&gone);
                again.notices.attributes_of(&gone);
                for gone in &gone {
                    tell_siblings(&again, gone.node); // What was replaced may have other names.
                }
                // The kernel itself moves what it was asked to, over what that replaces.
                gone.retain(|gone| !gone.is(target.0, &target.1));
                reply.ok();
                again.notices.names(gone);
            }
            Err(errno) => reply.error(errno),
        },
    );
}
