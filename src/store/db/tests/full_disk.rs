//! A full disk: the request fails by that name, nothing half is left, and space heals it.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::channel;

use super::{Blocked, SCHEMA, keys, put, quiet, receive, wait_until};
use crate::store::db::testing::Tmpfs;
use crate::store::db::{Database, DbError, Purpose, Sync};

fn open(tmpfs: &Tmpfs, sync: Sync) -> Arc<Database> {
    let file = tmpfs.path().join("test.db");
    Arc::new(Database::open_with(&file, &SCHEMA, sync, quiet()).unwrap())
}

#[test]
fn a_write_on_a_full_disk_says_so_and_works_again_when_there_is_space() {
    for sync in [Sync::Normal, Sync::Always] {
        let Some(tmpfs) = Tmpfs::mount("8m") else { return };
        let db = open(&tmpfs, sync);
        db.write(|conn| put(conn, 0, b"first")).unwrap();
        let ballast = tmpfs.path().join("ballast");
        fs::write(&ballast, vec![1; 3 << 20]).unwrap();
        let mut failed = None;
        for key in 1..100 {
            let outcome = db.write(move |conn| put(conn, key, &vec![7; 100_000]));
            if let Err(error) = outcome {
                failed = Some((key, error));
                break;
            }
        }
        let (key, error) = failed.expect("10 MB do not fit into 8");
        assert!(matches!(error, DbError::Full { .. }), "{error:?}");
        assert_eq!(keys(&db), (0..key).collect::<Vec<_>>());

        fs::remove_file(ballast).unwrap();
        db.write(move |conn| put(conn, key, &vec![7; 100_000])).unwrap();
        drop(db);
        let db = open(&tmpfs, sync);
        assert_eq!(keys(&db), (0..=key).collect::<Vec<_>>());
    }
}

#[test]
fn rows_can_be_deleted_when_not_one_byte_is_free() {
    for sync in [Sync::Normal, Sync::Always] {
        let Some(tmpfs) = Tmpfs::mount("8m") else { return };
        let db = open(&tmpfs, sync);
        for key in 0..100 {
            db.write(move |conn| put(conn, key, &vec![7; 5_000])).unwrap();
        }
        tmpfs.fill();
        // Requests that store something use up what there is, but for the part of deletions.
        let full = (200..5_000).find_map(|key| {
            let stored = db.write(move |conn| put(conn, key, &vec![7; 4_000]));
            stored.err().map(|error| (key, error))
        });
        let Some((end, DbError::Full { .. })) = full else { panic!("{full:?}") };
        let delete = |key: i64| {
            db.write_for(Purpose::Delete, move |conn| {
                conn.prepare_cached("DELETE FROM item WHERE key = ?1")?.execute([key])?;
                Ok::<_, DbError>(())
            })
        };
        // Deletions go on while checkpoints let the log begin again.
        for key in 0..100 {
            wait_until("a deletion", || match delete(key) {
                Ok(()) => true,
                Err(DbError::Full { .. }) if key > 20 => false,
                Err(error) => panic!("{sync:?}, key {key}: {error}"),
            });
        }
        let mut kept: Vec<_> = (200..end).collect();
        assert_eq!(keys(&db), kept);
        tmpfs.empty();
        // A long log may need more than the small disk has, until a checkpoint lets it begin again.
        wait_until("a store", || match db.write(|conn| put(conn, 5_000, b"space again")) {
            Ok(()) => true,
            Err(DbError::Full { .. }) => false,
            Err(error) => panic!("{sync:?}: {error}"),
        });
        drop(db);
        kept.push(5_000);
        assert_eq!(keys(&open(&tmpfs, sync)), kept);
    }
}

#[test]
fn each_request_of_a_group_is_either_answered_ok_and_there_or_failed_and_not() {
    let Some(tmpfs) = Tmpfs::mount("8m") else { return };
    let db = open(&tmpfs, Sync::Normal);
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 0..20 {
        let sender = sender.clone();
        // The tenth alone is larger than the disk, and larger than the page cache.
        let size = if key == 10 { 100 << 20 } else { 1000 };
        let work = move |conn: &rusqlite::Connection| put(conn, key, &vec![1; size]);
        db.submit(work, move |outcome| sender.send((key, outcome)).unwrap());
    }
    blocked.end();
    let mut there = Vec::new();
    for _ in 0..20 {
        match receive(&answers) {
            (key, Ok(())) => there.push(key),
            (_, Err(error)) => assert!(matches!(error, DbError::Full { .. }), "{error:?}"),
        }
    }
    there.sort_unstable();
    assert_eq!(keys(&db), there);
    assert!(!there.contains(&10));
    db.write(|conn| put(conn, 99, b"x")).unwrap();
}
