//! Page blobs: lengths, ranges, sequence numbers, and the lists of written pages.
//!
//! Decides which ranges are aligned, how a sequence number changes, and which ranges a list or a
//! difference shows. The store keeps the bytes of the pages.

use super::denial::BlobDenial;

/// Pages are this long.
pub const PAGE: u64 = 512;
/// The greatest length of a page blob: 8 TiB.
pub const LENGTH_MAX: u64 = 8 * 1024 * 1024 * 1024 * 1024;
/// Most bytes of one Put Page.
pub const PUT_MAX: u64 = 4 * 1024 * 1024;

/// Whether a page blob may have this length.
pub const fn is_length(length: u64) -> bool {
    length.is_multiple_of(PAGE) && length <= LENGTH_MAX
}

/// Whole pages, from the first byte to the byte after the last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PageRange {
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

impl PageRange {
    /// The range `bytes=first-last` of a request, within a blob of this length.
    pub fn within(first: u64, last: u64, length: u64) -> Result<Self, BlobDenial> {
        let end = last.checked_add(1).ok_or(BlobDenial::InvalidPageRange)?;
        let whole = first.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
        if !whole || first >= end || end > length {
            return Err(BlobDenial::InvalidPageRange);
        }
        Ok(Self { start: first, end })
    }

    /// How many bytes it has.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// `x-ms-if-sequence-number-le|lt|eq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceConditions {
    /// The blob's number is at most this.
    pub at_most: Option<u64>,
    /// The blob's number is less than this.
    pub less_than: Option<u64>,
    /// The blob's number is this.
    pub equal: Option<u64>,
}

impl SequenceConditions {
    /// Whether they hold for the blob's number.
    pub fn check(self, number: u64) -> Result<(), BlobDenial> {
        let holds = self.at_most.is_none_or(|at_most| number <= at_most)
            && self.less_than.is_none_or(|less_than| number < less_than)
            && self.equal.is_none_or(|equal| number == equal);
        if holds { Ok(()) } else { Err(BlobDenial::SequenceNumberConditionNotMet) }
    }
}

/// Whether a number can be a sequence number: the service's numbers are signed 64 bits.
pub fn is_sequence_number(number: u64) -> bool {
    i64::try_from(number).is_ok()
}

/// `x-ms-sequence-number-action`, with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SequenceAction {
    /// The greater of the blob's number and this one.
    Max(u64),
    Update(u64),
    Increment,
}

impl SequenceAction {
    /// The blob's number after the action.
    pub fn apply(self, number: u64) -> Result<u64, BlobDenial> {
        match self {
            Self::Max(given) => Ok(number.max(given)),
            Self::Update(given) => Ok(given),
            Self::Increment => match number.checked_add(1) {
                Some(next) if is_sequence_number(next) => Ok(next),
                _ => Err(BlobDenial::SequenceNumberIncrementTooLarge),
            },
        }
    }
}

/// A range that was written or cleared, and by which write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenPages {
    pub range: PageRange,
    /// The counter of the write: later writes have greater ones.
    pub write: u64,
    /// Whether the write cleared it.
    pub cleared: bool,
}

/// A range of a list or a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedRange {
    pub range: PageRange,
    /// Whether its pages were cleared, not written.
    pub cleared: bool,
}

/// The written ranges, adjacent ones merged. `written` is in order, without overlaps.
pub fn page_list(written: &[WrittenPages]) -> Vec<ListedRange> {
    let mut ranges: Vec<ListedRange> = Vec::new();
    for WrittenPages { range, .. } in written.iter().filter(|written| !written.cleared) {
        add(&mut ranges, *range, false);
    }
    ranges
}

/// The ranges that were written or cleared since `then`, in order, adjacent ones of a kind merged.
/// A range that was cleared is one of them also if `then` has nothing there. Both lists are in
/// order, without overlaps, and cut to the same window.
pub fn page_difference(then: &[WrittenPages], now: &[WrittenPages]) -> Vec<ListedRange> {
    let mut borders: Vec<u64> = [then, now]
        .into_iter()
        .flatten()
        .flat_map(|written| [written.range.start, written.range.end])
        .collect();
    borders.sort_unstable();
    borders.dedup();
    let (mut before, mut after) = (Cursor::new(then), Cursor::new(now));
    let mut changes: Vec<ListedRange> = Vec::new();
    for pair in borders.windows(2) {
        let range = PageRange { start: pair[0], end: pair[1] };
        let (was, is) = (before.at(range.start), after.at(range.start));
        // A resize leaves nothing where a cleared range was: both read as zeros.
        let gone = is.is_none() && was.is_some_and(|(_, cleared)| cleared);
        if was != is && !gone {
            add(&mut changes, range, is.is_none_or(|(_, cleared)| cleared));
        }
    }
    changes
}

/// Adds a range to a list, or lengthens the last one of the same kind.
fn add(ranges: &mut Vec<ListedRange>, range: PageRange, cleared: bool) {
    match ranges.last_mut() {
        Some(last) if last.range.end == range.start && last.cleared == cleared => {
            last.range.end = range.end;
        }
        _ => ranges.push(ListedRange { range, cleared }),
    }
}

/// Walks an ordered list along rising positions.
struct Cursor<'a> {
    rest: &'a [WrittenPages],
}

impl<'a> Cursor<'a> {
    const fn new(rest: &'a [WrittenPages]) -> Self {
        Self { rest }
    }

    /// The write that the byte at `position` comes from, and whether that cleared it.
    fn at(&mut self, position: u64) -> Option<(u64, bool)> {
        while let [first, rest @ ..] = self.rest
            && first.range.end <= position
        {
            self.rest = rest;
        }
        let first = self.rest.first()?;
        (first.range.start <= position).then_some((first.write, first.cleared))
    }
}

#[cfg(test)]
mod tests;
