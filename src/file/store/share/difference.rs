//! Compares a file with an earlier copy of it.
//!
//! Decides by bytes: a range that was rewritten with the same bytes is no change here, and a range
//! that became a hole is cleared. Ranges that REST wrote are known from [`super::pages`]. The
//! result has the resolution of a page of the service where both files have data, else that of the
//! given ranges.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use super::data::read_at;
use crate::disk::error::StoreError;

/// The grain of a comparison: a page of the service.
const GRAIN: usize = 512;
/// Bytes compared in one step.
const PIECE: usize = 256 * 1024;

/// A part of a file that is not as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangedRange {
    /// It has other bytes now.
    Written(Range<u64>),
    /// It had bytes and is a hole now.
    Cleared(Range<u64>),
}

impl ChangedRange {
    pub fn range(&self) -> &Range<u64> {
        match self {
            Self::Written(range) | Self::Cleared(range) => range,
        }
    }
}

/// Two files to compare, with the parts of each that hold data.
pub struct Differing<'a> {
    /// The file as it is.
    pub new: BorrowedFd<'a>,
    /// An earlier copy of it; none if there was none, then all is new.
    pub old: Option<BorrowedFd<'a>>,
    /// The parts of the window where `new` holds data.
    pub now: Vec<Range<u64>>,
    /// The parts of the window where `old` holds data.
    pub before: Vec<Range<u64>>,
}

/// The parts that differ between the two files, ascending, at most `most` of them. No part lies
/// past the end of the new file.
pub fn changes(files: &Differing<'_>, most: usize) -> Result<Vec<ChangedRange>, StoreError> {
    let Differing { new, old, now, before } = files;
    let mut found = RangeCollector { parts: Vec::new(), most };
    for (range, has, had) in parts(now, before) {
        match old {
            Some(old) if has && had => compare(new, old, range, &mut found)?,
            _ if has => found.push(ChangedRange::Written(range)),
            _ => found.push(ChangedRange::Cleared(range)),
        }
        if found.is_full() {
            break;
        }
    }
    found.parts.truncate(most);
    Ok(found.parts)
}

/// Parts where either has data, and whether the first and the second have.
fn parts(now: &[Range<u64>], before: &[Range<u64>]) -> Vec<(Range<u64>, bool, bool)> {
    let ends = now.iter().chain(before).flat_map(|range| [range.start, range.end]);
    let mut cuts: Vec<u64> = ends.collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut now, mut before) = (now.iter().peekable(), before.iter().peekable());
    let mut parts = Vec::new();
    for cut in cuts.windows(2) {
        while now.next_if(|range| range.end <= cut[0]).is_some() {}
        while before.next_if(|range| range.end <= cut[0]).is_some() {}
        let has = |range: Option<&&Range<u64>>| range.is_some_and(|range| range.start <= cut[0]);
        let (new, old) = (has(now.peek()), has(before.peek()));
        if new || old {
            parts.push((cut[0]..cut[1], new, old));
        }
    }
    parts
}

fn compare(
    new: impl AsFd,
    old: impl AsFd,
    range: Range<u64>,
    found: &mut RangeCollector,
) -> Result<(), StoreError> {
    let mut at = range.start;
    let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
    while at < range.end && !found.is_full() {
        let wanted = usize::try_from(range.end - at).unwrap_or(PIECE).min(PIECE);
        // Either may have become shorter meanwhile: what is not there reads as zeros.
        for (fd, bytes) in [(new.as_fd(), &mut ours), (old.as_fd(), &mut theirs)] {
            let got = read_at(fd, &mut bytes[..wanted], at)?;
            bytes[got..wanted].fill(0);
        }
        for start in (0..wanted).step_by(GRAIN) {
            let end = (start + GRAIN).min(wanted);
            if ours[start..end] != theirs[start..end] {
                found.push(ChangedRange::Written(at + start as u64..at + end as u64));
            }
        }
        at += wanted as u64;
    }
    Ok(())
}

