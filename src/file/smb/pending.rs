//! Requests that wait: byte-range locks and change notifications that were answered PENDING.
//!
//! Decides how many there may be, and which of them a CANCEL means. How a wait ends is decided by
//! the operation.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The most requests of a connection that wait.
pub const WAITING_MAX: usize = 512;

/// The most CANCELs that are kept for requests that do not wait yet.
const EARLY_MAX: usize = 64;

/// The waiting requests of a connection.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<WaitingTable>);

#[derive(Debug, Default)]
struct WaitingTable {
    /// By asynchronous ID.
    requests: HashMap<u64, WaitingRequest>,
    /// Messages that were cancelled and do not wait: a CANCEL can come before its request waits.
    early: VecDeque<u64>,
}

#[derive(Debug)]
struct WaitingRequest {
    message: u64,
    /// Dropped to cancel the request.
    #[expect(dead_code, reason = "it is held, not looked at")]
    cancel: oneshot::Sender<()>,
}

/// A request's place among those that wait, given back when dropped.
pub struct WaitingPlace {
    all: Arc<Waiting>,
    pub async_id: u64,
    /// Ends when the request is cancelled.
    pub cancelled: oneshot::Receiver<()>,
}

impl Waiting {
    /// A place for the request of that message; none if too many wait.
    pub fn enter(self: &Arc<Self>, async_id: u64, message: u64) -> Option<WaitingPlace> {
        let mut waiting = self.lock();
        if waiting.requests.len() >= WAITING_MAX {
            return None;
        }
        let (cancel, cancelled) = oneshot::channel();
        if let Some(at) = waiting.early.iter().position(|one| *one == message) {
            waiting.early.remove(at);
        } else {
            waiting.requests.insert(async_id, WaitingRequest { message, cancel });
        }
        drop(waiting);
        Some(WaitingPlace { all: Arc::clone(self), async_id, cancelled })
    }

    /// Cancels the request of that asynchronous ID, or that of the message, at once or when it
    /// begins to wait. One that has its answer is not there any more.
    pub fn cancel(&self, async_id: Option<u64>, message: u64) {
        let mut waiting = self.lock();
        let of_message =
            || waiting.requests.iter().find(|(_, one)| one.message == message).map(|(id, _)| *id);
        if let Some(id) = async_id.or_else(of_message) {
            waiting.requests.remove(&id);
            return;
        }
        if waiting.early.len() >= EARLY_MAX {
            waiting.early.pop_front();
        }
        waiting.early.push_back(message);
    }

    fn lock(&self) -> MutexGuard<'_, WaitingTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.all.lock().requests.remove(&self.async_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_cancelled_by_either_id_and_gives_its_place_back() {
        let waiting = Arc::new(Waiting::default());
        let mut places: Vec<_> =
            (0..WAITING_MAX as u64).map(|id| waiting.enter(id, 1_000 + id).unwrap()).collect();
        assert!(waiting.enter(9_999, 9_999).is_none(), "too many");
        waiting.cancel(Some(3), 0);
        waiting.cancel(None, 1_004);
        waiting.cancel(None, 3);
        let is_cancelled = |place: &mut WaitingPlace| {
            place.cancelled.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        let cancelled: Vec<_> =
            places.iter_mut().filter_map(|one| is_cancelled(one).then_some(one.async_id)).collect();
        assert_eq!(cancelled, [3, 4]);
        drop(places);
        assert!(waiting.enter(9_999, 9_999).is_some());
    }

    #[test]
    fn a_cancel_that_comes_before_its_request_waits_cancels_it() {
        let waiting = Arc::new(Waiting::default());
        (0..=EARLY_MAX as u64).for_each(|message| waiting.cancel(None, message));
        let mut is_cancelled = |message| {
            let mut place = waiting.enter(message, message).unwrap();
            place.cancelled.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        assert_eq!([0, 1, 1, 64].map(&mut is_cancelled), [false, true, false, true]);
    }
}
