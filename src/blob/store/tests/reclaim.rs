//! How content goes away: after a checkpoint, never before, and never what is in use.

use super::{CURRENT, Home, body, bytes, check, check_settled, content_of, put, whole};
use crate::blob::store::{BlobStore, BodyRole, Content, StateKey};
use crate::db::{DbError, SyncMode};
use crate::rules::Timestamp;

const LARGE: usize = 2 << 20;

#[test]
fn a_file_goes_after_the_checkpoint_that_covers_its_last_reference_s_end() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let id = put(&store, c, "blob", &bytes(1, LARGE));
    let key = StateKey::Snapshot(Timestamp(1));
    let snapshot = store.write(move |tx| tx.put_shared(c, "blob", key, &"", id, None)).unwrap();
    store.write(move |tx| tx.remove(id)).unwrap();
    store.settle().unwrap();
    assert_eq!(home.files().len(), 1, "the snapshot has it");
    store.write(move |tx| tx.remove(snapshot)).unwrap();
    store.shared.chores.wait_until_idle();
    assert_eq!(home.files().len(), 1, "no checkpoint yet");
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
    check_settled(&store, &home);
}

#[test]
fn a_checkpoint_follows_by_itself() {
    let home = Home::new();
    let tuning = crate::db::Tuning {
        checkpoint_interval: std::time::Duration::from_millis(5),
        ..super::quiet()
    };
    let store = BlobStore::open_with(home.dir.path(), SyncMode::Normal, tuning).unwrap();
    let c = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    let id = put(&store, c, "blob", &bytes(1, LARGE));
    store.write(move |tx| tx.remove(id)).unwrap();
    super::wait_until("the file to go", || home.files().is_empty());
}

#[test]
fn a_checkpoint_does_not_wait_for_its_time_when_much_content_was_dropped() {
    let home = Home::new();
    let (store, c) = home.with_container();
    put(&store, c, "blob", &bytes(1, LARGE));
    put(&store, c, "blob", &bytes(2, LARGE));
    // As if blobs of 256 MiB had been replaced.
    store.shared.add_garbage(256 << 20);
    super::wait_until("the first file to go", || home.files().len() == 1);
}

#[test]
fn a_segment_goes_when_nothing_in_it_is_in_use_and_not_before() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let ids: Vec<_> =
        (0..5).map(|count| put(&store, c, &format!("{count}"), &bytes(count, 100_000))).collect();
    assert_eq!(home.files().len(), 1);
    for id in &ids[1..] {
        let id = *id;
        store.write(move |tx| tx.remove(id)).unwrap();
    }
    check_settled(&store, &home);
    assert_eq!(home.files().len(), 1);
    assert!(content_of(&store, ids[0]) == bytes(0, 100_000));
    let last = ids[0];
    store.write(move |tx| tx.remove(last)).unwrap();
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
    // The next body gets a new segment.
    let id = put(&store, c, "new", &bytes(9, 100_000));
    check_settled(&store, &home);
    assert!(content_of(&store, id) == bytes(9, 100_000));
}

#[test]
fn a_body_under_way_keeps_its_segment() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let old = put(&store, c, "old", &bytes(1, 100_000));
    // In the same segment, finished, not committed.
    let content = whole(&store, &bytes(2, 100_000));
    store.write(move |tx| tx.remove(old)).unwrap();
    store.settle().unwrap();
    store.settle().unwrap();
    let id = store.write(move |tx| tx.put(c, "new", CURRENT, &"", content)).unwrap();
    store.settle().unwrap();
    assert!(content_of(&store, id) == bytes(2, 100_000));
    check_settled(&store, &home);
}

#[test]
fn what_was_referred_to_and_dropped_again_between_checkpoints_waits_for_the_next() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let first = put(&store, c, "first", &bytes(1, 100_000));
    let content = whole(&store, &bytes(2, 100_000));
    store.write(move |tx| tx.remove(first)).unwrap();
    store.database.checkpoint().unwrap();
    let id = store.write(move |tx| tx.put(c, "second", CURRENT, &"", content)).unwrap();
    store.write(move |tx| tx.remove(id)).unwrap();
    store.shared.chores.wait_until_idle();
    assert_eq!(home.files().len(), 1);
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
    check_settled(&store, &home);
}

