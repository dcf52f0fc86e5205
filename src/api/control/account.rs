//! Requests about shares as a whole: their list, leases and snapshots. Decides the meaning of a
//! request and the wording of its answer; the rules are decided by the engine.

use std::time::{Duration, Instant};

use super::connection::{ControlConnection, RequestFailure};
use super::protocol::{ControlAnswer, FileLeaseRow, MountRow, ShareEntry};
use super::server::ControlLines;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::shares::{
    Control, DeleteShareSnapshots, ListOptions, NewShare, ShareChanges, ShareRef, SnapshotName,
};
use crate::file::service::{Asking, FileError, FileServiceError, Obstacle, Share, ShareDenial};
use crate::rules::lease::{FileLease, LeaseDenial, LeaseState};

/// How often a client is told how far a snapshot is.
const REPORT_EVERY: Duration = Duration::from_millis(100);

impl ControlConnection {
    pub(super) fn list_shares(&self, deleted: bool) -> Result<ControlAnswer, RequestFailure> {
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
        Ok(ControlAnswer::Shares { shares })
    }

    pub(super) fn create_share(
        &self,
        name: &str,
        quota_gib: Option<u32>,
    ) -> Result<ControlAnswer, RequestFailure> {
        let changes =
            ShareChanges { quota_gib: quota_gib.map(Into::into), ..ShareChanges::default() };
        let new = NewShare { changes, ..NewShare::default() };
        self.account.file().create_share(name, new)?;
        Ok(ControlAnswer::Done {})
    }

    pub(super) fn delete_share(
        &self,
        name: &str,
        snapshots: bool,
    ) -> Result<ControlAnswer, RequestFailure> {
        let snapshots = if snapshots {
            DeleteShareSnapshots::IncludeLeased
        } else {
            DeleteShareSnapshots::None
        };
        self.account.file().delete_share(
            &self.context("shares delete"),
            &ShareRef::new(name),
            snapshots,
        )?;
        Ok(ControlAnswer::Done {})
    }

    pub(super) fn lease(
        &self,
        name: Option<&str>,
        path: &str,
    ) -> Result<ControlAnswer, RequestFailure> {
        let (share, path) = self.target(name, path)?;
        if path == SharePath::root() {
            return self.share_lease(&share);
        }
        let (path, lease) = match file_lease(&share, &path) {
            Ok(found) => found,
            Err(error) => return Err(RequestFailure::Refused(share, path, error)),
        };
        let id = match lease {
            FileLease::Available => None,
            FileLease::Leased(id) | FileLease::Broken(id) => Some(id.to_string()),
        };
        Ok(ControlAnswer::Lease(FileLeaseRow {
            share_name: share.name().to_string(),
            path: path.to_string(),
            state: lease.state().to_string(),
            status: lease.status().to_string(),
            duration: lease.duration().map(|duration| duration.to_string()),
            id,
        }))
    }

    fn share_lease(&self, share: &Share) -> Result<ControlAnswer, RequestFailure> {
        let info = self.account.file().properties(&ShareRef::new(share.name()))?;
        Ok(ControlAnswer::Lease(FileLeaseRow {
            share_name: share.name().to_string(),
            path: SharePath::root().to_string(),
            state: info.lease.state.to_string(),
            status: info.lease.status.to_string(),
            duration: info.lease.duration.map(|duration| duration.to_string()),
            id: None,
        }))
    }

    pub(super) fn break_lease(
        &self,
        name: Option<&str>,
        path: &str,
        period: Option<u32>,
    ) -> Result<ControlAnswer, RequestFailure> {
        let (share, path) = self.target(name, path)?;
        let none = Ok(ControlAnswer::LeaseBroken { was_leased: false, seconds: 0 });
        if path == SharePath::root() {
            let at = ShareRef::new(share.name());
            // A lease that was broken before can be broken again; then there is none to end.
            let before = self.account.file().properties(&at)?.lease.state;
            let was_leased = before != LeaseState::Broken;
            return match self.account.file().break_lease(&at, period.map(Into::into)) {
                Ok((seconds, _)) => Ok(ControlAnswer::LeaseBroken { was_leased, seconds }),
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
            Ok(_) => Ok(ControlAnswer::LeaseBroken { was_leased, seconds: 0 }),
            Err(FileError::Denied(Denial::Lease(denial))) if is_none(denial) => none,
            Err(error) => Err(RequestFailure::Refused(share, path, error)),
        }
    }

    pub(super) fn create_snapshot(
        &self,
        name: Option<&str>,
        lines: &mut ControlLines,
    ) -> Result<ControlAnswer, RequestFailure> {
        let share = self.share(name)?;
        let mut next = Instant::now();
        let made =
            self.account.file().create_snapshot(&ShareRef::new(share.name()), None, &mut |done| {
                if Instant::now() >= next {
                    next = Instant::now() + REPORT_EVERY;
                    let (files, bytes) = (done.files_done, done.bytes_done);
                    lines.write(&ControlAnswer::Progress { files, bytes });
                }
                Control::Continue
            });
        let (snapshot, _) = made?;
        let share_name = share.name().to_string();
        Ok(ControlAnswer::Snapshots { share_name, snapshots: vec![snapshot.to_string()] })
    }

    pub(super) fn list_snapshots(
        &self,
        name: Option<&str>,
    ) -> Result<ControlAnswer, RequestFailure> {
        let share = self.share(name)?;
        let found = self.account.file().snapshots(share.name())?;
        let snapshots = found.iter().map(ToString::to_string).collect();
        Ok(ControlAnswer::Snapshots { share_name: share.name().to_string(), snapshots })
    }

    pub(super) fn delete_snapshot(
        &self,
        name: Option<&str>,
        snapshot: &str,
    ) -> Result<ControlAnswer, RequestFailure> {
        let share = self.share(name)?;
        let snapshot = SnapshotName::parse(snapshot).ok_or_else(|| {
            format!(
                "'{snapshot}' is not a snapshot: use a time as `latchfs snapshot list` shows it"
            )
        })?;
        let at = ShareRef::new(share.name()).at(&snapshot);
        self.account.file().delete_snapshot(&at)?;
        Ok(ControlAnswer::Done {})
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
