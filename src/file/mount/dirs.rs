//! Directories: opening, reading with and without attributes, closing.

use std::sync::{Arc, Mutex};

use fuser::{
    Errno, FileHandle, FileType, FopenFlags, Generation, INodeNo, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyOpen,
};

use super::attr::{NO_TTL, entry_kind};
use super::driver::Requester;
use super::errno::errno;
use super::open_files::{NumberedOpen as _, OpenDir};
use super::opens::{end, ttl_since};
use super::state::State;
use crate::file::rules::create::{OpenRequest, Options};
use crate::file::rules::{Access, Denial, ShareMode};
use crate::file::service::{
    Attempt, FileError, ListedName, OpenDirectory, OpenFor, PosixOpen, Stat, StoreError,
};

/// The handle number of a removed directory that a program opens again through a descriptor. The
/// kernel itself answers that the directory is empty, so no open is kept for it.
const REMOVED: u64 = u64::MAX;

/// `opendir(3)`: an open with R that shares everything. The kernel sends no flush for
/// directories, so the handle counts as one whose release is on its way from the start.
pub fn open(state: &Arc<State>, caller: Requester, node: u64, reply: ReplyOpen) {
    if state.nodes.path(node).is_none() && state.is_open(node) {
        return reply.opened(FileHandle(REMOVED), FopenFlags::empty());
    }
    let request = OpenRequest {
        options: Options { directory: true, ..Options::default() },
        ..OpenRequest::plain(Access::R, ShareMode::RWD)
    };
    let open = || {
        let path = state.nodes.path(node).ok_or(Errno::ESTALE)?;
        let posix = PosixOpen { without_flush: true, ..PosixOpen::default() };
        let cx = state.context(caller.pid, "opendir");
        let opened = state.share().open_posix(&cx, &path, &request, posix);
        let handle = opened.map_err(|error| errno(&error))?.handle;
        match state.share().backing_of(&handle, OpenFor::Read) {
            Ok(fd) => {
                let (dir, entries) = (OpenDirectory::new(fd), Mutex::default());
                Ok(OpenDir { handle, dir, entries })
            }
            Err(error) => {
                end(state, &handle);
                Err(errno(&error))
            }
        }
    };
    state.park.answer(open, |opened: Result<OpenDir, Errno>| match opened.map(Arc::new) {
        Ok(dir) if state.dirs.keep(&dir) => reply.opened(dir.number(), FopenFlags::empty()),
        // The mount is gone: no release will come for it.
        Ok(dir) => {
            end(state, &dir.handle);
            reply.error(Errno::ENOTCONN);
        }
        Err(errno) => reply.error(errno),
    });
}

/// `closedir(3)`.
pub fn release(state: &Arc<State>, fh: u64, reply: ReplyEmpty) {
    if let Some(dir) = state.dirs.take(fh) {
        end(state, &dir.handle);
    }
    reply.ok();
}

/// A directory and its entries as they were when it was read from the start. Offsets count into the
/// entries, after `.` and `..`.
type Reading = Result<(Arc<OpenDir>, Arc<Vec<ListedName>>), FileError>;

/// Answers a reader. A reader that starts while a pending name is about to be removed waits for the
/// removal, so that the name is not listed right after the last `close(2)`.
fn read_from(
    state: &Arc<State>,
    fh: u64,
    offset: u64,
    answer: impl FnOnce(&State, Reading) + Send + 'static,
) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |attempt| {
            let Some(dir) = asked.dirs.get(fh) else {
                return Some(Err(Denial::HandleClosed.into()));
            };
            let path = match asked.share().path_of(&dir.handle) {
                Ok(path) => path,
                Err(error) => return Some(Err(error)),
            };
            let may_wait = attempt == Attempt::Repeatable && offset == 0;
            if may_wait && asked.share().loses_names_soon(&path) {
                return None;
            }
            Some(entries(&asked, &dir, offset).map(|entries| (dir, entries)))
        },
        move |reading| answer(&again, reading),
    );
}

