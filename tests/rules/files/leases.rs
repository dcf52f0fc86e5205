//! File leases: behaviours 79-94.

use latchfs::rules::lease::{FileLease, LeaseState, LeaseStatus};

use crate::files::fixture::{Call, Fixture, code, lease_id};

const MISMATCH: &str = "LeaseIdMismatchWithFileOperation";
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
fn b080_a_lease_is_infinite_and_must_say_so() {
    let fixture = Fixture::new();
    let path = fixture.file();
    for duration in [Some(30), Some(0), None] {
        let answer = fixture.share.lease_acquire(fixture.rest(), &path, duration, None);
        assert_eq!(code(&answer), "bad request", "{duration:?}");
    }
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Available);
}

#[test]
fn b081_a_lease_is_taken_by_one_and_again_only_under_its_own_id() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    assert_eq!(code(&fixture.acquire(&path, None)), "LeaseAlreadyPresent");
    assert_eq!(code(&fixture.acquire(&path, Some(lease_id(2)))), "LeaseAlreadyPresent");
    assert_eq!(fixture.acquire(&path, Some(id)).unwrap(), id);
}

#[test]
fn b082_writes_to_a_leased_file_need_an_id() {
    let fixture = Fixture::new();
    let (path, _) = fixture.leased_file();
    for call in Call::WRITES {
        let answer = fixture.call(fixture.rest(), &path, call);
        assert_eq!(code(&answer), "LeaseIdMissing", "{call:?}");
    }
}

#[test]
fn b083_writes_to_a_leased_file_need_the_right_id() {
    let fixture = Fixture::new();
    let (path, _) = fixture.leased_file();
    for call in Call::WRITES {
        let answer = fixture.call(fixture.rest_with(lease_id(9)), &path, call);
        assert_eq!(code(&answer), MISMATCH, "{call:?}");
    }
}

#[test]
fn b084_the_right_id_lets_writes_through() {
    let fixture = Fixture::new();
    for call in Call::WRITES {
        let (path, id) = fixture.leased_file();
        assert_eq!(code(&fixture.call(fixture.rest_with(id), &path, call)), "ok", "{call:?}");
    }
}

#[test]
fn b085_an_id_for_a_file_without_a_lease_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.file();
    for call in Call::WRITES.into_iter().chain(Call::READS) {
        let answer = fixture.call(fixture.rest_with(lease_id(1)), &path, call);
        assert_eq!(code(&answer), NOT_PRESENT, "{call:?}");
    }
}

#[test]
fn b086_reads_of_a_leased_file_need_no_id_and_suffer_no_wrong_one() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    for call in Call::READS {
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), "ok", "{call:?}");
        assert_eq!(code(&fixture.call(fixture.rest_with(id), &path, call)), "ok", "{call:?}");
        let answer = fixture.call(fixture.rest_with(lease_id(9)), &path, call);
        assert_eq!(code(&answer), MISMATCH, "{call:?}");
    }
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
fn b089_a_changed_lease_knows_its_new_id_only() {
    let fixture = Fixture::new();
    let (path, first) = fixture.leased_file();
    let second = lease_id(2);
    let change = |from, to| fixture.share.lease_change(fixture.rest(), &path, from, to);
    assert_eq!(change(first, second).unwrap().id, second);
    assert_eq!(code(&fixture.call(fixture.rest_with(first), &path, Call::Put)), MISMATCH);
    assert_eq!(code(&fixture.call(fixture.rest_with(second), &path, Call::Put)), "ok");
    let refused = change(lease_id(9), lease_id(3));
    assert_eq!(code(&refused), "LeaseIdMismatchWithLeaseOperation");
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
fn b092_a_broken_lease_can_be_read_past_broken_again_and_taken_anew() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    fixture.share.lease_break(fixture.rest(), &path).unwrap();
    fixture.get(&path, None).unwrap();
    assert_eq!(fixture.head(&path).unwrap().lease, FileLease::Broken(id));
    let change = fixture.share.lease_change(fixture.rest(), &path, id, lease_id(2));
    assert_eq!(code(&change), "LeaseNotPresentWithLeaseOperation");
    let again = fixture.share.lease_break(fixture.rest(), &path).unwrap();
    assert_eq!(again.lease, FileLease::Broken(id));
    assert_eq!(fixture.acquire(&path, Some(lease_id(2))).unwrap(), lease_id(2));
}

#[test]
fn b093_any_spelling_of_an_id_is_that_id() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let id = "{AB000000-0000-4000-8000-00000000000C}".parse().unwrap();
    assert_eq!(fixture.acquire(&path, Some(id)).unwrap(), id);
    let plain = "ab000000-0000-4000-8000-00000000000c".parse().unwrap();
    assert_eq!(code(&fixture.call(fixture.rest_with(plain), &path, Call::Put)), "ok");
}

#[test]
fn b094_the_lease_is_shown_with_its_duration_while_it_is_held() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let shown = || {
        let lease = fixture.head(&path).unwrap().lease;
        (lease.status(), lease.state(), lease.duration().map(|duration| duration.to_string()))
    };
    assert_eq!(shown(), (LeaseStatus::Locked, LeaseState::Leased, Some("infinite".to_owned())));
    fixture.share.lease_release(fixture.rest(), &path, id).unwrap();
    assert_eq!(shown(), (LeaseStatus::Unlocked, LeaseState::Available, None));
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