/// The parts so far. One that goes on where the last one ended is the same part.
struct RangeCollector {
    parts: Vec<ChangedRange>,
    most: usize,
}

impl RangeCollector {
    /// The last of `most` parts may still grow: one more says that it is whole.
    fn is_full(&self) -> bool {
        self.parts.len() > self.most
    }

    fn push(&mut self, next: ChangedRange) {
        match (self.parts.last_mut(), &next) {
            (Some(ChangedRange::Written(last)), ChangedRange::Written(range))
            | (Some(ChangedRange::Cleared(last)), ChangedRange::Cleared(range))
                if last.end == range.start =>
            {
                last.end = range.end;
            }
            _ => self.parts.push(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{clear_range, data_ranges, set_len, write_at};
    use super::super::stat::Stat;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn pair(bytes: &[u8]) -> [std::fs::File; 2] {
        [(); 2].map(|()| {
            let file = tempfile::tempfile().unwrap();
            write_at(&file, bytes, 0).unwrap();
            file
        })
    }

    /// Compares two files by what the file system says of them.
    fn changes(
        new: impl AsFd,
        old: Option<BorrowedFd<'_>>,
        window: Range<u64>,
        most: usize,
    ) -> Result<Vec<ChangedRange>, StoreError> {
        let window = window.start..window.end.min(Stat::of(&new)?.size);
        let now = data_ranges(&new, window.clone())?;
        let before = old.map_or(Ok(Vec::new()), |old| data_ranges(old, window))?;
        super::changes(&Differing { new: new.as_fd(), old, now, before }, most)
    }

    #[test]
    fn equal_files_do_not_differ_and_one_byte_is_a_page() {
        let [new, old] = pair(&vec![7; 100_000]);
        assert_eq!(changes(&new, Some(old.as_fd()), 0..100_000, 9).unwrap(), []);
        write_at(&new, b"x", 5_000).unwrap();
        write_at(&new, b"x", 99_999).unwrap();
        let found = changes(&new, Some(old.as_fd()), 0..u64::MAX, 9).unwrap();
        assert_eq!(
            found,
            [ChangedRange::Written(4_608..5_120), ChangedRange::Written(99_840..100_000)],
            "pages of 512 bytes, the last cut off where the file ends"
        );
        assert_eq!(changes(&new, Some(old.as_fd()), 0..u64::MAX, 1).unwrap(), found[..1]);
        assert_eq!(changes(&new, Some(old.as_fd()), 5_120..90_000, 9).unwrap(), []);
    }

    #[test]
    fn a_hole_where_bytes_were_is_cleared_and_bytes_where_a_hole_was_are_written() {
        let [new, old] = pair(&vec![7; 2 << 20]);
        clear_range(&new, 0..MIB).unwrap();
        set_len(&new, 6 * MIB).unwrap();
        write_at(&new, &vec![0; 1 << 20], 4 * MIB).unwrap();
        let found = changes(&new, Some(old.as_fd()), 0..6 * MIB, 9).unwrap();
        assert_eq!(found, [ChangedRange::Cleared(0..MIB), ChangedRange::Written(4 * MIB..5 * MIB)]);
        set_len(&new, MIB / 2).unwrap();
        let found = changes(&new, Some(old.as_fd()), 0..u64::MAX, 9).unwrap();
        assert_eq!(found, [ChangedRange::Cleared(0..MIB / 2)], "nothing is said past the end");
        assert_eq!(changes(&old, None, 0..MIB, 9).unwrap(), [ChangedRange::Written(0..MIB)]);
    }

    #[test]
    fn neighbouring_changes_are_one() {
        let [new, old] = pair(&vec![7; 1 << 20]);
        write_at(&new, &vec![8; 600_000], 512).unwrap();
        let found = changes(&new, Some(old.as_fd()), 0..MIB, 1).unwrap();
        assert_eq!(found, [ChangedRange::Written(512..600_576)]);
    }
}
