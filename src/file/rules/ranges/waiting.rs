//! Lock requests that wait for a range to come free.
//!
//! Decides which request gets a lock, and in which order. The engine blocks, wakes and answers
//! callers: it names each request by a ticket, and calls [`Waiters::grant`] when locks may have
//! been released.

use std::collections::VecDeque;

use super::lock::RangeLock;
use super::locks::RangeLocks;
use crate::rules::id::HandleId;

/// The most requests that may wait on one file.
pub const WAITERS_MAX: usize = 1024;

/// The name of a waiting request. The caller chooses it, and never twice: a table forgets its
/// tickets when it is dropped, so it could not promise that itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ticket(pub u64);

/// No room for another waiting request: [`WAITERS_MAX`] wait already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{WAITERS_MAX} lock requests wait on this file already")]
pub struct TooManyWaiters;

/// The requests that wait on one file, in order of arrival. Each is for a single range: SMB
/// refuses to wait for several (br26), and `fcntl` cannot ask.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    queue: VecDeque<(Ticket, RangeLock)>,
}

impl Waiters {
    /// Lets the request wait. Ask for the lock first: this does not.
    pub fn wait(&mut self, ticket: Ticket, request: RangeLock) -> Result<(), TooManyWaiters> {
        assert!(
            self.queue.iter().all(|(waiting, _)| *waiting != ticket),
            "a ticket names one request"
        );
        if self.queue.len() >= WAITERS_MAX {
            return Err(TooManyWaiters);
        }
        self.queue.push_back((ticket, request));
        Ok(())
    }

    /// Ends the wait without the lock (br29). False if the request no longer waits: it was
    /// granted or dropped, and has its answer.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let place = self.queue.iter().position(|(waiting, _)| *waiting == ticket);
        place.and_then(|place| self.queue.remove(place)).is_some()
    }

    /// The open has closed: its requests wait no more, and are to be answered
    /// `RANGE_NOT_LOCKED` (br30).
    pub fn drop_handle(&mut self, handle: HandleId) -> Vec<Ticket> {
        let mut dropped = Vec::new();
        self.queue.retain(|(ticket, request)| {
            let stays = request.handle != handle;
            if !stays {
                dropped.push(*ticket);
            }
            stays
        });
        dropped
    }

    /// Takes every lock that can be had now, in order of arrival, and gives the requests that
    /// got theirs. A request that cannot be met does not hold up those behind it, nor does it
    /// keep newcomers out (no fairness: br44).
    pub fn grant(&mut self, locks: &mut RangeLocks) -> Vec<(Ticket, RangeLock)> {
        let mut granted = Vec::new();
        loop {
            let before = granted.len();
            self.queue.retain(|&(ticket, request)| {
                let got = locks.lock(request).is_ok();
                if got {
                    granted.push((ticket, request));
                }
                !got
            });
            // An fcntl lock may have weakened its owner's exclusive one, to the good of a request
            // that had its turn earlier.
            if granted.len() == before {
                return granted;
            }
        }
    }

    /// The waiting requests, in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &(Ticket, RangeLock)> {
        self.queue.iter()
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
