//! The background thread of a service that removes what the service keeps no longer.
//!
//! Decides when the thread works, sleeps and ends. The service decides what one step removes: a
//! step is one small transaction, so that a request waits a few milliseconds for the writer at
//! most. No answer depends on a step: what is to be removed is invisible before.

use std::fmt::Display;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::db::DbError;
use crate::rules::Timestamp;
use crate::rules::service::ServiceKind;
use crate::sync::bell::Bell;

/// The longest sleep before a moment of the clock, which may jump, and the sleep after an error,
/// such as on a full disk.
const SLEEP_MAX: Duration = Duration::from_mins(1);
/// The shortest sleep before a moment of the clock.
const SLEEP_MIN: Duration = Duration::from_millis(100);

/// The thread of a sweeper. It ends when this is dropped.
pub(crate) struct Sweeper {
    service: ServiceKind,
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Starts the thread. It takes a step at once, since a killed predecessor may have left
    /// something, whenever `bell` rings, and after the sleep that the last step asked for.
    pub fn start<E: Display>(
        service: ServiceKind,
        bell: Arc<Bell>,
        mut step: impl FnMut() -> Result<Duration, E> + Send + 'static,
    ) -> Result<Self, DbError> {
        let rung = Arc::clone(&bell);
        let run = move || {
            let mut sleep = Duration::ZERO;
            while rung.wait(sleep) {
                sleep = step().unwrap_or_else(|error| {
                    log::warn!("the sweeper of the {} service: {error}", service.label());
                    SLEEP_MAX
                });
            }
        };
        let thread = thread::Builder::new()
            .name(format!("{}-sweeper", service.label()))
            .spawn(run)
            .map_err(|error| DbError::Io(format!("starting the sweeper: {error}")))?;
        Ok(Self { service, bell, thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.bell.end();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the sweeper of the {} service panicked", self.service.label());
        }
    }
}

/// The sleep until something is due, or until the clock is to be looked at again.
pub(crate) fn sleep_until(due: Option<Timestamp>, now: Timestamp) -> Duration {
    due.map_or(SLEEP_MAX, |due| due.since(now).clamp(SLEEP_MIN, SLEEP_MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn a_sweeper_steps_at_once_and_at_each_ring_and_ends_when_dropped() {
        let bell = Arc::<Bell>::default();
        let (send, steps) = mpsc::channel();
        let step = move || {
            send.send(()).unwrap();
            Err("each step fails, and the thread goes on")
        };
        let sweeper = Sweeper::start(ServiceKind::Blob, Arc::clone(&bell), step).unwrap();
        steps.recv_timeout(SOON).unwrap();
        bell.ring();
        steps.recv_timeout(SOON).unwrap();
        drop(sweeper);
        assert_eq!(steps.recv(), Err(mpsc::RecvError), "the thread is gone, and its sender");
    }

    #[test]
    fn a_sleep_ends_with_what_is_due_within_its_bounds() {
        let (now, after) = (Timestamp(0), |millis: i64| Timestamp(millis * 1_000_000));
        assert_eq!(sleep_until(None, now), SLEEP_MAX);
        assert_eq!(sleep_until(Some(after(1)), now), SLEEP_MIN);
        assert_eq!(sleep_until(Some(after(500)), now), Duration::from_millis(500));
        assert_eq!(sleep_until(Some(after(3_600_000)), now), SLEEP_MAX);
    }
}
