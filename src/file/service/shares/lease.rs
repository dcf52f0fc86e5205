//! Leases of shares and of their snapshots, by the rules and the clock.
//!
//! A lease is on the disk before it is acknowledged. No action moves the share's `ETag` or
//! Last-Modified.

use super::error::FileServiceResult;
use super::properties::ShareVersion;
use super::served::Facts;
use super::{FileService, ShareRef};
use crate::rules::Timestamp;
use crate::rules::lease::{LeaseDenial, LeaseId, ShareLease};
use crate::sync::random;

impl FileService {
    /// Takes the lease, for 15 to 60 seconds or -1 for ever; with a fresh ID if none is proposed.
    pub fn acquire_lease(
        &self,
        at: &ShareRef<'_>,
        duration: Option<i64>,
        proposed: Option<LeaseId>,
    ) -> FileServiceResult<(LeaseId, ShareVersion)> {
        let fresh = random::lease_id();
        self.lease(at, |lease, now| lease.acquire(duration, proposed, fresh, now))
    }

    /// Starts the duration anew.
    pub fn renew_lease(&self, at: &ShareRef<'_>, id: LeaseId) -> FileServiceResult<ShareVersion> {
        Ok(self.lease(at, |lease, now| lease.renew(id, now))?.1)
    }

    /// Gives the lease another ID.
    pub fn change_lease(
        &self,
        at: &ShareRef<'_>,
        current: LeaseId,
        proposed: LeaseId,
    ) -> FileServiceResult<(LeaseId, ShareVersion)> {
        self.lease(at, |lease, now| lease.change(current, proposed, now))
    }

    /// Gives the lease up.
    pub fn release_lease(&self, at: &ShareRef<'_>, id: LeaseId) -> FileServiceResult<ShareVersion> {
        Ok(self.lease(at, |lease, _| lease.release(id))?.1)
    }

    /// Ends the lease within `period` seconds; the seconds left. An ID is not needed, and one
    /// that came along is not looked at.
    pub fn break_lease(
        &self,
        at: &ShareRef<'_>,
        period: Option<i64>,
    ) -> FileServiceResult<(u64, ShareVersion)> {
        self.lease(at, |lease, now| lease.break_within(period, now))
    }

    fn lease<T>(
        &self,
        at: &ShareRef<'_>,
        action: impl FnOnce(&mut ShareLease, Timestamp) -> Result<T, LeaseDenial>,
    ) -> FileServiceResult<(T, ShareVersion)> {
        let served = self.served(at.name)?;
        let _changing = served.changing();
        let Facts { properties, lease: before } = served.kept()?.facts(at.snapshot)?.clone();
        let mut lease = before;
        let answer = action(&mut lease, self.now())?;
        if lease != before {
            served.keep_lease(at.snapshot, &lease)?;
            served.lock().facts_mut(at.snapshot)?.lease = lease;
        }
        Ok((answer, properties.version()))
    }
}
