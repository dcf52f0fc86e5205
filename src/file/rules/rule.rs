//! The rule or the kind of a refusal, as metrics and events name it.
//!
//! Decides which refusals are conflicts: another client's open, lock, lease, mark or copy refused
//! the request, and the same request may succeed when that ends. A missing file or a bad argument
//! is no conflict.

use super::{Denial, Rule};
use crate::rules::lease::LeaseDenial;
use crate::rules::{Cause, RefusalKind, Spelled};

impl Denial {
    /// The rule, if this is a conflict.
    pub fn rule(&self) -> Option<Rule> {
        Some(match self {
            Self::SharingViolation { .. } | Self::ParentShared { .. } => Rule::SharingViolation,
            Self::Open(_) => Rule::FileOpen,
            Self::OpenBelow(_) => Rule::OpenBelow,
            Self::DeletePending(_) => Rule::DeletePending,
            Self::ParentDeletePending { .. } => Rule::ParentDeletePending,
            Self::RangeLocked { .. } => Rule::RangeLocked,
            Self::LockNotGranted { .. } => Rule::LockNotGranted,
            Self::Leased => Rule::Lease,
            Self::Lease(denial) if denial.is_conflict() => Rule::Lease,
            Self::CopyPending => Rule::CopyPending,
            _ => return None,
        })
    }
}

impl Denial {
    /// What the journal and reports keep of the refusal.
    pub fn cause(&self, spelled: Spelled) -> Cause {
        let (kind, message) = (RefusalKind::of(self), self.to_string());
        Cause { kind, spelled, message, holder: self.holder().cloned() }
    }
}

impl RefusalKind {
    /// The kind of a refusal.
    pub fn of(denial: &Denial) -> Self {
        if let Some(rule) = denial.rule() {
            return rule.into();
        }
        match denial {
            Denial::NotFound | Denial::PathNotFound | Denial::ShareDeleted => Self::NotFound,
            Denial::NameTaken => Self::Exists,
            Denial::InvalidParameter(_)
            | Denial::InvalidLockRange
            | Denial::IsDirectory
            | Denial::NotDirectory
            | Denial::NotOnDirectory
            | Denial::InvalidRange { .. }
            | Denial::BodyTooLarge { .. }
            | Denial::FileTooLarge { .. }
            | Denial::Metadata(_) => Self::Invalid,
            _ => Self::Denied,
        }
    }
}

impl LeaseDenial {
    /// False for a request that no lease stands in the way of: a bad argument, or nothing leased.
    const fn is_conflict(self) -> bool {
        !matches!(
            self,
            Self::InvalidDuration(_)
                | Self::MissingDuration
                | Self::InvalidBreakPeriod
                | Self::LeaseNotPresentWithLeaseOperation(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::lease::LeaseOn;

    #[test]
    fn what_somebody_else_holds_is_a_conflict_and_a_bad_request_is_none() {
        let rule = |denial: Denial| denial.rule();
        assert_eq!(rule(Denial::Leased), Some(Rule::Lease));
        assert_eq!(rule(LeaseDenial::LeaseAlreadyPresent.into()), Some(Rule::Lease));
        assert_eq!(rule(Denial::CopyPending), Some(Rule::CopyPending));
        assert_eq!(rule(LeaseDenial::InvalidDuration(LeaseOn::File).into()), None);
        let none = LeaseDenial::LeaseNotPresentWithLeaseOperation(LeaseOn::File);
        assert_eq!(rule(none.into()), None);
        assert_eq!(rule(Denial::NotFound), None);
        assert_eq!(rule(Denial::ReadOnly), None);
    }
}
