//! Append and page blobs.

use super::*;
use crate::blob::rules::append::AppendConditions;
use crate::blob::rules::pages::{SequenceAction, SequenceConditions};

fn create(bench: &Bench, name: &str, kind: BlobType, page_length: u64) {
    let new = NewBlob { page_length, ..NewBlob::default() };
    let put = within(bench.service.put_blob(
        &bench.cx(),
        &at(name),
        AccessConditions::default(),
        kind,
        new,
        Content::default(),
    ));
    put.unwrap();
}

fn append(bench: &Bench, bytes: &[u8], conditions: AppendConditions) -> BlobResult<Appended> {
    let body = bench.body(bytes, true);
    let operation = BlobOperation::AppendBlobAppendBlock;
    let asked = AccessConditions::default();
    within(bench.service.append_block(&bench.cx(), operation, &at("b"), asked, conditions, body))
}

#[test]
fn appends_are_in_order_and_conditional_on_position_and_size() {
    let bench = Bench::new();
    create(&bench, "b", BlobType::Append, 0);
    let none = AppendConditions::default();
    assert_eq!(append(&bench, b"one,", none).unwrap().offset, 0);
    let second = append(&bench, b"two,", none).unwrap();
    assert_eq!((second.offset, second.written.state.blocks), (4, 2));
    let position = AppendConditions { position: Some(4), max_size: None };
    let late = denial(append(&bench, b"x", position));
    assert_eq!(late, BlobDenial::AppendPositionConditionNotMet);
    let size = AppendConditions { position: None, max_size: Some(8) };
    let long = denial(append(&bench, b"x", size));
    assert_eq!(long, BlobDenial::MaxBlobSizeConditionNotMet);
    assert_eq!(bench.get("b").unwrap(), b"one,two,");
    within(bench.service.seal_blob(&bench.cx(), &at("b"), AccessConditions::default(), none))
        .unwrap();
    assert_eq!(denial(append(&bench, b"x", none)), BlobDenial::BlobIsSealed);
    let page = bench.put("p", b"block blob");
    assert_eq!(page.state.kind, BlobType::Block);
}

fn put_pages(
    bench: &Bench,
    first: u64,
    last: u64,
    bytes: Option<&[u8]>,
) -> BlobResult<WrittenBlob> {
    let (operation, change) = match bytes {
        Some(bytes) => {
            let body = bench.body(bytes, true);
            (BlobOperation::PageBlobUploadPages, PageChange::Update(body))
        }
        None => (BlobOperation::PageBlobClearPages, PageChange::Clear),
    };
    let put = PutPages { first, last, change, conditions: SequenceConditions::default() };
    within(bench.service.put_pages(
        &bench.cx(),
        operation,
        &at("b"),
        AccessConditions::default(),
        put,
    ))
}

fn ranges(bench: &Bench, previous: Option<Timestamp>) -> Vec<(u64, u64, bool)> {
    let query = PageQuery { range: None, from: None, max: 100 };
    let (cx, asked) = (bench.cx(), AccessConditions::default());
    let paged = match previous {
        None => bench.service.page_ranges(&cx, &at("b"), &asked, &query).unwrap(),
        Some(previous) => {
            bench.service.page_difference(&cx, &at("b"), &asked, previous, &query).unwrap()
        }
    };
    let page = |bytes: u64| bytes / 512;
    let shown = paged.ranges.iter();
    shown.map(|one| (page(one.range.start), page(one.range.end), one.cleared)).collect()
}

#[test]
fn pages_are_written_cleared_listed_and_compared_with_a_snapshot() {
    let bench = Bench::new();
    create(&bench, "b", BlobType::Page, 8 * 512);
    assert_eq!(bench.get("b").unwrap(), vec![0; 8 * 512]);
    put_pages(&bench, 0, 1_023, Some(&[1; 1_024])).unwrap();
    put_pages(&bench, 2_048, 2_559, Some(&[2; 512])).unwrap();
    assert_eq!(ranges(&bench, None), [(0, 2, false), (4, 5, false)]);
    let snapshot = bench.snapshot("b");
    put_pages(&bench, 0, 511, None).unwrap();
    put_pages(&bench, 1_536, 2_047, Some(&[3; 512])).unwrap();
    assert_eq!(ranges(&bench, None), [(1, 2, false), (3, 5, false)]);
    assert_eq!(ranges(&bench, Some(snapshot)), [(0, 1, true), (3, 4, false)]);
    let bytes = bench.get("b").unwrap();
    assert!(bytes[..512].iter().all(|byte| *byte == 0));
    assert_eq!((bytes[512], bytes[1_536], bytes[2_048]), (1, 3, 2));
    let old = at("b").state(Selector::Snapshot(snapshot));
    assert_eq!(bench.get_at(&old).unwrap()[0], 1, "a snapshot does not change");
    for (first, last, bytes) in [(1, 512, 512), (0, 511, 511), (0, 511, 1_024), (4_096, 4_607, 512)]
    {
        let refused = denial(put_pages(&bench, first, last, Some(&vec![9; bytes])));
        assert_eq!(refused, BlobDenial::InvalidPageRange, "{first}-{last}");
    }
}

#[test]
fn a_page_blob_is_resized_and_has_a_sequence_number() {
    let bench = Bench::new();
    create(&bench, "b", BlobType::Page, 1_024);
    put_pages(&bench, 0, 1_023, Some(&[1; 1_024])).unwrap();
    let set = |length, sequence| {
        within(bench.service.set_page_properties(
            &bench.cx(),
            &at("b"),
            AccessConditions::default(),
            None,
            length,
            sequence,
        ))
    };
    set(Some(512), None).unwrap();
    set(Some(1_024), None).unwrap();
    let bytes = bench.get("b").unwrap();
    assert_eq!((bytes.len(), bytes[511], bytes[512]), (1_024, 1, 0));
    let number = |written: WrittenBlob| written.state.sequence_number;
    assert_eq!(number(set(None, Some(SequenceAction::Increment)).unwrap()), 1);
    assert_eq!(number(set(None, Some(SequenceAction::Max(7))).unwrap()), 7);
    let put = PutPages {
        first: 0,
        last: 511,
        change: PageChange::Clear,
        conditions: SequenceConditions { at_most: Some(6), ..SequenceConditions::default() },
    };
    let operation = BlobOperation::PageBlobClearPages;
    let refused = within(bench.service.put_pages(
        &bench.cx(),
        operation,
        &at("b"),
        AccessConditions::default(),
        put,
    ));
    assert_eq!(denial(refused), BlobDenial::SequenceNumberConditionNotMet);
}
