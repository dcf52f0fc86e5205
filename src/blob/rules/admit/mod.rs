//! The order in which one request on one blob is checked.
//!
//! The checks are, in this order: the right to overwrite, existence and type, a pending copy,
//! immutability, the lease, the conditions, the archive. The order decides which of several
//! reasons a client is told. REST checks authorisation and the syntax of headers before;
//! positions, sizes and sequence numbers are checked after, in [`super::append`] and
//! [`super::pages`].

#[cfg(test)]
mod tests;

use super::container::ContainerState;
use super::denial::BlobDenial;
use super::operation::{BlobOperation, Immutable, Rules};
use super::state::BlobState;
use super::tags::query::TagQuery;
use super::tier::Tier;
use crate::rules::Timestamp;
use crate::rules::conditions::{ConditionFailure, ConditionForm, Conditions, Subject};
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::{BlobLease, LeaseId};

/// The parts of a request that these checks read.
#[derive(Clone, Copy, Debug)]
pub struct AdmitRequest<'a> {
    pub operation: BlobOperation,
    /// Its conditions. Those that the operation does not take must have been left out.
    pub conditions: &'a Conditions,
    pub tags: Option<&'a TagQuery>,
    pub lease: Option<LeaseId>,
    /// The SHA-256 of the customer's key, base64.
    pub key: Option<&'a str>,
    /// Whether the account keeps versions.
    pub versioning: bool,
    /// Whether the caller may create blobs and not write existing ones.
    pub only_new: bool,
    pub now: Timestamp,
}

/// The object that has the name of the request.
#[derive(Clone, Copy, Debug)]
pub enum FoundObject<'a> {
    Nothing,
    /// Uncommitted blocks alone: no blob for reads and conditions, but it can be leased.
    Uncommitted(&'a BlobLease),
    /// A blob, a snapshot or a version.
    Blob(&'a BlobState),
}

/// Admits a request on a blob of `container`, or refuses it.
pub fn admit(
    ask: &AdmitRequest<'_>,
    container: &str,
    found: FoundObject<'_>,
) -> Result<(), BlobDenial> {
    let rules = ask.operation.rules();
    match found {
        FoundObject::Blob(blob) => admit_blob(ask, &rules, container, blob),
        FoundObject::Uncommitted(lease) if rules.reaches_uncommitted => {
            lease.check(rules.lease, ask.lease, ask.now)?;
            // An uncommitted blob has no ETag and no dates: only If-Match can fail.
            failed(&rules, ask.conditions.evaluate(ConditionForm::Create, None))
        }
        FoundObject::Nothing | FoundObject::Uncommitted(_) => {
            if rules.form == ConditionForm::Create {
                BlobLease::default().check(rules.lease, ask.lease, ask.now)?;
            }
            failed(&rules, ask.conditions.evaluate(rules.form, None))
        }
    }
}

fn admit_blob(
    ask: &AdmitRequest<'_>,
    rules: &Rules,
    container: &str,
    blob: &BlobState,
) -> Result<(), BlobDenial> {
    if ask.only_new && rules.form == ConditionForm::Create {
        return Err(BlobDenial::UnauthorizedBlobOverwrite);
    }
    if rules.kind.is_some_and(|kind| kind != blob.kind) {
        return Err(BlobDenial::InvalidBlobType);
    }
    let copying = blob.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending);
    if copying && rules.waits_for_copy {
        return Err(BlobDenial::PendingCopyOperation);
    }
    match rules.immutable {
        Immutable::Admitted => {}
        Immutable::RefusedUnlessVersioned if ask.versioning => {}
        Immutable::RefusedUnlessVersioned | Immutable::Refused => {
            blob.immutability.check(ask.now)?;
        }
    }
    blob.lease.check(rules.lease, ask.lease, ask.now)?;
    let etag = blob.etag.to_string();
    let subject = Subject {
        etag: &etag,
        last_modified: blob.modified,
        tags_hold: ask.tags.is_none_or(|query| query.holds(container, &blob.tags)),
        lease_held: blob.lease.is_held_by(ask.lease, ask.now),
    };
    failed(rules, ask.conditions.evaluate(rules.form, Some(subject)))?;
    if rules.needs_content && blob.tier.tier(ask.now) == Tier::Archive {
        return Err(BlobDenial::BlobArchived);
    }
    if rules.needs_key {
        blob.encryption.check_key(ask.key)?;
    }
    Ok(())
}

/// Admits a request on an existing container, or refuses it.
pub fn admit_container(
    ask: &AdmitRequest<'_>,
    container: &ContainerState,
) -> Result<(), BlobDenial> {
    let rules = ask.operation.rules();
    container.lease.check(rules.lease, ask.lease, ask.now)?;
    let etag = container.etag.to_string();
    let subject = Subject {
        etag: &etag,
        last_modified: container.modified,
        tags_hold: true,
        lease_held: container.lease.is_held_by(ask.lease, ask.now),
    };
    failed(&rules, ask.conditions.evaluate(rules.form, Some(subject)))
}

/// The denial of a failed condition; a copy names the side that failed.
fn failed(rules: &Rules, answer: Result<(), ConditionFailure>) -> Result<(), BlobDenial> {
    answer.map_err(|failure| match (failure, rules.copy) {
        (ConditionFailure::NotFound, _) => BlobDenial::BlobNotFound,
        (ConditionFailure::AlreadyExists, _) => BlobDenial::BlobAlreadyExists,
        (ConditionFailure::NotMet(condition), Some(copy)) => {
            BlobDenial::CopyCondition(copy.target_refusal(condition))
        }
        (failure, _) => BlobDenial::Condition(failure),
    })
}
