//! Files that lose their names while the database is open.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{Place, SCHEMA, get, keys, put, quiet, wait_until};
use crate::db::{Database, DbError, Purpose, SyncMode, Tuning};

fn is_gone(done: &Result<(), DbError>) -> bool {
    matches!(done, Err(DbError::Gone { .. }))
}

/// Writes until that is refused, as it is at the latest after the next look.
fn wait_for_refusal(db: &Database) {
    wait_until("the refusal of a write", || is_gone(&db.write(|conn| put(conn, 2, b"two"))));
    let (told, outcome) = std::sync::mpsc::channel();
    db.submit(Purpose::Store, |conn| put(conn, 3, b"three"), move |done| told.send(done).unwrap());
    assert!(is_gone(&outcome.recv().unwrap()));
    assert!(is_gone(&db.hold().begin()));
    assert!(is_gone(&db.check_place()));
}

fn soon() -> Tuning {
    Tuning { checkpoint_interval: Duration::from_millis(20), ..quiet() }
}

#[test]
fn a_database_that_lost_its_name_is_not_written_until_it_is_back() {
    let place = Place::new();
    let folder = place.dir.path().join("data");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("test.db");
    let db = Database::open_with(&file, &SCHEMA, SyncMode::Normal, soon()).unwrap();
    db.write(|conn| put(conn, 1, b"one")).unwrap();
    db.check_place().unwrap();
    let aside = place.dir.path().join("aside");
    fs::rename(&folder, &aside).unwrap();
    wait_for_refusal(&db);
    // Another one of that name is not the same.
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "").unwrap();
    wait_for_refusal(&db);
    let read = db.read(|conn| get(conn, 1).map(drop));
    assert!(is_gone(&read), "no connection is opened to the other one: {read:?}");
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    wait_until("a write", || db.write(|conn| put(conn, 4, b"four")).is_ok());
    drop(db);
    assert!(keys(&open(&file)).ends_with(&[4]));
}

fn open(file: &Path) -> Database {
    Database::open_with(file, &SCHEMA, SyncMode::Normal, quiet()).unwrap()
}

#[test]
fn a_removed_database_is_not_written() {
    let place = Place::new();
    let db = place.open_with(SyncMode::Normal, soon());
    db.write(|conn| put(conn, 1, b"one")).unwrap();
    fs::remove_file(place.file()).unwrap();
    wait_for_refusal(&db);
}

#[test]
fn a_database_whose_log_was_removed_is_not_written() {
    let place = Place::new();
    let db = place.open_with(SyncMode::Normal, soon());
    db.write(|conn| put(conn, 1, b"one")).unwrap();
    fs::remove_file(place.dir.path().join("test.db-wal")).unwrap();
    wait_for_refusal(&db);
}
