//! Every operation against every lease state, every condition and every state of a blob.
//!
//! What is expected is derived from the letters of the operation (its lease class, its conditions),
//! not from the code under test.

use super::super::copy::CopyRecord;
use super::super::immutability::{Immutability, ImmutabilityPolicy, PolicyMode};
use super::super::state::BlobType;
use super::super::tags::query::TagLanguage;
use super::*;
use crate::rules::Etag;
use crate::rules::conditions::{Condition, EtagList};
use crate::rules::lease::{ContainerLease, LeaseClass, LeaseDenial, LeaseOn};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);
const CONTAINER: &str = "c";

fn second(offset: i64) -> Timestamp {
    Timestamp(NOW.0 + offset * 1_000_000_000)
}

fn id(last: u8) -> LeaseId {
    LeaseId::from_random_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
}

/// The blob that fits the operation, changed an hour ago.
fn blob(operation: BlobOperation) -> BlobState {
    let kind = operation.rules().kind.unwrap_or(BlobType::Block);
    BlobState::new(kind, Etag::from_number(7), second(-3_600))
}

fn ask(operation: BlobOperation, conditions: &Conditions) -> AdmitRequest<'_> {
    AdmitRequest {
        operation,
        conditions,
        tags: None,
        lease: None,
        key: None,
        versioning: false,
        only_new: false,
        now: NOW,
    }
}

fn on_blobs() -> impl Iterator<Item = BlobOperation> {
    BlobOperation::ALL.iter().copied().filter(|operation| {
        let name = operation.name();
        !name.starts_with("Container") && !name.starts_with("Service")
    })
}

