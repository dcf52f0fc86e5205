//! Lists the blobs and containers that are leased now, for reports.

use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::{BlobState, ContainerState};
use crate::rules::lease::{BlobLease, ContainerLease, LeaseStatus};
use crate::rules::{Timestamp, Writer};

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
