//! Opening, creating, flushing and releasing files.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use fuser::{Errno, FopenFlags, Generation, ReplyCreate, ReplyEmpty, ReplyOpen};

use super::attr::{NO_TTL, TTL};
use super::driver::Requester;
use super::errno::errno;
use super::gates_and_faults::{self, MountCall};
use super::nodes::MissingAnswer;
use super::open_files::{NumberedOpen, OpenFile};
use super::state::State;
use super::{nameless, privileges};
use crate::file::rules::create::{CreateAction, Disposition, OpenRequest};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::{
    FileError, FileKind, Handle, OpenFor, OpenedFile, PosixOpen, Stat, StoreError,
};
use crate::rules::FileId;

/// The kernel opens a program to run it (`__FMODE_EXEC`). No descriptor is ever closed, so no
/// flush announces the release: it counts as on its way from the start.
const OPEN_FOR_EXEC: i32 = 0x20;

/// The access of `open(2)` flags: the mode, and W for `O_TRUNC`.
pub fn access(flags: i32) -> Access {
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Access::R,
        libc::O_WRONLY => Access::W,
        _ => Access::RW,
    };
    if flags & libc::O_TRUNC != 0 { access | Access::W } else { access }
}

/// A request to open a file.
pub struct Ask {
    pub path: SharePath,
    pub caller: Requester,
    pub flags: i32,
    pub request: OpenRequest,
    pub posix: PosixOpen,
    /// [`State::cuts`] before the open was granted.
    cuts: u64,
}

impl Ask {
    pub fn new(state: &State, caller: Requester, path: SharePath, flags: i32) -> Self {
        let share = state.policy.share_of(caller.pid, &path);
        let request = OpenRequest::plain(access(flags), share);
        let posix = PosixOpen {
            truncate: flags & libc::O_TRUNC != 0,
            before_cut: (caller.uid != 0).then_some(privileges::strip_to_resize),
            without_flush: flags & OPEN_FOR_EXEC != 0,
            ..PosixOpen::default()
        };
        Self { path, caller, flags, request, posix, cuts: state.cuts() }
    }

    /// Restricts `O_TRUNC` to the node's own file where the kernel has checked that file's
    /// permission bits: a file that has taken its name since is not cut.
    pub fn cuts_only_for(&mut self, state: &State, node: u64) {
        if state.options.allow_other && self.caller.uid != 0 {
            self.posix.cuts_only = state.nodes.file(node);
        }
    }

    /// True if the open was to cut its file and did not cut this one.
    pub fn left_uncut(&self, file: FileId) -> bool {
        self.posix.truncate && self.posix.cuts_only.is_some_and(|only| only != file)
    }

    /// True if a user other than root may write through the open.
    pub fn writes_unprivileged(&self) -> bool {
        self.caller.uid != 0 && access(self.flags).contains(Access::W)
    }

    /// Notes that set-id bits stay: the open was granted by then.
    pub fn note_stripped(&self, stripped: std::io::Result<()>) {
        if let Err(error) = stripped {
            let path = &self.path;
            log::warn!("{path}: set-id bits stay, they could not be taken away: {error}");
        }
    }

    /// The errno of a refusal. A missing file has lost the name that the kernel still knew.
    pub fn errno(&self, state: &State, refused: &FileError) -> Errno {
        if refused.is_missing() {
            return state.retries.missing(self.caller.pid, &self.path);
        }
        errno(refused)
    }
}

/// The answer to an open; `None` if no path leads to the node.
pub struct Asked(pub Option<(Ask, Result<OpenedFile, FileError>)>);

impl MissingAnswer for Asked {
    fn is_missing(&self) -> bool {
        self.0.as_ref().is_some_and(|(_, opened)| opened.is_missing())
    }
}

