//! The names of the rules that refuse a request because of what another client holds, as metrics
//! and events use them.
//!
//! Decides which refusals are conflicts: another client's open, lock, lease, mark or copy refused
//! the request, and the same request may succeed when that ends. A missing file or a bad argument
//! is no conflict.

use serde::{Deserialize, Serialize};

use super::Denial;
use crate::rules::lease::LeaseDenial;

/// A rule that a conflict is refused by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Access and share modes exclude each other.
    SharingViolation,
    /// The file is open, and the operation allows no open.
    FileOpen,
    /// Something below the directory is open.
    OpenBelow,
    /// The name is marked for deletion.
    DeletePending,
    /// The directory of the name is marked for deletion.
    ParentDeletePending,
    /// Bytes to be read or written are locked.
    RangeLocked,
    /// Bytes to be locked are locked.
    LockNotGranted,
    /// The file or share is leased, or the lease ID is not the lease's.
    Lease,
    /// A copy to the file is under way.
    CopyPending,
}

impl Rule {
    /// All of them, each at the place that is its number.
    pub const ALL: [Self; 9] = [
        Self::SharingViolation,
        Self::FileOpen,
        Self::OpenBelow,
        Self::DeletePending,
        Self::ParentDeletePending,
        Self::RangeLocked,
        Self::LockNotGranted,
        Self::Lease,
        Self::CopyPending,
    ];

    /// As people who count see it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharingViolation => "sharing_violation",
            Self::FileOpen => "file_open",
            Self::OpenBelow => "open_below",
            Self::DeletePending => "delete_pending",
            Self::ParentDeletePending => "parent_delete_pending",
            Self::RangeLocked => "range_locked",
            Self::LockNotGranted => "lock_not_granted",
            Self::Lease => "lease",
            Self::CopyPending => "copy_pending",
        }
    }
}

impl Denial {
    /// The rule, if this is a conflict.
    pub fn rule(&self) -> Option<Rule> {
        Some(match self {
            Self::SharingViolation { .. } => Rule::SharingViolation,
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
    fn every_rule_stands_at_its_number_under_a_name_of_its_own() {
        for (number, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, number);
            let same = Rule::ALL.into_iter().filter(|other| other.name() == rule.name());
            assert_eq!(same.count(), 1, "{}", rule.name());
        }
    }

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
