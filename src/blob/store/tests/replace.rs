//! All rows replaced at once: what readers, chores and block lists of before meet.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Home, bytes, put, read_all};
use crate::blob::store::janitor::Doomed;
use crate::blob::store::{BlobStore, ContainerId, StateId};
use crate::db::DbError;
use crate::disk::synced::watch;

fn save(store: &BlobStore, folder: &Path) {
    let mut saved = store.save(folder).unwrap();
    saved.begin().unwrap();
    saved.finish().unwrap();
}

fn restore(store: &BlobStore, folder: &Path) {
    let held = store.hold();
    held.restore(folder).unwrap();
    held.commit().unwrap();
}

fn reset(store: &BlobStore) {
    let held = store.hold();
    held.empty().unwrap();
    held.commit().unwrap();
}

fn container(store: &BlobStore) -> ContainerId {
    store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap()
}

fn read(store: &BlobStore, id: StateId) -> Vec<u8> {
    read_all(&mut store.read(|tx| tx.reader(id)).unwrap())
}

#[test]
fn content_of_a_saved_state_comes_back_after_it_was_removed_and_while_it_is_being_removed() {
    let home = Home::new();
    let store = home.open();
    let c = container(&store);
    let sizes = [100, 50_000, 3 << 20];
    let sent = sizes.map(|size| bytes(size as u64, size));
    let ids =
        [("row", 0), ("segment", 1), ("file", 2)].map(|(name, at)| put(&store, c, name, &sent[at]));
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    save(&store, folder.path());
    for round in 0..6 {
        reset(&store);
        if round % 2 == 0 {
            // The janitor has removed the files; else it is about to.
            store.settle().unwrap();
        }
        restore(&store, folder.path());
        store.settle().unwrap();
        for (id, sent) in ids.iter().zip(&sent) {
            assert!(read(&store, *id) == *sent, "round {round}");
        }
    }
}

#[test]
fn names_of_restored_content_are_synced_before_a_row_refers_to_it() {
    let home = Home::new();
    let store = home.open();
    put(&store, container(&store), "segment", &bytes(1, 50_000));
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    save(&store, folder.path());
    reset(&store);
    store.settle().unwrap();
    assert!(home.files().is_empty());
    let synced = Arc::new(AtomicBool::new(false));
    let (told, content) = (Arc::clone(&synced), home.dir.path().join("blobs"));
    watch::below(&content.clone(), move |path| told.store(path == content, Ordering::Relaxed));
    let held = store.hold();
    held.restore(folder.path()).unwrap();
    assert!(synced.load(Ordering::Relaxed), "before the commit");
    held.commit().unwrap();
}

#[test]
fn numbers_and_counters_go_on_after_a_replacement_and_a_restart() {
    let home = Home::new();
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    let (first, counter) = {
        let store = home.open();
        let c = container(&store);
        let first = put(&store, c, "a", &bytes(1, 10));
        save(&store, folder.path());
        let counter = store.write(|tx| tx.next_counter(77)).unwrap();
        reset(&store);
        (first, counter)
    };
    let store = home.open();
    restore(&store, folder.path());
    assert!(store.write(|tx| tx.next_counter(0)).unwrap() > counter);
    let c = store.read(|tx| tx.container::<String>("c")).unwrap().unwrap().id;
    assert!(put(&store, c, "b", &bytes(2, 10)).0 > first.0, "its number is free");
    assert_eq!(read(&store, first), bytes(1, 10));
}

#[test]
fn a_chore_of_before_removes_nothing_of_a_restored_state() {
    let home = Home::new();
    let store = home.open();
    let c = container(&store);
    let (id, sent) = {
        let sent = bytes(3, 50_000);
        (put(&store, c, "a", &sent), sent)
    };
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    save(&store, folder.path());
    restore(&store, folder.path());
    // As if a pass had found them in the table before.
    for doomed in [Doomed::Rows(id.0), Doomed::Container(c)] {
        let shared = std::sync::Arc::clone(&store.shared);
        let remove = move |conn: &rusqlite::Connection| doomed.remove_slice(conn, &shared);
        assert!(store.database.write(remove).unwrap());
    }
    store.settle().unwrap();
    assert!(read(&store, id) == sent);
}

#[test]
fn a_restore_that_fails_leaves_a_file_in_use_that_is_shorter_than_the_saved_one() {
    let home = Home::new();
    let store = home.open();
    let c = container(&store);
    let sent = [bytes(1, 50_000), bytes(2, 50_000)];
    let first = put(&store, c, "first", &sent[0]);
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    save(&store, folder.path());
    // A copy on another disk, of a time when the segment had space in advance, and without what
    // came after it.
    let name = home.files().pop_first().unwrap();
    let saved = folder.path().join("blobs").join(&name);
    let mut copy = std::fs::read(&saved).unwrap();
    copy.resize(4 << 20, 0);
    std::fs::remove_file(&saved).unwrap();
    std::fs::write(&saved, &copy).unwrap();
    let second = put(&store, c, "second", &sent[1]);
    store.shared.segments.close(&[super::content_id(&name)]);
    {
        let held = store.hold();
        held.restore(folder.path()).unwrap();
        // Dropped without a commit.
    }
    assert!(read(&store, first) == sent[0] && read(&store, second) == sent[1]);
    restore(&store, folder.path());
    assert!(read(&store, first) == sent[0]);
    // A copy that a crash has cut off is replaced.
    reset(&store);
    store.settle().unwrap();
    std::fs::write(home.dir.path().join("blobs").join(&name), b"cut off").unwrap();
    restore(&store, folder.path());
    assert!(read(&store, first) == sent[0]);
}

#[test]
fn a_replacement_that_fails_changes_nothing() {
    let home = Home::new();
    let store = home.open();
    let c = container(&store);
    let id = put(&store, c, "a", &bytes(1, 50_000));
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    save(&store, folder.path());
    std::fs::remove_dir_all(folder.path().join("blobs")).unwrap();
    {
        let held = store.hold();
        let refused = held.restore(folder.path());
        let lost = folder.path().join("blobs");
        let named = |file: &Path| file.starts_with(&lost);
        assert!(
            matches!(&refused, Err(DbError::Damaged { file, .. }) if named(file)),
            "{refused:?}"
        );
    }
    let other = tempfile::tempdir_in(home.dir.path()).unwrap();
    std::fs::write(other.path().join("blob.db"), "no database").unwrap();
    assert!(store.hold().restore(other.path()).is_err());
    {
        let held = store.hold();
        held.empty().unwrap();
        // Dropped without a commit.
    }
    store.settle().unwrap();
    assert_eq!(read(&store, id), bytes(1, 50_000));
    put(&store, c, "b", &bytes(2, 10));
}
