//! The account of what REST wrote and cleared of a file, in pages of 512 bytes.
//!
//! Decides which pages of a block hold data where the file system only knows that the block does,
//! and which pages were touched since a point in time, whatever their bytes are. Writes of programs
//! on the mount are not in the account: the file system and the bytes themselves decide there
//! ([`super::super::pages`]). An account that becomes too long is dropped, and the file system
//! decides alone.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::rules::Timestamp;

pub const PAGE: u64 = 512;
/// The grain in which file systems keep account of holes.
pub const BLOCK: u64 = 4_096;
/// The most parts of an account: a record of that length still fits an extended attribute.
const PARTS_MAX: usize = 48;

/// The last request on a part of a file: a write or a clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    Written,
    /// Whole pages were cleared.
    Cleared,
}

/// A part of a file that REST wrote or cleared last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TouchedRange {
    /// The bytes, whole pages.
    pub range: Range<u64>,
    /// Whether the bytes were written or cleared.
    pub touch: Touch,
    /// When, by the engine's clock.
    pub when: Timestamp,
}

/// The parts of a file that REST wrote or cleared: ascending, apart from each other.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Packed>", into = "Vec<Packed>")]
pub struct RangeAccount {
    parts: Vec<TouchedRange>,
}

/// A part as it is written down: first page, pages, time, and 1 if they were cleared.
type Packed = (u64, u64, i64, u8);

impl From<Vec<Packed>> for RangeAccount {
    fn from(packed: Vec<Packed>) -> Self {
        let mut account = Self::default();
        for (first, pages, when, cleared) in packed {
            let end = first.saturating_add(pages).saturating_mul(PAGE);
            let touch = if cleared == 1 { Touch::Cleared } else { Touch::Written };
            let range = first.saturating_mul(PAGE)..end;
            account.put(TouchedRange { range, touch, when: Timestamp(when) });
        }
        account
    }
}

impl From<RangeAccount> for Vec<Packed> {
    fn from(account: RangeAccount) -> Self {
        let packed = |part: &TouchedRange| {
            let (first, end) = (part.range.start / PAGE, part.range.end / PAGE);
            (first, end - first, part.when.0, u8::from(part.touch == Touch::Cleared))
        };
        account.parts.iter().map(packed).collect()
    }
}

impl RangeAccount {
    /// The account of these parts, which are ascending and apart from each other.
    pub fn of(parts: impl Iterator<Item = TouchedRange>) -> Self {
        Self { parts: parts.collect() }
    }

    /// True if it says nothing.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn parts(&self) -> &[TouchedRange] {
        &self.parts
    }

    /// Notes that bytes were written or cleared. A page that was cleared in part has been written:
    /// its bytes changed, and it still counts as data.
    pub fn note(&mut self, range: &Range<u64>, touch: Touch, when: Timestamp) {
        let outer = floor(range.start, PAGE)..ceil(range.end, PAGE);
        match touch {
            Touch::Written => self.put(TouchedRange { range: outer, touch, when }),
            Touch::Cleared => {
                let inner = ceil(range.start, PAGE)..floor(range.end, PAGE);
                if inner.is_empty() {
                    return self.put(TouchedRange { range: outer, touch: Touch::Written, when });
                }
                let edges = [outer.start..inner.start, inner.end..outer.end];
                for range in edges {
                    self.put(TouchedRange { range, touch: Touch::Written, when });
                }
                self.put(TouchedRange { range: inner, touch, when });
            }
        }
    }

    /// Forgets what lies past the end of a file that became shorter.
    pub fn cut(&mut self, size: u64) {
        let end = ceil(size, PAGE);
        self.parts.retain_mut(|part| {
            part.range.end = part.range.end.min(end);
            !part.range.is_empty()
        });
    }

    /// Gives the account up where it is too long.
    pub fn bounded(mut self) -> Option<Self> {
        if self.parts.len() > PARTS_MAX {
            self.join_neighbours();
        }
        (1..=PARTS_MAX).contains(&self.parts.len()).then_some(self)
    }

    /// Puts a part in place of what was there.
    pub fn put(&mut self, new: TouchedRange) {
        if new.range.is_empty() {
            return;
        }
        let mut parts = Vec::with_capacity(self.parts.len() + 2);
        let mut new = Some(new);
        for old in self.parts.drain(..) {
            let Some(part) = &new else {
                parts.push(old);
                continue;
            };
            let (before, after) = (
                old.range.start..old.range.end.min(part.range.start),
                old.range.start.max(part.range.end)..old.range.end,
            );
            if !before.is_empty() {
                parts.push(TouchedRange { range: before, ..old.clone() });
            }
            if old.range.end > part.range.end {
                parts.extend(new.take());
                if !after.is_empty() {
                    parts.push(TouchedRange { range: after, ..old });
                }
            }
        }
        parts.extend(new);
        self.parts = parts;
        self.join_equals();
    }

    /// Neighbours of one kind and time are one part.
    fn join_equals(&mut self) {
        self.join(|one, next| one.when == next.when);
    }

    /// Neighbours of one kind are one part, with the later time.
    fn join_neighbours(&mut self) {
        self.join(|_, _| true);
    }

    fn join(&mut self, may: impl Fn(&TouchedRange, &TouchedRange) -> bool) {
        self.parts.dedup_by(|next, one| {
            let joined =
                one.range.end == next.range.start && one.touch == next.touch && may(one, next);
            if joined {
                one.range.end = next.range.end;
                one.when = one.when.max(next.when);
            }
            joined
        });
    }
}

