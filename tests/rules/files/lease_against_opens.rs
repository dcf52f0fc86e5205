//! Leases against opens on the mount: behaviours 99-106.

use crate::files::fixture::{Call, Fixture, code, path};

const SV: &str = "SharingViolation";
const WRITERS: [&str; 6] = ["w", "rw", "d", "rd", "wd", "rwd"];

#[test]
fn b099_a_leased_file_can_be_opened_for_reading_only() {
    let fixture = Fixture::new();
    let (path, _) = fixture.leased_file();
    for access in ["r", "none"] {
        let handle = fixture.open(&path, access, "rwd");
        fixture.share.close(&handle).unwrap();
    }
    for access in WRITERS {
        assert_eq!(code(&fixture.try_open(&path, access, "rwd")), SV, "{access}");
    }
}

#[test]
fn b100_after_the_lease_all_opens_succeed() {
    let fixture = Fixture::new();
    let (broken, _) = fixture.leased_file();
    fixture.share.lease_break(fixture.rest(), &broken).unwrap();
    let (released, id) = fixture.leased_file();
    fixture.share.lease_release(fixture.rest(), &released, id).unwrap();
    for path in [broken, released] {
        for access in WRITERS {
            let handle = fixture.open(&path, access, "rwd");
            fixture.share.close(&handle).unwrap();
        }
    }
}

#[test]
fn b101_a_reader_lets_a_lease_through_a_writer_does_not() {
    let fixture = Fixture::new();
    let path = fixture.file();
    for access in WRITERS {
        let handle = fixture.open(&path, access, "rwd");
        assert_eq!(code(&fixture.acquire(&path, None)), SV, "{access}");
        fixture.share.close(&handle).unwrap();
    }
    let _reader = fixture.open(&path, "r", "rwd");
    assert_eq!(code(&fixture.acquire(&path, None)), "ok");
}

#[test]
fn b102_an_open_for_attributes_alone_lets_a_lease_through() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let _handle = fixture.open(&path, "none", "none");
    assert_eq!(code(&fixture.acquire(&path, None)), "ok");
}

#[test]
fn b103_a_reader_that_shares_less_than_all_refuses_a_lease() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let _handle = fixture.open(&path, "r", "r");
    assert_eq!(code(&fixture.acquire(&path, None)), SV);
}

#[test]
fn b104_a_leased_file_is_not_deleted_cut_or_moved_on_the_mount() {
    let fixture = Fixture::new();
    let (leased, _) = fixture.leased_file();
    let share = &fixture.share;
    assert_eq!(code(&share.unlink(fixture.mount(), &leased)), SV);
    assert_eq!(code(&share.rename(fixture.mount(), &leased, &path("away"), false)), SV);
    assert_eq!(code(&fixture.try_open(&leased, "w", "rwd")), SV);
    assert_eq!(code(&fixture.head(&leased)), "ok");
}

#[test]
fn b105_a_reader_that_denies_writing_stops_the_holder_of_the_lease() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let handle = fixture.open(&path, "r", "r");
    assert_eq!(code(&fixture.call(fixture.rest_with(id), &path, Call::Put)), SV);
    fixture.share.close(&handle).unwrap();
    assert_eq!(code(&fixture.call(fixture.rest_with(id), &path, Call::Put)), "ok");
}

#[test]
fn b106_a_pending_file_is_not_leased() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let handle = fixture.open(&path, "d", "rwd");
    fixture.share.set_disposition(&handle, true).unwrap();
    assert_eq!(code(&fixture.acquire(&path, None)), "DeletePending");
}
