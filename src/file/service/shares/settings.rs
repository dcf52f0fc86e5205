//! Reads and sets the properties of a share: metadata, access policies, usage and leases.
//!
//! Setting something of a leased share needs the lease ID. Reading needs none; one that is sent
//! must match. Snapshots can be read and leased, and not set. A lease is on the disk before it is
//! acknowledged, and moves neither `ETag` nor Last-Modified.

use super::error::{FileServiceError, FileServiceResult, ShareDenial};
use super::list::ShareInfo;
use super::properties::{ShareChanges, ShareProperties, ShareVersion};
use super::served::Facts;
use super::{FileService, ShareRef};
use crate::file::service::FileSystemSpace;
use crate::file::store::share::Metadata;
use crate::rules::check_metadata;
use crate::rules::lease::{LeaseAction, Leased, ShareUse};
use crate::rules::policy::{StoredPolicy, check_policies};
use crate::rules::service::ServiceKind;

impl FileService {
    /// The properties of a share or a snapshot, access policies included.
    pub fn properties(&self, at: &ShareRef<'_>) -> FileServiceResult<ShareInfo> {
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
        changes: ShareChanges,
    ) -> FileServiceResult<ShareProperties> {
        let now = self.now();
        self.set(at, |properties| changes.apply(properties, now))
    }

    pub fn set_metadata(
        &self,
        at: &ShareRef<'_>,
        metadata: Metadata,
    ) -> FileServiceResult<ShareVersion> {
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
    ) -> FileServiceResult<ShareVersion> {
        check_policies(ServiceKind::File, &policies).map_err(ShareDenial::from)?;
        let set = self.set(at, |properties| {
            properties.policies = policies;
            Ok(())
        })?;
        Ok(set.version())
    }

    /// How much room a share has: its quota, less what was in it at the last count, as far as the
    /// disk below goes. Never walks the share: the mount asks on a thread that serves others too.
    pub fn space(&self, name: &str) -> FileServiceResult<FileSystemSpace> {
        let served = self.served(name)?;
        let quota = u64::from(served.lock().own.properties.quota_gib) << 30;
        let used = served.usage.last(self.now()).unwrap_or(0);
        let below = served.share.space().map_err(|source| FileServiceError::Share {
            what: format!("looking at the disk below {name}"),
            source,
        })?;
        let free = below.free.min(quota.saturating_sub(used));
        Ok(FileSystemSpace { total: used.saturating_add(free), free, ..below })
    }

    /// Bytes in use, counted now and then.
    pub fn usage_bytes(&self, at: &ShareRef<'_>) -> FileServiceResult<(u64, ShareVersion)> {
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
    ) -> FileServiceResult<ShareProperties> {
        let served = self.served(at.name)?;
        let _changing = served.changing();
        let now = self.now();
        let mut properties = {
            let kept = served.kept()?;
            if let Some(snapshot) = at.snapshot {
                kept.known(snapshot)?;
                return Err(ShareDenial::ShareSnapshotOperationNotSupported.into());
            }
            kept.own.lease.check(ShareUse::Set, at.lease_id, now)?;
            kept.own.properties.clone()
        };
        change(&mut properties)?;
        properties.touch(now);
        properties.tag = properties.tag.stamped(&self.tags);
        served.keep_properties(properties.clone())?;
        Ok(properties)
    }
}

impl FileService {
    /// Carries an action out on the lease of a share or a snapshot.
    pub fn lease(
        &self,
        at: &ShareRef<'_>,
        action: LeaseAction,
    ) -> FileServiceResult<(Leased, ShareVersion)> {
        let served = self.served(at.name)?;
        let _changing = served.changing();
        let Facts { properties, lease: before } = served.kept()?.facts(at.snapshot)?.clone();
        let mut lease = before;
        let answer = action.apply(&mut lease, self.now())?;
        if lease != before {
            served.keep_lease(at.snapshot, &lease)?;
            served.lock().facts_mut(at.snapshot)?.lease = lease;
        }
        Ok((answer, properties.version()))
    }
}
