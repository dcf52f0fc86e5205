//! A full disk: the request fails by that name, nothing half is left, and space heals it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::{Blocked, SCHEMA, get, keys, put, quiet, receive, wait_until};
use crate::db::testing::{SmallBlocks, Tmpfs, child, fill};
use crate::db::{CheckpointHooks, Database, DbError, Purpose, SyncMode};

/// Rows of 1,900 bytes in a page.
const ROWS_OF_PAGE: i64 = 2;
const FOLDER: &str = "LATCHFS_TEST_FOLDER";

fn open(tmpfs: &Tmpfs, sync: SyncMode) -> Arc<Database> {
    open_in(tmpfs.path(), sync).unwrap()
}

fn open_in(folder: &Path, sync: SyncMode) -> Result<Arc<Database>, DbError> {
    Database::open_with(&folder.join("test.db"), &SCHEMA, sync, quiet()).map(Arc::new)
}

fn delete(db: &Database, key: i64) -> Result<(), DbError> {
    db.write_for(Purpose::Delete, move |conn| {
        conn.prepare_cached("DELETE FROM item WHERE key = ?1")?.execute([key])?;
        Ok(())
    })
}

#[test]
fn a_write_on_a_full_disk_says_so_and_works_again_when_there_is_space() {
    for sync in [SyncMode::Normal, SyncMode::Always] {
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
    for sync in [SyncMode::Normal, SyncMode::Always] {
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
        // Deletions go on while checkpoints let the log begin again.
        for key in 0..100 {
            let deleted = delete(&db, key);
            deleted.unwrap_or_else(|error| panic!("{sync:?}, key {key}: {error}"));
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

/// A database of so many pages with `ROWS_OF_PAGE` rows each, and a short log.
fn with_pages(tmpfs: &Tmpfs, pages: i64) -> Arc<Database> {
    with_pages_in(open(tmpfs, SyncMode::Normal), pages)
}

fn with_pages_in(db: Arc<Database>, pages: i64) -> Arc<Database> {
    for page in 0..pages {
        db.write(move |conn| {
            let keys = page * ROWS_OF_PAGE..(page + 1) * ROWS_OF_PAGE;
            keys.into_iter().try_for_each(|key| put(conn, key, &[7; 1_900]))
        })
        .unwrap();
        if page % 50 == 49 {
            db.checkpoint().unwrap();
        }
    }
    db
}

/// Checkpoints of a slow disk.
struct SlowDisk;

impl CheckpointHooks for SlowDisk {
    fn before_checkpoint(&self, _: &rusqlite::Connection) -> Result<(), DbError> {
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    fn log_synced(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn checkpoint_ended(&self) {}
}

#[test]
fn no_deletion_is_refused_while_the_checkpoint_runs_that_makes_room_for_it() {
    const CLIENTS: i64 = 8;
    const PAGES: i64 = 800;
    let Some(tmpfs) = Tmpfs::mount("24m") else { return };
    let begin = |_: &rusqlite::Connection| {
        let hooks: Arc<dyn CheckpointHooks> = Arc::new(SlowDisk);
        Ok((Some(hooks), ()))
    };
    let file = tmpfs.path().join("test.db");
    let db = Database::open_hooked(&file, &SCHEMA, SyncMode::Normal, quiet(), begin).unwrap().0;
    let db = with_pages_in(Arc::new(db), PAGES);
    tmpfs.fill();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let db = &db;
            // Each has pages of its own: together they write more than is kept for deletions.
            let pages = client * PAGES / CLIENTS..(client + 1) * PAGES / CLIENTS;
            scope.spawn(move || {
                for page in pages {
                    let deleted = delete(db, page * ROWS_OF_PAGE);
                    deleted.unwrap_or_else(|error| panic!("page {page}: {error}"));
                }
            });
        }
    });
    assert_eq!(keys(&db).len(), usize::try_from(PAGES * (ROWS_OF_PAGE - 1)).unwrap());
}

#[test]
fn no_deletion_is_refused_though_somebody_reads_the_log_at_any_moment() {
    const PAGES: i64 = 800;
    const READERS: u64 = 3;
    let Some(tmpfs) = Tmpfs::mount("24m") else { return };
    let db = with_pages(&tmpfs, PAGES);
    tmpfs.fill();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let read = db.read(|conn| {
                        let found = get(conn, 1)?;
                        std::thread::sleep(Duration::from_millis(200 + 30 * reader));
                        Ok::<_, DbError>(found)
                    });
                    assert!(read.unwrap().is_some());
                }
            });
        }
        let refused = (0..PAGES).find_map(|page| delete(&db, page * ROWS_OF_PAGE).err());
        done.store(true, Ordering::Relaxed);
        assert!(refused.is_none(), "{refused:?}");
    });
    assert_eq!(keys(&db).len(), usize::try_from(PAGES * (ROWS_OF_PAGE - 1)).unwrap());
}

