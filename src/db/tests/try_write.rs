//! Calls for event loops: they run at once or give the closure back.

use super::{Blocked, Place, get, keys, put, quiet, receive};
use crate::db::{DbError, SyncMode, Tuning};
use std::sync::Arc;
use std::sync::mpsc::channel;

#[test]
fn runs_on_this_thread_when_the_writer_is_free() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let outcome = db.try_write(|conn| put(conn, 1, b"x"));
    assert!(matches!(outcome, Ok(Ok(()))));
    let refused = db.try_write(|conn| {
        put(conn, 2, b"x")?;
        Err::<(), _>(DbError::Closed)
    });
    assert!(matches!(refused, Ok(Err(DbError::Closed))));
    assert_eq!(keys(&db), [1]);
}

#[test]
fn gives_the_closure_back_while_another_request_writes() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    // The writer is blocked until this thread ends it: waiting here would never end.
    let blocked = Blocked::start(&db);
    let Err(work) = db.try_write(|conn| put(conn, 1, b"x")) else {
        panic!("the writer is taken");
    };
    let (sender, answer) = channel();
    db.submit(work, move |outcome| sender.send(outcome).unwrap());
    blocked.end();
    receive(&answer).unwrap();
    assert_eq!(keys(&db), [1]);
}

#[test]
fn gives_the_closure_back_while_another_connection_writes() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let Err(work) = db.try_write(|conn| put(conn, 1, b"x")) else {
        panic!("another connection writes");
    };
    other.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(db.try_write(work), Ok(Ok(()))));
}

#[test]
fn gives_the_closure_back_when_a_sync_is_needed() {
    let place = Place::new();
    let db = place.open(SyncMode::Always);
    assert!(db.try_write(|conn| put(conn, 1, b"x")).is_err());
    assert!(keys(&db).is_empty());
}

#[test]
fn a_read_gives_its_closure_back_when_all_readers_are_in_use() {
    let place = Place::new();
    let db = place.open_with(SyncMode::Normal, Tuning { readers: 1, ..quiet() });
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    db.read(|_| {
        assert!(db.try_read(|conn| get(conn, 1)).is_err());
        Ok::<_, DbError>(())
    })
    .unwrap();
    assert!(matches!(db.try_read(|conn| get(conn, 1)), Ok(Ok(Some(_)))));
}

#[test]
fn a_read_waits_for_a_reader_when_all_are_in_use() {
    let place = Place::new();
    let db = place.open_with(SyncMode::Normal, Tuning { readers: 2, ..quiet() });
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let db = Arc::clone(&db);
            std::thread::spawn(move || {
                for _ in 0..100 {
                    assert_eq!(db.read(|conn| get(conn, 1)), Ok(None));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
