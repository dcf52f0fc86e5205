//! Requests that wait: byte-range locks and change notifications that were answered PENDING.
//!
//! Decides how many there may be, and which of them a CANCEL means. How a wait ends is decided by
//! the operation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The most requests of a connection that wait.
pub const WAITING_MAX: usize = 512;

/// The waiting requests of a connection, by asynchronous ID.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<HashMap<u64, WaitingRequest>>);

#[derive(Debug)]
struct WaitingRequest {
    message: u64,
    /// Dropped to cancel the request.
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
        if waiting.len() >= WAITING_MAX {
            return None;
        }
        let (cancel, cancelled) = oneshot::channel();
        waiting.insert(async_id, WaitingRequest { message, cancel });
        drop(waiting);
        Some(WaitingPlace { all: Arc::clone(self), async_id, cancelled })
    }

    /// Cancels the request of that asynchronous ID, or that of the message. One that has its answer
    /// is not there any more.
    pub fn cancel(&self, async_id: Option<u64>, message: u64) {
        let mut waiting = self.lock();
        let found = match async_id {
            Some(id) => Some(id),
            None => waiting.iter().find(|(_, one)| one.message == message).map(|(id, _)| *id),
        };
        drop(found.and_then(|id| waiting.remove(&id)).map(|one| one.cancel));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, WaitingRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.all.lock().remove(&self.async_id);
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
}
