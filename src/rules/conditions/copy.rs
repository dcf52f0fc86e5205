//! The two sets of conditions of a copy: on its source (`x-ms-source-if-*`) and on its
//! destination.
//!
//! Decides the answer to a failed condition, which differs between the four kinds of copy. The
//! comparison itself is [`super::Conditions::evaluate`] for the destination and [`source_failure`]
//! for the source.

use super::{Condition, Conditions, Subject};

/// The operations that read from a URL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopyKind {
    /// Copy Blob, which may go on after its answer.
    CopyBlob,
    /// Copy Blob From URL, done when it answers.
    CopyBlobFromUrl,
    /// Put Blob From URL.
    PutBlobFromUrl,
    /// Put Block, Put Page or Append Block From URL.
    PartFromUrl,
}

/// The answer to a failed condition of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopyRefusal {
    /// `ConditionNotMet`, 412.
    ConditionNotMet,
    /// `SourceConditionNotMet`, 412.
    SourceConditionNotMet,
    /// `TargetConditionNotMet`, 412.
    TargetConditionNotMet,
    /// `CannotVerifyCopySource`, 412.
    SourceNotVerified,
    /// `CannotVerifyCopySource`, 304.
    SourceNotModified,
}

/// The first source condition that fails, if any. If-Match makes If-Unmodified-Since, and
/// If-None-Match makes If-Modified-Since, void, as in writes; every other one must hold.
pub fn source_failure(conditions: &Conditions, source: &Subject<'_>) -> Option<Condition> {
    let matching = conditions.if_match.is_some();
    let none_matching = conditions.if_none_match.is_some();
    [
        (Condition::Match, !conditions.match_holds(source)),
        (Condition::NoneMatch, !conditions.none_match_holds(source)),
        (Condition::ModifiedSince, !none_matching && !conditions.modified_since_holds(source)),
        (Condition::UnmodifiedSince, !matching && !conditions.unmodified_since_holds(source)),
        (Condition::Tags, !source.tags_hold),
    ]
    .into_iter()
    .find_map(|(condition, fails)| fails.then_some(condition))
}

impl CopyKind {
    /// The answer to a failed source condition.
    pub const fn source_refusal(self, failed: Condition) -> CopyRefusal {
        match (self, failed) {
            (_, Condition::Tags) => CopyRefusal::ConditionNotMet,
            (Self::CopyBlob, _)
            | (Self::PutBlobFromUrl, Condition::Match | Condition::NoneMatch) => {
                CopyRefusal::SourceConditionNotMet
            }
            (_, Condition::Match | Condition::UnmodifiedSince) => CopyRefusal::SourceNotVerified,
            (_, Condition::NoneMatch | Condition::ModifiedSince) => CopyRefusal::SourceNotModified,
        }
    }

    /// The answer to a failed destination condition.
    pub const fn target_refusal(self, failed: Condition) -> CopyRefusal {
        match (self, failed) {
            (_, Condition::Tags) => CopyRefusal::ConditionNotMet,
            (Self::CopyBlob, _)
            | (Self::PutBlobFromUrl, Condition::Match | Condition::NoneMatch) => {
                CopyRefusal::TargetConditionNotMet
            }
            (Self::CopyBlobFromUrl | Self::PutBlobFromUrl | Self::PartFromUrl, _) => {
                CopyRefusal::ConditionNotMet
            }
        }
    }
}
