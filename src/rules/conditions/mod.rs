//! Conditions of a request: `If-Match`, `If-None-Match`, `If-(Un)Modified-Since`, `x-ms-if-tags`.
//!
//! Decides whether the conditions of a request hold for an object, and the answer to a condition
//! that fails. REST reads the headers; the tables of operations say which operation has which
//! form; the answers of copies, which have two sets of conditions, are in [`copy`].
//!
//! M, N, I, U and T stand for the five conditions, in the order above. A read holds if
//! `M && U && (N || I) && T`. A write takes one of the four, or M with U (M decides), or N with I
//! (N decides), and T beside any of them.

pub mod copy;
mod etags;
#[cfg(test)]
mod tests;

use super::Timestamp;
pub use etags::EtagList;

const SECOND_NANOS: i64 = 1_000_000_000;

/// The conditions of a request on one object. `x-ms-if-tags` is not among them: its expression is
/// the Blob service's own, and [`Subject::tags_hold`] has its result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conditions {
    /// `If-Match`: the object has one of these versions.
    pub if_match: Option<EtagList>,
    /// `If-None-Match`: the object has none of these versions.
    pub if_none_match: Option<EtagList>,
    /// `If-Modified-Since`: the object was changed after this second.
    pub if_modified_since: Option<Timestamp>,
    /// `If-Unmodified-Since`: the object was not changed after this second.
    pub if_unmodified_since: Option<Timestamp>,
}

/// How an operation takes conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConditionForm {
    /// A read: an unchanged object is "not modified".
    Read,
    /// A write that creates the object where there is none. `If-None-Match: *` keeps it from
    /// replacing one.
    Create,
    /// A write of an object that must exist. If-Match on a missing object is a failed condition.
    Update,
    /// A write that reports a missing object whatever its conditions are.
    UpdateExisting,
}

/// The facts about an existing object that conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub etag: &'a str,
    /// When the object was last modified. Only whole seconds count, as headers have no others.
    pub last_modified: Timestamp,
    /// Whether the object's tags satisfy `x-ms-if-tags`; true if the request has none.
    pub tags_hold: bool,
    /// Whether the request carries the ID of the lease in force. Such a writer may replace the
    /// object in spite of `If-None-Match: *`, which upload helpers send by default.
    pub lease_held: bool,
}

/// One of the five conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// `If-Match`.
    Match,
    /// `If-None-Match`.
    NoneMatch,
    /// `If-Modified-Since`.
    ModifiedSince,
    /// `If-Unmodified-Since`.
    UnmodifiedSince,
    /// `x-ms-if-tags`.
    Tags,
}

/// Why conditions refuse a request. Each has one status; the code depends on the operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConditionFailure {
    /// The combination cannot be evaluated by a write (400).
    TooMany,
    /// A read with `If-None-Match: *`, which no existing object can satisfy (400).
    Unsatisfiable,
    /// There is no such object (404).
    NotFound,
    /// A read of an object that the client already has (304).
    NotModified(Condition),
    /// The condition does not hold (412).
    NotMet(Condition),
    /// `If-None-Match: *`, and the object exists (409).
    AlreadyExists,
}

impl Conditions {
    /// Whether the request has none of the four conditions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses combinations that have no meaning for the form. Needs no object, so a request can
    /// be refused before its body is read.
    pub fn check_combination(&self, form: ConditionForm) -> Result<(), ConditionFailure> {
        if form == ConditionForm::Read {
            return match self.if_none_match {
                Some(EtagList::Any) => Err(ConditionFailure::Unsatisfiable),
                _ => Ok(()),
            };
        }
        // One condition of each pair excludes both of the other: a write is conditional on the
        // object being as it was (M, U) or on its having changed (N, I).
        let as_it_was = self.if_match.is_some() || self.if_unmodified_since.is_some();
        let changed = self.if_none_match.is_some() || self.if_modified_since.is_some();
        let several = |list: &Option<EtagList>| list.as_ref().is_some_and(EtagList::is_several);
        if as_it_was && changed || several(&self.if_match) || several(&self.if_none_match) {
            return Err(ConditionFailure::TooMany);
        }
        Ok(())
    }

