//! Directories: opening, reading with and without attributes, closing.

use std::sync::{Arc, Mutex};

use fuser::{
    Errno, FileHandle, FileType, FopenFlags, Generation, INodeNo, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyOpen,
};

use super::attr::entry_kind;
use super::driver::Caller;
use super::errno::errno;
use super::opens::{end, ttl};
use super::state::{OpenDir, State};
use crate::core::create::{OpenRequest, Options};
use crate::core::{Access, Denial, ShareMode, SharePath};
use crate::engine::{Error, Listed};

/// What a removed directory is opened as once more, by a descriptor of it. The kernel itself says
/// that nothing is in it, so no open of ours stands behind it.
const REMOVED: u64 = u64::MAX;

/// `opendir(3)`: an open with R that shares everything. The kernel sends no flush for
/// directories, so the handle counts as one whose release is on its way from the start.
pub fn open(state: &State, caller: Caller, node: u64, reply: ReplyOpen) {
    let Some(path) = state.nodes.path(node) else {
        if state.orphan(node).is_some() {
            return reply.opened(FileHandle(REMOVED), FopenFlags::empty());
        }
        return reply.error(Errno::ESTALE);
    };
    let request = OpenRequest {
        options: Options { directory: true, ..Options::default() },
        ..OpenRequest::plain(Access::R, ShareMode::RWD)
    };
    let who = state.owner(caller.pid);
    let opened = state.share.open(&who, &path, &request).and_then(|opened| {
        state.share.set_flushed(&opened.handle)?;
        Ok(opened)
    });
    match opened {
        Ok(opened) => {
            let entries = Mutex::default();
            let dir = OpenDir { handle: opened.handle, node, entries };
            reply.opened(FileHandle(state.keep_dir(dir)), FopenFlags::empty());
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// `closedir(3)`.
pub fn release(state: &State, fh: u64, reply: ReplyEmpty) {
    if let Some(dir) = state.drop_dir(fh) {
        end(state, &dir.handle);
    }
    reply.ok();
}

/// What a reader goes through: the directory's path, and its entries as they were when it was
/// read from the start. Offsets count into them, after `.` and `..`.
type Reading = Result<(SharePath, Arc<Vec<Listed>>), Error>;

/// Answers a reader. One who starts while a pending name is about to go waits for it: right after
/// the last `close(2)` it is not listed.
fn read_from(
    state: &Arc<State>,
    fh: u64,
    offset: u64,
    answer: impl FnOnce(&State, Reading) + Send + 'static,
) {
    let (asked, again) = (Arc::clone(state), Arc::clone(state));
    state.park.until(
        move |last| {
            let Some(dir) = asked.dir(fh) else { return Some(Err(Denial::HandleClosed.into())) };
            let path = match asked.share.path_of(&dir.handle) {
                Ok(path) => path,
                Err(error) => return Some(Err(error)),
            };
            if !last && offset == 0 && asked.share.loses_names_soon(&path) {
                return None;
            }
            Some(entries(&asked, &dir, &path, offset).map(|entries| (path, entries)))
        },
        move |reading| answer(&again, reading),
    );
}

fn entries(
    state: &State,
    dir: &OpenDir,
    path: &SharePath,
    offset: u64,
) -> Result<Arc<Vec<Listed>>, Error> {
    let mut kept = dir.entries.lock().expect("entries are only replaced");
    if offset == 0 {
        *kept = Arc::new(state.share.list(path, None, usize::MAX)?);
    }
    Ok(Arc::clone(&kept))
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
        // As `stat(2)` shows it: a second name of a file has a number of its own.
        let number = state.nodes.known(node, &entry.name).unwrap_or(entry.ino);
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
    let (path, entries) = match reading {
        Ok(found) => found,
        Err(error) => return reply.error(errno(&error)),
    };
    let Ok((own, looked_at)) =
        state.share.entries(&path).and_then(|entries| Ok((entries.own()?, entries)))
    else {
        return reply.error(Errno::ESTALE);
    };
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
        // Gone since the directory was read: left out, as it would be by the next reader.
        let Ok(child) = path.join(&entry.name) else { continue };
        let Ok(stat) = looked_at.stat(&entry.name) else { continue };
        let (id, generation) = state.nodes.enter(node, &entry.name, stat.id);
        let ttl = ttl(state, &child, &stat);
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
