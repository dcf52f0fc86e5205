//! File leases beside properties and restarts. What a lease answers is in the tables of leases.

use latchfs::rules::lease::{FileLease, LeaseAction};

use crate::files::fixture::{Call, Fixture, code};

const BREAK: LeaseAction = LeaseAction::Break(None);

#[test]
fn b090_a_released_lease_is_gone() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let release = || fixture.share.lease_file(fixture.rest(), &path, LeaseAction::Release(id));
    assert_eq!(release().unwrap().1.lease, FileLease::Available);
    assert_eq!(code(&release()), "LeaseNotPresentWithLeaseOperation");
    assert_eq!(code(&fixture.put(&path, 0, b"x")), "ok");
    assert_eq!(fixture.share.files_in_use(), 0);
}

#[test]
fn b091_a_stranger_breaks_the_lease_and_the_next_write_forgets_it() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let (_, broken) = fixture.share.lease_file(fixture.rest(), &path, BREAK).unwrap();
    assert_eq!(broken.lease, FileLease::Broken(id));
    assert_eq!(code(&fixture.call(fixture.rest_with(id), &path, Call::Put)), "LeaseLost");
    assert_eq!(code(&fixture.put(&path, 99, b"past the end")), "InvalidRange");
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Broken(id));
    assert_eq!(fixture.put(&path, 0, b"x").unwrap().lease, FileLease::Available);
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Available);
}

#[test]
fn a_lease_outlives_a_restart_and_not_its_file() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let (broken, broken_id) = fixture.leased_file();
    let (deleted, deleted_id) = fixture.leased_file();
    fixture.share.lease_file(fixture.rest(), &broken, BREAK).unwrap();
    fixture.share.delete_file(fixture.rest_with(deleted_id), &deleted).unwrap();
    let fixture = fixture.restarted();
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Leased(id));
    assert_eq!(fixture.head(&broken).unwrap().lease, FileLease::Broken(broken_id));
    assert_eq!(fixture.share.files_in_use(), 2);
    assert_eq!(code(&fixture.put(&path, 0, b"x")), "LeaseIdMissing");
}

#[test]
fn a_write_through_the_lease_outlives_a_restart_too() {
    let fixture = Fixture::new();
    let (path, _) = fixture.leased_file();
    fixture.share.lease_file(fixture.rest(), &path, BREAK).unwrap();
    fixture.put(&path, 0, b"x").unwrap();
    let fixture = fixture.restarted();
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Available);
    assert_eq!(fixture.share.files_in_use(), 0);
}
