//! Byte-range locks through handles: lock, wait, unlock. `None` from a request of the mount: only
//! handles that are being released refuse it ([`Attempt`]).

use std::os::fd::OwnedFd;

use super::super::error::{FileError, Result};
use super::super::share::{Attempt, Share, Target};
use super::open::{Handle, Wake};
use super::table::{Completion, Latched};
use crate::file::rules::file_ranges::{LockAnswer, RangeUse};
use crate::file::rules::ranges::{ByteRange, LockKind, LockOwner, RangeLock, Ticket};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::rules::Owner;

/// A refused lock, with what the journal notes about it.
struct NoLock {
    path: SharePath,
    /// `None` if the open has ended.
    who: Option<Owner>,
    denial: Denial,
}

fn refused_to(latched: &Latched, handle: &Handle, path: &SharePath, denial: Denial) -> NoLock {
    let open = latched.state.get(handle.slot(), handle.id());
    NoLock { path: path.clone(), who: open.ok().map(|(open, _)| open.owner.clone()), denial }
}

/// Refuses a lock while all opens of the file are being ended: it would be granted because its
/// holder was ended first, and be gone a moment later.
fn check_goes_on(latched: &Latched) -> Result<()> {
    if latched.ending { Err(Denial::HandleClosed.into()) } else { Ok(()) }
}

impl Share {
    /// Takes all ranges or none, at once.
    pub fn lock(&self, handle: &Handle, wanted: &[(ByteRange, LockKind)]) -> Result<()> {
        let answer = self.latched(handle, |latched, path| {
            check_goes_on(latched)?;
            let answer = latched.state.lock(handle.slot(), handle.id(), wanted);
            Ok(answer.map_err(|denial| refused_to(latched, handle, path, denial)))
        })?;
        self.note_lock(answer)
    }

    /// Notes the refusal of a lock, and passes the answer on.
    fn note_lock(&self, answer: std::result::Result<(), NoLock>) -> Result<()> {
        let Err(NoLock { path, who, denial }) = answer else { return Ok(()) };
        match who {
            Some(who) => self.note_refusal("lock", &path, &who, Err(denial.into())),
            None => Err(denial.into()),
        }
    }

    /// Takes the lock, or lets the request wait: `completion` is then called once, with the
    /// answer. Returns the ticket of a request that waits.
    pub fn lock_later(
        &self,
        handle: &Handle,
        lock: RangeLock,
        completion: Completion,
    ) -> Result<Option<Ticket>> {
        let ticket = self.ticket();
        let waits = self.lock_later_as(handle, lock, ticket, completion)?;
        Ok(waits.then_some(ticket))
    }