#[test]
fn no_deletion_is_refused_behind_the_log_that_a_killed_server_left() {
    const PAGES: i64 = 400;
    let Some((before, tmpfs)) = Tmpfs::mount("24m").zip(Tmpfs::mount("8m")) else { return };
    let db = with_pages(&before, PAGES);
    let change = "UPDATE item SET value = zeroblob(length(value))";
    db.write(move |conn| Ok::<_, DbError>(conn.execute(change, [])?)).unwrap();
    // What a kill would leave: the database is still open.
    for file in ["test.db", "test.db-wal"] {
        fs::copy(before.path().join(file), tmpfs.path().join(file)).unwrap();
    }
    tmpfs.fill();
    let db = open(&tmpfs, SyncMode::Normal);
    for page in 0..PAGES {
        let deleted = delete(&db, page * ROWS_OF_PAGE);
        deleted.unwrap_or_else(|error| panic!("page {page}: {error}"));
    }
}

#[test]
fn a_crowd_of_deletions_is_done_in_groups_that_the_space_is_enough_for() {
    const REQUESTS: i64 = 200;
    const PAGES: i64 = 1_000;
    let Some(tmpfs) = Tmpfs::mount("24m") else { return };
    let db = with_pages(&tmpfs, PAGES);
    tmpfs.fill();
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for request in 0..REQUESTS {
        let sender = sender.clone();
        // One row of a page: a page without rows would not be written.
        let delete = move |conn: &rusqlite::Connection| -> Result<(), DbError> {
            let mut delete = conn.prepare_cached("DELETE FROM item WHERE key = ?1")?;
            for page in (request..PAGES).step_by(usize::try_from(REQUESTS).unwrap()) {
                delete.execute([page * ROWS_OF_PAGE])?;
            }
            Ok(())
        };
        db.submit(Purpose::Delete, delete, move |outcome| sender.send(outcome).unwrap());
    }
    blocked.end();
    for _ in 0..REQUESTS {
        receive(&answers).unwrap();
    }
    assert_eq!(keys(&db).len(), usize::try_from(PAGES * (ROWS_OF_PAGE - 1)).unwrap());
}

#[test]
fn each_request_of_a_group_is_either_answered_ok_and_there_or_failed_and_not() {
    let Some(tmpfs) = Tmpfs::mount("8m") else { return };
    let db = open(&tmpfs, SyncMode::Normal);
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 0..20 {
        let sender = sender.clone();
        // The tenth alone is larger than the disk, and larger than the page cache.
        let size = if key == 10 { 100 << 20 } else { 1000 };
        let work = move |conn: &rusqlite::Connection| put(conn, key, &vec![1; size]);
        db.submit(Purpose::Store, work, move |outcome| sender.send((key, outcome)).unwrap());
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

#[test]
fn space_that_is_too_little_for_the_ballast_is_left_to_deletions() {
    let Some(tmpfs) = Tmpfs::mount("8m") else { return };
    let db = open(&tmpfs, SyncMode::Normal);
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    drop(db);
    fs::remove_file(tmpfs.path().join("test.db-ballast")).unwrap();
    tmpfs.fill_but(900 << 10);
    let db = open(&tmpfs, SyncMode::Normal);
    assert!(matches!(db.write(|conn| put(conn, 2, b"x")), Err(DbError::Full { .. })));
    // The checkpoint that the refusal asked for tries to make the ballast again, which takes the
    // space for a moment.
    wait_until("the space that the ballast left", || tmpfs.free() > 700 << 10);
    delete(&db, 1).unwrap();
    assert!(keys(&db).is_empty());
    tmpfs.empty();
    db.write(|conn| put(conn, 3, b"x")).unwrap();
}

/// Where blocks are smaller than a page, an index of the log in a file would have holes, and a
/// write to a hole on a full disk is SIGBUS.
#[test]
fn a_full_disk_of_small_blocks_does_not_end_the_process() {
    let Some(disk) = SmallBlocks::mount() else { return };
    let db = open_in(disk.path(), SyncMode::Normal).unwrap();
    for key in 0..100 {
        db.write(move |conn| put(conn, key, b"x")).unwrap();
    }
    drop(db);
    let mut child = child(child_that_deletes_on_a_full_disk);
    let output = child.env(FOLDER, disk.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{told}", output.status);
}

#[test]
#[ignore = "a child process of another test"]
fn child_that_deletes_on_a_full_disk() {
    let folder = std::env::var(FOLDER).expect("set by the parent");
    let folder = Path::new(&folder);
    let ballast = folder.join("ballast");
    fill(&ballast);
    let ballast = fs::OpenOptions::new().write(true).open(&ballast).unwrap();
    // From nothing at all to more than a deletion needs.
    for key in 0..100 {
        match open_in(folder, SyncMode::Normal).and_then(|db| delete(&db, key)) {
            Ok(()) => {}
            Err(DbError::Full { .. }) => assert!(key < 90, "{} KiB are free", 2 * key),
            Err(error) => panic!("{} KiB are free: {error:?}", 2 * key),
        }
        ballast.set_len(ballast.metadata().unwrap().len() - (2 << 10)).unwrap();
    }
}
