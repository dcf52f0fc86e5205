//! Opening, creating, flushing and releasing files.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use fuser::{Errno, FopenFlags, Generation, ReplyCreate, ReplyEmpty, ReplyOpen};

use super::UnlinkMode;
use super::attr::{NO_TTL, TTL};
use super::driver::Caller;
use super::errno::errno;
use super::state::{DataPath, OpenFile, State};
use super::unchecked;
use crate::core::create::{Action, Disposition, OpenRequest};
use crate::core::{Access, Denial, ShareMode, SharePath};
use crate::engine::{Error, Kind, OpenFor, Opened, PosixOpen, Stat};

/// The kernel opens a program to run it (`__FMODE_EXEC`). No descriptor is ever closed, so no
/// flush announces the release: it counts as on its way from the start.
const OPEN_FOR_EXEC: i32 = 0x20;

/// The access of `open(2)` flags: the mode, and W for `O_TRUNC` (DESIGN section 4).
pub fn access(flags: i32) -> Access {
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Access::R,
        libc::O_WRONLY => Access::W,
        _ => Access::RW,
    };
    if flags & libc::O_TRUNC != 0 { access | Access::W } else { access }
}

/// An open on its way: asked again as it is, if it has to wait for a release.
struct Ask {
    path: SharePath,
    caller: Caller,
    flags: i32,
    request: OpenRequest,
    posix: PosixOpen,
}

impl Ask {
    fn new(state: &State, caller: Caller, path: SharePath, flags: i32) -> Self {
        let share = state.policy.share_of(caller.pid, &path);
        let request = OpenRequest::plain(access(flags), share);
        let posix = PosixOpen { truncate: flags & libc::O_TRUNC != 0, creation: None };
        Self { path, caller, flags, request, posix }
    }

    fn open(&self, state: &State) -> Result<Opened, Error> {
        let who = state.owner(self.caller.pid);
        state.share.open_unnoted(&who, &self.path, &self.request, self.posix)
    }

    /// Notes the answer that stands; one that was waited out is nobody's refusal.
    fn note(&self, state: &State, answer: Result<Opened, Error>) -> Result<Opened, Error> {
        let who = state.owner(self.caller.pid);
        state.share.note_open(&who, &self.path, answer)
    }

    /// True if the refusal may be over as soon as a release arrives.
    fn may_wait(&self, state: &State, refused: &Error) -> bool {
        let Error::Denied(denial) = refused else { return false };
        let access = self.request.rights.access();
        state.share.only_flushed_in_the_way(&self.path, denial, access, self.request.share)
    }
}

/// Opens, and answers when it is decided: a conflict with handles that are being released waits.
fn ask_for(
    state: &Arc<State>,
    ask: Ask,
    answer: impl FnOnce(&State, &Ask, Result<Opened, Error>) + Send + 'static,
) {
    let (asked, again, ask) = (Arc::clone(state), Arc::clone(state), Arc::new(ask));
    let same = Arc::clone(&ask);
    state.park.until(
        move |last| {
            let opened = ask.open(&asked);
            let waits =
                !last && opened.as_ref().is_err_and(|refused| ask.may_wait(&asked, refused));
            (!waits).then_some(opened)
        },
        move |opened| answer(&again, &same, same.note(&again, opened)),
    );
}

/// `open(2)` of a file that exists.
pub fn open(state: &Arc<State>, caller: Caller, node: u64, flags: i32, reply: ReplyOpen) {
    if state.options.unchecked {
        return unchecked::open(state, node, reply);
    }
    let Some(path) = state.nodes.path(node) else { return reply.error(Errno::ESTALE) };
    let ask = Ask::new(state, caller, path, flags);
    ask_for(state, ask, move |state, ask, opened| match opened {
        Ok(opened) => answer_open(state, node, ask, opened, reply),
        Err(refused) => reply.error(open_errno(&refused)),
    });
}

/// The kernel knew a name that REST has taken away meanwhile: it looks again, and makes the file
/// if that was asked for, of which it does not tell us.
fn open_errno(refused: &Error) -> Errno {
    match refused {
        Error::Denied(Denial::NotFound | Denial::PathNotFound) => Errno::ESTALE,
        refused => errno(refused),
    }
}

fn answer_open(state: &State, node: u64, ask: &Ask, opened: Opened, reply: ReplyOpen) {
    // REST has moved the file and made another of its name: the kernel means the first one, and
    // must not be given the bytes of the second.
    if state.nodes.file(node).is_some_and(|file| file != opened.stat.id) {
        end(state, &opened.handle);
        return reply.error(Errno::ESTALE);
    }
    if ask.flags & OPEN_FOR_EXEC != 0
        && let Err(error) = state.share.set_flushed(&opened.handle)
    {
        return reply.error(errno(&error));
    }
    strip_privileges(state, ask, &opened.stat, &opened.path);
    let register = |fd: OwnedFd| reply.open_backing(fd);
    match make_file(state, node, ask, opened, register) {
        Ok((file, flags)) => {
            let fh = file.number();
            match &file.backing {
                Some(backing) => reply.opened_passthrough(fh, flags, backing),
                None => reply.opened(fh, flags),
            }
        }
        Err(error) => reply.error(open_errno(&error)),
    }
}

