//! Queries: pages, tokens, key ranges, slices.

use super::*;

fn filled(count: usize) -> Fixture {
    let fixture = Fixture::with_table("tab");
    for batch in (0..count).collect::<Vec<_>>().chunks(100) {
        let write = |n: usize| Write {
            change: rules::EntityChange::Insert,
            key: EntityKey::new("p", format!("{n:05}")),
            properties: int(i32::try_from(n).unwrap()),
        };
        let writes = batch.iter().map(|n| (name("tab"), write(*n))).collect();
        fixture.wait(fixture.service().transact(&fixture.context(), writes)).unwrap();
    }
    fixture
}

#[test]
fn a_token_is_given_only_if_something_matches_after_it() {
    let fixture = filled(10);
    let query = |text: &str, top| EntityQuery {
        filter: Some(Filter::parse(text).unwrap()),
        top: Top(top),
        ..EntityQuery::all(name("tab"))
    };
    assert_eq!(fixture.page(&query("i lt 3", 3), usize::MAX).unwrap().1, None);
    let (_, next) = fixture.page(&query("i lt 3 or i eq 8", 3), usize::MAX).unwrap();
    assert_eq!(next, Some(EntityKey::new("p", "00008")));
}

#[test]
fn a_full_page_ends_though_more_were_asked_for() {
    let fixture = filled(10);
    let (found, next) = fixture.page(&EntityQuery::all(name("tab")), 4).unwrap();
    assert_eq!((found.len(), next), (4, Some(EntityKey::new("p", "00004"))));
}

#[test]
fn an_unselective_scan_is_cut_into_slices_t61() {
    let fixture = filled(SLICE_ROWS + 50);
    // Nothing of the partition was taken before the cut: the page goes on.
    let row = format!("{:05}", SLICE_ROWS + 20);
    assert_eq!(fixture.found("tab", &format!("RowKey eq '{row}'")), [format!("p/{row}")]);
    // Something was: the page ends at the cut, so that no transaction is seen in part.
    let filter = Some(Filter::parse(&format!("i lt 5 or i ge {SLICE_ROWS}")).unwrap());
    let query = EntityQuery { filter, ..EntityQuery::all(name("tab")) };
    let (found, next) = fixture.page(&query.clone(), usize::MAX).unwrap();
    assert_eq!(
        (found.len(), next.clone()),
        (5, Some(EntityKey::new("p", format!("{SLICE_ROWS:05}"))))
    );
    let (found, next) = fixture.page(&EntityQuery { from: next, ..query }, usize::MAX).unwrap();
    assert_eq!((found.len(), next), (50, None));
}
