//! Leases of shares: behaviours 107 to 111, and what they leave alone.

use latchfs::file::service::shares::{DeleteShareSnapshots, ShareChanges};
use latchfs::rules::lease::{LeaseDenial, LeaseId, LeaseOn, LeaseState, LeaseStatus};

use super::*;

fn id(digit: char) -> LeaseId {
    digit.to_string().repeat(32).parse().unwrap()
}

fn state(engine: &FileService) -> LeaseState {
    engine.properties(&DOCS).unwrap().lease.state
}

#[test]
fn b107_a_lease_lasts_15_to_60_seconds_or_for_ever() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    for bad in [14, 61, 0, -2, i64::MAX] {
        let answer = refused(engine.acquire_lease(&DOCS, Some(bad), None));
        assert_eq!(answer, LeaseDenial::InvalidDuration(LeaseOn::Share).into(), "{bad}");
    }
    let missing = refused(engine.acquire_lease(&DOCS, None, None));
    assert_eq!(missing, LeaseDenial::MissingDuration.into());
    for good in [15, 60, -1] {
        let (held, _) = engine.acquire_lease(&DOCS, Some(good), None).unwrap();
        assert_eq!(state(&engine), LeaseState::Leased, "{good}");
        engine.release_lease(&DOCS, held).unwrap();
        assert_eq!(state(&engine), LeaseState::Available);
    }
}

#[test]
fn b108_an_expired_lease_is_renewed_by_its_holder_until_another_takes_it() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let (held, _) = engine.acquire_lease(&DOCS, Some(15), Some(id('a'))).unwrap();
    assert_eq!(held, id('a'));
    setup.advance(14);
    assert_eq!(state(&engine), LeaseState::Leased);
    setup.advance(1);
    assert_eq!(state(&engine), LeaseState::Expired);
    engine.renew_lease(&DOCS, held).unwrap();
    assert_eq!(state(&engine), LeaseState::Leased);
    setup.advance(15);
    engine.acquire_lease(&DOCS, Some(15), Some(id('b'))).unwrap();
    let late = refused(engine.renew_lease(&DOCS, held));
    assert_eq!(late, LeaseDenial::LeaseIdMismatchWithLeaseOperation(LeaseOn::Share).into());
}

#[test]
fn b109_a_break_period_shorter_than_the_lease_counts() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    engine.acquire_lease(&DOCS, Some(60), Some(id('a'))).unwrap();
    let (left, _) = engine.break_lease(&DOCS, Some(10)).unwrap();
    assert_eq!(left, 10);
    assert_eq!(state(&engine), LeaseState::Breaking);
    setup.advance(9);
    let meanwhile = refused(engine.acquire_lease(&DOCS, Some(15), Some(id('b'))));
    assert_eq!(meanwhile, LeaseDenial::LeaseAlreadyPresent.into());
    setup.advance(1);
    assert_eq!(state(&engine), LeaseState::Broken);
    engine.acquire_lease(&DOCS, Some(15), Some(id('b'))).unwrap();
}

#[test]
fn b110_a_break_period_longer_than_the_time_left_is_the_time_left() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    engine.acquire_lease(&DOCS, Some(30), None).unwrap();
    setup.advance(18);
    assert_eq!(engine.break_lease(&DOCS, Some(60)).unwrap().0, 12);
    setup.advance(12);
    assert_eq!(state(&engine), LeaseState::Broken);
}

#[test]
fn b111_a_leased_share_is_deleted_with_its_id_only_and_files_inside_know_nothing() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    engine.acquire_lease(&DOCS, Some(-1), Some(id('a'))).unwrap();
    let share = engine.share("docs").unwrap();
    let opened = open_file(&share, "file", Access::RW).unwrap();
    share.write(&opened.handle, 0, b"y").unwrap();
    share.close(&opened.handle).unwrap();

    let delete =
        |at: &ShareRef<'_>| engine.delete_share(&somebody(), at, DeleteShareSnapshots::None);
    assert_eq!(refused(delete(&DOCS)), LeaseDenial::LeaseIdMissing(LeaseOn::Share).into());
    let wrong = refused(delete(&with_lease(DOCS, id('b'))));
    assert_eq!(wrong, LeaseDenial::LeaseIdMismatchWithShareOperation.into());
    assert!(engine.share("docs").is_ok());
    delete(&with_lease(DOCS, id('a'))).unwrap();
    assert_eq!(refused(engine.share("docs")), ShareDenial::ShareNotFound);
}

#[test]
fn an_id_that_comes_with_another_operation_must_match() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let none = refused(engine.properties(&with_lease(DOCS, id('a'))));
    assert_eq!(none, LeaseDenial::LeaseNotPresentWithShareOperation.into());
    engine.acquire_lease(&DOCS, Some(-1), Some(id('a'))).unwrap();
    let change = || ShareChanges { quota_gib: Some(7), ..ShareChanges::default() };
    let without = refused(engine.set_properties(&DOCS, change()));
    assert_eq!(without, LeaseDenial::LeaseIdMissing(LeaseOn::Share).into());
    engine.set_properties(&with_lease(DOCS, id('a')), change()).unwrap();
    let wrong = refused(engine.set_properties(&with_lease(DOCS, id('b')), change()));
    assert_eq!(wrong, LeaseDenial::LeaseIdMismatchWithShareOperation.into());
}

#[test]
fn lease_actions_move_neither_tag_nor_time() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let before = engine.properties(&DOCS).unwrap().properties;
    setup.advance(5);
    let (held, version) = engine.acquire_lease(&DOCS, Some(60), None).unwrap();
    assert_eq!((version.tag, version.modified), (before.tag, before.modified));
    engine.change_lease(&DOCS, held, id('c')).unwrap();
    engine.renew_lease(&DOCS, id('c')).unwrap();
    engine.break_lease(&DOCS, Some(0)).unwrap();
    engine.release_lease(&DOCS, id('c')).unwrap();
    assert_eq!(engine.properties(&DOCS).unwrap().properties, before);
}

#[test]
fn a_lease_outlives_the_server_and_runs_out_by_the_clock() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    engine.acquire_lease(&DOCS, Some(60), Some(id('a'))).unwrap();
    drop(engine);
    setup.advance(30);
    let engine = setup.open();
    assert_eq!(engine.properties(&DOCS).unwrap().lease.status, LeaseStatus::Locked);
    setup.advance(30);
    assert_eq!(state(&engine), LeaseState::Expired);
    engine.release_lease(&DOCS, id('a')).unwrap();
    drop(engine);
    assert_eq!(state(&setup.open()), LeaseState::Available);
}
