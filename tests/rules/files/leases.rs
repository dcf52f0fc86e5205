//! File leases beside restarts and further names. What a lease answers is in the tables of leases.

use latchfs::rules::lease::{FileLease, LeaseAction};

use crate::files::fixture::{Fixture, code};

const BREAK: LeaseAction = LeaseAction::Break(None);

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

#[test]
fn deleting_one_of_two_names_keeps_the_other_and_the_lease() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let other = crate::files::fixture::path("other");
    std::fs::hard_link(fixture.root.join(path.as_str()), fixture.root.join("other")).unwrap();
    fixture.share.delete_file(fixture.rest_with(id), &path).unwrap();
    assert_eq!(code(&fixture.head(&path)), "ResourceNotFound");
    assert_eq!(code(&fixture.put(&other, 0, b"x")), "LeaseIdMissing");
    fixture.share.delete_file(fixture.rest_with(id), &other).unwrap();
    assert_eq!(fixture.share.files_in_use(), 0);
}
