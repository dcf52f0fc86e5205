//! Finding the ranges that overlap a given one, without looking at all of them.
//!
//! Ranges are sorted by length class, then by start. A class holds lengths from one power of two
//! up to the next, so a range of that class which overlaps the query starts within one class
//! length to the left of it or inside it: one short stretch of the sorted set. Only classes that
//! are in use are visited, by a bitmap. A query therefore costs a search per class in use, plus
//! the ranges in the stretch that miss: those that end in the half of it farthest to the left.
//! Exclusive locks lie side by side, so at most one of them a class can miss.
//!
//! Knows nothing of kinds, owners and conflicts: that is [`super::locks`].

use std::collections::BTreeSet;

use super::range::ByteRange;

/// The class of ranges without bytes; class c > 0 holds lengths from 2^(c-1) up to 2^c - 1.
const EMPTY: u32 = 0;
/// The class of the one range with 2^64 bytes, the whole space.
const WHOLE: u32 = 65;

/// A set of numbered ranges; equal ranges may stand in it under different numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    keys: BTreeSet<RangeKey>,
    /// Bit c is set if class c holds a range.
    classes: u128,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct RangeKey {
    class: u32,
    range: ByteRange,
    number: u64,
}

impl RangeKey {
    fn new(range: ByteRange, number: u64) -> Self {
        Self { class: class_of(range), range, number }
    }

    /// Before every key of the class that starts at `start` or later.
    fn first_from(class: u32, start: u64) -> Self {
        Self { class, range: ByteRange::empty_at(start), number: 0 }
    }

    /// After every key of the class that starts at `start` or earlier.
    fn last_up_to(class: u32, start: u64) -> Self {
        Self { class, range: ByteRange::from_bounds(start, u64::MAX), number: u64::MAX }
    }
}

impl Index {
    pub fn insert(&mut self, range: ByteRange, number: u64) {
        let key = RangeKey::new(range, number);
        self.keys.insert(key);
        self.classes |= 1 << key.class;
    }

    pub fn remove(&mut self, range: ByteRange, number: u64) {
        let key = RangeKey::new(range, number);
        self.keys.remove(&key);
        if self.stretch(key.class, 0, u64::MAX).next().is_none() {
            self.classes &= !(1 << key.class);
        }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().map(|key| key.number)
    }

    /// The lowest number under which exactly this range stands.
    pub fn exact(&self, range: ByteRange) -> Option<u64> {
        let from = RangeKey::new(range, 0);
        let to = RangeKey::new(range, u64::MAX);
        self.keys.range(from..=to).next().map(|key| key.number)
    }

    /// The numbers of all ranges that overlap `range`, nearest start first within a class.
    pub fn overlapping(&self, range: ByteRange) -> impl Iterator<Item = u64> {
        bits(self.classes)
            .filter_map(move |class| starts(class, range).map(|bounds| (class, bounds)))
            .flat_map(|(class, (from, to))| self.stretch(class, from, to).rev())
            .filter(move |key| key.range.overlaps(range))
            .map(|key| key.number)
    }

    /// The keys of a class that start from `from` to `to`, both included.
    fn stretch(
        &self,
        class: u32,
        from: u64,
        to: u64,
    ) -> impl DoubleEndedIterator<Item = &RangeKey> {
        self.keys.range(RangeKey::first_from(class, from)..=RangeKey::last_up_to(class, to))
    }
}

fn class_of(range: ByteRange) -> u32 {
    match range.length() {
        0 => EMPTY,
        length => length.ilog2() + 1,
    }
}

/// First and last start a range of the class can have if it overlaps `query`, if any.
fn starts(class: u32, query: ByteRange) -> Option<(u64, u64)> {
    let (from, to) = match (class, query.last()) {
        (EMPTY, None) => return None,
        // A place without bytes must lie strictly inside the query.
        (EMPTY, Some(last)) => (query.start().checked_add(1)?, last),
        (_, Some(last)) => (query.start().saturating_sub(reach(class)), last),
        // The query's place must lie strictly inside the range.
        (_, None) => (query.start().saturating_sub(reach(class)), query.start().checked_sub(1)?),
    };
    (from <= to).then_some((from, to))
}

/// How far the last byte of a range of the class, not empty, can lie from its start.
fn reach(class: u32) -> u64 {
    if class >= WHOLE { u64::MAX } else { (u64::MAX >> (64 - class)) - 1 }
}

/// The positions of the set bits, lowest first.
fn bits(mut set: u128) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let lowest = set.trailing_zeros();
        set &= set - 1;
        Some(lowest)
    })
}
