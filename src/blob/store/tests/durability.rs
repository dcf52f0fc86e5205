//! What is on the disk before what: content before the log that refers to it, and who may read it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::{Home, bytes, content_id, content_of, put, row, whole};
use crate::blob::store::{BlobStore, BodyRole, ContentPlan, unsynced};
use crate::db::{DbError, SyncMode};
use crate::disk::synced::watch;

const MIB: usize = 1 << 20;

/// A blob is put, and committed, while the content of an earlier one is being synced: the
/// checkpoint makes the new row durable too, so its content must be on the disk before.
#[test]
fn content_is_synced_before_the_log_also_if_it_comes_while_a_checkpoint_syncs() {
    for size in [100_000, 2 * MIB] {
        let home = Home::new();
        let (store, container) = home.with_container();
        let store = Arc::new(store);
        put(&store, container, "first", &bytes(1, 2 * MIB));
        let synced = Arc::new(Mutex::new(Vec::new()));
        let folder = home.dir.path().join("blobs");
        let (beside, order) = (Arc::downgrade(&store), Arc::clone(&synced));
        let begun = AtomicBool::new(false);
        let content = folder.clone();
        watch::below(home.dir.path(), move |path| {
            order.lock().unwrap().push(path.to_owned());
            if path.parent() == Some(&content) && !begun.swap(true, Ordering::Relaxed) {
                let store = beside.upgrade().unwrap();
                put(&store, container, "second", &bytes(2, size));
            }
        });
        store.database.checkpoint().unwrap();
        let synced = std::mem::take(&mut *synced.lock().unwrap());
        let log = home.dir.path().join("blob.db-wal");
        let before: Vec<PathBuf> = synced.into_iter().take_while(|path| *path != log).collect();
        let files: Vec<_> = home.files().iter().map(|name| folder.join(name)).collect();
        assert_eq!(files.len(), 2);
        for file in files {
            let bytes = before.iter().position(|path| *path == file);
            let names = before.iter().rposition(|path| *path == folder);
            assert!(bytes.is_some() && bytes < names, "{size}: {file:?} of {before:?}");
        }
        // Afterwards bodies wait for the next checkpoint again.
        let mut writer = store
            .content(ContentPlan { length: Some(2 << 20), role: BodyRole::Whole, md5: false })
            .unwrap();
        writer.write(&bytes(3, 2 * MIB)).unwrap();
        assert!(writer.try_finish().is_some());
    }
}

/// What is on the disk while the store is open, as a machine that dies can leave it.
fn copy_of(home: &Home) -> Home {
    let copy = Home::new();
    std::fs::create_dir(copy.dir.path().join("blobs")).unwrap();
    let content = home.files().into_iter().map(|name| format!("blobs/{name}"));
    let beside = ["blob.db", "blob.db-wal", "blob.db-synced"].map(str::to_owned);
    for name in beside.into_iter().chain(content) {
        let from = home.dir.path().join(&name);
        if from.exists() {
            std::fs::copy(from, copy.dir.path().join(&name)).unwrap();
        }
    }
    copy
}

/// Somebody removes a content file whose row a checkpoint has moved. The commit is still in the
/// WAL: a cut there would leave pages of two moments.
#[test]
fn the_wal_is_not_cut_before_a_commit_that_a_checkpoint_has_moved() {
    let home = Home::new();
    let (store, container) = home.with_container();
    put(&store, container, "before", b"short");
    put(&store, container, "blob", &bytes(1, 2 * MIB));
    put(&store, container, "after", b"short");
    store.database.checkpoint().unwrap();
    let copy = copy_of(&home);
    let log = copy.dir.path().join("blob.db-wal");
    let length = log.metadata().unwrap().len();
    assert!(length > 0, "the commit is still in the WAL");
    std::fs::remove_file(copy.dir.path().join("blobs").join(home.files().first().unwrap()))
        .unwrap();
    unsynced::cut_lost(copy.dir.path()).unwrap();
    assert_eq!(log.metadata().unwrap().len(), length);
    let store = copy.open();
    for name in ["before", "blob", "after"] {
        assert!(row(&store, container, name).is_some(), "{name}");
    }
}

