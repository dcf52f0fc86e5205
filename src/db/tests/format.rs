//! Opening: new files, files of other versions and programs, damaged files, places without
//! write access or descriptors.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Place, SCHEMA, keys, put};
use crate::db::testing::{Tmpfs, child};
use crate::db::{Database, DbError, Schema, SyncMode};

fn open(place: &Place, version: u32) -> Result<Database, DbError> {
    Database::open(&place.file(), &Schema { version, ..SCHEMA }, SyncMode::Normal)
}

#[test]
fn a_file_opens_again_with_its_rows() {
    let place = Place::new();
    open(&place, 3).unwrap().write(|conn| put(conn, 1, b"x")).unwrap();
    assert_eq!(keys(&open(&place, 3).unwrap()), [1]);
}

#[test]
fn a_newer_version_is_refused_by_name_and_left_alone() {
    let place = Place::new();
    drop(open(&place, 4).unwrap());
    let before = fs::read(place.file()).unwrap();
    let error = open(&place, 3).unwrap_err();
    assert_eq!(error, DbError::NewerFormat { file: place.file(), found: 4, known: 3 });
    let text = error.to_string();
    assert!(text.contains("test.db has format 4") && text.contains("up to 3"), "{text}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn an_older_version_is_refused_by_name() {
    let place = Place::new();
    drop(open(&place, 2).unwrap());
    let text = open(&place, 3).unwrap_err().to_string();
    assert!(text.contains("test.db cannot be used: it has format 2"), "{text}");
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let place = Place::new();
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.execute_batch("CREATE TABLE theirs (a); PRAGMA user_version = 3").unwrap();
    drop(other);
    let before = fs::read(place.file()).unwrap();
    assert!(matches!(open(&place, 3), Err(DbError::UnknownFormat { .. })));
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_damaged() {
    let place = Place::new();
    fs::write(place.file(), [b'x'; 8192]).unwrap();
    assert!(matches!(open(&place, 3), Err(DbError::Damaged { file, .. }) if file == place.file()));
}

#[test]
fn a_damaged_page_is_reported_with_the_file() {
    let place = Place::new();
    let db = open(&place, 3).unwrap();
    db.write(|conn| (0..200).try_for_each(|key| put(conn, key, &[7; 300]))).unwrap();
    drop(db);
    let mut bytes = fs::read(place.file()).unwrap();
    bytes[4096..].fill(0xff);
    fs::write(place.file(), bytes).unwrap();
    let db = open(&place, 3).unwrap();
    let count = |conn: &rusqlite::Connection| {
        Ok(conn.query_row("SELECT sum(length(value)) FROM item", [], |row| row.get::<_, i64>(0))?)
    };
    let found: Result<i64, DbError> = db.read(count);
    assert!(matches!(found, Err(DbError::Damaged { file, .. }) if file == place.file()));
}

#[test]
fn a_missing_directory_is_an_error_with_the_path() {
    let place = Place::new();
    let file = place.dir.path().join("none/test.db");
    let text = Database::open(&file, &SCHEMA, SyncMode::Normal).unwrap_err().to_string();
    assert!(text.contains("none/test.db"), "{text}");
}

#[test]
fn a_read_only_file_system_is_named() {
    let Some(tmpfs) = Tmpfs::mount("4m") else { return };
    let file = tmpfs.path().join("test.db");
    drop(Database::open(&file, &SCHEMA, SyncMode::Normal).unwrap());
    // A child that another test starts at this moment has copies of all descriptors until it runs
    // its program, and one of them may be that of the database.
    let remounted = || {
        let mut remount = Command::new("mount");
        remount.args(["-o", "remount,ro"]).arg(tmpfs.path()).status().unwrap().success()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !remounted() {
        assert!(Instant::now() < deadline, "the file system stays in use");
    }
    let error = Database::open(&file, &SCHEMA, SyncMode::Normal).unwrap_err();
    assert!(matches!(error, DbError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn a_lack_of_descriptors_is_named() {
    let output = child(child_without_descriptors).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}

#[test]
#[ignore = "a child process of another test"]
fn child_without_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let place = Place::new();
    let old = getrlimit(Resource::Nofile);
    let mut taken = Vec::new();
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..old }).unwrap();
    while let Ok(file) = fs::File::open("/dev/null") {
        taken.push(file);
    }
    let error = open(&place, 3).unwrap_err();
    drop(taken);
    assert_eq!(error, DbError::TooManyFiles { file: place.file() });
}
