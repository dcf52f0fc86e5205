//! Faults: effects that are injected into matching requests, and how often.
//!
//! Decides which fault applies to a request: the first one that matches. Front ends carry it out.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{is_over, make_room};
use crate::rules::pattern::{Pattern, PatternSubject};

/// The effect of a fault on a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultAction {
    /// It is refused, and nothing is done.
    Answer {
        status: u16,
        /// The error code, kept for the life of the process by [`kept`].
        code: &'static str,
    },
    /// It is carried out after this long.
    Delay(Duration),
    /// The connection is closed, and nothing is done.
    DropBefore,
    /// It is done, and the connection is closed without the answer.
    DropAfter,
    /// It is done, and the connection is closed after so many bytes of the answer's body.
    Cut(u64),
    /// It is done, and the answer's body comes at so many bytes a second.
    Slow(u64),
}

/// An error code as long as the process lives, each once: answers hold codes as constants.
pub fn kept(code: &str) -> &'static str {
    static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = codes.get(code) {
        return there;
    }
    let new: &'static str = Box::leak(code.into());
    codes.insert(new);
    new
}

/// How often a fault applies to the requests that match.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Frequency {
    /// So many times, the next ones.
    Times(u32),
    Always,
    /// With this probability. The same seed gives the same row of yes and no.
    Chance {
        /// From 0 to 1.
        probability: f64,
        /// Where the row starts.
        seed: u64,
    },
}

/// A fault to add.
#[derive(Clone, PartialEq, Debug)]
pub struct NewFault {
    pub pattern: Pattern,
    /// The effect on them.
    pub action: FaultAction,
    pub frequency: Frequency,
}

/// A fault that a request meets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultHit {
    pub id: u64,
    /// The effect on the request.
    pub action: FaultAction,
}

/// A fault as it is shown.
#[derive(Clone, PartialEq, Debug)]
pub struct FaultRow {
    pub id: u64,
    /// The fault as it was added; `Times` counts the applications that are left.
    pub fault: NewFault,
    /// How many requests have met it.
    pub met: u64,
    /// Where the generator of its chance is.
    state: u64,
}

/// The faults of a server.
#[derive(Debug, Default)]
pub struct Faults {
    count: AtomicUsize,
    state: Mutex<FaultTable>,
    /// Told when the requests that are delayed now are to end.
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct FaultTable {
    last_id: u64,
    rows: Vec<FaultRow>,
}

impl Faults {
    /// Adds a fault. If there are too many, the oldest one whose times are over makes room; `None`
    /// if there is none.
    pub fn add(&self, fault: NewFault) -> Option<u64> {
        let mut state = self.lock();
        make_room(&mut state.rows, |row| is_over(row.fault.frequency.left()))?;
        state.last_id += 1;
        let id = state.last_id;
        let start = match fault.frequency {
            Frequency::Chance { seed, .. } => seed,
            Frequency::Times(_) | Frequency::Always => 0,
        };
        state.rows.push(FaultRow { id, fault, met: 0, state: start });
        self.count.store(state.rows.len(), Ordering::Release);
        Some(id)
    }

    /// Removes one, or all. Returns how many there were.
    pub fn remove(&self, id: Option<u64>) -> usize {
        let mut state = self.lock();
        let before = state.rows.len();
        state.rows.retain(|row| id.is_some_and(|id| row.id != id));
        self.count.store(state.rows.len(), Ordering::Release);
        before - state.rows.len()
    }

    /// All faults, oldest first. One whose times are over stays, with none left.
    pub fn list(&self) -> Vec<FaultRow> {
        self.lock().rows.clone()
    }

    /// Ends the requests that are delayed now: all data is being replaced.
    pub fn end_delayed(&self) {
        self.ended.send_replace(());
    }

