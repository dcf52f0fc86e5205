//! Reads beside writes: a read never finds an older entity than was answered, or than a query has
//! shown.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use super::*;
use crate::clock::SystemClock;
use crate::db::counted::RowsPart;
use crate::disk::part::{NextData, Part as _};

const KEY: (&str, &str) = ("p", "r");

fn delete(fixture: &Fixture) {
    let deletion = rules::EntityChange::Delete(IfMatch::Any);
    fixture.write("tab", deletion, KEY, Properties::default()).unwrap();
}

fn replace(fixture: &Fixture, number: i32) -> WrittenEntity {
    let change = rules::EntityChange::Write(How::Replace, IfMatch::Absent);
    fixture.write("tab", change, KEY, int(number)).unwrap()
}

#[test]
fn a_reset_is_seen_before_the_writer_goes_on() {
    let fixture = Fixture::with_table("tab");
    fixture.insert("tab", KEY, 1).unwrap();
    let clock: Arc<dyn TimeSource> = Arc::new(SystemClock);
    let next = NextData { saved: None, scrap: Path::new(""), now: clock.now() };
    let part = RowsPart::of(fixture.service(), &clock);
    let mut held = part.hold().unwrap();
    held.prepare(&next).unwrap();
    fixture.get("tab", KEY).unwrap();
    fixture.get("tab", KEY).unwrap();
    held.replace(&next).unwrap();
    let gone = denied(fixture.get("tab", KEY));
    assert_eq!(gone, TableDenial::TableNotFound, "before the writer goes on");
    drop(held);
    assert_eq!(denied(fixture.get("tab", KEY)), TableDenial::TableNotFound);
    assert_eq!(denied(fixture.insert("tab", KEY, 1)), TableDenial::TableNotFound);
}

/// The timestamp of the entity as a query finds it; 0 if it finds none.
struct Seen(i64);

impl EntitySink for Seen {
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()> {
        self.0 = entity.timestamp().0;
        ControlFlow::Break(())
    }
}

fn seen(fixture: &Fixture) -> i64 {
    let query = EntityQuery::all(name("tab"));
    fixture.service().query(&query, Seen(0)).unwrap().0.0
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
                        let merge = with(How::Merge, IfMatch::Any);
                        let written = if count % 2 == 0 {
                            replace(fixture, count).ticks.unwrap()
                        } else {
                            fixture.write("tab", merge, KEY, int(count)).unwrap().ticks.unwrap()
                        };
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
                    let shown = seen(fixture);
                    assert!(shown >= last, "a query shows an older entity than a read found");
                    let found = fixture.get("tab", KEY).unwrap().timestamp().0;
                    assert!(found >= before, "an answer was given before this read");
                    assert!(found >= shown, "a query has shown a later entity before");
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

#[test]
fn an_entity_that_comes_and_goes_is_never_read_after_it_went() {
    const TURNS: i32 = 100;
    let fixture = Fixture::with_table("tab");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (fixture, done) = (&fixture, &done);
        let writer = scope.spawn(move || {
            for turn in 0..TURNS {
                // Fails if the insertion takes a deleted entity for one that is there.
                fixture.insert("tab", KEY, turn).unwrap();
                assert_eq!(fixture.get("tab", KEY).unwrap().to_properties(), int(turn));
                delete(fixture);
                assert_eq!(denied(fixture.get("tab", KEY)), TableDenial::ResourceNotFound);
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::SeqCst) {
                let _ = fixture.get("tab", KEY);
            }
        });
        let ended = writer.join();
        done.store(true, Ordering::SeqCst);
        assert!(ended.is_ok());
    });
}
