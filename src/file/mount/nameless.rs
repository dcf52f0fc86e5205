//! Opening a node whose name is gone, or has become another file's.
//!
//! Decides which file such an open gets: the node's own, if a program has it open and opens it
//! once more through `/proc/self/fd`; else the file that has the name now, as if the kernel had
//! looked the name up a moment later. Whether the open is granted is decided by the engine.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use fuser::{Errno, FopenFlags, ReplyOpen};

use super::driver::Requester;
use super::errno::errno;
use super::open_files::OpenFile;
use super::opens::{
    Ask, Bytes, access, answer_file, ask_for, end, keep, make_file, open_for, strip_privileges,
};
use super::privileges;
use super::state::State;
use crate::file::rules::{Access, Denial};
use crate::file::service::{FileError, FileKind, OpenedFile, Result, Stat};

/// `open(2)` of a node that no path leads to.
pub fn open(state: &Arc<State>, caller: Requester, node: u64, flags: i32, reply: ReplyOpen) {
    match open_through(state, node) {
        Some(other) => open_again(state, (caller, flags), &other, reply),
        None => open_other(state, caller, node, flags, reply),
    }
}

/// Opens the file that has the node's last name now.
fn open_other(state: &Arc<State>, caller: Requester, node: u64, flags: i32, reply: ReplyOpen) {
    let ask = move |state: &State| {
        let mut ask = Ask::new(state, caller, state.nodes.last_path(node)?, flags);
        ask.posix.by_lost_name = true;
        ask.cuts_only_for(state, node);
        Some(ask)
    };
    ask_for(state, ask, move |state, opened| match opened.0 {
        Some((ask, Ok(opened))) => {
            let _way = state.lock_way(node);
            answer_other(state, node, &ask, opened, reply);
        }
        Some((ask, Err(refused))) => reply.error(ask.errno(state, &refused)),
        None => reply.error(Errno::ESTALE),
    });
}

/// An open that was made through this node, if there is one.
fn open_through(state: &State, node: u64) -> Option<Arc<OpenFile>> {
    state.files.through(state.nodes.file(node)?, node)
}

/// Answers with the file that has the name now, which is another than the node's. `ESTALE` makes
/// the kernel look the name up again, but only once: where a name is replaced all the time,
/// programs would see the error. The caller holds [`State::lock_way`] of the node.
pub fn answer_other(state: &State, node: u64, ask: &Ask, opened: OpenedFile, reply: ReplyOpen) {
    // The kernel knows one file by a node that is open, and has checked the permission bits of the
    // former file.
    let fits = opened.stat.kind == FileKind::File
        && !ask.left_uncut(opened.stat.id)
        && open_through(state, node).is_none()
        && may_open(state, ask, &opened.stat);
    if !fits {
        end(state, &opened.handle);
        return reply.error(state.retries.missing(ask.caller.pid, &ask.path));
    }
    strip_privileges(state, ask, &opened);
    state.set_adopts();
    let lost = state.nodes.adopt(node, opened.stat.id);
    state.notices.attributes(node);
    // Without passthrough: a descriptor that is just being released may still have the former
    // file registered for the node.
    let register = |_: BorrowedFd<'_>| Err(std::io::ErrorKind::Unsupported.into());
    match make_file(state, (node, Bytes::ComeToUs), ask, opened, register) {
        Ok((file, flags)) => answer_file(&file, flags, reply),
        Err(error) => reply.error(ask.errno(state, &error)),
    }
    state.notices.names(lost);
}

/// True if the permission bits let the caller open the file, where the kernel checks them.
/// Supplementary groups are not known here: a caller that needs one is refused.
fn may_open(state: &State, ask: &Ask, stat: &Stat) -> bool {
    if !state.options.allow_other || ask.caller.uid == 0 {
        return true;
    }
    let shown = state.attr(0, stat);
    let shift = match (shown.uid == ask.caller.uid, shown.gid == ask.caller.gid) {
        (true, _) => 6,
        (false, true) => 3,
        (false, false) => 0,
    };
    let wanted = access(ask.flags);
    let (reads, writes) = (wanted.contains(Access::R), wanted.contains(Access::W));
    let needed = u16::from(reads) << 2 | u16::from(writes) << 1;
    (shown.perm >> shift) & needed == needed
}

/// Opens the file of another open again, though that open has lost its name.
fn open_again(
    state: &Arc<State>,
    (caller, flags): (Requester, i32),
    other: &Arc<OpenFile>,
    reply: ReplyOpen,
) {
    let way = state.lock_way(other.node);
    let granted = grant_again(state, (caller, flags), other);
    let kept = granted.and_then(|(file, how, cuts)| Ok((keep(state, file, cuts)?, how)));
    match kept {
        Ok((file, how)) => answer_file(&file, how, reply),
        // The other open has ended meanwhile, and its file with it.
        Err(FileError::Denied(Denial::HandleClosed)) => {
            drop(way);
            open_other(state, caller, other.node, flags, reply);
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// The file that was opened once more, how its bytes go, and [`State::cuts`] before that.
fn grant_again(
    state: &State,
    (caller, flags): (Requester, i32),
    other: &OpenFile,
) -> Result<(OpenFile, FopenFlags, u64)> {
    let cuts = state.cuts();
    let ask = Ask::new(state, caller, state.share().path_of(&other.handle)?, flags);
    let access = access(ask.flags);
    let held = state.open_descriptor_of(other.handle.file()).ok_or(Denial::HandleClosed)?;
    let stat = Stat::of(&held)?;
    let truncates = ask.flags & libc::O_TRUNC != 0;
    // As the other open has its bytes: the kernel takes only one way for a node at a time.
    let passes = other.backing.is_some() && other.fd.is_none();
    let again = || open_for(access).open_again(&held);
    let fd = if passes && !truncates { None } else { Some(again()?) };
    let cx = state.context(ask.caller.pid, "open");
    let opened = state.share().open_again(&cx, &other.handle, &ask.request, stat)?;
    if ask.writes_unprivileged() {
        ask.note_stripped(privileges::strip(&held));
    }
    if truncates && let Some(fd) = &fd {
        let cut = state.share().resize(None, (&opened.handle, Some(fd)), 0, &|_| Ok(()));
        cut.inspect_err(|_| end(state, &opened.handle))?;
    }
    let (node, backing, before_flock) = (other.node, other.backing.clone(), Mutex::default());
    let fd = fd.filter(|_| !passes);
    let way = if passes { FopenFlags::empty() } else { FopenFlags::FOPEN_DIRECT_IO };
    let (handle, by_create) = (opened.handle, false);
    Ok((OpenFile { handle, node, access, fd, backing, by_create, before_flock }, way, cuts))
}
