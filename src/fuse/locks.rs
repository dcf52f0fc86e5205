//! `fcntl` locks, of processes and of open file descriptions, and `flock` where it is asked for.

use std::sync::Arc;

use fuser::{Errno, ReplyEmpty, ReplyLock};

use super::driver::Caller;
use super::errno::errno;
use super::opens::set_share;
use super::state::{OpenFile, State};
use crate::core::ShareMode;
use crate::core::ranges::{ByteRange, LockKind, RangeLock};

const POISON: &str = "a share mode is only kept and taken";

/// A lock as the kernel asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub owner: u64,
    pub start: u64,
    pub end: u64,
    pub kind: i32,
    pub pid: u32,
}

fn kind(kind: i32) -> Option<LockKind> {
    match kind {
        libc::F_RDLCK => Some(LockKind::Shared),
        libc::F_WRLCK => Some(LockKind::Exclusive),
        _ => None,
    }
}

fn spelled(kind: LockKind) -> i32 {
    match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    }
}

/// `F_GETLK`.
pub fn get(state: &State, fh: u64, wanted: Wanted, reply: ReplyLock) {
    let Some(file) = state.file(fh) else { return reply.error(Errno::EBADF) };
    let (Ok(range), Some(kind)) =
        (ByteRange::from_posix(wanted.start, wanted.end), kind(wanted.kind))
    else {
        return reply.error(Errno::EINVAL);
    };
    match state.share.posix_test(&file.handle, wanted.owner, kind, range) {
        Ok(None) => reply.locked(0, 0, libc::F_UNLCK, 0),
        Ok(Some(lock)) => {
            let (start, end) = lock.range.to_posix();
            reply.locked(start, end, spelled(lock.kind), lock.pid);
        }
        Err(error) => reply.error(errno(&error)),
    }
}

/// `F_SETLK`, `F_SETLKW` and their open-file-description forms.
pub fn set(
    state: &Arc<State>,
    caller: Caller,
    fh: u64,
    wanted: Wanted,
    sleep: bool,
    reply: ReplyEmpty,
) {
    let Some(file) = state.file(fh) else { return reply.error(Errno::EBADF) };
    let Ok(range) = ByteRange::from_posix(wanted.start, wanted.end) else {
        return reply.error(Errno::EINVAL);
    };
    let flocks = state.options.flock_as_share_mode && is_flock(wanted);
    let Some(kind) = kind(wanted.kind) else {
        let unlocked = unlock(state, &file, wanted.owner, range);
        if flocks {
            restore_share(state, caller, &file);
        }
        return answer(unlocked, reply);
    };
    let lock = RangeLock::posix(wanted.owner, file.handle.id(), kind, range, wanted.pid);
    if flocks {
        return flock(state, caller, &file, lock, sleep, reply);
    }
    if sleep {
        wait(state, caller, &file, lock, reply);
    } else {
        let taken = state.share.posix_lock(&file.handle, lock);
        answer(taken.map_err(|error| errno(&error)), reply);
    }
}

/// `flock`: the share mode first, which lets in no other open that could hold the lock.
fn flock(
    state: &Arc<State>,
    caller: Caller,
    file: &Arc<OpenFile>,
    lock: RangeLock,
    sleep: bool,
    reply: ReplyEmpty,
) {
    let exclusive = lock.kind == LockKind::Exclusive;
    let share = if exclusive { ShareMode::NONE } else { ShareMode::RWD };
    let had = state.share.describe(&file.handle).map(|seen| seen.share);
    let (again, file_again) = (Arc::clone(state), Arc::clone(file));
    set_share(state, caller, file, share, move |set| {
        let (state, file) = (again, file_again);
        if let Err(error) = set {
            return answer(Err(flock_errno(&error)), reply);
        }
        if let Ok(had) = had {
            file.before_flock.lock().expect(POISON).get_or_insert(had);
        }
        if sleep {
            return wait(&state, caller, &file, lock, reply);
        }
        let taken = state.share.posix_lock(&file.handle, lock);
        if taken.is_err() {
            restore_share(&state, caller, &file);
        }
        answer(taken.map_err(|error| errno(&error)), reply);
    });
}

/// Gives an open the share mode back that it had before `flock`. Others that came in beside a
/// shared lock may stand against it: then it goes on sharing what it shares.
fn restore_share(state: &State, caller: Caller, file: &OpenFile) {
    let Some(had) = file.before_flock.lock().expect(POISON).take() else { return };
    let who = state.owner(caller.pid);
    if let Err(error) = state.share.set_share_mode(&who, &file.handle, had) {
        log::debug!("handle {} keeps the share mode of its flock: {error}", file.handle.id());
    }
}

fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn unlock(state: &State, file: &OpenFile, owner: u64, range: ByteRange) -> Result<(), Errno> {
    state.share.posix_unlock(&file.handle, owner, range).map_err(|error| errno(&error))
}

/// `flock` locks the whole file, to its last byte, which no `fcntl` of a program at hand does
/// under the option that tells the two apart by it: fuser drops the flag that would.
fn is_flock(wanted: Wanted) -> bool {
    wanted.start == 0 && wanted.end >= i64::MAX.cast_unsigned()
}

/// A refused share mode is a lock that would block.
fn flock_errno(error: &crate::engine::Error) -> Errno {
    match errno(error) {
        Errno::EBUSY => Errno::EAGAIN,
        other => other,
    }
}

/// Waits for a lock without holding a worker; a signalled or killed waiter is let go.
fn wait(
    state: &Arc<State>,
    caller: Caller,
    file: &Arc<OpenFile>,
    lock: RangeLock,
    reply: ReplyEmpty,
) {
    // Answered by whichever comes first: the completion of a waiting request, or right here. The
    // engine calls the completion exactly if it returns a ticket.
    let reply = Arc::new(std::sync::Mutex::new(Some(reply)));
    let number = state.share.ticket();
    let (later, watcher) = (Arc::clone(&reply), Arc::clone(state));
    let completion = Box::new(move |got: Result<(), crate::core::Denial>| {
        watcher.park.unwatch(number.0);
        if let Some(reply) = later.lock().expect("a reply is only taken").take() {
            answer(got.map_err(|denial| errno(&denial.into())), reply);
        }
    });
    let (waiting, again) = (Arc::clone(file), Arc::clone(state));
    let cancel = Box::new(move || {
        again.share.cancel_lock(&waiting.handle, number);
    });
    // Watched before it waits, so that an answer that comes at once finds it.
    state.park.watch(number.0, caller.pid, cancel);
    let asked = state.share.lock_later_as(&file.handle, lock, number, completion);
    if !matches!(asked, Ok(true)) {
        state.park.unwatch(number.0);
        if let Some(reply) = reply.lock().expect("a reply is only taken").take() {
            answer(asked.map(drop).map_err(|error| errno(&error)), reply);
        }
    }
}
