//! Time as the engine sees it: the system's, or one that a test turns by hand.
//!
//! Decides that the time of a server is set back only together with its data, by a reset or a
//! restore: else what has expired stays so.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::rules::Timestamp;

pub trait TimeSource: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// The time that other machines have too, however this clock was turned: dates that clients
    /// put on their requests are compared with it.
    fn outside(&self) -> Timestamp {
        self.now()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl TimeSource for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is turned.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Sets it, back too.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    pub fn advance(&self, by: Duration) {
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        self.0.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl TimeSource for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// The clock of a server: the system's, until a test advances or freezes it.
#[derive(Debug)]
pub struct TestClock {
    /// The difference to the system's time; `i64::MIN` while the clock is frozen.
    ahead: AtomicI64,
    /// Where it stands, while it does.
    stands_at: AtomicI64,
    /// Held while the clock is turned.
    turning: Mutex<()>,
}

/// `ahead` of a clock that stands.
const STANDS: i64 = i64::MIN;

/// How a clock is turned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockChange {
    /// Forward by this much.
    Advance(Duration),
    /// To this moment, which must not be past.
    Set(Timestamp),
    /// It stands from now on.
    Freeze,
    /// It goes again, from where it is.
    Run,
}

/// How a clock goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// With the system's clock.
    Goes {
        /// So many nanoseconds ahead of it.
        ahead: i64,
    },
    /// It stands at this moment.
    Stands(Timestamp),
}

impl Setting {
    /// The time that a clock of this setting shows now.
    pub fn now(self) -> Timestamp {
        match self {
            Self::Goes { ahead } => Timestamp(SystemClock.now().0.saturating_add(ahead)),
            Self::Stands(at) => at,
        }
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self::Goes { ahead: 0 }
    }
}

/// A clock that was to be set back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the clock is never set back")]
pub struct SetBack;

impl Default for TestClock {
    fn default() -> Self {
        Self { ahead: AtomicI64::new(0), stands_at: AtomicI64::new(0), turning: Mutex::default() }
    }
}

impl TestClock {
    /// Turns it. Returns the time that it then shows.
    pub fn turn(&self, turn: ClockChange) -> Result<Timestamp, SetBack> {
        let _turning = self.turning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = self.now();
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let (then, stands) = match turn {
            // By the offset alone: time passes between two looks at the system's clock.
            ClockChange::Advance(by) if !self.stands() => {
                self.ahead.fetch_add(nanos(by), Ordering::SeqCst);
                return Ok(self.now());
            }
            ClockChange::Run if !self.stands() => return Ok(now),
            ClockChange::Advance(by) => (Timestamp(now.0.saturating_add(nanos(by))), self.stands()),
            ClockChange::Set(then) if then < now => return Err(SetBack),
            ClockChange::Set(then) => (then, self.stands()),
            ClockChange::Freeze => (now, true),
            ClockChange::Run => (now, false),
        };
        if stands {
            // The place before the mark: a reader that sees the mark finds the place.
            self.stands_at.store(then.0, Ordering::SeqCst);
            self.ahead.store(STANDS, Ordering::SeqCst);
        } else {
            self.ahead.store(then.0.saturating_sub(SystemClock.now().0), Ordering::SeqCst);
        }
        Ok(then)
    }

    pub fn setting(&self) -> Setting {
        let _turning = self.turning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match self.ahead.load(Ordering::SeqCst) {
            STANDS => Setting::Stands(Timestamp(self.stands_at.load(Ordering::SeqCst))),
            ahead => Setting::Goes { ahead },
        }
    }

    /// Has it go like this, which may set it back. Only together with all data.
    pub fn set(&self, setting: Setting) {
        let _turning = self.turning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match setting {
            Setting::Goes { ahead } => self.ahead.store(ahead, Ordering::SeqCst),
            Setting::Stands(at) => {
                self.stands_at.store(at.0, Ordering::SeqCst);
                self.ahead.store(STANDS, Ordering::SeqCst);
            }
        }
    }

    pub fn stands(&self) -> bool {
        self.ahead.load(Ordering::SeqCst) == STANDS
    }
}

impl TimeSource for TestClock {
    fn now(&self) -> Timestamp {
        match self.ahead.load(Ordering::SeqCst) {
            STANDS => Timestamp(self.stands_at.load(Ordering::SeqCst)),
            ahead => Timestamp(SystemClock.now().0.saturating_add(ahead)),
        }
    }

    fn outside(&self) -> Timestamp {
        SystemClock.now()
    }
}

/// The present as a service sees it: requests that came before the clock was set back have a time
/// that lies ahead of it.
#[derive(Default)]
pub(crate) struct Present(OnceLock<Arc<dyn TimeSource>>);

impl Present {
    /// From now on no time of a request lies ahead of this clock.
    pub(crate) fn set_back(&self, clock: &Arc<dyn TimeSource>) {
        // The clock of a service is always the same one.
        drop(self.0.set(Arc::clone(clock)));
    }

    /// The time of a request. To be asked by the writer, inside the request's transaction.
    pub(crate) fn of(&self, request: Timestamp) -> Timestamp {
        self.0.get().map_or(request, |clock| request.min(clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward_stands_and_goes_on_from_there() {
        const HOUR: Duration = Duration::from_hours(1);
        let clock = TestClock::default();
        let start = clock.now();
        assert!(clock.turn(ClockChange::Advance(HOUR)).unwrap() >= start.after(HOUR));
        let stood = clock.turn(ClockChange::Freeze).unwrap();
        assert_eq!((clock.now(), clock.now(), clock.stands()), (stood, stood, true));
        assert_eq!(clock.turn(ClockChange::Advance(HOUR)).unwrap(), stood.after(HOUR));
        assert_eq!(clock.turn(ClockChange::Set(stood)), Err(SetBack));
        assert_eq!(clock.now(), stood.after(HOUR), "a refusal changes nothing");
        let later = stood.after(3 * HOUR);
        assert_eq!(clock.turn(ClockChange::Set(later)), Ok(later));
        assert!(clock.turn(ClockChange::Run).unwrap() >= later);
        assert!(!clock.stands() && clock.now() >= later);
    }

    #[test]
    fn a_clock_is_set_back_to_any_setting_and_a_request_from_before_has_no_later_time() {
        let clock = Arc::new(TestClock::default());
        clock.turn(ClockChange::Advance(Duration::from_hours(1))).unwrap();
        let (present, before) = (Present::default(), clock.now());
        assert_eq!(present.of(before), before);
        let stood = clock.turn(ClockChange::Freeze).unwrap();
        let frozen = clock.setting();
        clock.set(Setting::default());
        assert!(!clock.stands() && clock.now() < before);
        clock.set(frozen);
        assert_eq!((clock.stands(), clock.now(), frozen.now()), (true, stood, stood));
        clock.set(Setting::default());
        present.set_back(&(Arc::clone(&clock) as Arc<dyn TimeSource>));
        assert!(present.of(before) <= clock.now());
        assert_eq!(present.of(Timestamp(7)), Timestamp(7));
    }
}
