//! Requests about shares as a whole: their list and their snapshots. Decides the meaning of a
//! request and the wording of its answer; the rules are decided by the engine.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::session::Session;
use super::status::MountRow;
use crate::file::service::shares::{
    Control, DeleteShareSnapshots, ListOptions, NewShare, ShareChanges, ShareRef, SnapshotName,
};

/// How often a client is told how far a snapshot is.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Asks for the shares.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetShares {
    /// And those that can be restored
    #[serde(default)]
    pub deleted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShareList {
    pub shares: Vec<ShareEntry>,
}

/// A share with what it is as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareEntry {
    pub name: String,
    pub quota_gib: u32,
    /// How many snapshots it has.
    pub snapshots: usize,
    /// The state of its lease, as REST names it.
    pub lease: String,
    /// Where it is mounted.
    pub mounts: Vec<MountRow>,
    /// Its version, if it was deleted and can be restored.
    pub deleted: Option<String>,
}

/// A share to make.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "name": "more" }]))]
pub struct CreateShare {
    pub name: String,
    pub quota_gib: Option<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShareCreated {
    pub created: String,
}

/// A share to delete.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeleteShare {
    pub name: String,
    /// And its snapshots, leased or not; without it, one that has any is refused
    #[serde(default)]
    pub snapshots: bool,
}

/// A share or a snapshot was deleted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    pub deleted: String,
}

/// Asks for the snapshots of a share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetSnapshots {
    /// The share; the only one without it
    pub share: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotList {
    pub share: String,
    /// Their stamps, oldest first.
    pub snapshots: Vec<String>,
}

/// Takes a snapshot. The answer is a line for each [`SnapshotProgress`] before the last.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{}]))]
pub struct CreateSnapshot {
    /// The share; the only one without it
    pub share: Option<String>,
}

/// How far a snapshot is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotProgress {
    pub files: u64,
    pub bytes: u64,
}

/// The snapshot that was taken.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotTaken {
    pub share: String,
    pub snapshot: String,
}

/// A snapshot to delete.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeleteSnapshot {
    pub snapshot: String,
    /// The share; the only one without it
    pub share: Option<String>,
}

impl Session {
    pub fn list_shares(&self, of: GetShares) -> Result<ShareList, ApiFailure> {
        let deleted = of.deleted;
        let options = ListOptions { snapshots: true, deleted, ..ListOptions::default() };
        let mounts = self.serving.mounts();
        let mut shares = Vec::new();
        // Those of a share come right before it.
        let mut snapshots = 0;
        for info in self.account.file().every_share(&options)? {
            if info.snapshot.is_some() {
                snapshots += 1;
                continue;
            }
            let gone = info.deleted.is_some();
            let here = mounts.iter().filter(|mount| {
                !gone && *mount.share == *info.name && *mount.account == **self.account.name()
            });
            shares.push(ShareEntry {
                name: info.name.to_string(),
                quota_gib: info.properties.quota_gib,
                snapshots: std::mem::take(&mut snapshots),
                lease: info.lease.state.to_string(),
                mounts: here.cloned().collect(),
                deleted: info.deleted.map(|deleted| deleted.version),
            });
        }
        Ok(ShareList { shares })
    }

    pub fn create_share(&self, share: CreateShare) -> Result<ShareCreated, ApiFailure> {
        let CreateShare { name, quota_gib } = share;
        let changes =
            ShareChanges { quota_gib: quota_gib.map(Into::into), ..ShareChanges::default() };
        let new = NewShare { changes, ..NewShare::default() };
        self.account.file().create_share(&name, new)?;
        Ok(ShareCreated { created: name })
    }

    pub fn delete_share(&self, share: DeleteShare) -> Result<Deleted, ApiFailure> {
        let DeleteShare { name, snapshots } = share;
        let snapshots = if snapshots {
            DeleteShareSnapshots::IncludeLeased
        } else {
            DeleteShareSnapshots::None
        };
        self.account.file().delete_share(
            &self.context("shares delete"),
            &ShareRef::new(&name),
            snapshots,
        )?;
        Ok(Deleted { deleted: name })
    }

    /// Takes a snapshot; `progress` is told now and then how far it is.
    pub fn create_snapshot(
        &self,
        of: &CreateSnapshot,
        mut progress: impl FnMut(SnapshotProgress),
    ) -> Result<SnapshotTaken, ApiFailure> {
        let share = self.share(of.share.as_deref())?;
        let mut next = Instant::now();
        let made =
            self.account.file().create_snapshot(&ShareRef::new(share.name()), None, &mut |done| {
                if Instant::now() >= next {
                    next = Instant::now() + REPORT_EVERY;
                    let (files, bytes) = (done.files_done, done.bytes_done);
                    progress(SnapshotProgress { files, bytes });
                }
                Control::Continue
            });
        let (snapshot, _) = made?;
        Ok(SnapshotTaken { share: share.name().to_string(), snapshot: snapshot.to_string() })
    }

    pub fn list_snapshots(&self, of: GetSnapshots) -> Result<SnapshotList, ApiFailure> {
        let share = self.share(of.share.as_deref())?;
        let found = self.account.file().snapshots(share.name())?;
        let snapshots = found.iter().map(ToString::to_string).collect();
        Ok(SnapshotList { share: share.name().to_string(), snapshots })
    }

    pub fn delete_snapshot(&self, of: DeleteSnapshot) -> Result<Deleted, ApiFailure> {
        let share = self.share(of.share.as_deref())?;
        let DeleteSnapshot { snapshot, .. } = of;
        let name = SnapshotName::parse(&snapshot).ok_or_else(|| {
            format!(
                "'{snapshot}' is not a snapshot: use a time as `latchfs snapshot list` shows it"
            )
        })?;
        self.account.file().delete_snapshot(&ShareRef::new(share.name()).at(&name))?;
        Ok(Deleted { deleted: snapshot })
    }
}
