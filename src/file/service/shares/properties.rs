//! The properties of a share as a whole: quota, tier, metadata, access policies, times and `ETag`.
//!
//! Decides which values are legal and that every set gives a new tag and time. A share that has
//! none on disk yet (a directory put there by hand) has the defaults. Leases are kept apart: they
//! change neither tag nor time.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::ShareDenial;
use super::stamps::Stamps;
use crate::file::store::share::Metadata;
use crate::rules::policy::StoredPolicy;
use crate::rules::{Timestamp, check_metadata, time};

pub const QUOTA_GIB_MAX: u32 = 102_400;
/// The quota of a share that was given none.
pub const QUOTA_GIB_DEFAULT: u32 = 5_120;

/// The `ETag` of a share: a moment in units of 100 ns since the year 1, which is what the
/// service's tags look like, moved on where two sets share one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShareTag(u64);

impl ShareTag {
    /// The tag of the next change.
    fn next(self, now: Timestamp) -> Self {
        const EPOCH_TICKS: i64 = 621_355_968_000_000_000;
        let ticks = (now.0 / time::TICK_NANOS).saturating_add(EPOCH_TICKS);
        Self(u64::try_from(ticks).unwrap_or(0).max(self.0.wrapping_add(1)))
    }
}

impl ShareTag {
    /// The tag that is given out in place of this one.
    pub(super) fn stamped(self, stamps: &Stamps) -> Self {
        Self(stamps.next(self.0))
    }

    /// This tag was given out, by an earlier process maybe.
    pub(super) fn note_in(self, stamps: &Stamps) {
        stamps.given(self.0);
    }
}

impl fmt::Display for ShareTag {
    /// The form in a header, quotes included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"0x{:X}\"", self.0)
    }
}

/// `x-ms-access-tier`. Shown and kept; all tiers are equally fast here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum AccessTier {
    /// The tier of a share that was created without one.
    #[default]
    TransactionOptimized,
    Hot,
    Cool,
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

/// How long a change of tier shows as under way. The service moves the data in that time; here
/// nothing moves.
const TIER_TRANSITION: Duration = Duration::from_mins(1);

impl AccessTier {
    /// As `x-ms-access-tier-transition-state` names the tier that a share comes from.
    const fn transition(self) -> &'static str {
        match self {
            Self::TransactionOptimized => "pending-from-transactionOptimized",
            Self::Hot => "pending-from-hot",
            Self::Cool => "pending-from-cool",
            Self::Premium => "pending-from-premium",
        }
    }
}

/// `x-ms-enabled-protocols`. Kept and given back; only SMB's rules are enforced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Protocol {
    #[default]
    #[serde(rename = "SMB")]
    Smb,
    #[serde(rename = "NFS")]
    Nfs,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Smb => "SMB",
            Self::Nfs => "NFS",
        })
    }
}

impl FromStr for Protocol {
    type Err = ShareDenial;

    fn from_str(text: &str) -> Result<Self, ShareDenial> {
        [Self::Smb, Self::Nfs]
            .into_iter()
            .find(|protocol| protocol.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| ShareDenial::UnsupportedProtocol(text.to_owned()))
    }
}

/// The properties of a share or of a snapshot of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareProperties {
    /// `x-ms-meta-*`.
    pub metadata: Metadata,
    pub quota_gib: u32,
    pub access_tier: AccessTier,
    /// `x-ms-access-tier-change-time`, once it was set.
    pub tier_changed: Option<Timestamp>,
    /// The tier before that.
    pub tier_before: Option<AccessTier>,
    /// `x-ms-enabled-protocols`.
    pub protocol: Protocol,
    /// Settings that are returned as they were sent and have no effect (root squash, provisioned
    /// figures), by header name.
    pub settings: BTreeMap<String, String>,
    pub policies: Vec<StoredPolicy>,
    /// When the share was made.
    pub created: Timestamp,
    pub modified: Timestamp,
    pub tag: ShareTag,
}

impl Default for ShareProperties {
    fn default() -> Self {
        Self::new(Timestamp::default())
    }
}

impl ShareProperties {
    /// The properties of a share that is created at `now` with defaults.
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            metadata: Metadata::default(),
            quota_gib: QUOTA_GIB_DEFAULT,
            access_tier: AccessTier::default(),
            tier_changed: None,
            tier_before: None,
            protocol: Protocol::default(),
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

    /// `x-ms-access-tier-transition-state` at `now`; none when the last change is over.
    pub fn tier_transition(&self, now: Timestamp) -> Option<&'static str> {
        let changed = self.tier_changed?;
        let before = self.tier_before?;
        (now < changed.after(TIER_TRANSITION)).then(|| before.transition())
    }

    pub(super) fn version(&self) -> ShareVersion {
        ShareVersion { tag: self.tag, modified: self.modified }
    }
}

/// `ETag` and `Last-Modified`, the answer to most share operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareVersion {
    pub tag: ShareTag,
    pub modified: Timestamp,
}

/// The arguments of Create Share.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewShare {
    /// `x-ms-meta-*`.
    pub metadata: Metadata,
    pub protocols: Option<String>,
    /// Quota, tier and the rest.
    pub changes: ShareChanges,
}

/// The arguments of Set Share Properties. A property that is left out stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareChanges {
    pub quota_gib: Option<u64>,
    pub access_tier: Option<AccessTier>,
    /// See [`ShareProperties::settings`].
    pub settings: BTreeMap<String, String>,
}

impl NewShare {
    pub(super) fn properties(self, now: Timestamp) -> Result<ShareProperties, ShareDenial> {
        let protocol = self.protocols.as_deref().map_or(Ok(Protocol::Smb), str::parse)?;
        check_metadata(self.metadata.iter())?;
        let mut properties =
            ShareProperties { metadata: self.metadata, protocol, ..ShareProperties::new(now) };
        self.changes.apply(&mut properties, now)?;
        // A tier that a share is created with is no change of tier.
        properties.tier_before = None;
        Ok(properties)
    }
}

impl ShareChanges {
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
                properties.tier_before = Some(properties.access_tier);
            }
            properties.access_tier = tier;
        }
        properties.settings.extend(self.settings);
        Ok(())
    }
}
