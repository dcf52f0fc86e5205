//! The log as it is written: long transactions, pages that are written twice, other processes.

use std::fs;

use rusqlite::ErrorCode;

use super::{Place, get, keys, put};
use crate::db::testing::child;
use crate::db::{DbError, SyncMode};

const FILE: &str = "LATCHFS_TEST_LOCKED_DB";

#[test]
fn a_transaction_longer_than_the_page_cache_is_whole_after_a_kill() {
    let rows = 0..24_u8;
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let keys_of = rows.clone();
    let written = db.write(move |conn| {
        // Pages go to the log before the commit, and the second time in place of the first.
        for round in 0..2 {
            for key in keys_of.clone() {
                put(conn, key.into(), &vec![key + round; 1 << 20])?;
            }
        }
        Ok::<_, DbError>(())
    });
    written.unwrap();
    db.write(|conn| put(conn, 99, b"x")).unwrap();
    // As a kill would leave it.
    let copy = Place::new();
    for name in ["test.db", "test.db-wal"] {
        fs::copy(place.dir.path().join(name), copy.dir.path().join(name)).unwrap();
    }
    let copied = copy.open(SyncMode::Normal);
    let read = copied.read(|conn| {
        for key in rows.clone() {
            let value = get(conn, key.into())?;
            assert!(value == Some(vec![key + 1; 1 << 20]), "row {key}");
        }
        let check = conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(check?, "ok");
        Ok::<_, DbError>(())
    });
    read.unwrap();
    assert_eq!(keys(&copied), rows.map(i64::from).chain([99]).collect::<Vec<_>>());
}

#[test]
fn a_transaction_that_was_undone_leaves_nothing_in_the_log() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    let refused = db.write(|conn| {
        put(conn, 2, &vec![2; 24 << 20])?;
        conn.cache_flush()?;
        Err::<(), _>(DbError::Closed)
    });
    assert_eq!(refused, Err(DbError::Closed));
    db.write(|conn| put(conn, 3, b"x")).unwrap();
    let copy = Place::new();
    for name in ["test.db", "test.db-wal"] {
        fs::copy(place.dir.path().join(name), copy.dir.path().join(name)).unwrap();
    }
    assert_eq!(keys(&copy.open(SyncMode::Normal)), [1, 3]);
}

#[test]
fn another_process_is_told_that_the_database_is_locked() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    let mut child = child(child_that_finds_the_database_locked);
    let output = child.env(FILE, place.file()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    // It reads the database once it is closed.
    drop(db);
    let other = rusqlite::Connection::open(place.file()).unwrap();
    let count = other.query_row("SELECT count(*) FROM item", [], |row| row.get::<_, i64>(0));
    assert_eq!(count, Ok(1));
}

#[test]
#[ignore = "a child process of another test"]
fn child_that_finds_the_database_locked() {
    let file = std::env::var(FILE).expect("set by the parent");
    let other = rusqlite::Connection::open(file).unwrap();
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    let read = other.query_row("SELECT count(*) FROM item", [], |row| row.get::<_, i64>(0));
    let code = read.unwrap_err().sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::DatabaseBusy));
}