/// Opens a file and answers; a conflict with handles that are being released waits for the
/// releases. `ask` makes the request anew for each attempt: the file may have moved.
pub fn ask_for(
    state: &Arc<State>,
    ask: impl Fn(&State) -> Option<Ask> + Send + 'static,
    answer: impl FnOnce(&Arc<State>, Asked) + Send + 'static,
) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |attempt| {
            let Some(ask) = ask(&asked) else { return Some(Asked(None)) };
            let cx = asked.context(ask.caller.pid, "open");
            let share = asked.share();
            let opened = share.mount_open(attempt, &cx, &ask.path, &ask.request, ask.posix)?;
            Some(Asked(Some((ask, opened))))
        },
        move |opened| {
            if let Some((ask, Err(refused))) = &opened.0
                && !refused.is_missing()
            {
                again.retries.end(ask.caller.pid);
            }
            answer(&again, opened);
        },
    );
}

/// `open(2)` of a file that exists.
pub fn open(state: &Arc<State>, caller: Requester, node: u64, flags: i32, reply: ReplyOpen) {
    let Some(path) = state.nodes.path(node) else {
        return nameless::open(state, caller, node, flags, reply);
    };
    gates_and_faults::arrive(state, MountCall::Open, caller, &path, move |state, met| match met {
        Ok(()) => open_now(state, caller, node, flags, reply),
        Err(errno) => reply.error(errno),
    });
}

fn open_now(state: &Arc<State>, caller: Requester, node: u64, flags: i32, reply: ReplyOpen) {
    let ask = move |state: &State| {
        let mut ask = Ask::new(state, caller, state.nodes.path(node)?, flags);
        ask.cuts_only_for(state, node);
        Some(ask)
    };
    ask_for(state, ask, move |state, opened| match opened.0 {
        Some((ask, Ok(opened))) => {
            let path = ask.path.clone();
            let answer = move |state: &Arc<State>| answer_open(state, node, &ask, opened, reply);
            gates_and_faults::leave(state, MountCall::Open, caller, &path, answer);
        }
        Some((ask, Err(refused))) => reply.error(ask.errno(state, &refused)),
        // The name has gone since the kernel looked it up.
        None => nameless::open(state, caller, node, flags, reply),
    });
}

fn answer_open(state: &State, node: u64, ask: &Ask, opened: OpenedFile, reply: ReplyOpen) {
    let _way = state.lock_way(node);
    let other = state.nodes.file(node).is_some_and(|file| file != opened.stat.id);
    // A file that was to be cut and is not the one that was meant, though the node has it by now.
    if other || ask.left_uncut(opened.stat.id) {
        return nameless::answer_other(state, node, ask, opened, reply);
    }
    strip_privileges(state, ask, &opened);
    let register = |fd: BorrowedFd<'_>| reply.open_backing(fd);
    match make_file(state, (node, Bytes::Pass), ask, opened, register) {
        Ok((file, flags)) => answer_file(&file, flags, reply),
        Err(error) => reply.error(ask.errno(state, &error)),
    }
}

/// Answers the kernel with an open file.
pub fn answer_file(file: &OpenFile, flags: FopenFlags, reply: ReplyOpen) {
    match &file.backing {
        Some(backing) => reply.opened_passthrough(file.number(), flags, backing),
        None => reply.opened(file.number(), flags),
    }
}

/// `open(2)` with `O_CREAT` of a name the kernel believes absent.
pub fn create(
    state: &Arc<State>,
    caller: Requester,
    (parent, name): (u64, &str),
    (mode, flags): (u32, i32),
    reply: ReplyCreate,
) {
    let Some(path) = state.nodes.child(parent, name) else { return reply.error(Errno::ESTALE) };
    let name = name.to_owned();
    gates_and_faults::arrive(
        state,
        MountCall::Create,
        caller,
        &path,
        move |state, met| match met {
            Ok(()) => create_now(state, caller, (parent, name), (mode, flags), reply),
            Err(errno) => reply.error(errno),
        },
    );
}

fn create_now(
    state: &Arc<State>,
    caller: Requester,
    (parent, name): (u64, String),
    (mode, flags): (u32, i32),
    reply: ReplyCreate,
) {
    let wanted = name.clone();
    let ask = move |state: &State| {
        let path = state.nodes.child(parent, &wanted)?;
        let mut ask = Ask::new(state, caller, path, flags);
        let exclusive = flags & libc::O_EXCL != 0;
        ask.request.disposition = if exclusive { Disposition::Create } else { Disposition::OpenIf };
        ask.posix.creation = Some(state.creation(caller, mode));
        Some(ask)
    };
    ask_for(state, ask, move |state, opened| match opened.0 {
        Some((ask, Ok(opened))) => answer_create(state, &ask, (parent, &name), opened, reply),
        Some((_, Err(refused))) => reply.error(errno(&refused)),
        None => reply.error(Errno::ESTALE),
    });
}

