//! Immutability policies and legal holds of a blob or version.
//!
//! Decides how a policy may change and whether the blob may be deleted or overwritten. Which
//! operations this concerns is decided in [`super::operation`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::denial::BlobDenial;
use crate::rules::Timestamp;

/// Whether a policy may be shortened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyMode {
    /// May be shortened, extended and deleted.
    Unlocked,
    /// May be extended only.
    Locked,
}

impl FromStr for PolicyMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            _ if text.eq_ignore_ascii_case("unlocked") => Ok(Self::Unlocked),
            _ if text.eq_ignore_ascii_case("locked") => Ok(Self::Locked),
            _ => Err(()),
        }
    }
}

impl fmt::Display for PolicyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unlocked => "unlocked",
            Self::Locked => "locked",
        })
    }
}

/// Until when a blob may not be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ImmutabilityPolicy {
    /// The end of the policy.
    pub until: Timestamp,
    /// Whether it may be shortened.
    pub mode: PolicyMode,
}

/// The immutability policy and the legal hold of a blob, which refuse changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Immutability {
    /// The policy, if one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ImmutabilityPolicy>,
    /// Whether a legal hold is on; `None` if none was ever set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legal_hold: Option<bool>,
}

impl Immutability {
    /// Refuses a change of the blob while a policy or hold is on.
    pub fn check(&self, now: Timestamp) -> Result<(), BlobDenial> {
        if self.legal_hold == Some(true) {
            return Err(BlobDenial::BlobImmutableDueToLegalHold);
        }
        match self.policy {
            Some(policy) if policy.until > now => {
                Err(BlobDenial::BlobImmutableDueToPolicy(policy.until))
            }
            _ => Ok(()),
        }
    }

    /// Set Blob Immutability Policy.
    pub fn set_policy(
        &mut self,
        wanted: ImmutabilityPolicy,
        now: Timestamp,
    ) -> Result<(), BlobDenial> {
        if wanted.until <= now {
            return Err(BlobDenial::ImmutabilityPolicyInThePast);
        }
        if let Some(ImmutabilityPolicy { until, mode: PolicyMode::Locked }) = self.policy
            && until > now
            && (wanted.mode == PolicyMode::Unlocked || wanted.until < until)
        {
            return Err(BlobDenial::BlobImmutableDueToPolicy(until));
        }
        self.policy = Some(wanted);
        Ok(())
    }

    /// Delete Blob Immutability Policy. Deleting none is no error.
    pub fn delete_policy(&mut self, now: Timestamp) -> Result<(), BlobDenial> {
        match self.policy {
            Some(ImmutabilityPolicy { until, mode: PolicyMode::Locked }) if until > now => {
                Err(BlobDenial::BlobImmutableDueToPolicy(until))
            }
            _ => {
                self.policy = None;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(100);

    fn policy(until: i64, mode: PolicyMode) -> ImmutabilityPolicy {
        ImmutabilityPolicy { until: Timestamp(until), mode }
    }

    fn with(until: i64, mode: PolicyMode) -> Immutability {
        Immutability { policy: Some(policy(until, mode)), legal_hold: None }
    }

    #[test]
    fn a_policy_guards_until_its_end_and_a_hold_until_it_is_lifted() {
        assert_eq!(Immutability::default().check(NOW), Ok(()));
        let guarded = with(101, PolicyMode::Unlocked);
        let due = BlobDenial::BlobImmutableDueToPolicy(Timestamp(101));
        assert_eq!(guarded.check(NOW), Err(due));
        assert_eq!(guarded.check(Timestamp(101)), Ok(()));
        for (hold, refused) in [(None, false), (Some(false), false), (Some(true), true)] {
            let held = Immutability { policy: None, legal_hold: hold };
            assert_eq!(held.check(NOW).is_err(), refused, "{hold:?}");
        }
    }

    #[test]
    fn a_locked_policy_may_only_be_extended() {
        for (before, wanted, granted) in [
            (None, policy(150, PolicyMode::Locked), true),
            (None, policy(100, PolicyMode::Unlocked), false),
            (Some((200, PolicyMode::Unlocked)), policy(150, PolicyMode::Unlocked), true),
            (Some((200, PolicyMode::Unlocked)), policy(250, PolicyMode::Locked), true),
            (Some((200, PolicyMode::Locked)), policy(250, PolicyMode::Locked), true),
            (Some((200, PolicyMode::Locked)), policy(150, PolicyMode::Locked), false),
            (Some((200, PolicyMode::Locked)), policy(250, PolicyMode::Unlocked), false),
            (Some((99, PolicyMode::Locked)), policy(150, PolicyMode::Unlocked), true),
        ] {
            let mut kept = before.map_or(Immutability::default(), |(end, mode)| with(end, mode));
            let unchanged = kept;
            let answer = kept.set_policy(wanted, NOW);
            assert_eq!(answer.is_ok(), granted, "{before:?} to {wanted:?}");
            let after = if granted { Some(wanted) } else { unchanged.policy };
            assert_eq!(kept.policy, after);
        }
    }

    #[test]
    fn a_locked_policy_may_not_be_deleted_before_its_end() {
        for (kept, granted) in [
            (Immutability::default(), true),
            (with(200, PolicyMode::Unlocked), true),
            (with(200, PolicyMode::Locked), false),
            (with(100, PolicyMode::Locked), true),
        ] {
            let mut kept = kept;
            assert_eq!(kept.delete_policy(NOW).is_ok(), granted);
            assert_eq!(kept.policy.is_none(), granted);
        }
    }
}