#[test]
fn settling_removes_what_a_reader_kept_that_has_ended() {
    let home = Home::new();
    let (store, c) = home.with_container();
    for _ in 0..10 {
        let id = put(&store, c, "blob", &bytes(1, LARGE));
        let reader = store.shared.readers.enter();
        store.write(move |tx| tx.remove(id)).unwrap();
        store.settle().unwrap();
        assert_eq!(home.files().len(), 1, "the reader may need it");
        drop(reader);
        store.settle().unwrap();
        assert_eq!(home.files().len(), 0);
    }
}

#[test]
fn a_file_that_a_restored_state_had_and_dropped_is_released_anew() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let id = put(&store, c, "blob", &bytes(1, LARGE));
    let folder = tempfile::tempdir_in(home.dir.path()).unwrap();
    let mut saved = store.save(folder.path()).unwrap();
    saved.begin().unwrap();
    saved.finish().unwrap();
    let early = store.shared.readers.enter();
    store.write(move |tx| tx.remove(id)).unwrap();
    store.settle().unwrap();
    let held = store.hold();
    held.restore(folder.path()).unwrap();
    held.commit().unwrap();
    drop(held);
    let late = store.shared.readers.enter();
    let held = store.hold();
    held.empty().unwrap();
    held.commit().unwrap();
    drop(held);
    drop(early);
    store.settle().unwrap();
    assert_eq!(home.files().len(), 1, "a reader of the restored state may need it");
    drop(late);
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
}

#[test]
fn files_of_an_earlier_process_without_a_reference_are_swept_and_others_stay() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let id = put(&store, c, "blob", &bytes(1, LARGE));
    drop(store);
    let blobs = home.dir.path().join("blobs");
    for number in 1..600 {
        std::fs::write(blobs.join(format!("{number:016x}")), b"left over").unwrap();
    }
    // From a clock that was ahead: perhaps of this process, so it stays.
    let future = blobs.join(format!("{:016x}", i64::MAX));
    std::fs::write(&future, b"later").unwrap();
    std::fs::write(blobs.join("README"), b"of a person").unwrap();
    let store = home.open();
    store.settle().unwrap();
    assert!(future.exists() && blobs.join("README").exists());
    assert_eq!(home.files().len(), 3);
    assert!(content_of(&store, id) == bytes(1, LARGE));
}

#[test]
fn a_clock_that_was_set_back_never_makes_two_files_of_one_number() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let first = put(&store, c, "first", &bytes(1, LARGE));
    drop(store);
    // The file and its row get a number far ahead of the clock.
    let name = home.files().pop_first().unwrap();
    let ahead = i64::MAX - 1000;
    let blobs = home.dir.path().join("blobs");
    std::fs::rename(blobs.join(&name), blobs.join(format!("{ahead:016x}"))).unwrap();
    let file = i64::from_str_radix(&name, 16).unwrap();
    let conn = rusqlite::Connection::open(home.dir.path().join("blob.db")).unwrap();
    conn.execute("UPDATE file SET id = ?2 WHERE id = ?1", [file, ahead]).unwrap();
    conn.execute("UPDATE uses SET file = ?2 WHERE file = ?1", [file, ahead]).unwrap();
    let extent = super::super::extents::Extent {
        start: 0,
        length: LARGE as u64,
        file: super::super::types::ContentId(ahead.cast_unsigned()),
        offset: 0,
        write: 0,
    };
    let packed = super::super::extents::pack(0, &[extent]);
    conn.execute("UPDATE extents SET packed = ?1", [packed]).unwrap();
    drop(conn);
    let store = home.open();
    // And the next number is taken by a file that nobody knows.
    std::fs::write(blobs.join(format!("{:016x}", ahead + 1)), b"unknown").unwrap();
    let second = put(&store, c, "second", &bytes(2, LARGE));
    assert!(content_of(&store, first) == bytes(1, LARGE));
    assert!(content_of(&store, second) == bytes(2, LARGE));
    check(&store, &home);
}

