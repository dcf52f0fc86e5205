//! Entities that were read lately: a read never finds an older one than was answered.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use super::*;

const KEY: (&str, &str) = ("p", "r");

/// Whether the next read of the entity needs no look into the database.
fn is_known(fixture: &Fixture, table: &str) -> bool {
    let service = fixture.service();
    let version = service.store.database().version();
    version.is_some_and(|version| {
        service.known.entity(version, &name(table), &EntityKey::new(KEY.0, KEY.1)).is_some()
    })
}

fn replace(fixture: &Fixture, number: i32) -> WrittenEntity {
    let change = rules::EntityChange::Write(How::Replace, IfMatch::Absent);
    fixture.write("tab", change, KEY, int(number)).unwrap()
}

#[test]
fn an_entity_that_was_read_is_known_until_something_is_written() {
    let fixture = Fixture::with_table("tab");
    fixture.insert("tab", KEY, 1).unwrap();
    assert!(!is_known(&fixture, "tab"));
    let first = fixture.get("tab", KEY).unwrap();
    // A sweep in the background may end what was known by a write.
    let known = (0..1_000).any(|_| {
        assert_eq!(fixture.get("tab", KEY).unwrap(), first);
        is_known(&fixture, "tab")
    });
    assert!(known, "a thousand reads in a row, and none was kept");
    assert_eq!(fixture.get("tab", KEY).unwrap(), first);
    fixture.insert("tab", ("p", "other"), 2).unwrap();
    assert!(!is_known(&fixture, "tab"));
    assert_eq!(fixture.get("tab", KEY).unwrap(), first);
}

#[test]
fn a_table_that_is_made_again_has_none_of_the_entities_that_were_known() {
    let fixture = Fixture::with_table("tab");
    fixture.insert("tab", KEY, 1).unwrap();
    fixture.get("tab", KEY).unwrap();
    // The table is known now, and this entity is not.
    fixture.get("tab", ("p", "none")).unwrap_err();
    let service = fixture.service();
    fixture.wait(service.delete_table(&fixture.context(), &name("tab"))).unwrap();
    let denied = fixture.get("tab", KEY).unwrap_err();
    assert!(matches!(denied, TableError::Denied(TableDenial::TableNotFound)), "{denied:?}");
    fixture.wait(service.create_table(&fixture.context(), &name("tab"))).unwrap();
    let denied = fixture.get("tab", KEY).unwrap_err();
    assert!(matches!(denied, TableError::Denied(TableDenial::ResourceNotFound)), "{denied:?}");
}

#[test]
fn a_reset_ends_what_is_known() {
    let fixture = Fixture::with_table("tab");
    fixture.insert("tab", KEY, 1).unwrap();
    fixture.get("tab", KEY).unwrap();
    let held = fixture.service().store.hold();
    assert!(!is_known(&fixture, "tab"), "all rows are being replaced");
    drop(held);
    assert!(!is_known(&fixture, "tab"));
    fixture.get("tab", KEY).unwrap();
}

#[test]
fn a_large_entity_is_not_kept() {
    let fixture = Fixture::with_table("tab");
    let large = Value::String("x".repeat(20 << 10));
    let properties = Properties::new(vec![("s".into(), large)]);
    fixture.write("tab", rules::EntityChange::Insert, KEY, properties).unwrap();
    fixture.get("tab", KEY).unwrap();
    assert!(!is_known(&fixture, "tab"));
}

#[test]
fn readers_beside_writers_see_what_was_answered_and_never_an_older_entity() {
    const WRITES: i32 = 150;
    let fixture = Fixture::with_table("tab");
    fixture.insert("tab", KEY, 0).unwrap();
    let (answered, done) = (AtomicI64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (fixture, answered) = (&fixture, &answered);
                scope.spawn(move || {
                    for count in 0..WRITES {
                        let written = replace(fixture, count).ticks.unwrap();
                        answered.fetch_max(written.0, Ordering::SeqCst);
                        let own = fixture.get("tab", KEY).unwrap().timestamp();
                        assert!(own >= written, "a write is not seen by its writer");
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            let (fixture, answered, done) = (&fixture, &answered, &done);
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::SeqCst) {
                    let before = answered.load(Ordering::SeqCst);
                    let found = fixture.get("tab", KEY).unwrap().timestamp().0;
                    assert!(found >= before, "an answer was given before this read");
                    assert!(found >= last, "a later read finds an older entity");
                    last = found;
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        assert!(ended.iter().all(Result::is_ok));
    });
}
