//! Tests of ranges: which are legal, and when they overlap.

use super::super::ByteRange;
use super::{InvalidRange, range};

const MAX: u64 = u64::MAX;
const HALF: u64 = 1 << 63;

#[test]
fn a_range_may_reach_the_last_byte_and_not_past_it() {
    for (offset, length) in [(0, MAX), (1, MAX), (MAX, 1), (MAX, 0), (HALF, 10), (HALF - 1, 2)] {
        assert!(ByteRange::new(offset, length).is_ok(), "{offset} {length}");
    }
    for (offset, length) in [(10, MAX), (2, MAX), (MAX, 2), (MAX, MAX), (HALF, HALF + 1)] {
        assert_eq!(ByteRange::new(offset, length), Err(InvalidRange));
    }
    assert_eq!(range(1, MAX).last(), Some(MAX));
    assert_eq!(range(0, MAX).last(), Some(MAX - 1), "br19 leaves the last byte");
}

#[test]
fn ranges_overlap_if_they_share_a_byte() {
    assert!(range(0, 10).overlaps(range(9, 1)));
    assert!(range(9, 1).overlaps(range(0, 10)));
    assert!(!range(0, 10).overlaps(range(10, 5)));
    assert!(!range(10, 5).overlaps(range(0, 10)));
    assert!(range(HALF - 1, 2).overlaps(range(HALF, 1)), "br18");
    assert!(!range(0, MAX).overlaps(range(MAX, 1)), "br19");
    assert!(range(1, MAX).overlaps(range(MAX, 1)));
}

#[test]
fn a_range_of_no_bytes_collides_only_strictly_inside_another() {
    for (place, inside) in [(0, false), (4, false), (5, true), (9, true), (10, false)] {
        assert_eq!(range(place, 0).overlaps(range(4, 6)), inside, "{place}");
        assert_eq!(range(4, 6).overlaps(range(place, 0)), inside, "{place}");
    }
    assert!(!range(MAX, 0).overlaps(range(MAX, 1)), "br20");
    assert!(range(MAX, 0).overlaps(range(MAX - 1, 2)));
}

#[test]
fn no_bytes_at_zero_overlap_nothing_and_no_bytes_never_each_other() {
    for other in [range(0, 0), range(0, 1), range(0, MAX), range(1, MAX)] {
        assert!(!range(0, 0).overlaps(other) && !other.overlaps(range(0, 0)));
    }
    assert!(!range(5, 0).overlaps(range(5, 0)), "br50");
    assert!(!range(5, 0).overlaps(range(6, 0)));
}

#[test]
fn posix_bounds_are_inclusive_and_the_largest_offset_means_the_end() {
    let end = i64::MAX.unsigned_abs();
    assert_eq!(ByteRange::from_posix(3, 3), Ok(range(3, 1)));
    assert_eq!(ByteRange::from_posix(4, 3), Err(InvalidRange));
    let whole = ByteRange::from_posix(0, end).expect("the whole file");
    assert_eq!(whole.last(), Some(MAX));
    assert_eq!(whole.length(), 1 << 64);
    assert_eq!(whole.to_posix(), (0, end));
    assert!(whole.overlaps(range(MAX, 1)));
    assert_eq!(ByteRange::from_posix(end, MAX).map(ByteRange::to_posix), Ok((end, end)));
    assert_eq!(ByteRange::from_posix(0, end - 1), Ok(range(0, end)));
}

#[test]
fn a_range_reads_as_a_person_would_say_it() {
    let said: Vec<_> = [range(5, 0), range(5, 1), range(5, 2), range(1, MAX)]
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(said, ["no bytes at 5", "byte 5", "bytes 5 to 6", "bytes 1 to the end"]);
}

#[test]
fn a_range_is_told_with_its_verb() {
    let told = |start, length| {
        let range = ByteRange::new(start, length).unwrap();
        format!("{range} {} locked", range.verb())
    };
    assert_eq!(told(7, 1), "byte 7 is locked");
    assert_eq!(told(7, 2), "bytes 7 to 8 are locked");
    assert_eq!(told(7, 0), "no bytes at 7 are locked");
    assert_eq!(told(u64::MAX, 1), "bytes 18446744073709551615 to the end are locked");
}
