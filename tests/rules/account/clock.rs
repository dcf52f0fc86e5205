//! A clock that is set back: nothing that was granted is lost, nothing is taken twice.

use latchfs::file::service::shares::{DeleteShareSnapshots, ListOptions};
use latchfs::journal::Reads;
use latchfs::rules::lease::LeaseState;

use super::*;

/// Sets the clock back by so many seconds.
fn step_back(setup: &Setup, seconds: i64) {
    let now = latchfs::clock::TimeSource::now(&*setup.clock);
    setup.clock.set(Timestamp(now.0 - seconds * 1_000_000_000));
}

#[test]
fn a_lease_outlives_a_clock_that_is_set_back_and_still_ends() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    engine.lease(&DOCS, acquire(30, None)).unwrap();
    setup.advance(10);
    step_back(&setup, 3_600);
    let state = |engine: &FileService| engine.properties(&DOCS).unwrap().lease.state;
    assert_eq!(state(&engine), LeaseState::Leased);
    assert!(engine.lease(&DOCS, acquire(30, None)).is_err(), "it is another's");
    drop(engine);
    let engine = setup.open();
    assert_eq!(state(&engine), LeaseState::Leased);
    setup.advance(3_600 + 30);
    assert_eq!(state(&engine), LeaseState::Expired);
}

#[test]
fn snapshots_and_deleted_shares_of_a_later_time_stay_where_they_are() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let later = engine.create_snapshot(&DOCS, None, &mut go_on).unwrap().0;
    step_back(&setup, 0);
    let same = engine.create_snapshot(&DOCS, None, &mut go_on).unwrap().0;
    step_back(&setup, 86_400);
    let earlier = engine.create_snapshot(&DOCS, None, &mut go_on).unwrap().0;
    assert_eq!(engine.snapshots("docs").unwrap(), [earlier, later, same]);
    engine.create_share("gone", NewShare::default()).unwrap();
    engine.delete_share(&somebody(), &ShareRef::new("gone"), DeleteShareSnapshots::None).unwrap();
    step_back(&setup, 30 * 86_400);
    drop(engine);
    let engine = setup.open();
    let deleted = ListOptions { deleted: true, prefix: "gone", ..ListOptions::default() };
    let page = engine.list_shares(&deleted).unwrap();
    let version = page.shares[0].deleted.as_ref().unwrap().version.clone();
    engine.restore_share("gone", &version).unwrap();
}

#[test]
fn opens_files_and_events_go_on_in_their_order() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let share = engine.share("docs").unwrap();
    fs::write(setup.data().join("docs/a"), "a").unwrap();
    let first = open_file(&share, "a", Access::R).unwrap();
    step_back(&setup, 3_600);
    let second = open_file(&share, "a", Access::R).unwrap();
    assert!(second.handle.id() > first.handle.id());
    share.close(&first.handle).unwrap();
    share.close(&second.handle).unwrap();
    let events = setup.events.journal().after(0, 9, Reads::All).rows;
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=4).collect::<Vec<_>>());
    assert!(events[1].time < events[0].time, "the time is the clock's");
}
