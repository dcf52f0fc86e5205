//! Leases of shares beside files and restarts. What a lease answers is in the tables of leases.

use latchfs::file::service::shares::DeleteShareSnapshots;
use latchfs::rules::lease::{LeaseDenial, LeaseId, LeaseOn, LeaseState, LeaseStatus};

use super::*;

fn id(digit: char) -> LeaseId {
    digit.to_string().repeat(32).parse().unwrap()
}

fn state(engine: &FileService) -> LeaseState {
    engine.properties(&DOCS).unwrap().lease.state
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
