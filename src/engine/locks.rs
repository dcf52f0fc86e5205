//! Byte-range locks through handles: taking, waiting with a bound, giving back.

use std::sync::mpsc;
use std::time::Duration;

use super::error::{Error, Result};
use super::open::{Handle, Wake};
use super::share::Share;
use super::table::Latched;
use super::waiting::Completion;
use crate::core::ranges::{ByteRange, LockKind, RangeLock, Ticket};
use crate::core::{Denial, Owner, SharePath};

/// The longest a caller may wait for a lock in one call.
pub const LOCK_WAIT_MAX: Duration = Duration::from_hours(1);

/// A lock that was refused, and what the log says of it.
struct NoLock {
    path: SharePath,
    /// None if its open is gone.
    who: Option<Owner>,
    denial: Denial,
}

fn refused_to(latched: &Latched, handle: &Handle, path: &SharePath, denial: Denial) -> NoLock {
    let open = latched.state.get(handle.slot(), handle.id());
    NoLock { path: path.clone(), who: open.ok().map(|(open, _)| open.owner.clone()), denial }
}

impl Share {
    /// Takes all ranges or none, at once.
    pub fn lock(&self, handle: &Handle, wanted: &[(ByteRange, LockKind)]) -> Result<()> {
        let answer = self.latched(handle, |latched, path| {
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
            Ok(got) => got.map_err(Error::from),
            Err(_) if self.cancel_lock(handle, ticket) => Err(Denial::Cancelled.into()),
            // Granted or refused between the bound and the cancel: that answer stands.
            Err(_) => answer.recv().map_or(Err(Denial::Cancelled.into()), |got| Ok(got?)),
        }
    }

    /// Ends the wait of a request, which is answered [`Denial::Cancelled`]; false if it has its
    /// answer already.
    pub fn cancel_lock(&self, handle: &Handle, ticket: Ticket) -> bool {
        let (cancelled, wake) = self.table.with_cell(handle.cell(), |latched| {
            let cancelled = latched.state.cancel_lock(ticket);
            let mut wake = Wake::changed(latched);
            if cancelled {
                wake.answer(latched, ticket, Err(Denial::Cancelled));
            }
            (cancelled, wake)
        });
        wake.call();
        cancelled
    }

    /// Gives ranges back, one by one.
    pub fn unlock(&self, handle: &Handle, ranges: &[ByteRange]) -> Result<()> {
        let (answer, wake) = self.latched(handle, |latched, _| {
            let answer = latched.state.unlock(handle.slot(), handle.id(), ranges);
            Ok((answer, Wake::changed(latched)))
        })?;
        wake.call();
        Ok(answer?)
    }

    /// Takes an `fcntl` lock at once (`F_SETLK`). Replacing one's own exclusive lock by a shared
    /// one may let others in.
    pub fn posix_lock(&self, handle: &Handle, lock: RangeLock) -> Result<()> {
        let (answer, wake) = self.latched(handle, |latched, path| {
            let answer = latched.state.posix_lock(handle.slot(), lock);
            let answer = answer.map_err(|denial| refused_to(latched, handle, path, denial));
            Ok((answer, Wake::changed(latched)))
        })?;
        wake.call();
        self.note_lock(answer)
    }

    /// Gives back what an `fcntl` owner holds of a range (`F_UNLCK`).
    pub fn posix_unlock(&self, handle: &Handle, owner: u64, range: ByteRange) -> Result<()> {
        let wake = self.latched(handle, |latched, _| {
            latched.state.posix_unlock(owner, range);
            Ok(Wake::changed(latched))
        })?;
        wake.call();
        Ok(())
    }

    /// What would keep an `fcntl` owner from a lock (`F_GETLK`).
    pub fn posix_test(
        &self,
        handle: &Handle,
        owner: u64,
        kind: LockKind,
        range: ByteRange,
    ) -> Result<Option<RangeLock>> {
        self.latched(handle, |latched, _| Ok(latched.state.posix_test(owner, kind, range)))
    }

    /// A process closed one of its descriptors of the file: all its `fcntl` locks on it go, and
    /// the open's release is on its way.
    pub fn flush(&self, handle: &Handle, owner: u64) -> Result<()> {
        let wake = self.latched(handle, |latched, _| {
            latched.state.posix_release(owner);
            latched.state.set_flushed(handle.slot(), handle.id())?;
            Ok(Wake::changed(latched))
        })?;
        wake.call();
        Ok(())
    }
}
