//! Page and append blobs against a slow and obvious model.

use proptest::prelude::*;

use super::{CURRENT, Home, body, bytes, check_settled, content_of};
use crate::blob::store::{BlobStore, BodyRole, ContainerId, Content, StateId, StateKey};
use crate::db::DbError;
use crate::rules::Timestamp;

const PAGE: u64 = 512;

/// What a page blob must look like: bytes, and the write that each page comes from; whether that
/// cleared it.
#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    bytes: Vec<u8>,
    writes: Vec<(u64, bool)>,
}

impl Model {
    fn write(&mut self, page: u64, sent: &[u8], write: u64) {
        let start = usize::try_from(page * PAGE).unwrap();
        self.bytes[start..start + sent.len()].copy_from_slice(sent);
        let first = usize::try_from(page).unwrap();
        self.writes[first..first + sent.len() / 512].fill((write, false));
    }

    fn clear(&mut self, page: u64, pages: u64, write: u64) {
        let zeros = vec![0; usize::try_from(pages * PAGE).unwrap()];
        self.write(page, &zeros, write);
        let first = usize::try_from(page).unwrap();
        self.writes[first..first + zeros.len() / 512].fill((write, true));
    }

    fn resize(&mut self, pages: u64) {
        let pages = usize::try_from(pages).unwrap();
        self.bytes.resize(pages * 512, 0);
        self.writes.resize(pages, (0, false));
    }
}

fn new_blob(store: &BlobStore, container: ContainerId, pages: u64) -> StateId {
    store
        .write(move |tx| {
            let id = tx.put(container, "disk", CURRENT, &"", Content::default())?;
            tx.resize(id, pages * PAGE).map(|()| id)
        })
        .unwrap()
}

fn write(store: &BlobStore, id: StateId, page: u64, sent: &[u8], write: u64) {
    let content = body(store, BodyRole::Part, sent);
    store.write(move |tx| tx.write_pages(id, page * PAGE, content, write)).unwrap();
}

/// The write of each page of a state, and whether it cleared the page.
fn writes(store: &BlobStore, id: StateId, pages: usize) -> Vec<(u64, bool)> {
    let mut writes = vec![(0, false); pages];
    let written = store.read(|tx| tx.written(id, 0..pages as u64 * PAGE)).unwrap();
    let mut last = 0;
    for range in written {
        assert!(range.start >= last && range.start < range.end, "{range:?}");
        last = range.end;
        for page in range.start / PAGE..range.end / PAGE {
            writes[usize::try_from(page).unwrap()] = (range.write, range.cleared);
        }
    }
    writes
}

fn expect(store: &BlobStore, id: StateId, model: &Model) {
    assert!(content_of(store, id) == model.bytes, "bytes differ");
    assert_eq!(writes(store, id, model.writes.len()), model.writes);
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Clear(u64, u64),
    Resize(u64),
    Snapshot,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u64..64, 1_u64..9).prop_map(|(page, pages)| Step::Write(page, pages)),
        3 => (0_u64..64, 1_u64..20).prop_map(|(page, pages)| Step::Clear(page, pages)),
        1 => (1_u64..64).prop_map(Step::Resize),
        1 => Just(Step::Snapshot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn page_blobs_and_their_snapshots_are_as_the_model_says(
        steps in prop::collection::vec(any_step(), 1..60)
    ) {
        let home = Home::new();
        let (store, container) = home.with_container();
        let id = new_blob(&store, container, 40);
        let mut model = Model::default();
        model.resize(40);
        let mut snapshots = Vec::new();
        for (count, step) in (1_u64..).zip(steps) {
            let length = model.writes.len() as u64;
            match step {
                Step::Write(page, pages) => {
                    let page = page % length;
                    let pages = pages.min(length - page);
                    let sent = bytes(count, usize::try_from(pages * PAGE).unwrap());
                    write(&store, id, page, &sent, count);
                    model.write(page, &sent, count);
                }
                Step::Clear(page, pages) => {
                    let page = page % length;
                    let pages = pages.min(length - page);
                    let range = page * PAGE..(page + pages) * PAGE;
                    store.write(move |tx| tx.clear_pages(id, range, count)).unwrap();
                    model.clear(page, pages, count);
                }
                Step::Resize(pages) => {
                    store.write(move |tx| tx.resize(id, pages * PAGE)).unwrap();
                    model.resize(pages);
                }
                Step::Snapshot => {
                    let key = StateKey::Snapshot(Timestamp(count.cast_signed()));
                    let taken = store
                        .write(move |tx| tx.put_shared(container, "disk", key, &"", id, None))
                        .unwrap();
                    snapshots.push((taken, model.clone()));
                }
            }
        }
        expect(&store, id, &model);
        for (taken, model) in &snapshots {
            expect(&store, *taken, model);
        }
        check_settled(&store, &home);
    }
}

