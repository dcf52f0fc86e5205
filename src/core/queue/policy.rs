//! Stored access policies of a queue: what a SAS may refer to by name.
//!
//! Decides which policies are legal. Times are kept in the spelling of the request, because
//! clients compare them as text; `rest/auth` checks a SAS that names a policy.

use serde::{Deserialize, Serialize};

use super::denial::{PolicyFault, QueueDenial};
use crate::core::Timestamp;
use crate::core::time::parse_short_iso;

/// Stored access policies that a queue may have.
pub const POLICIES_MAX: usize = 5;
/// The longest ID of a stored access policy, in characters.
pub const POLICY_ID_MAX: usize = 64;

/// A stored access policy.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QueuePolicy {
    /// Its ID.
    pub id: String,
    /// From when it holds, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Until when, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<String>,
    /// Its letters, of `raup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
}

impl QueuePolicy {
    /// From when it holds; none if that is open, as an empty text says.
    pub fn starts(&self) -> Option<Timestamp> {
        self.start.as_deref().and_then(parse_short_iso)
    }

    /// Until when it holds; none if that is open, as an empty text says.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expiry.as_deref().and_then(parse_short_iso)
    }
}

/// Checks all policies of one queue.
pub fn check_policies(policies: &[QueuePolicy]) -> Result<(), QueueDenial> {
    if policies.len() > POLICIES_MAX {
        return Err(QueueDenial::TooManyPolicies(policies.len()));
    }
    for (at, policy) in policies.iter().enumerate() {
        let bad = |text: &Option<String>| {
            text.as_deref().is_some_and(|text| !text.is_empty() && parse_short_iso(text).is_none())
        };
        let fault = if policy.id.is_empty() {
            PolicyFault::EmptyId
        } else if policy.id.chars().count() > POLICY_ID_MAX {
            PolicyFault::LongId
        } else if policies[..at].iter().any(|other| other.id == policy.id) {
            PolicyFault::SameId
        } else if bad(&policy.start) {
            PolicyFault::Start
        } else if bad(&policy.expiry) {
            PolicyFault::Expiry
        } else {
            continue;
        };
        return Err(QueueDenial::InvalidPolicy(fault));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(id: &str) -> QueuePolicy {
        QueuePolicy { id: id.to_owned(), ..QueuePolicy::default() }
    }

    #[test]
    fn five_policies_with_ids_of_their_own_are_legal() {
        let ids = ["a", "b", "c", "d", "e", "f"].map(policy);
        assert_eq!(check_policies(&[]), Ok(()));
        assert_eq!(check_policies(&ids[..5]), Ok(()));
        assert_eq!(check_policies(&ids), Err(QueueDenial::TooManyPolicies(6)));
        assert_eq!(check_policies(&[policy(&"x".repeat(64))]), Ok(()));
        for (policies, fault) in [
            (vec![policy("")], PolicyFault::EmptyId),
            (vec![policy(&"x".repeat(65))], PolicyFault::LongId),
            (vec![policy("a"), policy("b"), policy("a")], PolicyFault::SameId),
        ] {
            assert_eq!(check_policies(&policies), Err(QueueDenial::InvalidPolicy(fault)));
        }
    }

    #[test]
    fn times_may_be_short_and_must_be_times() {
        let day = Some(Timestamp(1_767_571_200_000_000_000));
        for text in ["2026-01-05", "2026-01-05T00:00Z", "2026-01-05T00:00:00.0000000Z"] {
            let with = QueuePolicy { start: Some(text.to_owned()), ..policy("a") };
            assert_eq!(with.starts(), day, "{text}");
            assert_eq!(check_policies(&[with]), Ok(()), "{text}");
        }
        let open = QueuePolicy { expiry: Some(String::new()), ..policy("a") };
        assert_eq!((open.expires(), check_policies(&[open])), (None, Ok(())));
        for text in ["x", "2026-01-05T00:00", "2026-13-05", "2026-01-05T00:00:00"] {
            let with = QueuePolicy { expiry: Some(text.to_owned()), ..policy("a") };
            let refused = Err(QueueDenial::InvalidPolicy(PolicyFault::Expiry));
            assert_eq!(check_policies(&[with]), refused, "{text}");
        }
    }
}
