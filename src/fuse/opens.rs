//! Opening, creating, flushing and releasing files.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use fuser::{
    Errno, FileHandle, FopenFlags, Generation, INodeNo, ReplyCreate, ReplyEmpty, ReplyOpen,
};

use super::attr::{NO_TTL, TTL, attr};
use super::driver::Caller;
use super::errno::errno;
use super::state::{DataPath, OpenFile, State};
use crate::core::create::{Disposition, OpenRequest};
use crate::core::{Access, Denial, FileId, SharePath};
use crate::engine::{Creation, Error, OpenFor, Opened, PosixOpen, Stat};

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
#[derive(Clone)]
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
        state.share.open_posix(&who, &self.path, &self.request, self.posix)
    }

    /// True if the refusal may be over as soon as a release arrives.
    fn may_wait(&self, state: &State, refused: &Error) -> bool {
        let Error::Denied(denial) = refused else { return false };
        let access = self.request.rights.access();
        state.share.only_flushed_in_the_way(&self.path, denial, access, self.request.share)
    }
}

/// `open(2)` of a file that exists.
pub fn open(state: &Arc<State>, caller: Caller, node: u64, flags: i32, reply: ReplyOpen) {
    let Some(path) = state.nodes.path(node) else { return reply.error(Errno::ESTALE) };
    let ask = Ask::new(state, caller, path, flags);
    match ask.open(state) {
        Ok(opened) => answer_open(state, &ask, opened, reply),
        Err(refused) if ask.may_wait(state, &refused) => park_open(state, ask, reply),
        Err(refused) => reply.error(errno(&refused)),
    }
}

fn park_open(state: &Arc<State>, ask: Ask, reply: ReplyOpen) {
    let mut reply = Some(reply);
    let again = Arc::clone(state);
    state.park.park(Box::new(move |last| {
        let answer = ask.open(&again);
        if let Err(refused) = &answer
            && !last
            && ask.may_wait(&again, refused)
        {
            return false;
        }
        let reply = reply.take().expect("a parked request is answered once");
        match answer {
            Ok(opened) => answer_open(&again, &ask, opened, reply),
            Err(refused) => reply.error(errno(&refused)),
        }
        true
    }));
}

fn answer_open(state: &State, ask: &Ask, opened: Opened, reply: ReplyOpen) {
    strip_privileges(state, ask, &opened.stat, &opened.path);
    let register = |fd: OwnedFd| reply.open_backing(fd);
    match make_file(state, ask, opened, register) {
        Ok((file, flags)) => {
            let backing = file.backing.clone();
            let fh = FileHandle(state.keep_file(file));
            match backing {
                Some(backing) => reply.opened_passthrough(fh, flags, &backing),
                None => reply.opened(fh, flags),
            }
        }
        Err(error) => reply.error(errno(&error)),
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
    ask.posix.creation = Some(Creation { mode, uid: caller.uid, gid: caller.gid });
    match ask.open(state) {
        Ok(opened) => answer_create(state, &ask, (parent, name), opened, reply),
        Err(refused) => reply.error(errno(&refused)),
    }
}

fn answer_create(
    state: &State,
    ask: &Ask,
    (parent, name): (u64, &str),
    opened: Opened,
    reply: ReplyCreate,
) {
    let (stat, id) = (opened.stat, opened.stat.id);
    let register = |fd: OwnedFd| reply.open_backing(fd);
    match make_file(state, ask, opened, register) {
        Ok((file, flags)) => {
            let backing = file.backing.clone();
            let (node, generation) = state.nodes.enter(parent, name, id);
            let fh = FileHandle(state.keep_file(file));
            let (attr, generation) = (attr(node, &stat), Generation(generation));
            match backing {
                Some(backing) => {
                    reply.created_passthrough(&TTL, &attr, generation, fh, flags, &backing);
                }
                None => reply.created(&TTL, &attr, generation, fh, flags),
            }
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// The open file behind a grant. If the mount's part of it fails, the grant is given back.
fn make_file(
    state: &State,
    ask: &Ask,
    opened: Opened,
    register: impl FnOnce(OwnedFd) -> std::io::Result<fuser::BackingId>,
) -> Result<(OpenFile, FopenFlags), Error> {
    let access = access(ask.flags);
    let made = data_path(state, ask, access, &opened, register);
    match made {
        Ok((fd, backing, flags)) => {
            Ok((OpenFile { handle: opened.handle, access, fd, backing }, flags))
        }
        Err(error) => {
            state.share.close(&opened.handle)?;
            Err(error)
        }
    }
}

type Way = (Option<OwnedFd>, Option<Arc<fuser::BackingId>>, FopenFlags);

fn data_path(
    state: &State,
    ask: &Ask,
    access: Access,
    opened: &Opened,
    register: impl FnOnce(OwnedFd) -> std::io::Result<fuser::BackingId>,
) -> Result<Way, Error> {
    let mut flags = FopenFlags::empty();
    let mut backing = None;
    if state.data_path() == DataPath::Passthrough {
        let registered = state.backing(opened.stat.id, || {
            let fd =
                state.share.backing(&opened.path, OpenFor::Path).map_err(std::io::Error::other)?;
            register(fd)
        });
        match registered {
            Ok(id) => backing = Some(id),
            Err(error) => {
                log::warn!("no kernel passthrough ({error}): reads and writes go through latchfs");
                state.set_data_path(DataPath::Direct);
            }
        }
    }
    let mandatory = state.options.mandatory_locks;
    if backing.is_some() && !mandatory {
        return Ok((None, backing, flags));
    }
    flags |= FopenFlags::FOPEN_DIRECT_IO;
    let how = if access.contains(Access::W) { OpenFor::Write } else { OpenFor::Read };
    let fd = state.share.backing(&ask.path, how)?;
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

/// A descriptor was closed: its owner's `fcntl` locks go, and the release is on its way.
pub fn flush(state: &State, fh: u64, lock_owner: u64, reply: ReplyEmpty) {
    let Some(file) = state.file(fh) else { return reply.error(Errno::EBADF) };
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
    }
    reply.ok();
}

/// Ends an open and tells the kernel of a name that went with it.
pub fn end(state: &State, handle: &crate::engine::Handle) {
    match state.share.release(handle) {
        Ok(None) | Err(Error::Denied(Denial::HandleClosed)) => {}
        Ok(Some(removed)) => forget_name(state, &removed),
        Err(error) => log::error!("closing handle {}: {error}", handle.id()),
    }
    state.park.nudge();
}

/// The kernel forgets a name that is gone, in every spelling.
pub fn forget_name(state: &State, path: &SharePath) {
    for stale in state.nodes.spellings(path) {
        let gone = state.nodes.removed(stale.parent, &stale.name);
        state.notices.names(gone);
    }
}

/// How long the kernel may remember a name: not at all while it can vanish by a close.
pub fn ttl(state: &State, path: &SharePath, id: FileId) -> std::time::Duration {
    if state.share.is_pending_name(path, id) { NO_TTL } else { TTL }
}

/// The number of a node, as fuser spells it.
pub fn number(node: INodeNo) -> u64 {
    node.0
}

/// A path that names the open file itself, for calls that take no descriptor.
pub fn proc_path(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