fn answer_create(
    state: &State,
    ask: &Ask,
    (parent, name): (u64, &str),
    opened: OpenedFile,
    reply: ReplyCreate,
) {
    if opened.action == CreateAction::Opened {
        // Somebody else made it since the kernel looked.
        strip_privileges(state, ask, &opened);
    }
    let stat = opened.stat;
    let (node, generation) = state.enter(parent, name, &stat);
    let _way = state.lock_way(node);
    let ttl = ttl(state, node, &stat);
    let register = |fd: BorrowedFd<'_>| reply.open_backing(fd);
    match make_file(state, (node, Bytes::Pass), ask, opened, register) {
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

/// Whether an open may use passthrough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytes {
    /// It may, where the kernel supports it.
    Pass,
    /// Reads and writes are sent to latchfs.
    ComeToUs,
}

/// Makes the open file of a grant and keeps it. If that fails, the grant is ended. The caller holds
/// [`State::lock_way`] of the node.
pub fn make_file(
    state: &State,
    (node, bytes): (u64, Bytes),
    ask: &Ask,
    mut opened: OpenedFile,
    register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<fuser::BackingId>,
) -> Result<(Arc<OpenFile>, FopenFlags), FileError> {
    state.retries.end(ask.caller.pid);
    let access = access(ask.flags);
    // The kernel takes one way at a time for a node.
    let beside = state.files.through(opened.stat.id, node);
    let is_taken = beside.is_some_and(|open| open.backing.is_none());
    let bytes = if is_taken { Bytes::ComeToUs } else { bytes };
    let (fd, backing, flags) = match data_path(state, (access, bytes), &mut opened, register) {
        Ok(way) => way,
        Err(error) => {
            end(state, &opened.handle);
            return Err(error);
        }
    };
    let (handle, before_flock) = (opened.handle, Mutex::default());
    let by_create = ask.posix.creation.is_some();
    let file = OpenFile { handle, node, access, fd, backing, by_create, before_flock };
    Ok((keep(state, file, ask.cuts)?, flags))
}

/// Keeps an open file. `cuts` is what [`State::cuts`] was before the open was granted.
pub fn keep(state: &State, file: OpenFile, cuts: u64) -> Result<Arc<OpenFile>, FileError> {
    let file = Arc::new(file);
    // The mount is gone, and no release will come; or it is about to go, and the descriptor would
    // not be among those that are cut off.
    if !state.files.keep(&file) || state.is_ending() && file.can_write_unseen() {
        state.files.take(file.number().0);
        end(state, &file.handle);
        let source = std::io::Error::from_raw_os_error(libc::ENOTCONN);
        return Err(FileError::Store(StoreError::Io { what: "opening", source }));
    }
    // Closed by force before it was kept, it was not there to be cut off: the kernel must not get
    // it. From here on it is. A close that finds the file not kept has been counted.
    if state.cuts() != cuts
        && let Err(closed) = state.share().describe(&file.handle)
    {
        state.files.take(file.number().0);
        return Err(closed);
    }
    Ok(file)
}

type Way = (Option<OwnedFd>, Option<Arc<fuser::BackingId>>, FopenFlags);

fn data_path(
    state: &State,
    (access, bytes): (Access, Bytes),
    opened: &mut OpenedFile,
    register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<fuser::BackingId>,
) -> Result<Way, FileError> {
    let mut flags = FopenFlags::empty();
    let mut backing = None;
    let made = opened.made.take();
    if bytes == Bytes::Pass {
        // While a descriptor for writing is registered, the file cannot be executed.
        let keep = made.is_none();
        let mut not_there = None;
        let registered = state.backing(opened.stat.id, keep, || {
            // A file that is registered goes on, since the kernel takes no other way while it is
            // open so. No other file is registered any more.
            if !state.passes.load(Ordering::Relaxed) {
                return Err(std::io::ErrorKind::Unsupported.into());
            }
            if let Some(fd) = &made {
                return register(fd.as_fd());
            }
            let fd = backing_of(state, opened, OpenFor::Path).map_err(|error| {
                let said = std::io::Error::other(error.to_string());
                not_there = Some(error);
                said
            })?;
            register(fd.as_fd())
        });
        match registered {
            Ok(id) => backing = Some(id),
            // That is about this file, and nothing about the kernel.
            Err(_) if let Some(error) = not_there => return Err(error),
            Err(error) => note_not_passed(state, &opened.path, &error),
        }
    }
    // Writes are sent to latchfs where they must be checked or counted.
    let writes = access.contains(Access::W);
    let comes_to_us = state.options.mandatory_locks || writes && state.share().has_coarse_times();
    if backing.is_some() && !comes_to_us {
        // The kernel opens the file for the program, and would call any failure EIO.
        if writes && opened.action == CreateAction::Opened {
            state.share().check_writable()?;
        }
        return Ok((None, backing, flags));
    }
    flags |= FopenFlags::FOPEN_DIRECT_IO;
    // A file that was made just now may have permission bits that let nobody open it so, and one
    // that was cut just now must not be refused.
    let fd = match made {
        Some(fd) => fd,
        None => backing_of(state, opened, open_for(access))?,
    };
    Ok((Some(fd), backing, flags))
}

/// Notes that the kernel does not register a file. Where it would register none, it is not asked
/// again. All else is about this file, or this moment: other files go on as they are.
fn note_not_passed(state: &State, path: &SharePath, error: &std::io::Error) {
    if !state.passes.load(Ordering::Relaxed) {
        return;
    }
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS | libc::ENOTTY | libc::EOPNOTSUPP) => {
            log::warn!("no kernel passthrough ({error}): reads and writes go through latchfs");
            state.passes.store(false, Ordering::Relaxed);
        }
        _ => log::info!("no kernel passthrough of {path} ({error})"),
    }
}

