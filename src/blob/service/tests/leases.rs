//! Leases of blobs and containers as operations meet them. The full tables are tried in the rules.

use super::*;
use crate::blob::rules::BlobDenial as D;
use crate::rules::lease::{LeaseDenial, LeaseOn, LeaseState};

fn acquire(bench: &Bench, name: &str, seconds: i64, lease: LeaseId) -> BlobResult<LeaseAnswer> {
    let action =
        LeaseAction::Acquire { duration: Some(seconds), proposed: Some(lease), fresh: id(99) };
    act(bench, name, action)
}

fn act(bench: &Bench, name: &str, action: LeaseAction) -> BlobResult<LeaseAnswer> {
    let conditions = Conditions::default();
    within(bench.service.lease_blob(&bench.cx(), &at(name), conditions, None, action))
}

#[test]
fn a_leased_blob_is_written_with_its_lease_only_and_read_by_all() {
    let bench = Bench::new();
    let put = bench.put("b", b"one");
    let leased = acquire(&bench, "b", -1, id(1)).unwrap();
    assert_eq!((leased.id, leased.version), (Some(id(1)), Some((put.etag, put.modified))));
    assert_eq!(bench.get("b").unwrap(), b"one");
    let missing = D::Lease(LeaseDenial::LeaseIdMissing(LeaseOn::Blob));
    assert_eq!(denial(bench.put_asked("b", b"two", AccessConditions::default())), missing);
    assert_eq!(denial(bench.delete("b")), missing);
    let wrong = denial(bench.put_asked("b", b"two", with_lease(id(2))));
    assert_eq!(wrong, D::Lease(LeaseDenial::LeaseIdMismatchWithBlobOperation));
    let taken = denial(acquire(&bench, "b", -1, id(2)));
    assert_eq!(taken, D::Lease(LeaseDenial::LeaseAlreadyPresent));
    bench.put_asked("b", b"two", with_lease(id(1))).unwrap();
    assert_eq!(bench.head("b").unwrap().state.lease.id(), Some(id(1)), "a write keeps it");
    let star = AccessConditions { lease: Some(id(1)), ..if_missing() };
    bench.put_asked("b", b"three", star).unwrap();
}

#[test]
fn an_expired_lease_is_lost_and_forgotten_by_the_next_write() {
    let mut bench = Bench::new();
    bench.put("b", b"one");
    acquire(&bench, "b", 15, id(1)).unwrap();
    bench.pass(15);
    let state = |bench: &Bench| bench.head("b").unwrap().state.lease.state(bench.now);
    assert_eq!(state(&bench), LeaseState::Expired);
    let lost = denial(bench.put_asked("b", b"two", with_lease(id(1))));
    assert_eq!(lost, D::Lease(LeaseDenial::LeaseLost(LeaseOn::Blob)));
    bench.put("b", b"two");
    assert_eq!(state(&bench), LeaseState::Available);
    let renewed = denial(act(&bench, "b", LeaseAction::Renew(id(1))));
    assert_eq!(renewed, D::Lease(LeaseDenial::LeaseIdMismatchWithLeaseOperation(LeaseOn::Blob)));
}

#[test]
fn a_lease_outlives_a_restart_and_not_the_blob() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open(folder.path(), BlobOptions::default(), START);
    let bench = Bench::new();
    let cx = bench.cx();
    {
        let service = open();
        within(service.create_container(&cx, "c", NewContainer::default())).unwrap();
        let asked = AccessConditions::default();
        let plan = ContentPlan { length: Some(1), role: BodyRole::Whole, md5: false };
        let mut body = service.begin_body(plan).unwrap();
        body.write(b"x").unwrap();
        let body = body.finish().unwrap();
        let new = NewBlob::default();
        within(service.put_blob(&cx, &at("b"), asked, BlobType::Block, new, body)).unwrap();
        let action = LeaseAction::Acquire { duration: Some(-1), proposed: None, fresh: id(7) };
        within(service.lease_blob(&cx, &at("b"), Conditions::default(), None, action)).unwrap();
    }
    let service = open();
    let delete = |asked| within(service.delete_blob(&cx, &at("b"), asked, DeleteBlob::default()));
    let missing = D::Lease(LeaseDenial::LeaseIdMissing(LeaseOn::Blob));
    assert_eq!(denial(delete(AccessConditions::default())), missing);
    assert!(delete(with_lease(id(7))).is_ok());
}

#[test]
fn uncommitted_blocks_can_be_leased_and_are_then_guarded() {
    let bench = Bench::new();
    blocks::put_block(&bench, "b", b"1", b"one", AccessConditions::default()).unwrap();
    let leased = acquire(&bench, "b", -1, id(1)).unwrap();
    assert_eq!(leased.version, None, "an uncommitted blob has no ETag");
    let missing = D::Lease(LeaseDenial::LeaseIdMissing(LeaseOn::Blob));
    let refused = blocks::put_block(&bench, "b", b"2", b"two", AccessConditions::default());
    assert_eq!(denial(refused), missing);
    blocks::put_block(&bench, "b", b"2", b"two", with_lease(id(1))).unwrap();
    assert_eq!(denial(blocks::commit(&bench, "b", &[b"1"], AccessConditions::default())), missing);
    blocks::commit(&bench, "b", &[b"1"], with_lease(id(1))).unwrap();
    assert_eq!(bench.head("b").unwrap().state.lease.id(), Some(id(1)));
}

#[test]
fn a_container_lease_guards_its_deletion_alone() {
    let bench = Bench::new();
    let (service, cx) = (&bench.service, bench.cx());
    let action = LeaseAction::Acquire { duration: Some(-1), proposed: Some(id(1)), fresh: id(9) };
    within(service.lease_container(&cx, "c", Conditions::default(), action)).unwrap();
    bench.put("b", b"one");
    within(service.set_container_metadata(&cx, "c", AccessConditions::default(), Vec::new()))
        .unwrap();
    let delete = |asked| within(service.delete_container(&cx, "c", asked));
    let missing = D::Lease(LeaseDenial::LeaseIdMissing(LeaseOn::Container));
    assert_eq!(denial(delete(AccessConditions::default())), missing);
    delete(with_lease(id(1))).unwrap();
}