#[test]
fn thousands_of_single_pages_take_several_rows_and_come_back() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let pages = 3000;
    let id = new_blob(&store, container, pages);
    let mut model = Model::default();
    model.resize(pages);
    // In an order that splits rows in the middle; every third page stays empty.
    let order = (0..pages).map(|count| count * 1009 % pages).filter(|page| page % 3 != 0);
    let sent: Vec<_> = order.map(|page| (page, bytes(page, 512))).collect();
    for (page, sent) in &sent {
        model.write(*page, sent, *page + 1);
    }
    let contents: Vec<_> =
        sent.into_iter().map(|(page, sent)| (page, body(&store, BodyRole::Part, &sent))).collect();
    store
        .write(move |tx| {
            for (page, content) in contents {
                tx.write_pages(id, page * PAGE, content, page + 1)?;
            }
            Ok::<_, DbError>(())
        })
        .unwrap();
    expect(&store, id, &model);
    // Over the borders of rows.
    let sent = bytes(7, 700 * 512);
    write(&store, id, 1000, &sent, 9999);
    model.write(1000, &sent, 9999);
    store.write(move |tx| tx.clear_pages(id, 1500 * PAGE..2600 * PAGE, 10_000)).unwrap();
    model.clear(1500, 1100, 10_000);
    expect(&store, id, &model);
    check_settled(&store, &home);
}

#[test]
fn a_window_of_written_ranges_is_cut_to_it() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id = new_blob(&store, container, 100);
    write(&store, id, 10, &bytes(1, 20 * 512), 1);
    write(&store, id, 50, &bytes(1, 512), 2);
    let window = |from, to| {
        let written = store.read(|tx| tx.written(id, from * PAGE..to * PAGE)).unwrap();
        let written = written.into_iter();
        written.map(|it| (it.start / PAGE, it.end / PAGE, it.write)).collect::<Vec<_>>()
    };
    assert_eq!(window(0, 100), [(10, 30, 1), (50, 51, 2)]);
    assert_eq!(window(15, 50), [(15, 30, 1)]);
    assert_eq!(window(30, 50), []);
    assert_eq!(window(29, 51), [(29, 30, 1), (50, 51, 2)]);
}

#[test]
fn pages_behind_the_end_are_refused() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id = new_blob(&store, container, 2);
    let content = body(&store, BodyRole::Part, &bytes(1, 1024));
    let refused = store.write(move |tx| tx.write_pages(id, PAGE, content, 1));
    assert!(matches!(refused, Err(DbError::Io(_))));
    check_settled(&store, &home);
}

#[test]
fn appends_come_back_in_order_whatever_their_size() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id =
        store.write(move |tx| tx.put(container, "log", CURRENT, &"", Content::default())).unwrap();
    let mut expected = Vec::new();
    for count in 0..1500 {
        let size = [7, 600, 3, 20_000, 1][count % 5];
        let sent = bytes(count as u64, size);
        let content = body(&store, BodyRole::Part, &sent);
        // Others write to the segment meanwhile, so that not all appends are adjacent.
        if count % 3 == 0 {
            drop(body(&store, BodyRole::Part, &bytes(1, 17_000)));
        }
        let offset = store.write(move |tx| tx.append(id, content)).unwrap();
        assert_eq!(offset, expected.len() as u64);
        expected.extend(sent);
    }
    assert!(content_of(&store, id) == expected);
    check_settled(&store, &home);
}

#[test]
fn parts_of_a_blob_in_a_row_are_refused() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id = super::put(&store, container, "blob", b"inline");
    assert!(store.write(move |tx| tx.resize(id, 512)).is_err());
    let content = body(&store, BodyRole::Part, b"more");
    assert!(store.write(move |tx| tx.append(id, content)).is_err());
    assert_eq!(content_of(&store, id), b"inline");
}