/// The file that was opened just now: by the name it was found by, which takes no lock, or by the
/// name it has got since.
fn backing_of(state: &State, opened: &OpenedFile, how: OpenFor) -> Result<OwnedFd, FileError> {
    if let Ok(fd) = state.share().backing(&opened.path, how)
        && Stat::of(&fd).is_ok_and(|stat| stat.id == opened.stat.id)
    {
        return Ok(fd);
    }
    state.share().backing_of(&opened.handle, how)
}

/// The mode in which a descriptor for this access is opened: no more than needed, since permission
/// bits may allow only that.
pub fn open_for(access: Access) -> OpenFor {
    match (access.contains(Access::R), access.contains(Access::W)) {
        (true, true) => OpenFor::Write,
        (false, true) => OpenFor::WriteOnly,
        _ => OpenFor::Read,
    }
}

/// Removes set-id bits and capabilities from a file that an unprivileged user opens for writing:
/// under `HANDLE_KILLPRIV_V2` the kernel leaves this to the file system.
pub fn strip_privileges(state: &State, ask: &Ask, opened: &OpenedFile) {
    if ask.writes_unprivileged() {
        let fd = state.share().backing(&opened.path, OpenFor::Path).map_err(std::io::Error::other);
        ask.note_stripped(fd.and_then(privileges::strip));
    }
}

/// Changes the share mode of an open, and answers when it is decided, with the share mode that it
/// had: others that are only being released are waited for.
pub fn set_share(
    state: &Arc<State>,
    caller: Requester,
    file: &Arc<OpenFile>,
    share: ShareMode,
    answer: impl FnOnce(Result<ShareMode, FileError>) + Send + 'static,
) {
    let (asked, file) = (Arc::clone(state), Arc::clone(file));
    state.park.until(
        move |attempt| {
            let cx = asked.context(caller.pid, "set share mode");
            asked.share().mount_set_share(attempt, &cx, &file.handle, share)
        },
        answer,
    );
}

