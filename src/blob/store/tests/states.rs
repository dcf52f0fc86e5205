//! States: put, replace, share, give another key, remove; settings and the counter.

use super::{CURRENT, Home, bytes, check_settled, content_of, put, row, whole};
use crate::blob::store::{BlobStore, ContainerId, Retained, StateKey, StateKind, StateRow};
use crate::db::DbError;
use crate::rules::Timestamp;

const SIZES: [usize; 3] = [1000, 200_000, 3 << 20];

fn keys(store: &BlobStore, container: ContainerId, name: &str) -> Vec<(StateKey, String)> {
    let states: Vec<StateRow<String>> = store.read(|tx| tx.states(container, name)).unwrap();
    states.into_iter().map(|row| (row.key, row.record)).collect()
}

#[test]
fn a_shared_state_keeps_its_bytes_when_the_first_is_replaced_or_removed() {
    for size in SIZES {
        let home = Home::new();
        let (store, container) = home.with_container();
        let sent = bytes(1, size);
        let id = put(&store, container, "blob", &sent);
        let files = home.files();
        let key = StateKey::Snapshot(Timestamp(5));
        let snapshot = store
            .write(move |tx| tx.put_shared(container, "blob", key, &"snapshot", id, None))
            .unwrap();
        let copy = store
            .write(move |tx| tx.put_shared(container, "copy", CURRENT, &"copy", id, None))
            .unwrap();
        assert_eq!(home.files(), files, "no bytes are copied");
        put(&store, container, "blob", b"new");
        store.settle().unwrap();
        assert!(content_of(&store, snapshot) == sent);
        store.write(move |tx| tx.remove(snapshot)).unwrap();
        store.settle().unwrap();
        assert!(content_of(&store, copy) == sent);
        store.write(move |tx| tx.remove(copy)).unwrap();
        check_settled(&store, &home);
        // The segment may still be open for others.
        assert!(home.files().len() <= 1);
    }
}

#[test]
fn states_of_a_name_are_in_order_and_replaced_by_key() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id = put(&store, container, "blob", b"bytes");
    let version = |time| StateKey::Version(Timestamp(time));
    let snapshot = |time| StateKey::Snapshot(Timestamp(time));
    let deleted = StateKey::Deleted(Timestamp(9));
    let kept = Some(Retained { deleted: Timestamp(9), until: Timestamp(99) });
    store
        .write(move |tx| {
            for (key, record) in [
                (version(1), "version 1"),
                (snapshot(30), "snapshot 30"),
                (snapshot(4), "snapshot 4"),
                (version(-2), "version -2"),
                (snapshot(4), "snapshot 4 again"),
            ] {
                tx.put_shared(container, "blob", key, &record, id, None)?;
            }
            tx.put_shared(container, "blob", deleted, &"deleted", id, kept).map(drop)
        })
        .unwrap();
    let expected = [
        (snapshot(4), "snapshot 4 again"),
        (snapshot(30), "snapshot 30"),
        (version(-2), "version -2"),
        (version(1), "version 1"),
        (deleted, "deleted"),
        (CURRENT, ""),
    ];
    let expected = expected.map(|(key, record)| (key, record.to_owned()));
    assert_eq!(keys(&store, container, "blob"), expected);
    let found = store.read(|tx| tx.state::<String>(container, "blob", deleted)).unwrap().unwrap();
    assert_eq!(found.retained, kept);
    assert!(keys(&store, container, "blo").is_empty());
    check_settled(&store, &home);
}

#[test]
fn kinds_of_states_are_told_apart() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id = put(&store, container, "blob", b"bytes");
    let has = |kind| store.read(|tx| tx.has_states(container, "blob", kind)).unwrap();
    let kept = Some(Retained { deleted: Timestamp(9), until: Timestamp(99) });
    let share = |key, kept| {
        store.write(move |tx| tx.put_shared(container, "blob", key, &"", id, kept)).unwrap();
    };
    assert!(!has(StateKind::Snapshot) && !has(StateKind::Version) && !has(StateKind::Deleted));
    share(StateKey::Snapshot(Timestamp(1)), kept);
    assert!(!has(StateKind::Snapshot));
    share(StateKey::Snapshot(Timestamp(2)), None);
    assert!(has(StateKind::Snapshot) && !has(StateKind::Version));
    share(StateKey::Version(Timestamp(2)), None);
    share(StateKey::Deleted(Timestamp(2)), kept);
    assert!(has(StateKind::Version) && has(StateKind::Deleted));
}