    /// Says of a request whose delay begins now when it is to end: the value has changed then.
    pub fn delayed(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Whether there are any.
    pub fn are_set(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// The fault that applies to a request.
    pub fn meet(&self, seen: &PatternSubject<'_>) -> Option<FaultHit> {
        self.meet_of(seen, |_| true)
    }

    /// The fault that applies to a request, of those whose action is possible for it.
    pub fn meet_of(
        &self,
        seen: &PatternSubject<'_>,
        possible: impl Fn(&FaultAction) -> bool,
    ) -> Option<FaultHit> {
        if !self.are_set() {
            return None;
        }
        let mut state = self.lock();
        let matching = state
            .rows
            .iter_mut()
            .filter(|row| possible(&row.fault.action) && row.fault.pattern.matches(seen));
        for row in matching {
            if row.fault.frequency.strikes(&mut row.state) {
                row.met += 1;
                return Some(FaultHit { id: row.id, action: row.fault.action.clone() });
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, FaultTable> {
        // Nothing in here panics half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Frequency {
    /// The number of requests that are still struck, if it is bounded.
    const fn left(self) -> Option<u32> {
        match self {
            Self::Times(left) => Some(left),
            Self::Always | Self::Chance { .. } => None,
        }
    }

    /// Whether the next request is struck.
    fn strikes(&mut self, state: &mut u64) -> bool {
        if is_over(self.left()) {
            return false;
        }
        match self {
            Self::Always => true,
            Self::Times(left) => {
                *left -= 1;
                true
            }
            Self::Chance { probability, .. } => next_unit(state) < *probability,
        }
    }
}

/// The next number of the generator `SplitMix64`, from 0 up to 1.
fn next_unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    // 32 bits are as fine as anybody asks for, and exact.
    f64::from(u32::try_from(mixed >> 32).unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::RULES_MAX;
    use super::*;
    use crate::rules::service::ServiceKind;

    fn meet(faults: &Faults, path: &str) -> Option<u64> {
        let seen = PatternSubject {
            service: ServiceKind::Blob,
            operation: "BlockBlobUpload",
            documented: "Put Blob",
            account: "a",
            path,
            header: &|_| None,
        };
        faults.meet(&seen).map(|fault| fault.id)
    }

    fn fault(path: &str, frequency: Frequency) -> NewFault {
        let pattern = Pattern { path: Some(path.to_owned()), ..Pattern::default() };
        NewFault { pattern, action: FaultAction::DropAfter, frequency }
    }

    #[test]
    fn the_first_fault_that_is_there_for_a_request_befalls_it() {
        let faults = Faults::default();
        assert_eq!(meet(&faults, "c/a"), None);
        let twice = faults.add(fault("c/a", Frequency::Times(2))).unwrap();
        let always = faults.add(fault("c/*", Frequency::Always)).unwrap();
        assert_eq!(meet(&faults, "c/b"), Some(always));
        let met: Vec<_> = (0..3).map(|_| meet(&faults, "c/a").unwrap()).collect();
        assert_eq!(met, [twice, twice, always]);
        let counts: Vec<_> = faults.list().iter().map(|row| row.met).collect();
        assert_eq!(counts, [2, 2]);
        assert_eq!((faults.remove(Some(always)), faults.remove(Some(99))), (1, 0));
        assert_eq!(meet(&faults, "c/a"), None, "its times are over");
        assert_eq!((faults.remove(None), faults.are_set()), (1, false));
    }

    #[test]
    fn faults_whose_times_are_over_make_room_for_others() {
        let faults = Faults::default();
        let first = faults.add(fault("c/a", Frequency::Times(1))).unwrap();
        for _ in 1..RULES_MAX {
            faults.add(fault("c/b", Frequency::Always)).unwrap();
        }
        assert_eq!(faults.add(fault("c/c", Frequency::Always)), None);
        assert_eq!(meet(&faults, "c/a"), Some(first));
        let next = faults.add(fault("c/c", Frequency::Always)).unwrap();
        assert_eq!(meet(&faults, "c/c"), Some(next));
        assert_eq!(faults.list().len(), RULES_MAX);
    }

    #[test]
    fn a_seed_gives_the_same_row_again_and_its_probability() {
        let row = |seed, probability| {
            let faults = Faults::default();
            faults.add(fault("c/a", Frequency::Chance { probability, seed })).unwrap();
            (0..1_000).map(|_| meet(&faults, "c/a").is_some()).collect::<Vec<_>>()
        };
        let struck = |row: &[bool]| row.iter().filter(|strikes| **strikes).count();
        assert_eq!(row(7, 0.5), row(7, 0.5));
        assert_ne!(row(7, 0.5), row(8, 0.5));
        assert!((400..600).contains(&struck(&row(7, 0.5))));
        assert_eq!((struck(&row(7, 0.0)), struck(&row(7, 1.0))), (0, 1_000));
    }
}
