//! Writes: grouping, answers after the commit, errors and panics that spare others, bounds.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::{Blocked, Place, get, keys, put, receive};
use crate::db::{DbError, GROUP_MAX, Purpose, QUEUE_MAX, SyncMode};

#[test]
fn waiting_writes_share_transactions_of_at_most_256() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 0..300 {
        let sender = sender.clone();
        db.submit(
            Purpose::Store,
            move |conn| put(conn, key, b"x"),
            move |outcome| sender.send(outcome).unwrap(),
        );
    }
    blocked.end();
    for _ in 0..300 {
        receive(&answers).unwrap();
    }
    assert_eq!(keys(&db).len(), 300);
    // 256 and 44; the blocked write changed nothing, so its commit wrote nothing.
    assert_eq!(db.stats().commits, 2);
    assert_eq!(db.stats().largest_group, GROUP_MAX as u64);
}

#[test]
fn the_error_of_one_request_spares_the_others_of_its_group() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 0..9 {
        let sender = sender.clone();
        let work = move |conn: &rusqlite::Connection| {
            put(conn, key, b"x")?;
            match key % 3 {
                1 => Err(DbError::Io(format!("request {key} refuses"))),
                _ => Ok(key),
            }
        };
        db.submit(Purpose::Store, work, move |outcome| sender.send((key, outcome)).unwrap());
    }
    blocked.end();
    for _ in 0..9 {
        let (key, outcome) = receive(&answers);
        match key % 3 {
            1 => assert_eq!(outcome, Err(DbError::Io(format!("request {key} refuses")))),
            _ => assert_eq!(outcome, Ok(key)),
        }
    }
    assert_eq!(keys(&db), [0, 2, 3, 5, 6, 8]);
    assert_eq!(db.stats().largest_group, 9);
}

#[test]
fn a_failed_statement_inside_a_group_undoes_only_its_request() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    db.write(|conn| put(conn, 5, b"there")).unwrap();
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 4..7 {
        let sender = sender.clone();
        let work = move |conn: &rusqlite::Connection| {
            put(conn, key + 100, b"first")?;
            let sql = "INSERT INTO item (key, value) VALUES (?1, x'00')";
            conn.prepare_cached(sql)?.execute([key])?;
            Ok::<_, DbError>(())
        };
        db.submit(Purpose::Store, work, move |outcome| {
            sender.send((key, outcome.is_ok())).unwrap();
        });
    }
    blocked.end();
    let mut outcomes: Vec<_> = (0..3).map(|_| receive(&answers)).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [(4, true), (5, false), (6, true)]);
    assert_eq!(keys(&db), [4, 5, 6, 104, 106]);
}

#[test]
fn a_panic_is_rolled_back_and_told_to_its_caller_alone() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 0..3 {
        let sender = sender.clone();
        let work = move |conn: &rusqlite::Connection| {
            put(conn, key, b"x")?;
            assert!(key != 1, "a defect");
            Ok::<_, DbError>(key)
        };
        db.submit(Purpose::Store, work, move |outcome| sender.send((key, outcome)).unwrap());
    }
    blocked.end();
    for _ in 0..3 {
        let (key, outcome) = receive(&answers);
        match key {
            1 => assert_eq!(outcome, Err(DbError::Panicked("a defect".to_owned()))),
            _ => assert_eq!(outcome, Ok(key)),
        }
    }
    // Alone too, and the writer goes on.
    let outcome = db.write(|conn| {
        put(conn, 7, b"x")?;
        panic!("another defect");
        #[expect(unreachable_code, reason = "gives the closure its type")]
        Ok::<(), DbError>(())
    });
    assert_eq!(outcome, Err(DbError::Panicked("another defect".to_owned())));
    db.write(|conn| put(conn, 8, b"x")).unwrap();
    assert_eq!(keys(&db), [0, 2, 8]);
}

#[test]
fn a_panicking_receiver_does_not_end_the_writer_thread() {
    let place = Place::new();
    let db = place.open(SyncMode::Always);
    db.submit(
        Purpose::Store,
        |conn| put(conn, 1, b"x"),
        |_: Result<(), DbError>| panic!("a receiver"),
    );
    db.write(|conn| put(conn, 2, b"x")).unwrap();
    assert_eq!(keys(&db), [1, 2]);
}

#[test]
fn an_answer_comes_after_the_commit() {
    for sync in [SyncMode::Normal, SyncMode::Always] {
        let place = Place::new();
        let db = place.open(sync);
        let blocked = Blocked::start(&db);
        let (sender, answers) = channel();
        for key in 0..20 {
            let (sender, db) = (sender.clone(), Arc::clone(&db));
            db.clone().submit(
                Purpose::Store,
                move |conn| put(conn, key, b"x"),
                move |outcome| {
                    outcome.unwrap();
                    // Another connection sees the row only once it is committed.
                    let seen = db.read(|conn| get(conn, key)).unwrap().is_some();
                    sender.send(seen).unwrap();
                },
            );
        }
        blocked.end();
        assert!((0..20).all(|_| receive(&answers)));
    }
}

#[test]
fn a_full_queue_refuses_at_once_and_names_the_reason() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let blocked = Blocked::start(&db);
    let (sender, answers) = channel();
    for key in 0..QUEUE_MAX {
        let sender = sender.clone();
        let key = i64::try_from(key).unwrap();
        db.submit(
            Purpose::Store,
            move |conn| put(conn, key, b"x"),
            move |outcome| sender.send(outcome).unwrap(),
        );
    }
    let (refused, refusal) = channel();
    db.submit(
        Purpose::Store,
        |conn| put(conn, -1, b"x"),
        move |outcome| refused.send(outcome).unwrap(),
    );
    assert!(matches!(refusal.try_recv(), Ok(Err(DbError::Busy(why))) if why.contains("1024")));
    blocked.end();
    for _ in 0..QUEUE_MAX {
        receive(&answers).unwrap();
    }
    assert_eq!(keys(&db).len(), QUEUE_MAX);
}

#[test]
fn a_write_inside_a_write_fails_instead_of_waiting_for_itself() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let inner = Arc::clone(&db);
    let outcome = db.write(move |_| inner.write(|conn| put(conn, 1, b"x")));
    assert!(matches!(outcome, Err(DbError::Panicked(why)) if why.contains("waits for itself")));
    assert!(keys(&db).is_empty());
}

#[test]
fn many_threads_write_and_every_success_is_there() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let db = Arc::clone(&db);
            std::thread::spawn(move || {
                for count in 0..200 {
                    let key = thread * 1000 + count;
                    let outcome = db.write(move |conn| {
                        put(conn, key, b"x")?;
                        if count % 7 == 0 { Err(DbError::Closed) } else { Ok(()) }
                    });
                    assert_eq!(outcome.is_ok(), count % 7 != 0);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let expected = (0..8).flat_map(|thread| {
        (0..200).filter(|count| count % 7 != 0).map(move |count| thread * 1000 + count)
    });
    assert_eq!(keys(&db), expected.collect::<Vec<i64>>());
    let stats = db.stats();
    assert_eq!(stats.requests, 1600);
}

#[test]
fn a_queued_write_waits_for_another_connection_and_then_succeeds() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = {
        let db = Arc::clone(&db);
        std::thread::spawn(move || db.write(|conn| put(conn, 1, b"x")))
    };
    other.execute_batch("INSERT INTO item VALUES (9, x'01'); COMMIT").unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(keys(&db), [1, 9]);
}
