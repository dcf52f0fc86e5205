//! Stored access policies of a table: what they hold, and how many there may be.
//!
//! Decides the limits, and which dates are times. How a shared access signature uses a policy is
//! decided by REST.

use super::Ticks;
use super::denial::Denial;
use crate::core::policy::StoredPolicy;

/// Policies of a table.
pub const POLICIES_MAX: usize = 5;
/// Characters of a policy's ID.
pub const POLICY_ID_MAX: usize = 64;

/// A stored access policy. Dates and letters are kept as they were sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Its ID, which a signature names.
    pub id: String,
    /// When it begins to hold.
    pub start: Option<String>,
    /// When it ends.
    pub expiry: Option<String>,
    /// The letters it permits.
    pub permission: Option<String>,
}

impl Policy {
    /// The policy as a signature is held to it. `None` if a date is no time: such a policy permits
    /// nothing, since without that date it would permit more than was meant.
    pub fn in_force(self) -> Option<StoredPolicy> {
        let time = |text: Option<String>| match text.filter(|text| !text.is_empty()) {
            None => Some(None),
            Some(text) => Some(Some(Ticks::parse(&text)?.timestamp())),
        };
        let (start, expiry) = (time(self.start)?, time(self.expiry)?);
        Some(StoredPolicy { id: self.id, start, expiry, permission: self.permission })
    }
}

/// Checks the policies of a table.
pub fn check(policies: &[Policy]) -> Result<(), Denial> {
    if policies.len() > POLICIES_MAX {
        return Err(Denial::InvalidXmlDocument("a table has at most 5 access policies"));
    }
    for (index, policy) in policies.iter().enumerate() {
        if policy.id.is_empty() || policy.id.chars().count() > POLICY_ID_MAX {
            return Err(Denial::InvalidXmlDocument("the ID of a policy has 1 to 64 characters"));
        }
        if policies[..index].iter().any(|before| before.id == policy.id) {
            return Err(Denial::InvalidXmlDocument("two access policies have the same ID"));
        }
        let letters = policy.permission.as_deref().unwrap_or_default();
        if !letters.chars().all(|letter| "raud".contains(letter)) {
            return Err(Denial::InvalidXmlDocument("a permission is made of the letters raud"));
        }
        if policy.clone().in_force().is_none() {
            return Err(Denial::InvalidXmlDocument("Start and Expiry are ISO 8601 times"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: &str) -> Policy {
        Policy { id: id.into(), ..Policy::default() }
    }

    #[test]
    fn a_table_has_at_most_five_policies_with_ids_of_their_own_t80() {
        let many: Vec<_> = (0..6).map(|n| named(&n.to_string())).collect();
        assert_eq!(check(&many[..5]), Ok(()));
        assert!(matches!(check(&many), Err(Denial::InvalidXmlDocument(_))));
        assert!(check(&[named("a"), named("a")]).is_err());
        assert!(check(&[named("")]).is_err());
        assert_eq!(check(&[named(&"x".repeat(64))]), Ok(()));
        assert!(check(&[named(&"x".repeat(65))]).is_err());
        let lettered = |letters: &str| {
            check(&[Policy { permission: Some(letters.into()), ..named("a") }]).is_ok()
        };
        assert!(lettered("raud") && lettered("dr") && lettered("") && !lettered("rw"));
    }

    #[test]
    fn a_date_that_is_no_time_is_refused_and_permits_nothing() {
        for good in ["2026-01-05", "2026-01-05T10:00:00Z", "2026-01-05T10:00Z", ""] {
            let policy = Policy { expiry: Some(good.into()), ..named("a") };
            assert_eq!(check(std::slice::from_ref(&policy)), Ok(()), "{good}");
            let expiry = policy.in_force().unwrap().expiry;
            assert_eq!(expiry.is_some(), !good.is_empty(), "{good}");
        }
        for bad in ["tomorrow", "2026-13-05", "0", " "] {
            let (start, expiry) = (Some(bad.to_owned()), Some(bad.to_owned()));
            for policy in [Policy { start, ..named("a") }, Policy { expiry, ..named("a") }] {
                assert!(check(std::slice::from_ref(&policy)).is_err(), "{bad}");
                assert_eq!(policy.in_force(), None, "{bad}");
            }
        }
    }
}
