//! Reading and setting what a share is: properties, metadata, access policies, usage.
//!
//! A lease ID that comes with a request is a condition; none is needed (LOCKING 4.3, C7).
//! Snapshots can be read and not set.

use super::error::{AccountError, AccountResult, ShareDenial};
use super::list::ShareInfo;
use super::properties::{
    PropertyChanges, ShareProperties, ShareVersion, StoredPolicy, check_policies,
};
use super::{Engine, ShareRef};
use crate::core::check_metadata;
use crate::core::lease::ShareUse;
use crate::engine::Space;
use crate::store::Metadata;

impl Engine {
    /// What is known of a share or a snapshot, access policies included.
    pub fn properties(&self, at: &ShareRef<'_>) -> AccountResult<ShareInfo> {
        let served = self.served(at.name)?;
        let kept = served.kept()?;
        let facts = kept.facts(at.snapshot)?;
        let now = self.now();
        facts.lease.check(ShareUse::Other, at.lease_id, now)?;
        Ok(ShareInfo::served(served.share.name(), at.snapshot, facts, now))
    }

    /// Sets quota, tier and the rest; what is left out stays.
    pub fn set_properties(
        &self,
        at: &ShareRef<'_>,
        changes: PropertyChanges,
    ) -> AccountResult<ShareProperties> {
        let now = self.now();
        self.set(at, |properties| changes.apply(properties, now))
    }

    /// Replaces all metadata.
    pub fn set_metadata(
        &self,
        at: &ShareRef<'_>,
        metadata: Metadata,
    ) -> AccountResult<ShareVersion> {
        check_metadata(metadata.iter())?;
        let set = self.set(at, |properties| {
            properties.metadata = metadata;
            Ok(())
        })?;
        Ok(set.version())
    }

    /// Replaces all stored access policies.
    pub fn set_policies(
        &self,
        at: &ShareRef<'_>,
        policies: Vec<StoredPolicy>,
    ) -> AccountResult<ShareVersion> {
        check_policies(&policies)?;
        let set = self.set(at, |properties| {
            properties.policies = policies;
            Ok(())
        })?;
        Ok(set.version())
    }

    /// How much room a share has: its quota, less what is in it, as far as the disk below goes.
    pub fn space(&self, name: &str) -> AccountResult<Space> {
        let served = self.served(name)?;
        let quota = u64::from(served.lock().own.properties.quota_gib) << 30;
        let used = served.usage.usage(self.now())?;
        let below = served.share.space().map_err(|source| AccountError::Share {
            what: format!("looking at the disk below {name}"),
            source,
        })?;
        let free = below.free.min(quota.saturating_sub(used));
        Ok(Space { total: used.saturating_add(free), free, ..below })
    }

    /// Bytes in use, counted now and then.
    pub fn usage_bytes(&self, at: &ShareRef<'_>) -> AccountResult<(u64, ShareVersion)> {
        let served = self.served(at.name)?;
        let now = self.now();
        let version = {
            let kept = served.kept()?;
            kept.own.lease.check(ShareUse::Other, at.lease_id, now)?;
            kept.own.properties.version()
        };
        Ok((served.usage.usage(now)?, version))
    }

    fn set(
        &self,
        at: &ShareRef<'_>,
        change: impl FnOnce(&mut ShareProperties) -> Result<(), ShareDenial>,
    ) -> AccountResult<ShareProperties> {
        let served = self.served(at.name)?;
        let mut kept = served.kept()?;
        if let Some(snapshot) = at.snapshot {
            kept.known(snapshot)?;
            return Err(ShareDenial::ShareSnapshotOperationNotSupported.into());
        }
        let now = self.now();
        kept.own.lease.check(ShareUse::Other, at.lease_id, now)?;
        let mut properties = kept.own.properties.clone();
        change(&mut properties)?;
        properties.touch(now);
        served.keep_properties(&mut kept, properties.clone())?;
        Ok(properties)
    }
}
