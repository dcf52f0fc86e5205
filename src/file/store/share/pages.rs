//! Finds the pages of a file that hold data, and those that changed since a snapshot: from the
//! blocks of the file system, refined by the record's account of pages.
//!
//! Decides by the record where REST wrote, and by the bytes where programs wrote into the same
//! block. The record is in [`super::record`]; bytes are compared in [`super::difference`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use super::data::{data_ranges, read_at};
use super::difference::{ChangedRange, Differing, changes};
use super::record::{BLOCK, PAGE, RangeAccount, Touch, TouchedRange};
use super::stat::Stat;
use crate::disk::error::StoreError;
use crate::rules::Timestamp;

/// A file with the account of its pages, if it has one.
#[derive(Clone, Copy)]
pub struct Accounted<'a> {
    pub fd: BorrowedFd<'a>,
    /// The ranges that REST wrote and cleared.
    pub account: Option<&'a RangeAccount>,
}

/// The parts of `window` that hold data, in whole pages: ascending, apart from each other.
pub fn data_pages(file: Accounted<'_>, window: Range<u64>) -> Result<Vec<Range<u64>>, StoreError> {
    let blocks = data_ranges(file.fd, window.clone())?;
    let Some(account) = file.account else { return Ok(blocks) };
    let size = Stat::of(file.fd)?.size;
    let split = split_blocks(account);
    let mut found = Vec::new();
    for range in blocks {
        let mut at = range.start;
        for &block in split.range(range.start / BLOCK..) {
            let block = block * BLOCK..(block + 1) * BLOCK;
            if block.start >= range.end {
                break;
            }
            push(&mut found, at..block.start.max(at));
            let here = block.start.max(range.start)..block.end.min(range.end);
            pages_of_block(file.fd, account, here.clone(), &mut found)?;
            at = here.end;
        }
        push(&mut found, at..range.end);
    }
    let end = window.end.min(size);
    for range in &mut found {
        range.end = range.end.min(end);
    }
    Ok(found)
}

/// The pages of `window` that changed since the snapshot `since`: those that REST wrote or cleared
/// later, whatever their bytes are, and all others whose bytes differ from those of `old`.
pub fn changed_pages(
    new: Accounted<'_>,
    old: Option<Accounted<'_>>,
    window: Range<u64>,
    since: Timestamp,
    most: usize,
) -> Result<Vec<ChangedRange>, StoreError> {
    let size = Stat::of(new.fd)?.size;
    let window = window.start..window.end.min(size);
    let parts = new.account.map(RangeAccount::parts).unwrap_or_default();
    let later: Vec<_> = parts
        .iter()
        .filter(|part| part.when > since)
        .map(|part| {
            (part.range.start.max(window.start)..part.range.end.min(window.end), part.touch)
        })
        .filter(|(range, _)| !range.is_empty())
        .collect();
    let now = data_pages(new, window.clone())?;
    let before = old.map_or(Ok(Vec::new()), |old| data_pages(old, window.clone()))?;
    let differing = Differing { new: new.fd, old: old.map(|old| old.fd), now, before };
    if later.is_empty() {
        return changes(&differing, most);
    }
    let mut all = RangeAccount::of(changes(&differing, usize::MAX)?.iter().map(|part| {
        let (range, touch) = match part {
            ChangedRange::Written(range) => (range, Touch::Written),
            ChangedRange::Cleared(range) => (range, Touch::Cleared),
        };
        TouchedRange { range: range.clone(), touch, when: since }
    }));
    for (range, touch) in later {
        all.put(TouchedRange { range, touch, when: since });
    }
    let changed = all.parts().iter().take(most).map(|part| match part.touch {
        Touch::Written => ChangedRange::Written(part.range.clone()),
        Touch::Cleared => ChangedRange::Cleared(part.range.clone()),
    });
    Ok(changed.collect())
}

/// The blocks that the edge of a part lies in.
fn split_blocks(account: &RangeAccount) -> BTreeSet<u64> {
    let edges = account.parts().iter().flat_map(|part| [part.range.start, part.range.end]);
    edges.filter(|edge| !edge.is_multiple_of(BLOCK)).map(|edge| edge / BLOCK).collect()
}

