//! `fcntl` locks, of processes and of open file descriptions, and `flock` where it is asked for.

use std::sync::{Arc, Mutex};

use fuser::{Errno, ReplyEmpty, ReplyLock};

use super::driver::Requester;
use super::errno::errno;
use super::open_files::OpenFile;
use super::state::State;
use crate::file::rules::ranges::{ByteRange, LockKind, RangeLock};
use crate::file::rules::{Denial, ShareMode};
use crate::file::service::{Attempt, FileError};

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

pub fn get(state: &Arc<State>, fh: u64, wanted: Wanted, reply: ReplyLock) {
    let Some(file) = state.files.get(fh) else { return reply.error(Errno::EIO) };
    let (Ok(range), Some(kind)) =
        (ByteRange::from_posix(wanted.start, wanted.end), kind(wanted.kind))
    else {
        return reply.error(Errno::EINVAL);
    };
    let asked = Arc::clone(state);
    let wanted = (wanted.owner, kind, range);
    let test = move |attempt| asked.share().mount_test_lock(attempt, &file.handle, wanted);
    state.park.until(test, move |found| match found {
        Ok(None) => reply.locked(0, 0, libc::F_UNLCK, 0),
        Ok(Some(lock)) => {
            let (start, end) = lock.range.to_posix();
            reply.locked(start, end, spelled(lock.kind), lock.pid);
        }
        Err(error) => reply.error(errno(&error)),
    });
}

/// `F_SETLK`, `F_SETLKW` and their open-file-description forms.
pub fn set(
    state: &Arc<State>,
    caller: Requester,
    fh: u64,
    wanted: Wanted,
    sleep: bool,
    reply: ReplyEmpty,
) {
    let Some(file) = state.files.get(fh) else { return reply.error(Errno::EIO) };
    let Ok(range) = ByteRange::from_posix(wanted.start, wanted.end) else {
        return reply.error(Errno::EINVAL);
    };
    let flocks = state.options.flock_as_share_mode && is_flock(wanted);
    let Some(kind) = kind(wanted.kind) else {
        let unlocked = state.share().posix_unlock(&file.handle, wanted.owner, range);
        if flocks {
            restore_share(state, caller, &file);
        }
        return answer(unlocked, reply);
    };
    let lock = RangeLock::posix(wanted.owner, file.handle.id(), kind, range, wanted.pid);
    if flocks {
        flock(state, caller, &file, lock, sleep, reply);
    } else {
        take(state, caller, file, lock, (sleep, false), reply);
    }
}

/// `flock`: sets the share mode first, so that no open is granted that could hold the lock.
fn flock(
    state: &Arc<State>,
    caller: Requester,
    file: &Arc<OpenFile>,
    lock: RangeLock,
    sleep: bool,
    reply: ReplyEmpty,
) {
    let exclusive = lock.kind == LockKind::Exclusive;
    let share = if exclusive { ShareMode::NONE } else { ShareMode::RWD };
    let (asked, set_of) = (Arc::clone(state), Arc::clone(file));
    let set = move |attempt| {
        let cx = asked.context(caller.pid, "set share mode");
        // Over both steps: another thread may lock or unlock the same description meanwhile, and
        // the mode that `flock` has set must never be kept as the one before.
        let mut before_flock = set_of.before_flock.lock().expect(POISON);
        let set = asked.share().mount_set_share(attempt, &cx, &set_of.handle, share)?;
        Some(set.map(|had| _ = before_flock.get_or_insert(had)))
    };
    let (again, file) = (Arc::clone(state), Arc::clone(file));
    state.park.until(set, move |set| match set {
        Ok(()) => take(&again, caller, file, lock, (sleep, true), reply),
        Err(error) => reply.error(flock_errno(&error)),
    });
}

/// The result of a request for a lock.
enum Taken {
    /// The lock was taken.
    Now,
    /// The request waits, and is answered when the wait ends.
    Later,
}

