//! Stored access policies of a table: the times they may have.
//!
//! [`crate::rules::policy`] decides the rules that all services share.

use super::Ticks;
use crate::rules::Timestamp;
use crate::rules::policy::{PolicyFault, SentPolicy, check_sent_policies};
use crate::rules::service::ServiceKind;

/// Reads a time of a policy, in all spellings of an `Edm.DateTime`.
pub fn policy_time(text: &str) -> Option<Timestamp> {
    Ticks::parse(text).map(Ticks::timestamp)
}

/// Checks all policies of one table.
pub fn check_table_policies(policies: &[SentPolicy]) -> Result<(), PolicyFault> {
    check_sent_policies(ServiceKind::Table, policies, policy_time)
}

#[cfg(test)]
mod tests {
    use super::*;

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
