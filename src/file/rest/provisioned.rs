//! The provisioned figures of a share: IOPS and bandwidth as they were asked for, and what follows
//! from them.
//!
//! Decides the figures alone: nothing here is any faster or slower for them. They are kept with
//! the other settings of the share ([`crate::file::service::shares`]).

use crate::file::service::shares::{AccessTier, ShareProperties};

const IOPS: &str = "x-ms-share-provisioned-iops";
const BANDWIDTH: &str = "x-ms-share-provisioned-bandwidth-mibps";
/// The least that a share may burst to.
const BURST_IOPS_MIN: u64 = 10_000;
/// Seconds of a full burst that can be saved up.
const BURST_SECONDS: u64 = 3_600;

/// The figures of one share.
pub struct Provisioned {
    iops: u64,
    bandwidth_mibps: u64,
}

impl Provisioned {
    /// Those of a share that was given some, or that is of the premium tier, which derives them
    /// from the quota; none for others.
    pub fn of(share: &ShareProperties) -> Option<Self> {
        let asked = |name: &str| share.settings.get(name)?.parse().ok();
        let (iops, bandwidth) = (asked(IOPS), asked(BANDWIDTH));
        if iops.is_none() && bandwidth.is_none() && share.access_tier != AccessTier::Premium {
            return None;
        }
        let quota = u64::from(share.quota_gib);
        Some(Self {
            iops: iops.unwrap_or(3_000 + quota),
            bandwidth_mibps: bandwidth.unwrap_or(100 + quota.div_ceil(10)),
        })
    }

    /// Header, element of List Shares, and value of each figure.
    pub fn figures(&self) -> [(&'static str, &'static str, u64); 4] {
        let burst = self.iops.saturating_mul(3).max(BURST_IOPS_MIN);
        let credits = (burst - self.iops.min(burst)).saturating_mul(BURST_SECONDS);
        [
            (IOPS, "ProvisionedIops", self.iops),
            (BANDWIDTH, "ProvisionedBandwidthMiBps", self.bandwidth_mibps),
            ("x-ms-share-included-burst-iops", "IncludedBurstIops", burst),
            ("x-ms-share-max-burst-credits-for-iops", "MaxBurstCreditsForIops", credits),
        ]
    }
}