/// The pages of one block that hold data: those that REST wrote, and those with bytes.
fn pages_of_block(
    fd: BorrowedFd<'_>,
    account: &RangeAccount,
    block: Range<u64>,
    found: &mut Vec<Range<u64>>,
) -> Result<(), StoreError> {
    let mut bytes = vec![0; usize::try_from(BLOCK).unwrap_or(usize::MAX)];
    let length = usize::try_from(block.end - block.start).unwrap_or(bytes.len());
    let got = read_at(fd, &mut bytes[..length], block.start)?;
    let mut at = block.start;
    while at < block.end {
        let end = (at - at % PAGE + PAGE).min(block.end);
        let written = account
            .parts()
            .iter()
            .any(|part| part.touch == Touch::Written && part.range.contains(&at));
        let offset = |position: u64| usize::try_from(position - block.start).unwrap_or(got);
        let page = &bytes[offset(at).min(got)..offset(end).min(got)];
        if written || page.iter().any(|byte| *byte != 0) {
            push(found, at..end);
        }
        at = end;
    }
    Ok(())
}

fn push(found: &mut Vec<Range<u64>>, next: Range<u64>) {
    if next.is_empty() {
        return;
    }
    match found.last_mut() {
        Some(last) if last.end == next.start => last.end = next.end,
        _ => found.push(next),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::super::data::{clear_range, set_len, write_at};
    use super::*;

    fn account(notes: &[(Range<u64>, Touch, i64)]) -> RangeAccount {
        let mut account = RangeAccount::default();
        for (range, touch, when) in notes {
            account.note(range, *touch, Timestamp(*when));
        }
        account
    }

    fn of<'a>(file: &'a std::fs::File, account: &'a RangeAccount) -> Accounted<'a> {
        Accounted { fd: file.as_fd(), account: Some(account) }
    }

    #[test]
    fn pages_that_rest_wrote_are_data_and_their_neighbours_in_the_block_are_not() {
        let file = tempfile::tempfile().unwrap();
        set_len(&file, 2_048).unwrap();
        let account = account(&[(0..512, Touch::Written, 1), (1_024..1_536, Touch::Written, 2)]);
        write_at(&file, &[7; 512], 0).unwrap();
        write_at(&file, &[0; 512], 1_024).unwrap();
        let found = data_pages(of(&file, &account), 0..2_048).unwrap();
        assert_eq!(found, [0..512, 1_024..1_536], "zeros that were written are data");
        write_at(&file, b"x", 1_600).unwrap();
        let found = data_pages(of(&file, &account), 0..2_048).unwrap();
        assert_eq!(found, [0..512, 1_024..2_048], "a byte of a program makes its page data");
    }

    #[test]
    fn blocks_that_no_part_splits_are_the_file_systems() {
        let file = tempfile::tempfile().unwrap();
        set_len(&file, 1 << 20).unwrap();
        write_at(&file, &[0; 8_192], 65_536).unwrap();
        let account = account(&[(0..512, Touch::Written, 1)]);
        write_at(&file, &[1; 512], 0).unwrap();
        let found = data_pages(of(&file, &account), 0..1 << 20).unwrap();
        assert_eq!(found, [0..512, 65_536..73_728]);
    }

    #[test]
    fn what_was_touched_later_is_changed_whatever_its_bytes_are() {
        let [new, old] = [(); 2].map(|()| {
            let file = tempfile::tempfile().unwrap();
            set_len(&file, 2_048).unwrap();
            file
        });
        let since = Timestamp(10);
        let account = account(&[(0..1_536, Touch::Written, 11), (512..1_024, Touch::Cleared, 12)]);
        write_at(&new, &[7; 1_536], 0).unwrap();
        clear_range(&new, 512..1_024).unwrap();
        let old = Some(Accounted { fd: old.as_fd(), account: None });
        let found = changed_pages(of(&new, &account), old, 0..2_048, since, 9).unwrap();
        let expected = [
            ChangedRange::Written(0..512),
            ChangedRange::Cleared(512..1_024),
            ChangedRange::Written(1_024..1_536),
        ];
        assert_eq!(found, expected);
        let found = changed_pages(of(&new, &account), old, 0..2_048, Timestamp(12), 9).unwrap();
        let bytes = [ChangedRange::Written(0..512), ChangedRange::Written(1_024..1_536)];
        assert_eq!(found, bytes, "touched earlier: the bytes decide");
    }
}
