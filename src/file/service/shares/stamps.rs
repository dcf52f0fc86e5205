//! Stamps of shares that are made of the time: `ETag`s, and names of snapshots.
//!
//! Decides that none comes a second time when the clock is set back with all data: from then on
//! each is later than all before, whatever the clock shows.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::AtomicU64;

/// The stamps of one kind that were given out.
#[derive(Default)]
pub(super) struct Stamps {
    last: AtomicU64,
    /// The clock was set back.
    strict: AtomicBool,
}

impl Stamps {
    /// The stamp to give out where `wanted` follows from the time.
    pub(super) fn next(&self, wanted: u64) -> u64 {
        let strict = self.strict.load(Ordering::Acquire);
        let next = |last: u64| if strict { wanted.max(last.saturating_add(1)) } else { wanted };
        let mut last = self.last.load(Ordering::Acquire);
        loop {
            let given = next(last);
            let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
            match self.last.compare_exchange(last, last.max(given), order, failed) {
                Ok(_) => return given,
                Err(now) => last = now,
            }
        }
    }

    /// This one was given out.
    pub(super) fn given(&self, stamp: u64) {
        self.last.fetch_max(stamp, Ordering::AcqRel);
    }

    /// The clock may be set back.
    pub(super) fn clock_is_set(&self) {
        self.strict.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_the_time_and_never_come_again_when_the_clock_was_set_back() {
        let stamps = Stamps::default();
        assert_eq!([7, 5, 7, 9].map(|wanted| stamps.next(wanted)), [7, 5, 7, 9]);
        stamps.clock_is_set();
        assert_eq!([7, 7, 20, 5].map(|wanted| stamps.next(wanted)), [10, 11, 20, 21]);
        stamps.given(30);
        assert_eq!(stamps.next(7), 31);
    }
}