/// `open(2)` with `O_CREAT` of a name the kernel believes absent.
pub fn create(
    state: &Arc<State>,
    caller: Caller,
    (parent, name): (u64, &str),
    (mode, flags): (u32, i32),
    reply: ReplyCreate,
) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let mut ask = Ask::new(state, caller, path, flags);
    let exclusive = flags & libc::O_EXCL != 0;
    ask.request.disposition = if exclusive { Disposition::Create } else { Disposition::OpenIf };
    ask.posix.creation = Some(state.creation(caller, mode));
    let name = name.to_owned();
    ask_for(state, ask, move |state, ask, opened| match opened {
        Ok(opened) => answer_create(state, ask, (parent, &name), opened, reply),
        Err(refused) => reply.error(errno(&refused)),
    });
}

fn answer_create(
    state: &State,
    ask: &Ask,
    (parent, name): (u64, &str),
    opened: Opened,
    reply: ReplyCreate,
) {
    if opened.action == Action::Opened {
        // Somebody else made it since the kernel looked.
        strip_privileges(state, ask, &opened.stat, &opened.path);
    }
    let stat = opened.stat;
    let ttl = ttl(state, &opened.path, &stat);
    let (node, generation) = state.nodes.enter(parent, name, stat.id);
    let register = |fd: OwnedFd| reply.open_backing(fd);
    match make_file(state, node, ask, opened, register) {
        Ok((file, flags)) => {
            let fh = file.number();
            let (attr, generation) = (state.attr(node, &stat), Generation(generation));
            match &file.backing {
                Some(backing) => {
                    reply.created_passthrough(&ttl, &attr, generation, fh, flags, backing);
                }
                None => reply.created(&ttl, &attr, generation, fh, flags),
            }
        }
        Err(error) => {
            state.nodes.forget(node, 1);
            reply.error(errno(&error));
        }
    }
}

/// The open file behind a grant, kept. If the mount's part of it fails, the grant is given back.
fn make_file(
    state: &State,
    node: u64,
    ask: &Ask,
    mut opened: Opened,
    register: impl FnOnce(OwnedFd) -> std::io::Result<fuser::BackingId>,
) -> Result<(Arc<OpenFile>, FopenFlags), Error> {
    let access = access(ask.flags);
    let (fd, backing, flags) = match data_path(state, access, &mut opened, register) {
        Ok(way) => way,
        Err(error) => {
            end(state, &opened.handle);
            return Err(error);
        }
    };
    let (handle, before_flock) = (opened.handle, Mutex::default());
    let file = state.keep_file(OpenFile { handle, node, access, fd, backing, before_flock });
    // Closed by force before it was kept, it was not there to be cut off: the kernel must not get
    // it. From here on it is.
    if let Err(closed) = state.share.describe(&file.handle) {
        state.drop_file(file.number().0);
        return Err(closed);
    }
    Ok((file, flags))
}

type Way = (Option<OwnedFd>, Option<Arc<fuser::BackingId>>, FopenFlags);

fn data_path(
    state: &State,
    access: Access,
    opened: &mut Opened,
    register: impl FnOnce(OwnedFd) -> std::io::Result<fuser::BackingId>,
) -> Result<Way, Error> {
    let mut flags = FopenFlags::empty();
    let mut backing = None;
    if state.data_path() == DataPath::Passthrough {
        let made = opened.made.take();
        // A descriptor that may write makes the file busy for whoever wants to run it.
        let keep = made.is_none();
        let mut not_there = None;
        let registered = state.backing(opened.stat.id, keep, || {
            if let Some(fd) = made {
                return register(fd);
            }
            let fd = state.share.backing_of(&opened.handle, OpenFor::Path).map_err(|error| {
                let said = std::io::Error::other(error.to_string());
                not_there = Some(error);
                said
            })?;
            register(fd)
        });
        match registered {
            Ok(id) => backing = Some(id),
            // That is about this file, and nothing about the kernel.
            Err(_) if let Some(error) = not_there => return Err(error),
            Err(error) => {
                log::warn!("no kernel passthrough ({error}): reads and writes go through latchfs");
                state.set_data_path(DataPath::Direct);
            }
        }
    }
    let mandatory = state.options.mandatory_locks;
    if backing.is_some() && !mandatory {
        // The kernel opens the file for the program, and would call any failure EIO.
        if access.contains(Access::W) && opened.action == Action::Opened {
            state.share.check_writable()?;
        }
        return Ok((None, backing, flags));
    }
    flags |= FopenFlags::FOPEN_DIRECT_IO;
    let how = if access.contains(Access::W) { OpenFor::Write } else { OpenFor::Read };
    let fd = state.share.backing_of(&opened.handle, how)?;
    Ok((Some(fd), backing, flags))
}

