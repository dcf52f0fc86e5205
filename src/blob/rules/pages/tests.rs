//! Alignment, sequence numbers and page lists, as tables and against a reference that knows every
//! page.

use proptest::prelude::*;

use super::*;

#[test]
fn a_range_is_whole_pages_inside_the_blob() {
    let range = |first, last| PageRange::within(first, last, 2_048);
    assert_eq!(range(0, 511), Ok(PageRange { start: 0, end: 512 }));
    assert_eq!(range(512, 2_047), Ok(PageRange { start: 512, end: 2_048 }));
    for (first, last) in [
        (1, 512),
        (0, 510),
        (0, 512),
        (2_048, 2_559),
        (1_536, 2_559),
        (512, 511),
        (1_024, 511),
        (0, u64::MAX),
        (u64::MAX, u64::MAX),
    ] {
        assert_eq!(range(first, last), Err(BlobDenial::InvalidPageRange), "{first}-{last}");
    }
}

#[test]
fn lengths_are_whole_pages_up_to_8_tib() {
    for (length, fits) in
        [(0, true), (512, true), (1_000, false), (LENGTH_MAX, true), (LENGTH_MAX + 512, false)]
    {
        assert_eq!(is_length(length), fits, "{length}");
    }
}

#[test]
fn sequence_conditions_compare_the_blobs_number_with_the_header() {
    let at_most = |n| SequenceConditions { at_most: Some(n), ..Default::default() };
    let less_than = |n| SequenceConditions { less_than: Some(n), ..Default::default() };
    let equal = |n| SequenceConditions { equal: Some(n), ..Default::default() };
    for (conditions, holds) in [
        (SequenceConditions::default(), true),
        (at_most(4), false),
        (at_most(5), true),
        (at_most(6), true),
        (less_than(5), false),
        (less_than(6), true),
        (equal(4), false),
        (equal(5), true),
        (equal(6), false),
        (SequenceConditions { at_most: Some(5), less_than: Some(5), equal: None }, false),
    ] {
        assert_eq!(conditions.check(5).is_ok(), holds, "{conditions:?}");
    }
}

#[test]
fn sequence_actions_follow_the_table() {
    for (action, after) in [
        (SequenceAction::Max(3), 5),
        (SequenceAction::Max(7), 7),
        (SequenceAction::Update(3), 3),
        (SequenceAction::Increment, 6),
    ] {
        assert_eq!(action.apply(5), Ok(after), "{action:?}");
    }
    let greatest = u64::try_from(i64::MAX).unwrap();
    assert_eq!(SequenceAction::Increment.apply(greatest - 1), Ok(greatest));
    let refused = SequenceAction::Increment.apply(greatest);
    assert_eq!(refused, Err(BlobDenial::SequenceNumberIncrementTooLarge));
}

fn written(start: u64, end: u64, write: u64) -> WrittenPages {
    let range = PageRange { start: start * PAGE, end: end * PAGE };
    WrittenPages { range, write, cleared: false }
}

fn cleared(start: u64, end: u64, write: u64) -> WrittenPages {
    WrittenPages { cleared: true, ..written(start, end, write) }
}

fn listed(start: u64, end: u64, cleared: bool) -> ListedRange {
    ListedRange { range: PageRange { start: start * PAGE, end: end * PAGE }, cleared }
}

#[test]
fn a_list_merges_neighbours() {
    let all = [written(0, 2, 1), written(2, 3, 2), written(5, 6, 3)];
    assert_eq!(page_list(&all), [listed(0, 3, false), listed(5, 6, false)]);
    assert_eq!(page_list(&[written(0, 1, 1), cleared(1, 2, 2)]), [listed(0, 1, false)]);
    assert_eq!(page_list(&[]), []);
}

#[test]
fn a_difference_mixes_written_and_cleared_ranges_in_order() {
    let then = [written(0, 4, 1), written(6, 8, 2)];
    let now = [written(0, 1, 1), written(2, 3, 5), written(3, 4, 1), written(5, 7, 6)];
    assert_eq!(
        page_difference(&then, &now),
        [listed(1, 2, true), listed(2, 3, false), listed(5, 7, false), listed(7, 8, true)]
    );
    assert_eq!(page_difference(&now, &now), []);
    assert_eq!(page_difference(&[], &now[..1]), [listed(0, 1, false)]);
}

#[test]
fn a_cleared_range_is_a_difference_from_all_that_it_was_before() {
    let (mark, list) = ([cleared(0, 1, 5)], [listed(0, 1, true)]);
    assert_eq!(page_difference(&[], &mark), list);
    assert_eq!(page_difference(&[written(0, 1, 4)], &mark), list);
    assert_eq!(page_difference(&[cleared(0, 1, 4)], &mark), list);
    assert_eq!(page_difference(&mark, &mark), []);
    assert_eq!(page_difference(&mark, &[]), [], "after a resize");
    assert_eq!(page_difference(&mark, &[written(0, 1, 6)]), [listed(0, 1, false)]);
}

/// A blob of 24 pages as a list of runs: page by page, 0 is no write.
fn runs(of_page: &[u64]) -> Vec<WrittenPages> {
    let mut runs: Vec<WrittenPages> = Vec::new();
    for (index, write) in (0..).zip(of_page).filter(|(_, write)| **write != 0) {
        match runs.last_mut() {
            Some(last) if last.write == *write && last.range.end == index * PAGE => {
                last.range.end += PAGE;
            }
            _ => runs.push(written(index, index + 1, *write)),
        }
    }
    runs
}

proptest! {
    #[test]
    fn lists_and_differences_agree_with_looking_at_every_page(
        then in proptest::collection::vec(0..4_u64, 24),
        now in proptest::collection::vec(0..4_u64, 24),
    ) {
        let list = page_list(&runs(&now));
        let difference = page_difference(&runs(&then), &runs(&now));
        for page in 0..24_u64 {
            let index = usize::try_from(page).unwrap();
            let covers = |listed: &&ListedRange| {
                listed.range.start <= page * PAGE && page * PAGE < listed.range.end
            };
            prop_assert_eq!(list.iter().any(|one| covers(&one)), now[index] != 0);
            let found = difference.iter().find(covers).map(|one| one.cleared);
            let expected = (then[index] != now[index]).then_some(now[index] == 0);
            prop_assert_eq!(found, expected);
        }
        for pair in list.windows(2) {
            prop_assert!(pair[0].range.end < pair[1].range.start, "neighbours are merged");
        }
    }
}
