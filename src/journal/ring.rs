//! A bounded ring of numbered events, which followers read in pages.
//!
//! Decides that the newest events are kept, and that a follower who comes too late is given the
//! number of events it missed. There are two users: the log of an account ([`super::events`]) and
//! the stream of a server ([`super::stream`]). They decide which events enter the ring, and how a
//! follower waits for the next one.

use std::collections::VecDeque;

/// The most events a follower is given at a time.
pub const PAGE_MAX: usize = 1_024;

/// The newest events, oldest first. Numbers run from 1 without gaps.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    events: VecDeque<T>,
    newest: u64,
    max: usize,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPage<T> {
    /// The events after the number asked for, oldest first.
    pub events: Vec<T>,
    /// How many of them had been dropped before they were asked for.
    pub lost: u64,
    /// The number of the last event looked at: the next page starts after it.
    pub last: u64,
    /// The number of the newest event there is.
    pub newest: u64,
}

impl<T: Clone> Ring<T> {
    /// A ring of at most `max` events, at least one.
    pub const fn new(max: usize) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self { events: VecDeque::new(), newest: 0, max }
    }

    /// The number of the newest event; zero if there was none.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Adds the event that `numbered` makes of its number. The event that it displaces is returned,
    /// so that a caller can free it after the lock.
    pub fn push(&mut self, numbered: impl FnOnce(u64) -> T) -> Option<T> {
        self.newest += 1;
        let oldest = if self.events.len() < self.max { None } else { self.events.pop_front() };
        self.events.push_back(numbered(self.newest));
        oldest
    }

    /// The events after number `seq` that are kept, at most `most` of them.
    pub fn after(&self, seq: u64, most: usize) -> RingPage<T> {
        let seq = seq.min(self.newest);
        let dropped = self.newest - self.events.len() as u64;
        let lost = dropped.saturating_sub(seq);
        let skip = usize::try_from(seq.saturating_sub(dropped)).unwrap_or(usize::MAX);
        let events: Vec<_> = self.events.iter().skip(skip).take(most).cloned().collect();
        let last = if events.is_empty() { seq } else { seq + lost + events.len() as u64 };
        RingPage { events, lost, last, newest: self.newest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_gets_each_event_once_and_is_told_what_it_missed() {
        let mut ring = Ring::new(3);
        assert_eq!(ring.after(7, 9), RingPage { events: vec![], lost: 0, last: 0, newest: 0 });
        let displaced: Vec<_> = (0..5).filter_map(|_| ring.push(|seq| seq)).collect();
        assert_eq!(displaced, [1, 2]);
        let page =
            |events: &[u64], lost, last| RingPage { events: events.into(), lost, last, newest: 5 };
        assert_eq!(ring.after(0, 9), page(&[3, 4, 5], 2, 5));
        assert_eq!(ring.after(0, 2), page(&[3, 4], 2, 4));
        assert_eq!(ring.after(1, 1), page(&[3], 1, 3));
        assert_eq!(ring.after(2, 9), page(&[3, 4, 5], 0, 5));
        assert_eq!(ring.after(4, 9), page(&[5], 0, 5));
        assert_eq!(ring.after(0, 0), page(&[], 2, 0));
        for past in [5, 900, u64::MAX] {
            assert_eq!(ring.after(past, 9), page(&[], 0, 5));
        }
    }

    #[test]
    fn a_ring_keeps_one_event_at_least() {
        let mut ring = Ring::new(0);
        assert_eq!((ring.push(|seq| seq), ring.push(|seq| seq)), (None, Some(1)));
        assert_eq!(ring.after(0, 9).events, [2]);
    }
}