    /// Evaluates the conditions for an object, `None` if there is no such object.
    pub fn evaluate(
        &self,
        form: ConditionForm,
        object: Option<Subject<'_>>,
    ) -> Result<(), ConditionFailure> {
        self.check_combination(form)?;
        match (object, form) {
            (Some(object), ConditionForm::Read) => self.evaluate_read(&object),
            (Some(object), _) => self.evaluate_write(form, &object),
            (None, ConditionForm::Create | ConditionForm::Update) if self.if_match.is_some() => {
                Err(ConditionFailure::NotMet(Condition::Match))
            }
            (None, ConditionForm::Create) => Ok(()),
            (None, ConditionForm::Read | ConditionForm::Update | ConditionForm::UpdateExisting) => {
                Err(ConditionFailure::NotFound)
            }
        }
    }

    fn evaluate_read(&self, object: &Subject<'_>) -> Result<(), ConditionFailure> {
        if !self.match_holds(object) {
            return Err(ConditionFailure::NotMet(Condition::Match));
        }
        if !self.unmodified_since_holds(object) {
            return Err(ConditionFailure::NotMet(Condition::UnmodifiedSince));
        }
        let unchanged = match (&self.if_none_match, self.if_modified_since) {
            (Some(_), None) => !self.none_match_holds(object),
            (Some(_), Some(_)) => {
                !self.none_match_holds(object) && !self.modified_since_holds(object)
            }
            (None, _) => !self.modified_since_holds(object),
        };
        if unchanged {
            let by_etag = self.if_none_match.is_some();
            return Err(ConditionFailure::NotModified(if by_etag {
                Condition::NoneMatch
            } else {
                Condition::ModifiedSince
            }));
        }
        tags_hold(object)
    }

    fn evaluate_write(
        &self,
        form: ConditionForm,
        object: &Subject<'_>,
    ) -> Result<(), ConditionFailure> {
        // An ETag is the stronger question: a date beside it is ignored.
        let (condition, holds) = if self.if_match.is_some() {
            (Condition::Match, self.match_holds(object))
        } else if self.if_none_match == Some(EtagList::Any) {
            if form == ConditionForm::Create && !object.lease_held {
                return Err(ConditionFailure::AlreadyExists);
            }
            (Condition::NoneMatch, true)
        } else if self.if_none_match.is_some() {
            (Condition::NoneMatch, self.none_match_holds(object))
        } else if self.if_modified_since.is_some() {
            (Condition::ModifiedSince, self.modified_since_holds(object))
        } else {
            (Condition::UnmodifiedSince, self.unmodified_since_holds(object))
        };
        if holds { tags_hold(object) } else { Err(ConditionFailure::NotMet(condition)) }
    }

    fn match_holds(&self, object: &Subject<'_>) -> bool {
        self.if_match.as_ref().is_none_or(|list| list.matches(object.etag))
    }

    fn none_match_holds(&self, object: &Subject<'_>) -> bool {
        self.if_none_match.as_ref().is_none_or(|list| !list.matches(object.etag))
    }

    fn modified_since_holds(&self, object: &Subject<'_>) -> bool {
        self.if_modified_since.is_none_or(|date| seconds(object.last_modified) > seconds(date))
    }

    fn unmodified_since_holds(&self, object: &Subject<'_>) -> bool {
        self.if_unmodified_since.is_none_or(|date| seconds(object.last_modified) <= seconds(date))
    }
}

fn tags_hold(object: &Subject<'_>) -> Result<(), ConditionFailure> {
    if object.tags_hold { Ok(()) } else { Err(ConditionFailure::NotMet(Condition::Tags)) }
}

/// The whole seconds of a moment, which dates in headers have.
pub(crate) const fn seconds(moment: Timestamp) -> i64 {
    moment.0.div_euclid(SECOND_NANOS)
}
