//! Leases of shares beside files and restarts. What a lease answers is in the tables of leases.

use latchfs::rules::lease::{LeaseAction, LeaseId, LeaseState, LeaseStatus};

use super::*;

fn id(digit: char) -> LeaseId {
    digit.to_string().repeat(32).parse().unwrap()
}

fn state(engine: &FileService) -> LeaseState {
    engine.properties(&DOCS).unwrap().lease.state
}

#[test]
fn a_lease_outlives_the_server_and_runs_out_by_the_clock() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    engine.lease(&DOCS, acquire(60, Some(id('a')))).unwrap();
    drop(engine);
    setup.advance(30);
    let engine = setup.open();
    assert_eq!(engine.properties(&DOCS).unwrap().lease.status, LeaseStatus::Locked);
    setup.advance(30);
    assert_eq!(state(&engine), LeaseState::Expired);
    engine.lease(&DOCS, LeaseAction::Release(id('a'))).unwrap();
    drop(engine);
    assert_eq!(state(&setup.open()), LeaseState::Available);
}