/// Under `HANDLE_KILLPRIV_V2` the kernel leaves it to us to take set-id bits and capabilities from
/// a file that somebody without privilege may write (FUSE section 7).
fn strip_privileges(state: &State, ask: &Ask, stat: &Stat, path: &SharePath) {
    if ask.caller.uid == 0 || !access(ask.flags).contains(Access::W) {
        return;
    }
    if let Err(error) = super::privileges::strip(&state.share, path, stat) {
        log::warn!("{path}: set-id bits stay, they could not be taken away: {error}");
    }
}

/// Changes what an open tolerates, and answers when it is decided: others that are only being
/// released are waited for.
pub fn set_share(
    state: &Arc<State>,
    caller: Caller,
    file: &Arc<OpenFile>,
    share: ShareMode,
    answer: impl FnOnce(Result<(), Error>) + Send + 'static,
) {
    let (asked, file) = (Arc::clone(state), Arc::clone(file));
    state.park.until(
        move |last| {
            let who = asked.owner(caller.pid);
            let set = asked.share.set_share_mode(&who, &file.handle, share);
            let refused = matches!(set, Err(Error::Denied(Denial::SharingViolation { .. })));
            let waits = !last && refused && asked.share.only_flushed_beside(&file.handle, share);
            (!waits).then_some(set)
        },
        answer,
    );
}

/// A descriptor was closed: its owner's `fcntl` locks go, and the release is on its way.
pub fn flush(state: &State, fh: u64, lock_owner: u64, reply: ReplyEmpty) {
    let Some(file) = state.file(fh) else {
        return if state.options.unchecked { reply.ok() } else { reply.error(Errno::EBADF) };
    };
    if file.access.contains(Access::W) {
        tell_siblings(state, file.node); // It may have been written through.
    }
    match state.share.flush(&file.handle, lock_owner) {
        // Closing a force-closed descriptor is the cure, not another error.
        Ok(()) | Err(Error::Denied(Denial::HandleClosed)) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

/// The last reference is gone: the open ends, and a pending name with it.
pub fn release(state: &State, fh: u64, reply: ReplyEmpty) {
    if let Some(file) = state.drop_file(fh) {
        end(state, &file.handle);
    } else if state.options.unchecked {
        state.unchecked.release(fh);
    }
    reply.ok();
}

/// The mount is gone: releases that were still on their way in the kernel never arrive, and what
/// is open ends here.
pub fn end_all(state: &State) {
    let (files, dirs) = state.take_all();
    let files = files.iter().map(|file| &file.handle);
    for handle in files.chain(dirs.iter().map(|dir| &dir.handle)) {
        end(state, handle);
    }
}

/// Ends an open and tells the kernel of a name that went with it.
pub fn end(state: &State, handle: &crate::engine::Handle) {
    match state.share.release(handle) {
        Ok(None) | Err(Error::Denied(Denial::HandleClosed)) => {}
        Ok(Some(removed)) => forget_name(state, &removed),
        Err(error) => log::error!("closing handle {}: {error}", handle.id()),
    }
    if state.options.unlink == UnlinkMode::Posix && !state.has_open(handle.file()) {
        state.orphans.forget(handle.file());
    }
    state.park.nudge();
}

/// The kernel forgets a name that is gone, in every spelling.
pub fn forget_name(state: &State, path: &SharePath) {
    for stale in state.nodes.spellings(path) {
        let gone = state.nodes.removed(stale.parent, &stale.name);
        state.let_go(&gone);
        state.notices.names(gone);
        tell_siblings(state, stale.node);
    }
}

/// A file changed through one node: the kernel keeps attributes for each spelling and each name
/// of it, and forgets the others'.
pub fn tell_siblings(state: &State, node: u64) {
    for sibling in state.nodes.siblings(node) {
        state.notices.attributes(sibling);
    }
}

/// The name stays, but may vanish by a close, or no longer: the kernel asks again, in every
/// spelling.
pub fn ask_again(state: &State, path: &SharePath) {
    state.notices.names(state.nodes.spellings(path));
}

/// How long the kernel may remember a name and its file's attributes: not at all while the name
/// can vanish by a close, or while the file has another, or is open by one that is gone: the kernel
/// takes them for two files, and what it writes through one it does not know of the other.
pub fn ttl(state: &State, path: &SharePath, stat: &Stat) -> std::time::Duration {
    let has_others = stat.kind != Kind::Directory && stat.links > 1
        || state.options.unlink == UnlinkMode::Posix && state.orphans.get(stat.id).is_some();
    if has_others || state.share.is_pending_name(path, stat.id) { NO_TTL } else { TTL }
}
