//! Stored access policies of a table: the letters and the times they may have.
//!
//! [`crate::rules::policy`] decides the rules that all services share.

use super::Ticks;
use crate::rules::Timestamp;
use crate::rules::policy::{PolicyFault, SentPolicy, check_sent_policies};

/// The letters of a table's permissions.
const LETTERS: &str = "raud";

/// Reads a time of a policy, in all spellings of an `Edm.DateTime`.
pub fn policy_time(text: &str) -> Option<Timestamp> {
    Ticks::parse(text).map(Ticks::timestamp)
}

/// Checks all policies of one table.
pub fn check_table_policies(policies: &[SentPolicy]) -> Result<(), PolicyFault> {
    check_sent_policies(policies, policy_time)?;
    let mut letters = policies.iter().filter_map(|policy| policy.permission.as_deref());
    let legal = letters.all(|letters| letters.chars().all(|letter| LETTERS.contains(letter)));
    if legal { Ok(()) } else { Err(PolicyFault::Letters(LETTERS)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_made_of_the_letters_of_tables() {
        let lettered = |letters: &str| {
            let permission = Some(letters.to_owned());
            let policy = SentPolicy { id: "a".into(), permission, ..SentPolicy::default() };
            check_table_policies(&[policy])
        };
        for letters in ["raud", "dr", ""] {
            assert_eq!(lettered(letters), Ok(()), "{letters}");
        }
        assert_eq!(lettered("rw"), Err(PolicyFault::Letters("raud")));
    }

    #[test]
    fn a_date_that_is_no_time_is_refused_and_permits_nothing() {
        let expiring = |text: &str| SentPolicy {
            id: "a".into(),
            expiry: Some(text.to_owned()),
            ..SentPolicy::default()
        };
        for good in ["2026-01-05", "2026-01-05T10:00:00+02:00", "2026-01-05T10:00", ""] {
            assert_eq!(check_table_policies(&[expiring(good)]), Ok(()), "{good}");
            let expiry = expiring(good).timed(policy_time).unwrap().expiry;
            assert_eq!(expiry.is_some(), !good.is_empty(), "{good}");
        }
        for bad in ["tomorrow", "2026-13-05", "0", " "] {
            let refused = Err(PolicyFault::Expiry);
            assert_eq!(check_table_policies(&[expiring(bad)]), refused, "{bad}");
            assert!(expiring(bad).timed(policy_time).is_err(), "{bad}");
        }
    }
}