/// Takes a lock; if another owner has it, the request waits if it `sleeps`. If a `flock` that does
/// not wait is refused, the open gets its share mode back.
fn take(
    state: &Arc<State>,
    caller: Requester,
    file: Arc<OpenFile>,
    lock: RangeLock,
    (sleeps, flocks): (bool, bool),
    reply: ReplyEmpty,
) {
    // Answered by whichever comes first: the end of the wait, or right here.
    let reply = Arc::new(Mutex::new(Some(reply)));
    let (asked, later) = (Arc::clone(state), Arc::clone(&reply));
    let take = move |attempt| {
        // A request that sleeps waits for the lock, not for the release alone.
        let attempt = if sleeps { Attempt::Last } else { attempt };
        // Granted in most cases: then no waiter has to be watched.
        Some(match asked.share().mount_lock(attempt, &file.handle, lock)? {
            Ok(()) => Ok(Taken::Now),
            Err(FileError::Denied(Denial::LockNotGranted { .. })) if sleeps => {
                wait(&asked, caller, &file, lock, &later)
            }
            Err(refused) => {
                if flocks && !sleeps {
                    restore_share(&asked, caller, &file);
                }
                Err(refused)
            }
        })
    };
    state.park.until(take, move |taken| match taken {
        Ok(Taken::Later) => {}
        Ok(Taken::Now) => answer_once(&reply, Ok(())),
        Err(error) => answer_once(&reply, Err(error)),
    });
}

/// A reply that is given once: by the end of the wait, or by the request itself.
type Once = Mutex<Option<ReplyEmpty>>;

fn answer_once(reply: &Once, done: Result<(), FileError>) {
    if let Some(reply) = reply.lock().expect("a reply is only taken").take() {
        answer(done, reply);
    }
}

/// Gives an open the share mode back that it had before `flock`. If opens that were granted beside
/// a shared lock conflict with that mode, the open keeps the present one.
fn restore_share(state: &State, caller: Requester, file: &OpenFile) {
    let mut before_flock = file.before_flock.lock().expect(POISON);
    let Some(had) = *before_flock else { return };
    let cx = state.context(caller.pid, "flock");
    let restored = state.share().mount_set_share(Attempt::Last, &cx, &file.handle, had);
    if let Some(Err(error)) = restored {
        log::debug!("handle {} keeps the share mode of its flock: {error}", file.handle.id());
    }
    *before_flock = None;
}

fn answer(done: Result<(), FileError>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

/// True for a `flock`. fuser drops the flag that marks one, so it is told by its range: `flock`
/// locks the whole file to its last possible byte, which programs do not ask `fcntl` for.
fn is_flock(wanted: Wanted) -> bool {
    wanted.start == 0 && wanted.end >= i64::MAX.cast_unsigned()
}

/// The errno of a refused `flock`: a sharing violation is a lock that would block.
fn flock_errno(error: &crate::file::service::FileError) -> Errno {
    match errno(error) {
        Errno::EBUSY => Errno::EAGAIN,
        other => other,
    }
}

/// Lets a request wait for a lock without holding a worker; a signal ends the wait.
fn wait(
    state: &Arc<State>,
    caller: Requester,
    file: &Arc<OpenFile>,
    lock: RangeLock,
    reply: &Arc<Once>,
) -> Result<Taken, FileError> {
    let number = state.share().ticket();
    // The engine calls the completion exactly if the request waits.
    let (later, watcher) = (Arc::clone(reply), Arc::clone(state));
    let completion = Box::new(move |got: Result<(), Denial>| {
        watcher.park.unwatch(number.0);
        answer_once(&later, got.map_err(FileError::from));
    });
    let (waiting, again) = (Arc::clone(file), Arc::clone(state));
    // False before the request waits: a signal that has come by then is seen again.
    let cancel = Arc::new(move || again.share().cancel_lock(&waiting.handle, number));
    // Watched before it waits, so that an answer that comes at once finds it.
    state.park.watch(number.0, caller.pid, cancel);
    match state.share().lock_later_as(&file.handle, lock, number, completion) {
        Ok(true) => Ok(Taken::Later),
        taken => {
            state.park.unwatch(number.0);
            taken.map(|_| Taken::Now)
        }
    }
}