#[test]
fn work_that_was_left_is_done_at_the_next_start() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let id = put(&store, c, "blob", &bytes(1, LARGE));
    store.shared.chores.close();
    store
        .write(move |tx| {
            tx.remove(id)?;
            tx.delete_container(c, None)
        })
        .unwrap();
    drop(store);
    let store = home.open();
    check_settled(&store, &home);
    assert_eq!(home.files().len(), 0);
}

/// A commit can fail in an unclear way, so that its row is in the WAL: the file must stay until a
/// later commit has taken the row's place there.
#[test]
fn a_file_without_a_row_goes_after_a_commit_that_says_so_and_a_checkpoint() {
    let home = Home::new();
    let (store, _) = home.with_container();
    let commits = || store.database.stats().commits;
    store.shared.chores.wait_until_idle();
    let before = commits();
    drop(whole(&store, &bytes(1, LARGE)));
    store.shared.chores.wait_until_idle();
    assert_eq!(commits(), before + 1);
    assert_eq!(home.files().len(), 1, "no checkpoint yet");
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
}

#[test]
fn a_removal_that_failed_is_tried_again() {
    let home = Home::new();
    let (store, c) = home.with_container();
    // A body that is given up and content that is dropped; directories have taken their places.
    let given_up = whole(&store, &bytes(1, LARGE));
    let given_up_file = home.files().pop_first().unwrap();
    let dropped = put(&store, c, "dropped", &bytes(2, LARGE));
    let blobs = home.dir.path().join("blobs");
    let files = home.files();
    for name in &files {
        std::fs::remove_file(blobs.join(name)).unwrap();
        std::fs::create_dir(blobs.join(name)).unwrap();
    }
    drop(given_up);
    store.write(move |tx| tx.remove(dropped)).unwrap();
    store.settle().unwrap();
    assert_eq!(home.files(), files);
    for name in &files {
        std::fs::remove_dir(blobs.join(name)).unwrap();
        std::fs::write(blobs.join(name), b"removable").unwrap();
    }
    super::wait_until("the removal of the body that was given up", || {
        !home.files().contains(&given_up_file)
    });
    check_settled(&store, &home);
    assert_eq!(home.files().len(), 0);
}

#[test]
fn parts_of_a_replaced_blob_do_not_share_a_file_with_later_ones() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let append = |seed| {
        let content = body(&store, BodyRole::Part, &bytes(seed, LARGE));
        store
            .write(move |tx| {
                let id = tx.put(c, "log", CURRENT, &"", Content::default())?;
                tx.append(id, content).map(|_| id)
            })
            .unwrap()
    };
    append(1);
    append(2);
    let id = append(3);
    store.settle().unwrap();
    assert_eq!(home.files().len(), 1, "each state had its own file");
    assert!(content_of(&store, id) == bytes(3, LARGE));
    check_settled(&store, &home);
}

#[test]
fn content_is_synced_before_the_checkpoint_that_makes_its_row_durable() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let path = home.dir.path().join("blobs");
    // A content file that cannot be synced: the checkpoint must not run.
    put(&store, c, "blob", &bytes(1, LARGE));
    let name = home.files().pop_first().unwrap();
    std::fs::rename(path.join(&name), path.join("aside")).unwrap();
    std::fs::create_dir(path.join(&name)).unwrap();
    std::os::unix::fs::symlink(&name, path.join("loop")).unwrap();
    std::fs::remove_dir(path.join(&name)).unwrap();
    std::os::unix::fs::symlink("loop", path.join(&name)).unwrap();
    let before = store.database.stats().checkpoints;
    assert!(matches!(store.database.checkpoint(), Err(DbError::Io(_))));
    assert_eq!(store.database.stats().checkpoints, before);
    std::fs::remove_file(path.join(&name)).unwrap();
    std::fs::rename(path.join("aside"), path.join(&name)).unwrap();
    store.database.checkpoint().unwrap();
    assert_eq!(store.database.stats().checkpoints, before + 1);
}
