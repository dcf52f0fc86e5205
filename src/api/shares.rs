//! Requests about shares as a whole: their list, leases and snapshots. Decides the meaning of a
//! request and the wording of its answer; the rules are decided by the engine.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::leases::LeaseBroken;
use super::rows::{FileLeaseRow, MountRow, ShareEntry};
use super::session::Session;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::shares::{
    Control, DeleteShareSnapshots, ListOptions, NewShare, ShareChanges, ShareRef, SnapshotName,
};
use crate::file::service::{Asking, FileError, FileServiceError, Obstacle, Share, ShareDenial};
use crate::rules::lease::{FileLease, LeaseDenial, LeaseState};

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
                mounts: here.cloned().map(MountRow::from).collect(),
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

    pub(super) fn file_lease(
        &self,
        name: Option<&str>,
        path: &str,
    ) -> Result<FileLeaseRow, ApiFailure> {
        let (share, path) = self.target(name, path)?;
        if path == SharePath::root() {
            return self.share_lease(&share);
        }
        let (path, lease) = match file_lease(&share, &path) {
            Ok(found) => found,
            Err(error) => return Err(self.refused(&share, &path, error)),
        };
        let id = match lease {
            FileLease::Available => None,
            FileLease::Leased(id) | FileLease::Broken(id) => Some(id.to_string()),
        };
        Ok(FileLeaseRow {
            share_name: share.name().to_string(),
            path: path.to_string(),
            state: lease.state().to_string(),
            status: lease.status().to_string(),
            duration: lease.duration().map(|duration| duration.to_string()),
            id,
        })
    }

    fn share_lease(&self, share: &Share) -> Result<FileLeaseRow, ApiFailure> {
        let info = self.account.file().properties(&ShareRef::new(share.name()))?;
        Ok(FileLeaseRow {
            share_name: share.name().to_string(),
            path: SharePath::root().to_string(),
            state: info.lease.state.to_string(),
            status: info.lease.status.to_string(),
            duration: info.lease.duration.map(|duration| duration.to_string()),
            id: None,
        })
    }

    pub(super) fn break_file_lease(
        &self,
        name: Option<&str>,
        path: &str,
        period: Option<u32>,
    ) -> Result<LeaseBroken, ApiFailure> {
        let (share, path) = self.target(name, path)?;
        let none = Ok(LeaseBroken { was_leased: false, seconds: 0 });
        if path == SharePath::root() {
            let at = ShareRef::new(share.name());
            // A lease that was broken before can be broken again; then there is none to end.
            let before = self.account.file().properties(&at)?.lease.state;
            let was_leased = before != LeaseState::Broken;
            return match self.account.file().break_lease(&at, period.map(Into::into)) {
                Ok((seconds, _)) => Ok(LeaseBroken { was_leased, seconds }),
                Err(FileServiceError::Denied(ShareDenial::Lease(denial))) if is_none(denial) => {
                    none
                }
                Err(error) => Err(error.into()),
            };
        }
        let before = file_lease(&share, &path);
        let was_leased = before.is_ok_and(|(_, lease)| lease.state() != LeaseState::Broken);
        match share.lease_break(Asking { cx: &self.context("lease break"), lease_id: None }, &path)
        {
            Ok(_) => Ok(LeaseBroken { was_leased, seconds: 0 }),
            Err(FileError::Denied(Denial::Lease(denial))) if is_none(denial) => none,
            Err(error) => Err(self.refused(&share, &path, error)),
        }
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

/// The file as spelled on disk, and its lease.
fn file_lease(
    share: &Share,
    path: &SharePath,
) -> crate::file::service::Result<(SharePath, FileLease)> {
    let found = share.lookup(path)?;
    let lease = share.why(&found.path)?.into_iter().find_map(|standing| match standing {
        Obstacle::Lease(lease) => Some(lease),
        _ => None,
    });
    Ok((found.path, lease.unwrap_or_default()))
}

/// True if there was no lease to act on.
fn is_none(denial: LeaseDenial) -> bool {
    matches!(denial, LeaseDenial::LeaseNotPresentWithLeaseOperation(_))
}