/// True if the file system cannot keep account of the change itself: an edge lies within a block.
pub fn splits_a_block(range: &Range<u64>, size: u64) -> bool {
    let whole = |at: u64| at.is_multiple_of(BLOCK);
    !whole(range.start) || !(whole(range.end) || range.end >= size)
}

const fn floor(at: u64, grain: u64) -> u64 {
    at - at % grain
}

const fn ceil(at: u64, grain: u64) -> u64 {
    at.div_ceil(grain).saturating_mul(grain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(parts: &[(u64, u64, Touch, i64)]) -> Vec<TouchedRange> {
        let part = |&(start, end, touch, when): &(u64, u64, Touch, i64)| TouchedRange {
            range: start..end,
            touch,
            when: Timestamp(when),
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn a_part_replaces_what_was_there_and_leaves_its_neighbours() {
        let mut account = RangeAccount::default();
        account.note(&(0..2_048), Touch::Written, Timestamp(1));
        account.note(&(512..1_024), Touch::Cleared, Timestamp(2));
        let (written, cleared) = (Touch::Written, Touch::Cleared);
        let parts = [(0, 512, written, 1), (512, 1_024, cleared, 2), (1_024, 2_048, written, 1)];
        assert_eq!(account.parts(), at(&parts));
        account.note(&(100..1_000), written, Timestamp(3));
        let parts = [(0, 1_024, written, 3), (1_024, 2_048, written, 1)];
        assert_eq!(account.parts(), at(&parts));
        account.cut(1_100);
        assert_eq!(account.parts(), at(&[(0, 1_024, written, 3), (1_024, 1_536, written, 1)]));
    }

    #[test]
    fn a_page_that_is_cleared_in_part_is_written() {
        let mut account = RangeAccount::default();
        account.note(&(100..1_500), Touch::Cleared, Timestamp(1));
        let (written, cleared) = (Touch::Written, Touch::Cleared);
        let parts = [(0, 512, written, 1), (512, 1_024, cleared, 1), (1_024, 1_536, written, 1)];
        assert_eq!(account.parts(), at(&parts));
        let mut account = RangeAccount::default();
        account.note(&(100..200), cleared, Timestamp(1));
        assert_eq!(account.parts(), at(&[(0, 512, written, 1)]));
    }

    #[test]
    fn an_account_is_read_as_it_was_written_and_given_up_past_its_bound() {
        let mut account = RangeAccount::default();
        for page in 0..PARTS_MAX as u64 {
            account.note(&(page * 1_024..page * 1_024 + 512), Touch::Written, Timestamp(7));
        }
        let text = serde_json::to_string(&account).unwrap();
        assert!(text.len() < 2_500, "{}", text.len());
        assert_eq!(serde_json::from_str::<RangeAccount>(&text).unwrap(), account);
        assert_eq!(account.clone().bounded(), Some(account.clone()));
        account.note(&(1 << 30..(1 << 30) + 1), Touch::Written, Timestamp(8));
        assert_eq!(account.bounded(), None);
    }

    #[test]
    fn neighbours_join_before_an_account_is_given_up() {
        let mut account = RangeAccount::default();
        for step in 0..2 * PARTS_MAX as u64 {
            let when = Timestamp(step.cast_signed());
            account.note(&(step * 512..step * 512 + 512), Touch::Written, when);
        }
        let joined = account.bounded().unwrap();
        let end = 2 * PARTS_MAX as u64 * 512;
        let last = (2 * PARTS_MAX as u64 - 1).cast_signed();
        assert_eq!(joined.parts(), at(&[(0, end, Touch::Written, last)]));
    }

    #[test]
    fn whole_blocks_and_the_end_of_the_file_split_nothing() {
        assert!(!splits_a_block(&(0..4_096), 10_000));
        assert!(!splits_a_block(&(4_096..10_000), 10_000));
        assert!(splits_a_block(&(0..512), 10_000));
        assert!(splits_a_block(&(512..10_000), 10_000));
    }
}
