//! What a share is as a whole: quota, tier, metadata, access policies, its times and `ETag`.
//!
//! Decides which values are legal and that every set gives a new tag and time. A share that has
//! none on disk yet (a directory put there by hand) has the defaults. Leases are kept apart: they
//! change neither tag nor time (LOCKING 4.1).
//!
//! Sources: FILEREST section 5 (Share), section 6 (ACL), section 8 (quota, policies).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::ShareDenial;
use crate::core::{Timestamp, check_metadata, stamp};
use crate::store::Metadata;

/// The largest quota (FILEREST section 8).
pub const QUOTA_GIB_MAX: u32 = 102_400;
/// The quota of a share that was given none.
pub const QUOTA_GIB_DEFAULT: u32 = 5_120;
/// Stored access policies a share may have (FILEREST section 8).
pub const POLICIES_MAX: usize = 5;
/// The longest ID of a stored access policy, in characters.
pub const POLICY_ID_MAX: usize = 64;

/// The `ETag` of a share: a moment in units of 100 ns since the year 1, which is what the
/// service's tags look like, moved on where two sets share one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShareTag(u64);

impl ShareTag {
    /// The tag of the next change.
    fn next(self, now: Timestamp) -> Self {
        const EPOCH_TICKS: i64 = 621_355_968_000_000_000;
        let ticks = (now.0 / stamp::TICK_NANOS).saturating_add(EPOCH_TICKS);
        Self(u64::try_from(ticks).unwrap_or(0).max(self.0.wrapping_add(1)))
    }
}

impl fmt::Display for ShareTag {
    /// As in a header, quotes included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"0x{:X}\"", self.0)
    }
}

/// `x-ms-access-tier`. Shown and kept; all tiers are equally fast here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum AccessTier {
    /// What a share has that was given none.
    #[default]
    TransactionOptimized,
    /// Hot.
    Hot,
    /// Cool.
    Cool,
    /// Premium.
    Premium,
}

impl fmt::Display for AccessTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for AccessTier {
    type Err = ShareDenial;

    fn from_str(text: &str) -> Result<Self, ShareDenial> {
        [Self::TransactionOptimized, Self::Hot, Self::Cool, Self::Premium]
            .into_iter()
            .find(|tier| tier.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| ShareDenial::UnknownAccessTier(text.to_owned()))
    }
}

/// A stored access policy, as it was given: a SAS may name it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// Its ID.
    pub id: String,
    /// From when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Timestamp>,
    /// Its letters, such as `rwdl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
}

/// What is known of a share, or of a snapshot of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareProperties {
    /// `x-ms-meta-*`.
    pub metadata: Metadata,
    /// `x-ms-share-quota`.
    pub quota_gib: u32,
    /// `x-ms-access-tier`.
    pub access_tier: AccessTier,
    /// `x-ms-access-tier-change-time`, once it was set.
    pub tier_changed: Option<Timestamp>,
    /// What is given back as it was sent and means nothing here (root squash, provisioned
    /// figures), by header name.
    pub settings: BTreeMap<String, String>,
    /// Stored access policies.
    pub policies: Vec<StoredPolicy>,
    /// When the share was made.
    pub created: Timestamp,
    /// `Last-Modified`.
    pub modified: Timestamp,
    /// `ETag`.
    pub tag: ShareTag,
}

impl Default for ShareProperties {
    fn default() -> Self {
        Self::new(Timestamp::default())
    }
}

impl ShareProperties {
    /// Those of a share made at `now` by somebody who asked for nothing.
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            metadata: Metadata::default(),
            quota_gib: QUOTA_GIB_DEFAULT,
            access_tier: AccessTier::default(),
            tier_changed: None,
            settings: BTreeMap::new(),
            policies: Vec::new(),
            created: now,
            modified: now,
            tag: ShareTag::default().next(now),
        }
    }

    /// To be called with every set.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.modified = now;
        self.tag = self.tag.next(now);
    }

    pub(super) fn version(&self) -> ShareVersion {
        ShareVersion { tag: self.tag, modified: self.modified }
    }
}

/// `ETag` and `Last-Modified`, the answer to most share operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareVersion {
    /// `ETag`.
    pub tag: ShareTag,
    /// `Last-Modified`.
    pub modified: Timestamp,
}

/// What Create Share may ask for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewShare {
    /// `x-ms-meta-*`.
    pub metadata: Metadata,
    /// `x-ms-enabled-protocols`.
    pub protocols: Option<String>,
    /// Quota, tier and the rest.
    pub changes: PropertyChanges,
}

/// What Set Share Properties may ask for; what is left out stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PropertyChanges {
    /// `x-ms-share-quota`.
    pub quota_gib: Option<u64>,
    /// `x-ms-access-tier`.
    pub access_tier: Option<AccessTier>,
    /// See [`ShareProperties::settings`].
    pub settings: BTreeMap<String, String>,
}

impl NewShare {
    pub(super) fn properties(self, now: Timestamp) -> Result<ShareProperties, ShareDenial> {
        if let Some(other) = self.protocols.filter(|text| !text.eq_ignore_ascii_case("smb")) {
            return Err(ShareDenial::UnsupportedProtocol(other));
        }
        check_metadata(self.metadata.iter())?;
        let mut properties =
            ShareProperties { metadata: self.metadata, ..ShareProperties::new(now) };
        self.changes.apply(&mut properties, now)?;
        Ok(properties)
    }
}

impl PropertyChanges {
    pub(super) fn apply(
        self,
        properties: &mut ShareProperties,
        now: Timestamp,
    ) -> Result<(), ShareDenial> {
        if let Some(asked) = self.quota_gib {
            properties.quota_gib = u32::try_from(asked)
                .ok()
                .filter(|quota| (1..=QUOTA_GIB_MAX).contains(quota))
                .ok_or(ShareDenial::OutOfRangeQuota(asked))?;
        }
        if let Some(tier) = self.access_tier {
            if tier != properties.access_tier {
                properties.tier_changed = Some(now);
            }
            properties.access_tier = tier;
        }
        properties.settings.extend(self.settings);
        Ok(())
    }
}

/// Checks the policies of one share: at most [`POLICIES_MAX`], each with an ID of its own.
pub(super) fn check_policies(policies: &[StoredPolicy]) -> Result<(), ShareDenial> {
    if policies.len() > POLICIES_MAX {
        return Err(ShareDenial::TooManyPolicies(policies.len()));
    }
    for (at, policy) in policies.iter().enumerate() {
        if policy.id.is_empty() {
            return Err(ShareDenial::InvalidPolicy("an ID is empty"));
        }
        if policy.id.chars().count() > POLICY_ID_MAX {
            return Err(ShareDenial::InvalidPolicy("an ID is longer than 64 characters"));
        }
        if policies[..at].iter().any(|other| other.id == policy.id) {
            return Err(ShareDenial::InvalidPolicy("two have the same ID"));
        }
    }
    Ok(())
}
