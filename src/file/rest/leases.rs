//! Leases of shares, snapshots and files. No action moves `ETag` or Last-Modified.

use super::FileCall;
use super::share::share_version;
use crate::file::service::FileProperties;
use crate::file::service::shares::SnapshotName;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::rules::LeaseId;

const LEASE_ID: &str = "x-ms-lease-id";
const PROPOSED: &str = "x-ms-proposed-lease-id";

impl FileCall<'_> {
    fn duration(&self) -> Result<Option<i64>, Refusal> {
        self.request.parsed("x-ms-lease-duration", "it must be a number of seconds, or -1")
    }

    fn lease_header(&self, name: &str) -> Result<LeaseId, Refusal> {
        self.request.lease_id(name)?.ok_or_else(|| Refusal::missing_header(name))
    }

    /// The ID is the action's own: it is no condition on the share.
    fn lease_target<T>(
        &self,
        action: impl FnOnce(&crate::file::service::shares::ShareRef<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let snapshot: Option<SnapshotName> = self.snapshot()?;
        action(&crate::file::service::shares::ShareRef {
            name: self.share()?,
            snapshot: snapshot.as_ref(),
            lease_id: None,
        })
    }

    pub(super) fn acquire_share_lease(&self) -> Answer {
        let (duration, proposed) = (self.duration()?, self.request.lease_id(PROPOSED)?);
        let (id, version) =
            self.lease_target(|at| Ok(self.engine()?.acquire_lease(at, duration, proposed)?))?;
        Ok(share_version(Reply::created(), version).header(LEASE_ID, id))
    }

    pub(super) fn release_share_lease(&self) -> Answer {
        let id = self.lease_header(LEASE_ID)?;
        let version = self.lease_target(|at| Ok(self.engine()?.release_lease(at, id)?))?;
        Ok(share_version(Reply::ok(), version))
    }

    pub(super) fn change_share_lease(&self) -> Answer {
        let (current, proposed) = (self.lease_header(LEASE_ID)?, self.lease_header(PROPOSED)?);
        let (id, version) =
            self.lease_target(|at| Ok(self.engine()?.change_lease(at, current, proposed)?))?;
        Ok(share_version(Reply::ok(), version).header(LEASE_ID, id))
    }

    pub(super) fn renew_share_lease(&self) -> Answer {
        let id = self.lease_header(LEASE_ID)?;
        let version = self.lease_target(|at| Ok(self.engine()?.renew_lease(at, id)?))?;
        Ok(share_version(Reply::ok(), version).header(LEASE_ID, id))
    }

    pub(super) fn break_share_lease(&self) -> Answer {
        let what = "it must be a number of seconds";
        let period = self.request.parsed("x-ms-lease-break-period", what)?;
        let (left, version) =
            self.lease_target(|at| Ok(self.engine()?.break_lease(at, period)?))?;
        Ok(share_version(Reply::accepted(), version).header("x-ms-lease-time", left))
    }

    pub(super) fn acquire_file_lease(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let (duration, proposed) = (self.duration()?, self.request.lease_id(PROPOSED)?);
        let leased = share.lease_acquire(self.plainly(), &path, duration, proposed)?;
        Ok(of_file(Reply::created(), &leased.properties).header(LEASE_ID, leased.id))
    }

    pub(super) fn release_file_lease(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let file = share.lease_release(self.plainly(), &path, self.lease_header(LEASE_ID)?)?;
        Ok(of_file(Reply::ok(), &file))
    }

    pub(super) fn change_file_lease(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let (current, proposed) = (self.lease_header(LEASE_ID)?, self.lease_header(PROPOSED)?);
        let leased = share.lease_change(self.plainly(), &path, current, proposed)?;
        Ok(of_file(Reply::ok(), &leased.properties).header(LEASE_ID, leased.id))
    }

    pub(super) fn break_file_lease(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let file = share.lease_break(self.plainly(), &path)?;
        Ok(of_file(Reply::accepted(), &file).header("x-ms-lease-time", 0))
    }

    /// Without the lease ID as a condition: it is the action's own.
    fn plainly(&self) -> crate::file::service::Asking<'_> {
        crate::file::service::Asking { cx: self.cx(), lease_id: None }
    }
}

fn of_file(reply: Reply, file: &FileProperties) -> Reply {
    reply.version(file.etag(), file.last_modified())
}