/// The lease in each of its states, infinite ones apart.
fn leases() -> [(&'static str, BlobLease); 6] {
    let mut leased = BlobLease::default();
    leased.acquire(Some(60), Some(id(1)), id(9), second(-10)).unwrap();
    let mut infinite = BlobLease::default();
    infinite.acquire(Some(-1), Some(id(1)), id(9), second(-10)).unwrap();
    let mut breaking = leased;
    breaking.break_within(Some(30), second(-5)).unwrap();
    let mut broken = leased;
    broken.break_within(Some(0), second(-5)).unwrap();
    let mut expired = BlobLease::default();
    expired.acquire(Some(15), Some(id(1)), id(9), second(-60)).unwrap();
    [
        ("available", BlobLease::default()),
        ("leased", leased),
        ("infinite", infinite),
        ("breaking", breaking),
        ("broken", broken),
        ("expired", expired),
    ]
}

/// The expected answer of a class in a lease state: to no ID, to the lease's ID and to another ID.
fn expected(class: LeaseClass, state: &str, sent: Option<LeaseId>) -> Option<LeaseDenial> {
    let holder = sent == Some(id(1));
    let locked = matches!(state, "leased" | "infinite" | "breaking");
    match (class, sent) {
        (LeaseClass::Ignored | LeaseClass::Action, _) | (LeaseClass::Read, None) => None,
        (LeaseClass::AbortCopy, None) if state != "infinite" => None,
        (_, None) => locked.then_some(LeaseDenial::LeaseIdMissing(LeaseOn::Blob)),
        (LeaseClass::CopyTarget, _) if holder && locked && state != "infinite" => {
            Some(LeaseDenial::InfiniteLeaseDurationRequired)
        }
        _ if locked && holder => None,
        _ if locked => Some(LeaseDenial::LeaseIdMismatchWithOperation(LeaseOn::Blob)),
        _ if holder && state != "available" => Some(LeaseDenial::LeaseLost(LeaseOn::Blob)),
        _ => Some(LeaseDenial::LeaseNotPresentWithOperation(LeaseOn::Blob)),
    }
}

#[test]
fn every_operation_meets_every_lease_state_by_its_class() {
    let none = Conditions::default();
    let mut cells = 0;
    for operation in on_blobs() {
        for (state, lease) in leases() {
            for sent in [None, Some(id(1)), Some(id(2))] {
                let blob = BlobState { lease, ..blob(operation) };
                let ask = AdmitRequest { lease: sent, ..ask(operation, &none) };
                let answer = admit(&ask, CONTAINER, FoundObject::Blob(&blob));
                let denial = expected(operation.rules().lease, state, sent);
                let shown = format!("{operation:?} {state} {sent:?}");
                assert_eq!(answer.err(), denial.map(BlobDenial::Lease), "{shown}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 40 * 6 * 3);
}

/// One condition that holds and one that fails, by letter.
fn pair(letter: char) -> (Conditions, Conditions, Condition) {
    let same = Some(EtagList::parse("\"0x000000000000007\""));
    let other = Some(EtagList::parse("\"0x8\""));
    let none = Conditions::default;
    match letter {
        'M' => (
            Conditions { if_match: same, ..none() },
            Conditions { if_match: other, ..none() },
            Condition::Match,
        ),
        'N' => (
            Conditions { if_none_match: other, ..none() },
            Conditions { if_none_match: same, ..none() },
            Condition::NoneMatch,
        ),
        'I' => (
            Conditions { if_modified_since: Some(second(-3_601)), ..none() },
            Conditions { if_modified_since: Some(second(-3_600)), ..none() },
            Condition::ModifiedSince,
        ),
        _ => (
            Conditions { if_unmodified_since: Some(second(-3_600)), ..none() },
            Conditions { if_unmodified_since: Some(second(-3_601)), ..none() },
            Condition::UnmodifiedSince,
        ),
    }
}

#[test]
fn every_operation_answers_each_condition_that_it_takes() {
    for operation in on_blobs() {
        let rules = operation.rules();
        for letter in "MNIU".chars().filter(|letter| rules.accepts.has(*letter)) {
            let (holds, fails, condition) = pair(letter);
            let blob = blob(operation);
            let found = FoundObject::Blob(&blob);
            let shown = format!("{operation:?} {letter}");
            assert_eq!(admit(&ask(operation, &holds), CONTAINER, found), Ok(()), "{shown}");
            let refused = admit(&ask(operation, &fails), CONTAINER, found).unwrap_err();
            let read = rules.form == ConditionForm::Read;
            match (rules.copy, refused) {
                (None, BlobDenial::Condition(ConditionFailure::NotModified(found))) => {
                    assert!(read && matches!(letter, 'N' | 'I'), "{shown}");
                    assert_eq!(found, condition, "{shown}");
                }
                (None, BlobDenial::Condition(ConditionFailure::NotMet(found))) => {
                    assert!(!read || matches!(letter, 'M' | 'U'), "{shown}");
                    assert_eq!(found, condition, "{shown}");
                }
                (Some(copy), BlobDenial::CopyCondition(refusal)) => {
                    assert_eq!(refusal, copy.target_refusal(condition), "{shown}");
                }
                (_, other) => panic!("{shown}: {other:?}"),
            }
        }
    }
}

#[test]
fn every_operation_that_takes_tags_is_refused_by_them() {
    let query = TagQuery::parse("\"k\" = 'v'", TagLanguage::Condition).unwrap();
    let none = Conditions::default();
    for operation in on_blobs().filter(|operation| operation.rules().accepts.has('T')) {
        let mut blob = blob(operation);
        let ask = AdmitRequest { tags: Some(&query), ..ask(operation, &none) };
        let refused = admit(&ask, CONTAINER, FoundObject::Blob(&blob)).unwrap_err();
        assert!(
            matches!(
                refused,
                BlobDenial::Condition(ConditionFailure::NotMet(Condition::Tags))
                    | BlobDenial::CopyCondition(_)
            ),
            "{operation:?}: {refused:?}"
        );
        blob.tags = super::super::tags::Tags::new([("k".to_owned(), "v".to_owned())]).unwrap();
        assert_eq!(admit(&ask, CONTAINER, FoundObject::Blob(&blob)), Ok(()), "{operation:?}");
    }
}

#[test]
fn if_none_match_star_guards_creation_and_a_held_lease_lifts_it() {
    let star = Conditions { if_none_match: Some(EtagList::Any), ..Conditions::default() };
    let [_, _, (_, infinite), ..] = leases();
    for operation in on_blobs().filter(|operation| operation.rules().accepts.has('N')) {
        let plain = blob(operation);
        let answer = admit(&ask(operation, &star), CONTAINER, FoundObject::Blob(&plain));
        let expected = match operation.rules().form {
            ConditionForm::Read => Err(BlobDenial::Condition(ConditionFailure::Unsatisfiable)),
            ConditionForm::Create => Err(BlobDenial::BlobAlreadyExists),
            ConditionForm::Update | ConditionForm::UpdateExisting => Ok(()),
        };
        assert_eq!(answer, expected, "{operation:?}");
        if operation.rules().form == ConditionForm::Create {
            let leased = BlobState { lease: infinite, ..plain };
            let found = FoundObject::Blob(&leased);
            let held = AdmitRequest { lease: Some(id(1)), ..ask(operation, &star) };
            assert_eq!(admit(&held, CONTAINER, found), Ok(()), "{operation:?}");
            let missing = Err(LeaseDenial::LeaseIdMissing(LeaseOn::Blob).into());
            assert_eq!(admit(&ask(operation, &star), CONTAINER, found), missing, "{operation:?}");
        }
    }
}

#[test]
fn on_a_missing_blob_every_operation_creates_or_finds_nothing() {
    let none = Conditions::default();
    let (matching, _, _) = pair('M');
    for operation in on_blobs() {
        let rules = operation.rules();
        let answer = |conditions, lease| {
            let ask = AdmitRequest { lease, ..ask(operation, conditions) };
            admit(&ask, CONTAINER, FoundObject::Nothing)
        };
        let creates = rules.form == ConditionForm::Create;
        let without = if creates { Ok(()) } else { Err(BlobDenial::BlobNotFound) };
        assert_eq!(answer(&none, None), without, "{operation:?}");
        let with_id = match rules.lease {
            LeaseClass::Ignored => without.clone(),
            _ if creates => Err(LeaseDenial::LeaseNotPresentWithOperation(LeaseOn::Blob).into()),
            _ => Err(BlobDenial::BlobNotFound),
        };
        assert_eq!(answer(&none, Some(id(1))), with_id, "{operation:?} with an ID");
        if rules.accepts.has('M') {
            let refused = answer(&matching, None).unwrap_err();
            let not_found =
                matches!(rules.form, ConditionForm::Read | ConditionForm::UpdateExisting);
            assert_eq!(refused == BlobDenial::BlobNotFound, not_found, "{operation:?} If-Match");
        }
    }
}

#[test]
fn uncommitted_blocks_are_a_blob_for_few_operations_and_can_be_leased() {
    let none = Conditions::default();
    let [(_, available), (_, leased), ..] = leases();
    for operation in on_blobs() {
        let rules = operation.rules();
        let reaches = rules.reaches_uncommitted;
        let open = admit(&ask(operation, &none), CONTAINER, FoundObject::Uncommitted(&available));
        let expected = if reaches { Ok(()) } else { Err(BlobDenial::BlobNotFound) };
        assert_eq!(open, expected, "{operation:?}");
        let guarded = admit(&ask(operation, &none), CONTAINER, FoundObject::Uncommitted(&leased));
        let writes = matches!(rules.lease, LeaseClass::Write | LeaseClass::CopyTarget);
        if reaches && writes {
            let missing = Err(LeaseDenial::LeaseIdMissing(LeaseOn::Blob).into());
            assert_eq!(guarded, missing, "{operation:?}");
        }
    }
}

/// Writes, lease actions and snapshots wait for a copy; content of an archived blob cannot be read.
#[test]
fn pending_copies_archives_and_policies_refuse_what_they_must() {
    let none = Conditions::default();
    for operation in on_blobs() {
        let rules = operation.rules();
        let mut copying = blob(operation);
        copying.copy = Some(CopyRecord::pending("id".into(), "source".into(), 1));
        let answer = admit(&ask(operation, &none), CONTAINER, FoundObject::Blob(&copying));
        let read = matches!(rules.lease, LeaseClass::Read | LeaseClass::Ignored)
            && operation != BlobOperation::BlobCreateSnapshot;
        let admitted = read || operation == BlobOperation::BlobAbortCopyFromURL;
        assert_eq!(answer == Err(BlobDenial::PendingCopyOperation), !admitted, "{operation:?}");

        let mut archived = blob(operation);
        archived.tier.explicit = Some(Tier::Archive);
        let answer = admit(&ask(operation, &none), CONTAINER, FoundObject::Blob(&archived));
        let refused = answer == Err(BlobDenial::BlobArchived);
        assert_eq!(refused, rules.needs_content, "{operation:?}");

        let policy = ImmutabilityPolicy { until: second(60), mode: PolicyMode::Unlocked };
        let mut kept = blob(operation);
        kept.immutability = Immutability { policy: Some(policy), legal_hold: None };
        let due = Err(BlobDenial::BlobImmutableDueToPolicy(second(60)));
        let mut asked = ask(operation, &none);
        let stays = admit(&asked, CONTAINER, FoundObject::Blob(&kept)) != due;
        let changes = rules.immutable != Immutable::Admitted;
        assert_eq!(stays, !changes, "{operation:?}");
        asked.versioning = true;
        let stays = admit(&asked, CONTAINER, FoundObject::Blob(&kept)) != due;
        assert_eq!(stays, !changes || rules.makes_version, "{operation:?} with versions");
    }
}

#[test]
fn a_wrong_type_comes_before_the_lease_and_the_lease_before_conditions() {
    let (_, fails, _) = pair('M');
    let [_, (_, leased), ..] = leases();
    let mut page = BlobState { lease: leased, ..blob(BlobOperation::PageBlobUploadPages) };
    let wrong = admit(
        &ask(BlobOperation::AppendBlobAppendBlock, &fails),
        CONTAINER,
        FoundObject::Blob(&page),
    );
    assert_eq!(wrong, Err(BlobDenial::InvalidBlobType));
    let missing = Err(LeaseDenial::LeaseIdMissing(LeaseOn::Blob).into());
    let found = FoundObject::Blob(&page);
    assert_eq!(admit(&ask(BlobOperation::PageBlobUploadPages, &fails), CONTAINER, found), missing);
    page.immutability.legal_hold = Some(true);
    let held = admit(
        &ask(BlobOperation::PageBlobUploadPages, &fails),
        CONTAINER,
        FoundObject::Blob(&page),
    );
    assert_eq!(held, Err(BlobDenial::BlobImmutableDueToLegalHold));
}

#[test]
fn a_customers_key_is_asked_for_where_content_or_metadata_is_used() {
    let none = Conditions::default();
    for operation in on_blobs() {
        let mut keyed = blob(operation);
        keyed.encryption.key_sha256 = Some("k1".into());
        let answer = admit(&ask(operation, &none), CONTAINER, FoundObject::Blob(&keyed));
        let refused = answer == Err(BlobDenial::BlobUsesCustomerSpecifiedEncryption);
        assert_eq!(refused, operation.rules().needs_key, "{operation:?}");
        let ask = AdmitRequest { key: Some("k1"), ..ask(operation, &none) };
        assert_eq!(admit(&ask, CONTAINER, FoundObject::Blob(&keyed)), Ok(()), "{operation:?}");
    }
}

/// The lease of a container in each of its states, infinite ones apart.
fn container_leases() -> [(&'static str, ContainerLease); 6] {
    let acquired = |seconds, at| {
        let mut lease = ContainerLease::default();
        lease.acquire(Some(seconds), Some(id(1)), id(9), second(at)).unwrap();
        lease
    };
    let (mut breaking, mut broken) = (acquired(60, -10), acquired(60, -10));
    breaking.break_within(Some(30), second(-5)).unwrap();
    broken.break_within(Some(0), second(-5)).unwrap();
    [
        ("available", ContainerLease::default()),
        ("leased", acquired(60, -10)),
        ("infinite", acquired(-1, -10)),
        ("breaking", breaking),
        ("broken", broken),
        ("expired", acquired(15, -60)),
    ]
}

#[test]
fn every_operation_on_a_container_meets_every_lease_state_by_its_class() {
    let none = Conditions::default();
    let mut cells = 0;
    for operation in BlobOperation::ALL.iter().filter(|op| op.name().starts_with("Container")) {
        for (state, lease) in container_leases() {
            for sent in [None, Some(id(1)), Some(id(2))] {
                let mut container = ContainerState::new(Etag::from_number(7), second(-3_600));
                container.lease = lease;
                let asked = AdmitRequest { lease: sent, ..ask(*operation, &none) };
                let answer = admit_container(&asked, &container).err();
                let locked = matches!(state, "leased" | "infinite" | "breaking");
                let (class, holder) = (operation.rules().lease, sent == Some(id(1)));
                let denial = match (class, sent) {
                    (LeaseClass::Delete, None) if locked => {
                        Some(LeaseDenial::LeaseIdMissing(LeaseOn::Container))
                    }
                    (LeaseClass::Read | LeaseClass::Delete, Some(_)) => match (locked, holder) {
                        (true, true) => None,
                        (true, false) => {
                            Some(LeaseDenial::LeaseIdMismatchWithOperation(LeaseOn::Container))
                        }
                        (false, true) if state != "available" => {
                            Some(LeaseDenial::LeaseLost(LeaseOn::Container))
                        }
                        (false, _) => {
                            Some(LeaseDenial::LeaseNotPresentWithOperation(LeaseOn::Container))
                        }
                    },
                    _ => None,
                };
                let shown = format!("{operation:?} {state} {sent:?}");
                assert_eq!(answer, denial.map(BlobDenial::Lease), "{shown}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 13 * 6 * 3);
}

#[test]
fn containers_answer_each_condition_they_take() {
    let container = ContainerState::new(Etag::from_number(7), second(-3_600));
    for operation in BlobOperation::ALL.iter().filter(|op| op.name().starts_with("Container")) {
        if operation.rules().accepts.0.is_empty() {
            continue;
        }
        // The documented letters are I and U; the others are evaluated alike.
        for letter in "MNIU".chars() {
            let (holds, fails, condition) = pair(letter);
            let answer = |conditions| admit_container(&ask(*operation, conditions), &container);
            assert_eq!(answer(&holds), Ok(()), "{operation:?} {letter}");
            let refused = BlobDenial::Condition(ConditionFailure::NotMet(condition));
            assert_eq!(answer(&fails), Err(refused), "{operation:?} {letter}");
        }
    }
}

#[test]
fn a_caller_who_may_only_create_never_overwrites() {
    let none = Conditions::default();
    let [_, (_, leased), ..] = leases();
    for operation in on_blobs() {
        let rules = operation.rules();
        let creates = rules.form == ConditionForm::Create;
        let asked = AdmitRequest { only_new: true, ..ask(operation, &none) };
        // Neither a lease nor the type is told to a caller who may not write.
        let blob = BlobState { lease: leased, ..blob(operation) };
        let answer = admit(&asked, CONTAINER, FoundObject::Blob(&blob));
        let refused = answer == Err(BlobDenial::UnauthorizedBlobOverwrite);
        assert_eq!(refused, creates, "{operation:?}");
        for found in [FoundObject::Nothing, FoundObject::Uncommitted(&BlobLease::default())] {
            let answer = admit(&asked, CONTAINER, found);
            assert_eq!(answer, admit(&ask(operation, &none), CONTAINER, found), "{operation:?}");
        }
    }
}
