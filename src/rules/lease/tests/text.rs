//! Leases as text (IDs, messages, headers, stored records), the durations that a file takes, and
//! who holds a lease. All else is in the tables.

use super::super::{
    BlobLease, ContainerLease, FileLease, LeaseDenial as D, LeaseDuration, LeaseId, LeaseOn,
    NotAGuid, ShareLease,
};
use super::{A, B, X, at, share_leased};

#[test]
fn an_id_is_any_guid_in_any_spelling() {
    let plain = "8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee";
    let id: LeaseId = plain.parse().unwrap();
    for text in [
        "8A9F5B2C-0D1E-4F3A-9B7C-00112233DDEE",
        "{8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee}",
        "{8A9F5B2C-0D1E-4F3A-9B7C-00112233DDEE}",
        "(8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee)",
        "8a9f5b2c0d1e4f3a9b7c00112233ddee",
        "8A9F5B2C0D1E4F3A9B7C00112233DDEE",
    ] {
        assert_eq!(text.parse(), Ok(id), "{text}");
    }
    assert_eq!(id.to_string(), plain);
    for text in [
        "",
        "lease",
        "{}",
        "{8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee",
        "8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee}",
        "(8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee}",
        "{8a9f5b2c0d1e4f3a9b7c00112233ddee}",
        "8a9f5b2c-0d1e-4f3a-9b7c-00112233dde",
        "8a9f5b2c-0d1e-4f3a-9b7c-00112233ddeef",
        "8a9f5b2c0-d1e-4f3a-9b7c-00112233ddee",
        "8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee-",
        "8a9f5b2c-0d1e-4f3a-9b7c-00112233ddeg",
        "+a9f5b2c0d1e4f3a9b7c00112233ddee",
        "+a9f5b2c-0d1e-4f3a-9b7c-00112233ddee",
        " 8a9f5b2c-0d1e-4f3a-9b7c-00112233ddee",
        "ああああああああああaa",
    ] {
        assert_eq!(text.parse::<LeaseId>(), Err(NotAGuid), "{text}");
    }
}

#[test]
fn messages_seen_on_the_wire_are_matched_word_for_word() {
    for (denial, text) in [
        (
            D::LeaseIdMissing(LeaseOn::File),
            "There is currently a lease on the file and no lease ID was specified in the request.",
        ),
        (
            D::LeaseIdMismatchWithOperation(LeaseOn::File),
            "The lease ID specified did not match the lease ID for the file.",
        ),
        (D::LeaseAlreadyPresent, "There is already a lease present."),
        (
            D::LeaseNotPresentWithLeaseOperation(LeaseOn::File),
            "There is currently no lease on the file.",
        ),
        (
            D::LeaseNotPresentWithLeaseOperation(LeaseOn::Share),
            "There is currently no lease on the file share.",
        ),
        (D::InvalidDuration(LeaseOn::File), "The lease duration of a file must be -1 (infinite)."),
    ] {
        assert_eq!(denial.to_string(), text);
    }
}

#[test]
fn a_fresh_id_is_marked_as_random() {
    let id = LeaseId::from_random_bytes([0xFF; 16]);
    assert_eq!(id.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    let id = LeaseId::from_random_bytes([0; 16]);
    assert_eq!(id.to_string(), "00000000-0000-4000-8000-000000000000");
}

#[test]
fn leases_outlive_a_restart() {
    for lease in [FileLease::Available, FileLease::Leased(A), FileLease::Broken(B)] {
        let text = serde_json::to_string(&lease).unwrap();
        assert_eq!(serde_json::from_str::<FileLease>(&text).unwrap(), lease, "{text}");
    }
    let text = serde_json::to_string(&FileLease::Leased(A)).unwrap();
    assert_eq!(text, r#"{"leased":"00000000-0000-4000-8000-00000000000a"}"#);

    let mut breaking = share_leased(60);
    breaking.break_within(Some(10), at(0)).unwrap();
    let mut broken = share_leased(60);
    broken.break_within(Some(0), at(0)).unwrap();
    for lease in [ShareLease::default(), share_leased(15), share_leased(-1), breaking, broken] {
        let text = serde_json::to_string(&lease).unwrap();
        assert_eq!(serde_json::from_str::<ShareLease>(&text).unwrap(), lease, "{text}");
    }
}

#[test]
fn a_damaged_record_is_refused() {
    assert!(serde_json::from_str::<FileLease>(r#"{"leased":"nobody"}"#).is_err());
    assert!(serde_json::from_str::<LeaseDuration>("61").is_err());
    assert_eq!(serde_json::from_str::<LeaseDuration>("-1").unwrap(), LeaseDuration::INFINITE);
}

#[test]
fn a_file_lease_must_be_asked_for_as_infinite() {
    let mut lease = FileLease::default();
    for seconds in [30, 15, 60, 0, 1, -2, i64::MAX, i64::MIN] {
        assert_eq!(lease.acquire(Some(seconds), None, X), Err(D::InvalidDuration(LeaseOn::File)));
    }
    assert_eq!(lease.acquire(None, None, X), Err(D::MissingDuration));
    assert_eq!(lease, FileLease::Available);
    lease = FileLease::Leased(A);
    assert_eq!(lease.acquire(Some(30), None, X), Err(D::InvalidDuration(LeaseOn::File)));
}

#[test]
fn headers_show_a_duration_only_while_leased() {
    let shown = |lease: FileLease| {
        let duration = lease.duration().map(|duration| duration.to_string());
        (lease.status().to_string(), lease.state().to_string(), duration)
    };
    let text = |status: &str, state: &str, duration: Option<&str>| {
        (status.to_owned(), state.to_owned(), duration.map(str::to_owned))
    };
    assert_eq!(shown(FileLease::Leased(A)), text("locked", "leased", Some("infinite")));
    assert_eq!(shown(FileLease::Available), text("unlocked", "available", None));
    assert_eq!(shown(FileLease::Broken(A)), text("unlocked", "broken", None));
}

fn blob_leased(duration: i64) -> BlobLease {
    let mut lease = BlobLease::default();
    lease.acquire(Some(duration), Some(A), X, at(0)).unwrap();
    lease
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