    /// A ticket for a lock request that may wait.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.next_handle().0)
    }

    /// Takes the lock, or lets the request wait under `ticket`: then `completion` is called once,
    /// with the answer. True if the request waits.
    pub fn lock_later_as(
        &self,
        handle: &Handle,
        lock: RangeLock,
        ticket: Ticket,
        completion: Completion,
    ) -> Result<bool> {
        let (waits, wake) = self.latched(handle, |latched, _| {
            check_goes_on(latched)?;
            match latched.state.lock_or_wait(handle.slot(), lock, ticket)? {
                LockAnswer::Granted => Ok((false, Wake::changed(latched))),
                LockAnswer::Waiting => {
                    latched.waiting.for_lock(ticket, completion);
                    Ok((true, Wake::nobody()))
                }
            }
        })?;
        self.wake(wake);
        Ok(waits)
    }

    /// Does `work` on the bytes of a range if `by` may use them in this way through the handle. The
    /// lock of the file is held from the question for the range to the end of the work, so that no
    /// byte-range lock is granted in between. A write is counted where times are too coarse.
    pub fn mount_use_range<T>(
        &self,
        attempt: Attempt,
        (handle, fd): (&Handle, &OwnedFd),
        range: impl FnOnce() -> Result<ByteRange>,
        (by, using): (Option<LockOwner>, RangeUse),
        work: impl FnOnce() -> Result<T>,
    ) -> Option<Result<T>> {
        let done = self.latched(handle, |latched, _| {
            latched.state.check_range(range()?, by, using)?;
            if using == RangeUse::Write && self.has_coarse_times() {
                self.count_change(fd, handle.file())?;
            }
            work()
        });
        match &done {
            Err(FileError::Denied(refused)) if self.lock_passes_soon(attempt, handle, refused) => {
                None
            }
            _ => Some(done),
        }
    }

    fn lock_passes_soon(&self, attempt: Attempt, handle: &Handle, refused: &Denial) -> bool {
        let nothing = (Access::NONE, ShareMode::RWD);
        attempt == Attempt::Repeatable && self.passes_soon(refused, Target::Open(handle), nothing)
    }

    /// Ends the wait of a request, which is answered [`Denial::Cancelled`]; false if it has its
    /// answer already.
    pub fn cancel_lock(&self, handle: &Handle, ticket: Ticket) -> bool {
        let cancel = |latched: &mut Latched| {
            let cancelled = latched.state.cancel_lock(ticket);
            let mut wake = Wake::changed(latched);
            if cancelled {
                wake.add(latched, ticket, Err(Denial::Cancelled));
            }
            (cancelled, wake)
        };
        let (cancelled, wake) = self.table().with_cell(handle.cell(), cancel);
        self.wake(wake);
        cancelled
    }

    /// Unlocks ranges, one by one.
    pub fn unlock(&self, handle: &Handle, ranges: &[ByteRange]) -> Result<()> {
        let (answer, wake) = self.latched(handle, |latched, _| {
            let answer = latched.state.unlock(handle.slot(), handle.id(), ranges);
            Ok((answer, Wake::changed(latched)))
        })?;
        self.wake(wake);
        Ok(answer?)
    }

    /// Takes an `fcntl` lock at once (`F_SETLK`). If a shared lock replaces the owner's exclusive
    /// one, waiting requests may be granted. Locks of open file descriptions go with the release,
    /// not with the close.
    pub fn mount_lock(
        &self,
        attempt: Attempt,
        handle: &Handle,
        lock: RangeLock,
    ) -> Option<Result<()>> {
        let taken = self.latched(handle, |latched, path| {
            check_goes_on(latched)?;
            let answer = latched.state.posix_lock(handle.slot(), lock);
            let answer = answer.map_err(|denial| refused_to(latched, handle, path, denial));
            let wake = if answer.is_ok() { Wake::changed(latched) } else { Wake::nobody() };
            Ok((answer, wake))
        });
        let (answer, wake) = match taken {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error)),
        };
        self.wake(wake);
        match &answer {
            Err(refused) if self.lock_passes_soon(attempt, handle, &refused.denial) => None,
            _ => Some(self.note_lock(answer)),
        }
    }

    /// Unlocks the part of a range that an `fcntl` owner holds (`F_UNLCK`).
    pub fn posix_unlock(&self, handle: &Handle, owner: u64, range: ByteRange) -> Result<()> {
        let wake = self.latched(handle, |latched, _| {
            latched.state.posix_unlock(owner, range);
            Ok(Wake::changed(latched))
        })?;
        self.wake(wake);
        Ok(())
    }

    /// The lock that would refuse an `fcntl` lock (`F_GETLK`).
    pub fn mount_test_lock(
        &self,
        attempt: Attempt,
        handle: &Handle,
        (owner, kind, range): (u64, LockKind, ByteRange),
    ) -> Option<Result<Option<RangeLock>>> {
        let found =
            self.latched(handle, |latched, _| Ok(latched.state.posix_test(owner, kind, range)));
        if let Ok(Some(lock)) = &found {
            let refused = Denial::LockNotGranted { lock: *lock, holder: None };
            if self.lock_passes_soon(attempt, handle, &refused) {
                return None;
            }
        }
        Some(found)
    }

    /// A process closed one of its descriptors of the file: all its `fcntl` locks on it go, and
    /// the open's release may be on its way.
    pub fn flush(&self, handle: &Handle, owner: u64) -> Result<()> {
        let now = self.now();
        let wake = self.latched(handle, |latched, _| {
            latched.state.posix_release(owner);
            latched.state.set_flushed(handle.slot(), handle.id(), now)?;
            Ok(Wake::changed(latched))
        })?;
        self.wake(wake);
        Ok(())
    }
}
