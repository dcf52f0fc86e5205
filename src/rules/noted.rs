//! How what a request reads and changes gets into its row of the journal: operations note it in a
//! value that the request and its transaction share.
//!
//! Decides when a change is numbered: where it takes effect, in the transaction of the writer or
//! under the latch of the file, so that the numbers are in the order of the data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::given::Given;

/// Numbers changes in the order in which they take effect, in all services.
#[derive(Debug, Default)]
pub struct Effects(AtomicU64);

impl Effects {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a request under way has read and changed.
#[derive(Debug, Default)]
pub struct Noted {
    effects: Arc<Effects>,
    given: Mutex<Given>,
}

impl Noted {
    pub fn new(effects: &Arc<Effects>) -> Self {
        Self { effects: Arc::clone(effects), given: Mutex::default() }
    }

    pub fn note(&self, note: impl FnOnce(&mut Given)) {
        note(&mut self.given());
    }

    /// The change of the request takes effect now.
    pub fn takes_effect(&self) {
        let number = self.effects.next();
        self.given().effect = Some(number);
    }

    /// Forgets changes that did not take effect: the transaction begins anew.
    pub fn begins(&self) {
        self.given().changed.clear();
    }

    /// All that was noted. A change that nobody has numbered gets its number now; a request without
    /// a change has seen no change that comes later.
    pub fn take(&self, changed: bool) -> Given {
        let mut given = std::mem::take(&mut *self.given());
        given
            .effect
            .get_or_insert_with(|| if changed { self.effects.next() } else { self.effects.last() });
        given
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_numbered_and_a_read_has_the_number_of_the_last_one() {
        let effects = Arc::new(Effects::default());
        let [one, other, read] = [(); 3].map(|()| Noted::new(&effects));
        other.takes_effect();
        one.takes_effect();
        assert_eq!([one, other, read].map(|noted| noted.take(false).effect), [2, 1, 2].map(Some));
    }
}
