//! Lease actions on blobs and containers, and the list of those that are leased now.
//!
//! What an action does in which state is decided in [`crate::rules::lease`]. A lease is committed
//! before it is answered, so it outlives a restart.

use super::access::{AccessConditions, BlobAt};
use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::tags::query::TagQuery;
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, ContainerState};
use crate::blob::store::StateKey;
use crate::db::DbService as _;
use crate::rules::conditions::Conditions;
pub use crate::rules::lease::LeaseAction;
use crate::rules::lease::{BlobLease, ContainerLease, LeaseId, LeaseStatus};
use crate::rules::{Context, Etag, Timestamp, Writer};

/// The answer to a lease request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseAnswer {
    pub id: Option<LeaseId>,
    pub seconds: Option<u64>,
    /// `ETag` and Last-Modified, unmoved; an uncommitted blob has none.
    pub version: Option<(Etag, Timestamp)>,
}

impl LeaseAction {
    /// The request of the action as the one that refusals name; none after a release.
    pub(super) fn leaser(self, by: Writer) -> Option<Writer> {
        let word = match self {
            Self::Acquire { .. } => "acquire",
            Self::Renew(_) => "renew",
            Self::Change { .. } => "change",
            Self::Break(_) => "break",
            Self::Release(_) => return None,
        };
        Some(Writer { operation: format!("{} ({word})", by.operation), ..by })
    }

    /// The operation on a blob.
    pub const fn on_blob(self) -> BlobOperation {
        match self {
            Self::Acquire { .. } => BlobOperation::BlobAcquireLease,
            Self::Renew(_) => BlobOperation::BlobRenewLease,
            Self::Change { .. } => BlobOperation::BlobChangeLease,
            Self::Release(_) => BlobOperation::BlobReleaseLease,
            Self::Break(_) => BlobOperation::BlobBreakLease,
        }
    }

    /// The operation on a container.
    pub const fn on_container(self) -> BlobOperation {
        match self {
            Self::Acquire { .. } => BlobOperation::ContainerAcquireLease,
            Self::Renew(_) => BlobOperation::ContainerRenewLease,
            Self::Change { .. } => BlobOperation::ContainerChangeLease,
            Self::Release(_) => BlobOperation::ContainerReleaseLease,
            Self::Break(_) => BlobOperation::ContainerBreakLease,
        }
    }
}

impl BlobService {
    pub async fn lease_blob(
        &self,
        cx: &Context,
        at: &BlobAt,
        conditions: Conditions,
        tags: Option<TagQuery>,
        action: LeaseAction,
    ) -> BlobResult<LeaseAnswer> {
        let at = at.clone();
        self.change(cx, move |change| {
            let operation = action.on_blob();
            let asked = AccessConditions { conditions, tags, ..AccessConditions::default() };
            let place = change.admitted(operation, &at, &asked)?;
            let mut row = place.row.ok_or(BlobDenial::BlobNotFound)?;
            let applied = action.apply(&mut row.record.lease, change.now);
            let leaser = row.record.leaser.take();
            let (id, seconds) =
                applied.map_err(|denial| BlobError::by(denial.into(), None, leaser.as_ref()))?;
            let committed = row.key != StateKey::Uncommitted;
            let etag = committed.then_some(row.record.etag);
            let by = change.writer(operation, &at.container, Some(&at.name), (etag, etag));
            change.leased_until(row.record.lease.until());
            row.record.leaser = action.leaser(by);
            change.tx.update(row.id, &row.record)?;
            let version = etag.map(|etag| (etag, row.record.modified));
            Ok(LeaseAnswer { id, seconds, version })
        })
        .await
    }
}

/// The leases in force.
#[derive(Debug, Default)]
pub struct Leases {
    pub containers: Vec<(String, ContainerLease, Option<Writer>)>,
    /// Blobs, by container and name.
    pub blobs: Vec<((String, String), BlobLease, Option<Writer>)>,
    /// How many blobs were not looked at.
    pub unsearched: u64,
}

impl BlobService {
    /// The leases in force, with the request that acquired, renewed, changed or broke each last.
    /// May wait.
    pub fn leases(&self, now: Timestamp) -> BlobResult<Leases> {
        let (containers, blobs) = self.store.read::<_, BlobError>(|tx| {
            Ok((tx.leased_containers::<ContainerState>()?, tx.leased_blobs::<BlobState>()?))
        })?;
        let containers = containers
            .into_iter()
            .filter(|row| row.record.lease.status(now) == LeaseStatus::Locked)
            .map(|row| (row.name, row.record.lease, row.record.leaser))
            .collect();
        let found = blobs
            .blobs
            .into_iter()
            .filter(|(_, row)| row.record.lease.status(now) == LeaseStatus::Locked)
            .map(|(container, row)| ((container, row.name), row.record.lease, row.record.leaser))
            .collect();
        Ok(Leases { containers, blobs: found, unsearched: blobs.unsearched })
    }
}
