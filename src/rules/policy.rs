//! Stored access policies: terms of a shared access signature that are kept with a container, a
//! share, a queue or a table.
//!
//! Decides which policies are legal. A service decides whether it keeps times as moments or as they
//! were sent, and which spellings of a time it reads; `http/auth` decides what a policy permits.

use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::service::ServiceKind;
use super::time::iso;

/// The most stored access policies that one resource may have.
pub const POLICIES_MAX: usize = 5;
/// The longest ID of a stored access policy, in characters.
pub const POLICY_ID_MAX: usize = 64;

/// A stored access policy, which a SAS may name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoredPolicy<Time = Timestamp> {
    /// The ID that a SAS names it by.
    pub id: String,
    /// The start of its validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// The end of its validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Time>,
    /// The letters it permits, such as `rwdl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
}

/// A stored access policy with its times as they were sent. An empty time is none.
pub type SentPolicy = StoredPolicy<String>;

/// Why stored access policies are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyFault {
    /// More policies than a resource may have.
    #[error("{0} stored access policies were given; at most {POLICIES_MAX} are allowed")]
    TooMany(usize),
    /// One has no ID.
    #[error("the ID of a stored access policy is empty")]
    EmptyId,
    /// An ID is too long.
    #[error("the ID of a stored access policy has more than {POLICY_ID_MAX} characters")]
    LongId,
    /// Two have the same ID.
    #[error("two stored access policies have the same ID")]
    SameId,
    /// A start is no time.
    #[error("the start of a stored access policy is no ISO 8601 time")]
    Start,
    /// An expiry is no time.
    #[error("the expiry of a stored access policy is no ISO 8601 time")]
    Expiry,
    /// A permission has other letters than the service's, which are these.
    #[error("the permission of a stored access policy is made of the letters {0}")]
    Letters(&'static str),
}

impl SentPolicy {
    /// The policy with its times read by `read`. A policy with a time that cannot be read must not
    /// be used: without that time it would permit more than was meant.
    pub fn timed(
        self,
        read: impl Fn(&str) -> Option<Timestamp>,
    ) -> Result<StoredPolicy, PolicyFault> {
        let time = |text: Option<String>, fault| match text.as_deref() {
            None | Some("") => Ok(None),
            Some(text) => read(text).map(Some).ok_or(fault),
        };
        Ok(StoredPolicy {
            id: self.id,
            start: time(self.start, PolicyFault::Start)?,
            expiry: time(self.expiry, PolicyFault::Expiry)?,
            permission: self.permission,
        })
    }
}

impl From<&StoredPolicy> for SentPolicy {
    fn from(policy: &StoredPolicy) -> Self {
        Self {
            id: policy.id.clone(),
            start: policy.start.map(iso),
            expiry: policy.expiry.map(iso),
            permission: policy.permission.clone(),
        }
    }
}

/// The letters that a policy of a container, share, queue or table can permit.
const fn letters_of(service: ServiceKind) -> &'static str {
    match service {
        ServiceKind::Blob => "racwdxyltfmeopi",
        ServiceKind::File => "rcwdl",
        ServiceKind::Queue => "raup",
        ServiceKind::Table => "raud",
    }
}

/// Checks all policies of one resource: how many there are, their IDs and their letters.
pub fn check_policies<Time>(
    service: ServiceKind,
    policies: &[StoredPolicy<Time>],
) -> Result<(), PolicyFault> {
    if policies.len() > POLICIES_MAX {
        return Err(PolicyFault::TooMany(policies.len()));
    }
    for (at, policy) in policies.iter().enumerate() {
        if policy.id.is_empty() {
            return Err(PolicyFault::EmptyId);
        }
        if policy.id.chars().count() > POLICY_ID_MAX {
            return Err(PolicyFault::LongId);
        }
        if policies[..at].iter().any(|other| other.id == policy.id) {
            return Err(PolicyFault::SameId);
        }
        let (sent, letters) = (policy.permission.as_deref(), letters_of(service));
        if !sent.unwrap_or_default().chars().all(|letter| letters.contains(letter)) {
            return Err(PolicyFault::Letters(letters));
        }
    }
    Ok(())
}

