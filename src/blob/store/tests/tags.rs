//! The index of tags.

use std::ops::Bound::{Excluded, Included, Unbounded};

use super::{CURRENT, Home, check_settled, put};
use crate::blob::store::{BlobStore, ContainerId, StateId, StateKey, TagSearch};
use crate::rules::Timestamp;

fn set(store: &BlobStore, id: StateId, tags: &'static [(&'static str, &'static str)]) {
    store.write(move |tx| tx.set_tags(id, tags.iter().copied())).unwrap();
}

/// All results, in pages of two.
fn find(store: &BlobStore, search: TagSearch<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut from: Option<(String, String)> = None;
    loop {
        let start = from.as_ref().map(|(container, name)| (container.as_str(), name.as_str()));
        let search = TagSearch { from: start, limit: 2, ..search };
        let page =
            store.read(|tx| tx.find::<String>(&search, |_, row| row.name != "never")).unwrap();
        names.extend(
            page.items.into_iter().map(|(container, row)| format!("{container}/{}", row.name)),
        );
        match page.next {
            Some(next) => from = Some(next),
            None => return names,
        }
    }
}

fn equal<'a>(key: &'a str, value: &'a str, container: Option<ContainerId>) -> TagSearch<'a> {
    let (low, high) = (Included(value), Included(value));
    TagSearch { container, key, low, high, from: None, limit: 0 }
}

#[test]
fn ranges_of_values_compare_bytes() {
    let home = Home::new();
    let (store, c) = home.with_container();
    for value in ["", "1", "10", "2", "B", "a"] {
        let id = put(&store, c, &format!("v{value}"), b"");
        store.write(move |tx| tx.set_tags(id, [("k", value)])).unwrap();
    }
    let range = |low, high| {
        find(&store, TagSearch { container: None, key: "k", low, high, from: None, limit: 0 })
    };
    assert_eq!(range(Unbounded, Unbounded), ["c/v", "c/v1", "c/v10", "c/v2", "c/vB", "c/va"]);
    assert_eq!(range(Included("1"), Excluded("2")), ["c/v1", "c/v10"]);
    assert_eq!(range(Excluded("1"), Included("2")), ["c/v10", "c/v2"]);
    assert_eq!(range(Excluded("B"), Unbounded), ["c/va"]);
    assert_eq!(range(Unbounded, Excluded("1")), ["c/v"]);
}

#[test]
fn tags_end_with_the_blob_and_with_its_being_current() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let found = |value| find(&store, equal("k", value, None));
    let id = put(&store, c, "blob", b"");
    set(&store, id, &[("k", "old"), ("l", "m")]);
    set(&store, id, &[("k", "new")]);
    assert!(found("old").is_empty());
    assert_eq!(found("new"), ["c/blob"]);

    // A snapshot has no entries, and the current blob's stay.
    let key = StateKey::Snapshot(Timestamp(1));
    let snapshot = store.write(move |tx| tx.put_shared(c, "blob", key, &"", id, None)).unwrap();
    set(&store, snapshot, &[("k", "snapshot")]);
    assert!(found("snapshot").is_empty());
    assert_eq!(found("new"), ["c/blob"]);

    // Put without tags.
    put(&store, c, "blob", b"again");
    assert!(found("new").is_empty());
    set(&store, id, &[("k", "new")]);

    let version = StateKey::Version(Timestamp(1));
    store.write(move |tx| tx.rekey(id, version, &"", None)).unwrap();
    assert!(found("new").is_empty());
    store.write(move |tx| tx.rekey(id, CURRENT, &"", None)).unwrap();
    set(&store, id, &[("k", "new")]);
    assert_eq!(found("new"), ["c/blob"]);
    store.write(move |tx| tx.remove(id)).unwrap();
    assert!(found("new").is_empty());
    check_settled(&store, &home);
}

#[test]
fn a_deleted_container_has_no_tagged_blobs() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let id = put(&store, c, "blob", b"");
    set(&store, id, &[("k", "v")]);
    store.write(move |tx| tx.delete_container(c, None)).unwrap();
    assert!(find(&store, equal("k", "v", None)).is_empty());
    store.settle().unwrap();
    let left: i64 = store
        .read(|tx| {
            let left = tx.conn.query_row("SELECT count(*) FROM tag", [], |row| row.get(0))?;
            Ok::<_, crate::db::DbError>(left)
        })
        .unwrap();
    assert_eq!(left, 0);
}
