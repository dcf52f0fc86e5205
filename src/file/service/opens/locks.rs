//! Byte-range locks through handles: lock, wait with a bound, unlock.

use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::Duration;

use super::super::error::{FileError, Result};
use super::super::share::Share;
use super::open::{Handle, Wake};
use super::table::{Completion, Latched};
use crate::file::rules::file_ranges::{LockAnswer, RangeUse};
use crate::file::rules::ranges::{ByteRange, LockKind, LockOwner, RangeLock, Ticket};
use crate::file::rules::{Denial, SharePath};
use crate::rules::Owner;

/// The longest a caller may wait for a lock in one call.
pub const LOCK_WAIT_MAX: Duration = Duration::from_hours(1);

/// A refused lock, with what the journal notes about it.
pub(crate) struct NoLock {
    path: SharePath,
    /// `None` if the open has ended.
    who: Option<Owner>,
    pub denial: Denial,
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
    pub(crate) fn note_lock(&self, answer: std::result::Result<(), NoLock>) -> Result<()> {
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
    pub(crate) fn use_range<T>(
        &self,
        (handle, fd): (&Handle, &OwnedFd),
        range: impl FnOnce() -> Result<ByteRange>,
        (by, using): (Option<LockOwner>, RangeUse),
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.latched(handle, |latched, _| {
            latched.state.check_range(range()?, by, using)?;
            if using == RangeUse::Write && self.has_coarse_times() {
                self.count_change(fd, handle.file())?;
            }
            work()
        })
    }

    /// Takes an SMB-style lock, waiting for it for at most `patience`.
    pub fn lock_within(
        &self,
        handle: &Handle,
        range: ByteRange,
        kind: LockKind,
        patience: Duration,
    ) -> Result<()> {
        let (sender, answer) = mpsc::channel();
        let lock = RangeLock::smb(handle.id(), kind, range, 0);
        // The receiver is gone only if the caller stopped waiting: nobody is left to tell.
        let completion = Box::new(move |got| drop(sender.send(got)));
        let Some(ticket) = self.lock_later(handle, lock, completion)? else { return Ok(()) };
        match answer.recv_timeout(patience.min(LOCK_WAIT_MAX)) {
            Ok(got) => got.map_err(FileError::from),
            Err(_) if self.cancel_lock(handle, ticket) => Err(Denial::Cancelled.into()),
            // Granted or refused between the bound and the cancel: that answer stands.
            Err(_) => answer.recv().map_or(Err(Denial::Cancelled.into()), |got| Ok(got?)),
        }
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
    /// one, waiting requests may be granted.
    pub(crate) fn posix_lock_unnoted(
        &self,
        handle: &Handle,
        lock: RangeLock,
    ) -> Result<std::result::Result<(), NoLock>> {
        let (answer, wake) = self.latched(handle, |latched, path| {
            check_goes_on(latched)?;
            let answer = latched.state.posix_lock(handle.slot(), lock);
            let answer = answer.map_err(|denial| refused_to(latched, handle, path, denial));
            let wake = if answer.is_ok() { Wake::changed(latched) } else { Wake::nobody() };
            Ok((answer, wake))
        })?;
        self.wake(wake);
        Ok(answer)
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
    pub(crate) fn posix_test(
        &self,
        handle: &Handle,
        owner: u64,
        kind: LockKind,
        range: ByteRange,
    ) -> Result<Option<RangeLock>> {
        self.latched(handle, |latched, _| Ok(latched.state.posix_test(owner, kind, range)))
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