/// As [`check_policies`], and checks that `read` can read all their times.
pub fn check_sent_policies(
    service: ServiceKind,
    policies: &[SentPolicy],
    read: impl Fn(&str) -> Option<Timestamp>,
) -> Result<(), PolicyFault> {
    check_policies(service, policies)?;
    policies.iter().try_for_each(|policy| policy.clone().timed(&read).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::time::parse_short_iso;

    fn policy(id: &str) -> SentPolicy {
        SentPolicy { id: id.to_owned(), ..SentPolicy::default() }
    }

    #[test]
    fn five_policies_with_ids_of_their_own_are_legal_t80() {
        let ids = ["a", "b", "c", "d", "e", "f"].map(policy);
        let checked = |policies: &[SentPolicy]| check_policies(ServiceKind::Table, policies);
        assert_eq!(checked(&[]), Ok(()));
        assert_eq!(checked(&ids[..5]), Ok(()));
        assert_eq!(checked(&ids), Err(PolicyFault::TooMany(6)));
        assert_eq!(checked(&[policy(&"é".repeat(64))]), Ok(()));
        for (policies, fault) in [
            (vec![policy("")], PolicyFault::EmptyId),
            (vec![policy(&"x".repeat(65))], PolicyFault::LongId),
            (vec![policy("a"), policy("b"), policy("a")], PolicyFault::SameId),
        ] {
            assert_eq!(checked(&policies), Err(fault));
        }
    }

    #[test]
    fn a_permission_is_made_of_the_letters_of_its_service() {
        let services = [
            (ServiceKind::Blob, "racwdxyltfmeopi"),
            (ServiceKind::File, "rcwdl"),
            (ServiceKind::Queue, "raup"),
            (ServiceKind::Table, "raud"),
        ];
        for (service, letters) in services {
            for letter in ('a'..='z').chain(['R', ' ', 'é']) {
                let permission = Some(format!("r{letter}"));
                let sent = SentPolicy { permission, ..policy("a") };
                let refused = Err(PolicyFault::Letters(letters));
                let expected = if letters.contains(letter) { Ok(()) } else { refused };
                assert_eq!(check_policies(service, &[sent]), expected, "{service} {letter}");
            }
            for permission in [None, Some(String::new())] {
                let sent = SentPolicy { permission, ..policy("a") };
                assert_eq!(check_policies(service, &[sent]), Ok(()));
            }
        }
    }

    #[test]
    fn times_may_be_short_and_must_be_times() {
        let checked = |policy: SentPolicy| {
            check_sent_policies(ServiceKind::Queue, &[policy], parse_short_iso)
        };
        let day = Some(Timestamp(1_767_571_200_000_000_000));
        for text in ["2026-01-05", "2026-01-05T00:00Z", "2026-01-05T00:00:00.0000000Z"] {
            let with = SentPolicy { start: Some(text.to_owned()), ..policy("a") };
            assert_eq!(with.clone().timed(parse_short_iso).unwrap().start, day, "{text}");
            assert_eq!(checked(with), Ok(()), "{text}");
        }
        let open = SentPolicy { expiry: Some(String::new()), ..policy("a") };
        assert_eq!(open.clone().timed(parse_short_iso).unwrap().expiry, None);
        assert_eq!(checked(open), Ok(()));
        for text in ["x", " ", "2026-01-05T00:00", "2026-13-05", "2026-01-05T00:00:00"] {
            let sent = || Some(text.to_owned());
            let start = SentPolicy { start: sent(), ..policy("a") };
            assert_eq!(checked(start), Err(PolicyFault::Start), "{text}");
            let expiry = SentPolicy { expiry: sent(), ..policy("a") };
            assert_eq!(checked(expiry), Err(PolicyFault::Expiry), "{text}");
        }
    }

    #[test]
    fn the_kept_forms_stay_as_they_are() {
        let sent = r#"{"id":"a","start":"2026-01-05","permission":"r"}"#;
        let timed = r#"{"id":"a","start":1767571200000000000,"permission":"r"}"#;
        let policy: SentPolicy = serde_json::from_str(sent).unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), sent);
        let policy = policy.timed(parse_short_iso).unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), timed);
        assert_eq!(serde_json::from_str::<StoredPolicy>(timed).unwrap(), policy);
    }
}