#[test]
fn purging_removes_what_was_kept_long_enough() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let id = put(&store, container, "blob", &bytes(1, 100_000));
    store
        .write(move |tx| {
            for until in [10, 20, 30] {
                let key = StateKey::Snapshot(Timestamp(until));
                let kept = Retained { deleted: Timestamp(1), until: Timestamp(until) };
                tx.put_shared(container, "blob", key, &"", id, Some(kept))?;
            }
            let other = tx.add_container("other", &"")?.unwrap();
            let kept = Retained { deleted: Timestamp(1), until: Timestamp(20) };
            tx.delete_container(other, Some(("v", kept)))
        })
        .unwrap();
    assert_eq!(store.write(|tx| tx.purge(Timestamp(9), 10)).unwrap(), 0);
    assert_eq!(store.write(|tx| tx.purge(Timestamp(20), 10)).unwrap(), 3);
    assert_eq!(store.write(|tx| tx.purge(Timestamp(20), 10)).unwrap(), 0);
    assert_eq!(keys(&store, container, "blob").len(), 2);
    check_settled(&store, &home);
}

#[test]
fn the_counter_never_repeats_after_a_kill() {
    let home = Home::new();
    let store = home.open();
    let given = store.write(|tx| (0..5).map(|_| tx.next_counter(1000)).last().unwrap()).unwrap();
    assert_eq!(given, 1004);
    // What a process that is killed now leaves: the files as they are.
    let left = Home::new();
    for name in ["blob.db", "blob.db-wal"] {
        std::fs::copy(home.dir.path().join(name), left.dir.path().join(name)).unwrap();
    }
    let after = left.open();
    assert!(after.write(|tx| tx.next_counter(0)).unwrap() > 1004);
}

#[test]
fn the_counter_rises_follows_the_clock_and_survives_a_restart_without_a_jump() {
    let home = Home::new();
    let store = home.open();
    let next =
        |store: &BlobStore, at_least| store.write(move |tx| tx.next_counter(at_least)).unwrap();
    assert_eq!(next(&store, 500), 500);
    assert_eq!(next(&store, 500), 501);
    assert_eq!(next(&store, 20), 502);
    assert_eq!(next(&store, 9_000_000_000), 9_000_000_000);
    // A transaction that is rolled back may waste a number, never give it twice.
    let wasted = store.write(|tx| {
        tx.next_counter(0)?;
        Err::<(), _>(DbError::Closed)
    });
    assert!(wasted.is_err());
    assert_eq!(next(&store, 0), 9_000_000_002);
    drop(store);
    let store = home.open();
    assert_eq!(next(&store, 0), 9_000_000_003);
}

#[test]
fn names_that_0_2_kept_with_a_backslash_have_a_slash_unless_another_blob_has_that_name() {
    let home = Home::new();
    let (store, container) = home.with_container();
    for name in ["a\\b", "x\\y\\z", "taken\\n", "taken/n"] {
        put(&store, container, name, name.as_bytes());
        if name == "a\\b" {
            let place = (container, "a\\b", StateKey::Snapshot(Timestamp(7)));
            let content = whole(&store, b"old");
            store.write(move |tx| tx.put(place.0, place.1, place.2, &"", content)).unwrap();
        }
    }
    drop(store);
    let file = rusqlite::Connection::open(home.dir.path().join("blob.db")).unwrap();
    file.execute_batch("DROP TABLE unsynced").unwrap();
    drop(file);
    let store = home.open();
    for (name, sent) in [("a/b", "a\\b"), ("x/y/z", "x\\y\\z"), ("taken/n", "taken/n")] {
        let id = row(&store, container, name).unwrap().id;
        assert_eq!(content_of(&store, id), sent.as_bytes());
    }
    assert_eq!(keys(&store, container, "a/b").len(), 2);
    assert_eq!(keys(&store, container, "taken\\n").len(), 1);
}