#[test]
fn a_write_whose_content_was_lost_is_undone_with_those_after_it() {
    for size in [100_000, 2 * MIB] {
        let home = Home::new();
        let (store, container) = home.with_container();
        put(&store, container, "blob", &bytes(1, size));
        store.database.checkpoint().unwrap();
        let synced = home.files();
        let synced_ids: Vec<_> = synced.iter().map(|name| content_id(name)).collect();
        put(&store, container, "before", b"short");
        // The segment of the first is not used any more, so that each write has a file.
        store.shared.segments.close(&synced_ids);
        put(&store, container, "blob", &bytes(2, size));
        put(&store, container, "after", b"short");
        let lost: Vec<_> = home.files().difference(&synced).cloned().collect();
        assert_eq!(lost.len(), 1);
        let lose: [fn(PathBuf); 4] = [
            |_| (),
            |file| std::fs::remove_file(file).unwrap(),
            |file| std::fs::File::create(file).unwrap().set_len(0).unwrap(),
            |file| std::fs::File::create(file).unwrap().set_len(4 << 20).unwrap(),
        ];
        for (number, lose) in lose.into_iter().enumerate() {
            let copy = copy_of(&home);
            lose(copy.dir.path().join("blobs").join(&lost[0]));
            let store = copy.open();
            let has = |name| row(&store, container, name).map(|found| content_of(&store, found.id));
            let seed = if number == 0 { 2 } else { 1 };
            assert_eq!(has("blob").unwrap(), bytes(seed, size), "{size}, {number}");
            assert_eq!(has("before").as_deref(), Some(&b"short"[..]), "{size}, {number}");
            assert_eq!(has("after").is_some(), number == 0, "{size}, {number}");
            drop(store);
            // What a clean end leaves is not looked at again.
            let left = copy.open().database.read(unsynced::last).unwrap();
            assert_eq!(left, 0, "{size}, {number}");
        }
    }
}

#[test]
fn a_store_whose_content_cannot_be_read_does_not_open_and_loses_nothing() {
    let home = Home::new();
    let (store, container) = home.with_container();
    put(&store, container, "blob", &bytes(1, 2 * MIB));
    put(&store, container, "after", b"short");
    let killed = copy_of(&home);
    let file = killed.dir.path().join("blobs").join(home.files().first().unwrap());
    let aside = killed.dir.path().join("aside");
    std::fs::rename(&file, &aside).unwrap();
    std::fs::create_dir(&file).unwrap();
    let log = killed.dir.path().join("blob.db-wal");
    let length = log.metadata().unwrap().len();
    let opened = BlobStore::open(killed.dir.path(), SyncMode::Normal);
    assert!(matches!(opened, Err(DbError::Io(_))), "{opened:?}");
    assert_eq!(log.metadata().unwrap().len(), length);
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    let store = killed.open();
    let found = row(&store, container, "blob").unwrap();
    assert!(content_of(&store, found.id) == bytes(1, 2 * MIB));
    assert!(row(&store, container, "after").is_some());
}

#[test]
fn content_that_a_killed_process_has_not_synced_is_synced_before_the_next_checkpoint() {
    let home = Home::new();
    let (store, container) = home.with_container();
    put(&store, container, "blob", &bytes(1, 100_000));
    let killed = copy_of(&home);
    let synced = Arc::new(Mutex::new(Vec::new()));
    let order = Arc::clone(&synced);
    watch::below(killed.dir.path(), move |path| order.lock().unwrap().push(path.to_owned()));
    let next = killed.open();
    next.database.checkpoint().unwrap();
    let synced = std::mem::take(&mut *synced.lock().unwrap());
    let folder = killed.dir.path().join("blobs");
    let file = folder.join(home.files().first().unwrap());
    let log = killed.dir.path().join("blob.db-wal");
    assert_eq!(synced[..3], [file, folder, log]);
}

#[test]
fn a_body_gives_an_event_loop_back_what_would_wait() {
    let home = Home::new();
    let store = home.open();
    let unknown = |role| ContentPlan { length: None, role, md5: false };
    // A file has to be made where a body of unknown length outgrows its row.
    let mut writer = store.content(unknown(BodyRole::Whole)).unwrap();
    assert!(matches!(writer.try_write(&bytes(1, 16 << 10)), Some(Ok(()))));
    assert!(writer.try_write(b"x").is_none());
    assert_eq!(writer.received(), 16 << 10, "nothing was taken");
    writer.write(b"x").unwrap();
    assert!(matches!(writer.try_write(b"y"), Some(Ok(()))));
    assert_eq!(writer.try_finish().unwrap().unwrap().length(), (16 << 10) + 2);
    // A short part of unknown length is placed at its end.
    let mut writer = store.content(unknown(BodyRole::Part)).unwrap();
    assert!(matches!(writer.try_write(b"a line"), Some(Ok(()))));
    assert!(writer.try_finish().is_none());
    assert_eq!(writer.finish().unwrap().length(), 6);
    // While a checkpoint is under way, bytes are synced before a commit can refer to them.
    let plan = ContentPlan { length: Some(100_000), ..unknown(BodyRole::Whole) };
    let mut writer = store.content(plan).unwrap();
    writer.write(&bytes(1, 100_000)).unwrap();
    store.shared.files.sync_all(&[]).unwrap();
    assert!(writer.try_finish().is_none());
    writer.finish().unwrap();
    store.shared.files.checkpoint_ended();
}

#[test]
fn only_the_owner_may_read_blobs() {
    let home = Home::new();
    let (store, _) = home.with_container();
    let content = whole(&store, &bytes(1, 100_000));
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (name, expected) in [("blob.db", 0o600), ("blob.db-wal", 0o600), ("blobs", 0o700)] {
        assert_eq!(mode(home.dir.path().join(name)), expected, "{name}");
    }
    for file in home.files() {
        assert_eq!(mode(home.dir.path().join("blobs").join(file)), 0o600);
    }
    drop(content);
}
