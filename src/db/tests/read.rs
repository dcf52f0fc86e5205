//! Reads: one committed state from start to end, beside a writer that goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Place, get, keys, put, quiet};
use crate::db::readers::RESERVED;
use crate::db::{Database, DbError, SyncMode, Tuning};
use crate::sync::front_end::during;

#[test]
fn a_read_sees_one_state_while_writes_go_on_and_does_not_block_them() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let set = |value: &'static [u8]| {
        let db = Arc::clone(&db);
        // On another thread, as a write of another request.
        std::thread::spawn(move || {
            db.write(move |conn| {
                put(conn, 1, value)?;
                put(conn, 2, value)
            })
        })
        .join()
        .unwrap()
        .unwrap();
    };
    set(b"old");
    let (first, second) = db
        .read(|conn| {
            let first = get(conn, 1)?;
            set(b"new");
            Ok::<_, DbError>((first, get(conn, 2)?))
        })
        .unwrap();
    assert_eq!(first.as_deref(), Some(&b"old"[..]));
    assert_eq!(second, first);
    assert_eq!(db.read(|conn| get(conn, 2)).unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn readers_never_see_half_of_a_transaction() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (db, stop) = (Arc::clone(&db), Arc::clone(&stop));
            std::thread::spawn(move || {
                for count in 0_u32.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let value = format!("{writer} {count}").into_bytes();
                    db.write(move |conn| (0..5).try_for_each(|key| put(conn, key, &value)))
                        .unwrap();
                }
            })
        })
        .collect();
    let mut changes = 0;
    let mut last = None;
    while changes < 200 {
        let values: Vec<_> = db
            .read(|conn| (0..5).map(|key| get(conn, key)).collect::<Result<_, DbError>>())
            .unwrap();
        assert!(values.windows(2).all(|two| two[0] == two[1]), "torn: {values:?}");
        if values.first() != last.as_ref() {
            changes += 1;
            last = values.first().cloned();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().unwrap();
    }
}

#[test]
fn a_read_cannot_change_anything() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    assert!(matches!(db.read(|conn| put(conn, 1, b"x")), Err(DbError::ReadOnly { .. })));
    assert!(keys(&db).is_empty());
}

#[test]
fn a_panic_in_a_read_leaves_the_pool_usable() {
    let place = Place::new();
    let db = place.open_with(SyncMode::Normal, Tuning { readers: 1, ..quiet() });
    for _ in 0..3 {
        let read = || db.read(|_| -> Result<(), DbError> { panic!("a defect") });
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
        assert!(keys(&db).is_empty());
    }
}

#[test]
fn an_error_names_the_file() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    let error = db.read(|_| Err::<(), _>(DbError::damaged("row 7 has no length"))).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("test.db is damaged: row 7 has no length"), "{text}");
}

#[test]
fn a_read_never_waits_for_another_and_a_few_connections_are_kept() {
    let place = Place::new();
    let db = place.open_with(SyncMode::Normal, Tuning { readers: 2, ..quiet() });
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    let nested = |depth: usize| {
        fn read(db: &Database, depth: usize) -> Result<usize, DbError> {
            db.read(|conn| {
                let found = usize::from(get(conn, 1)?.is_some());
                Ok(found + if depth == 0 { 0 } else { read(db, depth - 1)? })
            })
        }
        read(&db, depth).unwrap()
    };
    assert_eq!(during("event loop", || nested(7)), 8);
    assert_eq!(db.readers.free().len(), 2 + RESERVED);
}

#[test]
fn an_event_loop_finds_a_connection_though_no_other_read_came_before() {
    let place = Place::new();
    let db = place.open(SyncMode::Normal);
    // Without its name no connection can be opened.
    let file = place.file();
    std::fs::rename(&file, file.with_extension("away")).unwrap();
    let read = || db.read(|conn| get(conn, 1));
    assert!(read().is_err(), "a thread that may block opens one of its own");
    let nested = during("event loop", || db.read(|_| read()));
    assert_eq!(nested, Ok(None));
    assert!(read().is_err());
    std::fs::rename(file.with_extension("away"), &file).unwrap();
}
