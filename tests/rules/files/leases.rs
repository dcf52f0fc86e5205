//! File leases beside properties and restarts. What a lease answers is in the tables of leases.

use latchfs::rules::lease::FileLease;

use crate::files::fixture::{Call, Fixture, code, lease_id};

const NOT_PRESENT: &str = "LeaseNotPresentWithFileOperation";

#[test]
fn b079_a_lease_gets_a_guid_and_leaves_the_file_alone() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let before = fixture.head(&path).unwrap();
    let leased = fixture.share.lease_acquire(fixture.rest(), &path, Some(-1), None).unwrap();
    assert_eq!(leased.id.to_string().len(), 36);
    assert_eq!(leased.properties.lease, FileLease::Leased(leased.id));
    let during = fixture.head(&path).unwrap();
    fixture.share.lease_release(fixture.rest(), &path, leased.id).unwrap();
    let after = fixture.head(&path).unwrap();
    for shown in [&leased.properties, &during, &after] {
        assert_eq!(shown.etag(), before.etag());
        assert_eq!(shown.last_modified(), before.last_modified());
    }
    let other = fixture.file();
    assert_ne!(fixture.acquire(&other, None).unwrap(), leased.id);
}

#[test]
fn b087_create_over_a_leased_file_keeps_lease_and_identity() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let before = fixture.head(&path).unwrap();
    fixture.call(fixture.rest_with(id), &path, Call::Create).unwrap();
    let after = fixture.head(&path).unwrap();
    assert_eq!(after.lease, FileLease::Leased(id));
    assert_eq!(after.id(), before.id());
    assert_ne!(after.etag(), before.etag());
}

#[test]
fn b088_an_id_for_a_name_that_is_free_is_refused() {
    let fixture = Fixture::new();
    let path = crate::files::fixture::path("new");
    let asking = fixture.rest_with(lease_id(1));
    assert_eq!(code(&fixture.call(asking, &path, Call::Create)), NOT_PRESENT);
    assert_eq!(code(&fixture.head(&path)), "ResourceNotFound");
}

#[test]
fn b090_a_released_lease_is_gone() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let release = || fixture.share.lease_release(fixture.rest(), &path, id);
    assert_eq!(release().unwrap().lease, FileLease::Available);
    assert_eq!(code(&release()), "LeaseNotPresentWithLeaseOperation");
    assert_eq!(code(&fixture.put(&path, 0, b"x")), "ok");
    assert_eq!(fixture.share.files_in_use(), 0);
}

#[test]
fn b091_a_stranger_breaks_the_lease_and_the_next_write_forgets_it() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let broken = fixture.share.lease_break(fixture.rest(), &path).unwrap();
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
    fixture.share.lease_break(fixture.rest(), &broken).unwrap();
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
    fixture.share.lease_break(fixture.rest(), &path).unwrap();
    fixture.put(&path, 0, b"x").unwrap();
    let fixture = fixture.restarted();
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Available);
    assert_eq!(fixture.share.files_in_use(), 0);
}
