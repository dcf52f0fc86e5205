//! Properties, metadata, access policies, usage.

use latchfs::file::service::shares::{AccessTier, ShareChanges};
use latchfs::file::store::share::Metadata;
use latchfs::rules::MetadataError;
use latchfs::rules::policy::{PolicyFault, StoredPolicy};

use super::*;

fn quota(gib: u64) -> ShareChanges {
    ShareChanges { quota_gib: Some(gib), ..ShareChanges::default() }
}

fn policy(id: &str) -> StoredPolicy {
    let (start, expiry) = (Some(START), Some(Timestamp(START.0 + 1)));
    StoredPolicy { id: id.to_owned(), start, expiry, permission: Some("rwdl".to_owned()) }
}

#[test]
fn the_quota_is_held_at_its_bounds_and_past_them() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    assert_eq!(engine.properties(&DOCS).unwrap().properties.quota_gib, 5120);
    for good in [1, 102_400] {
        let set = engine.set_properties(&DOCS, quota(good)).unwrap();
        assert_eq!(u64::from(set.quota_gib), good);
    }
    for bad in [0, 102_401, u64::MAX] {
        let answer = refused(engine.set_properties(&DOCS, quota(bad)));
        assert_eq!(answer, ShareDenial::OutOfRangeQuota(bad));
    }
}

#[test]
fn what_is_left_out_stays_and_settings_are_given_back() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let squash = [("x-ms-root-squash".to_owned(), "RootSquash".to_owned())];
    let tier = ShareChanges {
        access_tier: Some("hot".parse().unwrap()),
        settings: squash.clone().into(),
        ..ShareChanges::default()
    };
    engine.set_properties(&DOCS, tier).unwrap();
    let set = engine.set_properties(&DOCS, quota(8)).unwrap();
    assert_eq!((set.access_tier, set.tier_changed), (AccessTier::Hot, Some(START)));
    assert_eq!(set.settings, squash.into());
    let unknown = "Frozen".parse::<AccessTier>();
    assert_eq!(unknown, Err(ShareDenial::UnknownAccessTier("Frozen".to_owned())));
}

#[test]
fn every_set_gives_a_new_tag_even_while_the_clock_stands() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let mut seen = vec![engine.properties(&DOCS).unwrap().properties.tag];
    for _ in 0..3 {
        seen.push(engine.set_metadata(&DOCS, Metadata::default()).unwrap().tag);
        seen.push(engine.set_policies(&DOCS, Vec::new()).unwrap().tag);
        seen.push(engine.set_properties(&DOCS, ShareChanges::default()).unwrap().tag);
    }
    let count = seen.len();
    seen.sort_by_key(ToString::to_string);
    seen.dedup();
    assert_eq!(seen.len(), count);
    assert_eq!(seen[0].to_string(), "\"0x8DE4C41304B1000\"", "the moment, as the service has it");
    setup.advance(1);
    let later = engine.set_metadata(&DOCS, Metadata::default()).unwrap();
    assert_eq!(later.modified, Timestamp(START.0 + 1_000_000_000));
}

#[test]
fn metadata_is_replaced_whole_and_bad_metadata_changes_nothing() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let one: Metadata = [("Cat", "tabby"), ("b", "2")].into_iter().collect();
    engine.set_metadata(&DOCS, one).unwrap();
    let two: Metadata = [("c", "3")].into_iter().collect();
    let set = engine.set_metadata(&DOCS, two.clone()).unwrap();
    let bad: Metadata = [("a-b", "1")].into_iter().collect();
    let invalid = MetadataError::InvalidName("a-b".to_owned());
    assert_eq!(refused(engine.set_metadata(&DOCS, bad)), invalid.into());
    let large: Metadata = [("a", "x".repeat(8192))].into_iter().collect();
    let too_large = MetadataError::TooLarge(8193);
    assert_eq!(refused(engine.set_metadata(&DOCS, large)), too_large.into());
    let kept = engine.properties(&DOCS).unwrap().properties;
    assert_eq!((kept.metadata, kept.tag), (two, set.tag));
}

#[test]
fn five_policies_are_kept_and_a_sixth_is_refused() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let some = |count| (0..count).map(|n| policy(&format!("p{n}"))).collect::<Vec<_>>();
    engine.set_policies(&DOCS, some(5)).unwrap();
    let answer = refused(engine.set_policies(&DOCS, some(6)));
    assert_eq!(answer, PolicyFault::TooMany(6).into());
    for bad in [vec![policy("")], vec![policy(&"x".repeat(65))], vec![policy("a"), policy("a")]] {
        let answer = refused(engine.set_policies(&DOCS, bad));
        assert!(matches!(answer, ShareDenial::Policy(_)));
    }
    engine.set_policies(&DOCS, vec![policy(&"x".repeat(64))]).unwrap();
    engine.set_policies(&DOCS, some(5)).unwrap();
    assert_eq!(engine.properties(&DOCS).unwrap().properties.policies, some(5));
    engine.set_policies(&DOCS, Vec::new()).unwrap();
    assert_eq!(engine.properties(&DOCS).unwrap().properties.policies, []);
}

#[test]
fn usage_is_the_sum_of_lengths_counted_now_and_then() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/a"), [0; 1000]).unwrap();
    assert_eq!(engine.usage_bytes(&DOCS).unwrap().0, 1000);
    fs::write(setup.data().join("docs/b"), [0; 24]).unwrap();
    assert_eq!(engine.usage_bytes(&DOCS).unwrap().0, 1000);
    setup.advance(60);
    assert_eq!(engine.usage_bytes(&DOCS).unwrap().0, 1024);
}
