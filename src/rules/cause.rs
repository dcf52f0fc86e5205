//! Why a request was refused, as values: the rule, and the open in the way.
//!
//! Decides their names in events, metrics and JSON. Which rule a refusal is by is decided beside
//! the refusals of each service.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::conflict::Conflict;
use super::id::{HandleId, Owner, Timestamp};
use super::named::named;
use super::{Access, ShareMode};

/// The open that a refusal names as its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The open's identity: `latchfs close-handle` and Force Close Handles take it.
    pub handle: HandleId,
    pub owner: Owner,
    pub access: Access,
    pub share: ShareMode,
    /// When it was granted.
    pub since: Timestamp,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handle, owner, access, share, .. } = self;
        write!(f, "{owner}, access {access}, share mode {share}, handle {handle}")
    }
}

named! {
    /// A rule that a conflict is refused by.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Rule,
    /// As people who count see it.
    name: &'static str {
        /// Access and share modes exclude each other.
        SharingViolation = "sharing_violation",
        /// The file is open, and the operation allows no open.
        FileOpen = "file_open",
        /// Something below the directory is open.
        OpenBelow = "open_below",
        /// The name is marked for deletion.
        DeletePending = "delete_pending",
        /// The directory of the name is marked for deletion.
        ParentDeletePending = "parent_delete_pending",
        /// Bytes to be read or written are locked.
        RangeLocked = "range_locked",
        /// Bytes to be locked are locked.
        LockNotGranted = "lock_not_granted",
        /// The file or share is leased, or the lease ID is not the lease's.
        Lease = "lease",
        /// A copy to the file is under way.
        CopyPending = "copy_pending",
    }
}

/// The rule that refused. A conflict has the name that the metric `latchfs_conflicts_total` has
/// for it ([`Rule::name`]); scripts tell by it whether to try again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The object is not as the condition of the request demands.
    Condition,
    /// The pop receipt is not that of the message.
    Receipt,
    /// Nothing has that name.
    NotFound,
    /// The name is taken.
    Exists,
    /// The request makes no sense.
    Invalid,
    Denied,
    /// The server could not, or a fault answered.
    Failed,
    /// What another client holds: a later request may be granted.
    #[serde(untagged)]
    Held(Rule),
}

impl From<Rule> for RefusalKind {
    fn from(rule: Rule) -> Self {
        Self::Held(rule)
    }
}

impl From<Conflict> for RefusalKind {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Condition => Self::Condition,
            Conflict::Lease => Rule::Lease.into(),
            Conflict::CopyPending => Rule::CopyPending.into(),
            Conflict::Receipt => Self::Receipt,
        }
    }
}

impl RefusalKind {
    /// The kind of a refusal that names no rule, by its status and its code.
    pub fn of_answer(status: u16, code: &str) -> Self {
        match status {
            409 if code.ends_with("AlreadyExists") => Self::Exists,
            401 | 403 | 409 => Self::Denied,
            404 | 410 => Self::NotFound,
            412 => Self::Condition,
            500.. => Self::Failed,
            _ => Self::Invalid,
        }
    }

    /// The name in metrics, if another client caused the refusal.
    pub const fn conflict(self) -> Option<&'static str> {
        match self {
            Self::Held(rule) => Some(rule.name()),
            Self::Condition => Some(Conflict::Condition.name()),
            Self::Receipt => Some(Conflict::Receipt.name()),
            Self::NotFound | Self::Exists | Self::Invalid | Self::Denied | Self::Failed => None,
        }
    }

    /// True if another client holds the object: a later request may be granted.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Held(_))
    }
}

/// How the wires spell a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spelled {
    /// The error code of REST.
    pub code: &'static str,
    /// The status that goes with the code.
    pub status: u16,
    /// The errno of the mount; empty if the object is not on a mount.
    pub errno: &'static str,
}

/// Why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    pub kind: RefusalKind,
    pub spelled: Spelled,
    /// In words. The holder stands in them as its `Display` writes it.
    pub message: String,
    /// The open in the way.
    pub holder: Option<Holder>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stands_at_its_number_under_a_name_of_its_own() {
        for (number, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, number);
            let same = Rule::ALL.into_iter().filter(|other| other.name() == rule.name());
            assert_eq!(same.count(), 1, "{}", rule.name());
        }
    }

    #[test]
    fn a_conflict_has_one_name_in_events_and_in_metrics() {
        for rule in Rule::ALL {
            let kind = serde_json::to_value(RefusalKind::from(rule)).unwrap();
            assert_eq!(kind, rule.name());
            assert_eq!(serde_json::from_value::<RefusalKind>(kind).unwrap(), rule.into());
        }
        for conflict in Conflict::ALL {
            let kind = serde_json::to_value(RefusalKind::from(conflict)).unwrap();
            assert_eq!(kind, conflict.name());
        }
    }
}
