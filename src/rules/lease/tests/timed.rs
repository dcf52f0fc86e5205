//! Tests of the timed lease that only blobs and containers need: a write that forgets an ID,
//! holding a lease, and the stored form.

use super::super::{
    BlobLease, ContainerLease, LeaseClass, LeaseDenial as D, LeaseOn, LeaseState, ShareLease,
};
use super::{A, B, X, at};

fn blob_leased(duration: i64) -> BlobLease {
    let mut lease = BlobLease::default();
    lease.acquire(Some(duration), Some(A), X, at(0)).unwrap();
    lease
}

#[test]
fn an_expired_blob_lease_may_be_renewed_after_a_read_but_not_after_a_write() {
    let expired = blob_leased(15);
    assert_eq!(expired.state(at(15)), LeaseState::Expired);
    let mut read = expired;
    assert_eq!(read.check(LeaseClass::Read, None, at(16)), Ok(()));
    assert_eq!(read.renew(A, at(17)), Ok(()));
    let mut written = expired;
    assert_eq!(written.check(LeaseClass::Write, None, at(16)), Ok(()));
    written.after_write(at(16));
    assert_eq!(written.state(at(16)), LeaseState::Available);
    let denial = written.renew(A, at(17)).unwrap_err();
    assert_eq!(denial, D::LeaseIdMismatchWithLeaseOperation(LeaseOn::Blob));
}

#[test]
fn an_expired_container_lease_may_be_renewed_whatever_was_written() {
    let mut lease = ContainerLease::default();
    lease.acquire(Some(15), Some(A), X, at(0)).unwrap();
    lease.after_write(at(16));
    assert_eq!(lease.state(at(16)), LeaseState::Expired);
    assert_eq!(lease.renew(A, at(17)), Ok(()));
}

#[test]
fn a_write_leaves_a_lease_in_force_alone() {
    for duration in [15, -1] {
        let mut lease = blob_leased(duration);
        lease.after_write(at(1));
        assert_eq!(lease, blob_leased(duration));
    }
    let mut breaking = blob_leased(-1);
    breaking.break_within(Some(10), at(0)).unwrap();
    breaking.after_write(at(9));
    assert_eq!(breaking.state(at(9)), LeaseState::Breaking);
    breaking.after_write(at(10));
    assert_eq!(breaking.state(at(10)), LeaseState::Available);
}

#[test]
fn a_lease_is_held_by_its_id_while_in_force_and_by_nobody_afterwards() {
    let lease = blob_leased(15);
    assert!(lease.is_held_by(Some(A), at(14)));
    assert!(!lease.is_held_by(Some(B), at(14)));
    assert!(!lease.is_held_by(None, at(14)));
    assert!(!lease.is_held_by(Some(A), at(15)));
    assert!(!BlobLease::default().is_held_by(None, at(0)));
}

#[test]
fn the_stored_form_is_the_same_for_all_kinds() {
    let id = "00000000-0000-4000-8000-00000000000a";
    let text = format!(r#"{{"leased":{{"id":"{id}","duration":60,"since":1700000000000000000}}}}"#);
    let text = text.as_str();
    let share: ShareLease = serde_json::from_str(text).unwrap();
    let blob: BlobLease = serde_json::from_str(text).unwrap();
    assert_eq!(blob, blob_leased(60));
    assert_eq!(serde_json::to_string(&share).unwrap(), text);
    assert_eq!(serde_json::to_string(&blob).unwrap(), text);
    let available: ContainerLease = serde_json::from_str(r#""available""#).unwrap();
    assert_eq!(available, ContainerLease::default());
}

#[test]
fn refused_durations_name_what_is_leased() {
    for seconds in [14, 61, 0, -2] {
        let blob = BlobLease::default().acquire(Some(seconds), None, X, at(0));
        assert_eq!(blob, Err(D::InvalidDuration(LeaseOn::Blob)), "{seconds}");
        let container = ContainerLease::default().acquire(Some(seconds), None, X, at(0));
        assert_eq!(container, Err(D::InvalidDuration(LeaseOn::Container)), "{seconds}");
    }
}