/// A descriptor was closed: its owner's `fcntl` locks go, and the release is on its way.
pub fn flush(state: &Arc<State>, fh: u64, lock_owner: u64, reply: ReplyEmpty) {
    // An open that is not known was closed by force, with its share: closing is the cure for that.
    let Some(file) = state.files.get(fh) else { return reply.ok() };
    if file.access.contains(Access::W) {
        tell_written(state, &file);
    }
    match state.share().flush(&file.handle, lock_owner) {
        // Closing a force-closed descriptor is the cure, not another error.
        Ok(()) | Err(FileError::Denied(Denial::HandleClosed)) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

/// The last reference is gone: the open ends, and a pending name with it.
pub fn release(state: &Arc<State>, fh: u64, reply: ReplyEmpty) {
    if let Some(file) = state.files.take(fh) {
        if file.may_store_by_mapping() {
            state.notices.attributes(file.node); // A mapping may have outlived the descriptor.
        }
        end(state, &file.handle);
    }
    reply.ok();
}

/// The mount is gone: releases that were still on their way in the kernel never arrive, and what
/// is open ends here.
pub fn end_all(state: &State) {
    let (files, dirs) = (state.files.close(), state.dirs.close());
    let files = files.iter().map(|file| &file.handle);
    for handle in files.chain(dirs.iter().map(|dir| &dir.handle)) {
        end(state, handle);
    }
}

/// Ends an open and tells the kernel of a name that went with it.
pub fn end(state: &State, handle: &Handle) {
    match state.share().release(handle) {
        Ok(None) | Err(FileError::Denied(Denial::HandleClosed)) => {}
        Ok(Some(removed)) => forget_name(state, &removed),
        Err(error) => log::error!("closing handle {}: {error}", handle.id()),
    }
}

/// Makes the kernel forget a removed name in every spelling.
pub fn forget_name(state: &State, path: &SharePath) {
    for stale in state.nodes.spellings(path) {
        let gone = state.nodes.removed(stale.parent, &stale.name);
        state.let_go(&gone);
        state.notices.names(gone);
        tell_siblings(state, stale.node);
    }
}

/// A file may have been written through an open. What a mapping stored the kernel has put into the
/// backing file without taking note of it: it asks for times and size again. Of `write(2)` it takes
/// note itself.
fn tell_written(state: &State, file: &OpenFile) {
    if file.may_store_by_mapping() {
        state.notices.attributes(file.node);
    }
    tell_siblings(state, file.node);
}

/// A file changed through one node: the kernel keeps attributes for each spelling and each name
/// of it, and forgets the others'.
pub fn tell_siblings(state: &State, node: u64) {
    for sibling in state.nodes.siblings(node) {
        state.notices.attributes(sibling);
    }
}

/// Invalidates every cached spelling of `path`, because its delete mark was set or cleared.
pub fn ask_again(state: &State, path: &SharePath) {
    state.notices.names(state.nodes.spellings(path));
}

/// True if the file has names beside the one it was found by.
pub fn has_other_names(stat: &Stat) -> bool {
    stat.kind != FileKind::Directory && stat.links > 1
}

/// How long the kernel may remember a name and its file's attributes: not at all while the name
/// can vanish by a close, or while the file has another, or is open by one that is gone: the kernel
/// takes them for two files, and what it writes through one it does not know of the other.
/// A name beside that of the file's own number is asked about each time: only then is the kernel
/// told the number that all names share.
pub fn ttl(state: &State, node: u64, stat: &Stat) -> std::time::Duration {
    let by_lost_name = || state.files.any_node(stat.id, |node| !state.nodes.is_alive(node));
    let has_others = has_other_names(stat)
        || state.nodes.number(node, stat.id) != node
        || state.opens_by_lost_names() && by_lost_name();
    if has_others || state.share().has_pending_name(stat.id) { NO_TTL } else { TTL }
}

/// [`ttl`] of a name that was looked up when `changes` names had changed
/// ([`crate::file::service::Share::name_changes`]). If others have changed since, the name may be
/// among them, and who changed it may not have found the node to invalidate it.
pub fn ttl_since(state: &State, node: u64, stat: &Stat, changes: u64) -> std::time::Duration {
    if state.share().name_changes() == changes { ttl(state, node, stat) } else { NO_TTL }
}
