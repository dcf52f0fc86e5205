//! Closing: waiting requests are answered, the log is gone, threads end.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::{Place, keys, put, receive};
use crate::db::{DbError, Purpose, SyncMode};

#[test]
fn the_log_is_empty_after_the_last_owner_is_gone() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    assert!(place.file().with_file_name("test.db-wal").metadata().unwrap().len() > 0);
    drop(db);
    let log = place.file().with_file_name("test.db-wal").metadata();
    assert!(log.map_or(0, |log| log.len()) == 0);
    assert_eq!(keys(&place.open(SyncMode::Normal)), [1]);
}

#[test]
fn requests_that_wait_are_answered_before_the_database_closes() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let (sender, answers) = channel();
    let (go, wait) = channel::<()>();
    let first = sender.clone();
    db.submit(
        Purpose::Store,
        move |conn| {
            receive(&wait);
            put(conn, 0, b"x")
        },
        move |outcome| first.send(outcome).unwrap(),
    );
    for key in 1..50 {
        let sender = sender.clone();
        db.submit(
            Purpose::Store,
            move |conn| put(conn, key, b"x"),
            move |outcome| sender.send(outcome).unwrap(),
        );
    }
    go.send(()).unwrap();
    drop(db);
    for _ in 0..50 {
        answers.try_recv().expect("answered before the close").unwrap();
    }
    assert_eq!(keys(&place.open(SyncMode::Normal)).len(), 50);
}

#[test]
fn the_last_owner_may_be_a_receiver_on_the_writer_thread() {
    let place = Place::new();
    let db = place.open(SyncMode::Always);
    let (sender, dropped) = channel();
    let (go, wait) = channel::<()>();
    let owner = Arc::clone(&db);
    db.submit(
        Purpose::Store,
        move |conn| {
            receive(&wait);
            put(conn, 1, b"x")
        },
        move |outcome: Result<(), DbError>| {
            drop(owner);
            sender.send(outcome).unwrap();
        },
    );
    drop(db);
    go.send(()).unwrap();
    receive(&dropped).unwrap();
    assert_eq!(keys(&place.open(SyncMode::Normal)), [1]);
}