fn entries(state: &State, dir: &OpenDir, offset: u64) -> Result<Arc<Vec<ListedName>>, FileError> {
    const POISON: &str = "entries are only replaced";
    if offset == 0 {
        let listed = Arc::new(state.share().list_open(&dir.dir, dir.handle.file())?);
        *dir.entries.lock().expect(POISON) = listed;
    }
    Ok(Arc::clone(&dir.entries.lock().expect(POISON)))
}

const DOTS: [&str; 2] = [".", ".."];

/// `readdir(3)` without attributes.
pub fn read(state: &Arc<State>, node: u64, fh: u64, offset: u64, reply: ReplyDirectory) {
    read_from(state, fh, offset, move |state, reading| {
        answer(state, node, offset, reading, reply);
    });
}

fn answer(state: &State, node: u64, offset: u64, reading: Reading, mut reply: ReplyDirectory) {
    let entries = match reading {
        Ok((_, entries)) => entries,
        Err(error) => return reply.error(errno(&error)),
    };
    let mut at = offset;
    while let Some(dot) = usize::try_from(at).ok().and_then(|at| DOTS.get(at)) {
        if reply.add(INodeNo(node), at + 1, FileType::Directory, dot) {
            return reply.ok();
        }
        at += 1;
    }
    let skip = usize::try_from(at).unwrap_or(usize::MAX) - DOTS.len();
    for entry in entries.iter().skip(skip) {
        at += 1;
        // As `stat(2)` shows it: another spelling of a name has a number of its own.
        let number = state.nodes.listed(node, &entry.name, entry.ino);
        if reply.add(INodeNo(number), at, entry_kind(entry.kind), &entry.name) {
            break;
        }
    }
    reply.ok();
}

/// `readdir(3)` with attributes: each entry that fits counts as looked up.
pub fn read_plus(state: &Arc<State>, node: u64, fh: u64, offset: u64, reply: ReplyDirectoryPlus) {
    let answer = move |state: &State, reading| answer_plus(state, node, offset, reading, reply);
    read_from(state, fh, offset, answer);
}

fn answer_plus(
    state: &State,
    node: u64,
    offset: u64,
    reading: Reading,
    mut reply: ReplyDirectoryPlus,
) {
    let (dir, entries) = match reading {
        Ok(found) => found,
        Err(error) => return reply.error(errno(&error)),
    };
    let own = match dir.dir.own() {
        Ok(own) => own,
        Err(error) => return reply.error(errno(&error.into())),
    };
    let changes = state.share().name_changes();
    let mut at = offset;
    while let Some(dot) = usize::try_from(at).ok().and_then(|at| DOTS.get(at)) {
        let attr = state.attr(node, &own);
        if reply.add(INodeNo(node), at + 1, dot, &super::attr::TTL, &attr, Generation(0)) {
            return reply.ok();
        }
        at += 1;
    }
    let skip = usize::try_from(at).unwrap_or(usize::MAX) - DOTS.len();
    for entry in entries.iter().skip(skip) {
        at += 1;
        let (stat, ttl) = match dir.dir.stat(&entry.name) {
            Ok(stat) => (stat, None),
            // Names can be read where they cannot be looked at.
            Err(StoreError::PermissionDenied) => (Stat::unknown(entry), Some(NO_TTL)),
            // Gone since the directory was read: left out, as it would be by the next reader.
            Err(_) => continue,
        };
        let (id, generation) = state.enter(node, &entry.name, &stat);
        let ttl = ttl.unwrap_or_else(|| ttl_since(state, id, &stat, changes));
        if reply.add(
            INodeNo(id),
            at,
            &entry.name,
            &ttl,
            &state.attr(id, &stat),
            Generation(generation),
        ) {
            state.nodes.forget(id, 1);
            break;
        }
    }
    reply.ok();
}
