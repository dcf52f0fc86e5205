//! Leases as text: IDs, messages, stored records.

use super::super::{
    FileLease, LeaseDenial as D, LeaseDuration, LeaseId, LeaseOn, NotAGuid, ShareLease,
};
use super::{A, B, at, share_leased};

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
            D::LeaseIdMismatchWithFileOperation,
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
