//! Leases of files, shares, blobs and containers: listed, shown with their ID, ended without it.
//! The services decide the rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{ObjectAddress, PrintedFile};
use super::failure::ApiFailure;
use super::held::HELD_MAX;
use super::objects::{ChangeRow, address};
use super::routes::GetLeases;
use super::session::Session;
use crate::blob::rules::BlobDenial;
use crate::blob::service::{BlobAt, BlobError, LeaseAction};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::shares::{LeaseView, ListOptions, ShareRef};
use crate::file::service::{Asking, FileError, FileServiceError, Obstacle, Share, ShareDenial};
use crate::rules::Writer;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{
    FileLease, LeaseDenial, LeaseDuration, LeaseId, LeaseKind, LeaseState, LeaseStatus, TimedLease,
};

/// The state of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseFields {
    /// The value of `x-ms-lease-state`.
    pub state: String,
    /// The value of `x-ms-lease-status`.
    pub status: String,
    /// The value of `x-ms-lease-duration`, while the object is leased.
    pub duration: Option<String>,
    /// Its ID, also of one that is over; that of a share's lease is not shown.
    pub id: Option<String>,
}

impl LeaseFields {
    fn new(state: LeaseState, duration: Option<LeaseDuration>, id: Option<LeaseId>) -> Self {
        Self {
            state: state.to_string(),
            status: state.status().to_string(),
            duration: duration.map(|duration| duration.to_string()),
            id: id.map(|id| id.to_string()),
        }
    }

    fn of_share(lease: &LeaseView) -> Self {
        Self::new(lease.state, lease.duration, None)
    }

    fn of_file(lease: FileLease) -> Self {
        let id = match lease {
            FileLease::Available => None,
            FileLease::Leased(id) | FileLease::Broken(id) => Some(id),
        };
        Self::new(lease.state(), lease.duration(), id)
    }
}

/// The lease of a file or a share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLeaseRow {
    #[serde(rename = "share")]
    pub share_name: String,
    /// Of what: `/` is the share itself.
    pub path: String,
    #[serde(flatten)]
    pub lease: LeaseFields,
}

/// The lease of an object by its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLease {
    pub account: String,
    pub object: String,
    #[serde(flatten)]
    pub lease: LeaseFields,
    /// When it ends by itself.
    pub seconds_left: Option<u64>,
}

/// A lease in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseRow {
    #[serde(flatten)]
    pub lease: ObjectLease,
    /// The request that acquired, renewed, changed or broke it last, where that is kept.
    pub holder: Option<ChangeRow>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseList {
    /// Of shares and files, then of containers and blobs.
    pub leases: Vec<LeaseRow>,
    /// How many more there are, or may be.
    pub left_out: usize,
}

/// Asks for one lease.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetLease {
    /// As in [`BreakLease`]; `share:` is the only share.
    pub object: String,
}

/// The lease of a file or a share, or of a blob or a container.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LeaseShown {
    File(FileLeaseRow),
    Object(ObjectLease),
}

/// Ends a lease.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "object": "blob:box/b", "period": 0 }]))]
pub struct BreakLease {
    /// Its address.
    #[schemars(description = "file:SHARE/PATH, share:NAME, blob:CONTAINER or blob:CONTAINER/NAME")]
    pub object: String,
    /// Seconds; when its time is over without it
    #[schemars(range(max = 60))]
    pub period: Option<u32>,
}

/// A lease was ended, or there was none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseBroken {
    pub was_leased: bool,
    /// In how many seconds it ends.
    pub seconds: u64,
}

/// The share, if one is named, and the path of an object that is a file or a share. Leases of
/// shares are written `share:NAME` too.
pub fn file_of(object: &str) -> Option<(Option<String>, String)> {
    if let Some(share) = object.strip_prefix("share:") {
        return Some((Some(share.to_owned()).filter(|share| !share.is_empty()), String::new()));
    }
    // An account before the share is left in place: the one of the call is meant.
    PrintedFile::read(object)
        .filter(|file| file.account.is_none())
        .map(|file| (Some(file.share), file.path))
}

impl Session {
    /// The lease of a file, share, blob or container.
    pub fn lease(&self, GetLease { object }: GetLease) -> Result<LeaseShown, ApiFailure> {
        Ok(match file_of(&object) {
            Some((share, path)) => LeaseShown::File(self.file_lease(share.as_deref(), &path)?),
            None => LeaseShown::Object(self.lease_of(&address(&object)?)?),
        })
    }

    pub fn break_lease(&self, of: BreakLease) -> Result<LeaseBroken, ApiFailure> {
        let BreakLease { object, period } = of;
        match file_of(&object) {
            Some((share, path)) => self.break_file_lease(share.as_deref(), &path, period),
            None => self.break_object_lease(&object, period),
        }
    }

    fn lease_of(&self, address: &ObjectAddress) -> Result<ObjectLease, ApiFailure> {
        let (now, service) = (self.now(), self.account.blob()?);
        Ok(match address {
            ObjectAddress::Blob { container, name } => {
                let at = BlobAt::new(container.as_str(), name.as_str());
                let state = service.why(now, &at)?.state;
                let state = state
                    .ok_or_else(|| ApiFailure::from(BlobError::from(BlobDenial::BlobNotFound)))?;
                self.lease_row(address, &state.lease)
            }
            ObjectAddress::Container(name) => {
                let state = service.container_now(name);
                let state = state.ok_or_else(|| {
                    ApiFailure::from(BlobError::from(BlobDenial::ContainerNotFound))
                })?;
                self.lease_row(address, &state.lease)
            }
            other => Err(without_lease(other))?,
        })
    }

    /// Ends the lease of a blob or a container, at once or within `period` seconds.
    fn break_object_lease(
        &self,
        object: &str,
        period: Option<u32>,
    ) -> Result<LeaseBroken, ApiFailure> {
        let address = address(object)?;
        let service = self.account.blob()?;
        let context = self.context("Break Lease");
        let action = LeaseAction::Break(period.map(Into::into));
        // A lease that was broken before can be broken again; then there is none to end.
        let before = self.lease_of(&address)?;
        let was_leased = before.lease.state != LeaseState::Broken.to_string();
        let broken = match &address {
            ObjectAddress::Blob { container, name } => {
                let at = BlobAt::new(container.as_str(), name.as_str());
                let none = Conditions::default();
                wait(service.lease_blob(&context, &at, none, None, action))?
            }
            ObjectAddress::Container(name) => {
                let none = Conditions::default();
                wait(service.lease_container(&context, name, none, action))?
            }
            other => Err(without_lease(other))?,
        };
        match broken {
            Ok(broken) => {
                let seconds = broken.seconds.unwrap_or_default();
                Ok(LeaseBroken { was_leased, seconds })
            }
            Err(error) => match error.denial() {
                Some(BlobDenial::Lease(denial)) if is_none(*denial) => {
                    Ok(LeaseBroken { was_leased: false, seconds: 0 })
                }
                _ => Err(error.into()),
            },
        }
    }

    fn lease_row<K: LeaseKind>(
        &self,
        address: &ObjectAddress,
        lease: &TimedLease<K>,
    ) -> ObjectLease {
        let now = self.now();
        ObjectLease {
            account: self.account.name().to_string(),
            object: address.to_string(),
            lease: LeaseFields::new(lease.state(now), lease.duration(now), lease.id()),
            seconds_left: lease.seconds_left(now),
        }
    }

    fn file_lease(&self, name: Option<&str>, path: &str) -> Result<FileLeaseRow, ApiFailure> {
        let (share, path) = self.target(name, path)?;
        let (path, lease) = if path == SharePath::root() {
            let info = self.account.file().properties(&ShareRef::new(share.name()))?;
            (path, LeaseFields::of_share(&info.lease))
        } else {
            let found = file_lease(&share, &path);
            let (path, lease) = found.map_err(|error| self.refused(&share, &path, error))?;
            (path, LeaseFields::of_file(lease))
        };
        let (share_name, path) = (share.name().to_string(), path.to_string());
        Ok(FileLeaseRow { share_name, path, lease })
    }

    fn break_file_lease(
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
            let action = LeaseAction::Break(period.map(Into::into));
            return match self.account.file().lease(&at, action) {
                Ok(((_, seconds), _)) => {
                    Ok(LeaseBroken { was_leased, seconds: seconds.unwrap_or(0) })
                }
                Err(FileServiceError::Denied(ShareDenial::Lease(denial))) if is_none(denial) => {
                    none
                }
                Err(error) => Err(error.into()),
            };
        }
        let before = file_lease(&share, &path).map(|(_, lease)| lease.state());
        if matches!(before, Ok(LeaseState::Available)) {
            // Asking the service would enter a refusal in the journal.
            return none;
        }
        let was_leased = before.is_ok_and(|state| state != LeaseState::Broken);
        let asking = Asking { cx: &self.context("lease break"), lease_id: None };
        match share.lease_file(asking, &path, LeaseAction::Break(None)) {
            Ok(_) => Ok(LeaseBroken { was_leased, seconds: 0 }),
            Err(FileError::Denied(Denial::Lease(denial))) if is_none(denial) => none,
            Err(error) => Err(self.refused(&share, &path, error)),
        }
    }

    /// Leases in force: of shares and files, then of containers and blobs.
    pub fn leases(&self, _: GetLeases) -> Result<LeaseList, ApiFailure> {
        let now = self.now();
        let (mut leases, mut left_out) = self.file_leases()?;
        if let Some(service) = self.account.used_blob()? {
            let found = service.leases(now)?;
            for (name, lease, leaser) in found.containers {
                leases.push(self.leased(&ObjectAddress::Container(name), &lease, leaser.as_ref()));
            }
            for ((container, name), lease, leaser) in found.blobs {
                let address = ObjectAddress::Blob { container, name };
                leases.push(self.leased(&address, &lease, leaser.as_ref()));
            }
            left_out += usize::try_from(found.unsearched).unwrap_or(usize::MAX);
        }
        left_out += leases.len().saturating_sub(HELD_MAX);
        leases.truncate(HELD_MAX);
        Ok(LeaseList { leases, left_out })
    }

    fn leased<K: LeaseKind>(
        &self,
        address: &ObjectAddress,
        lease: &TimedLease<K>,
        by: Option<&Writer>,
    ) -> LeaseRow {
        let lease = self.lease_row(address, lease);
        LeaseRow { lease, holder: by.map(|by| self.row(address, by, None)) }
    }

    /// Leases of shares and files, and how many have no path that is known.
    fn file_leases(&self) -> Result<(Vec<LeaseRow>, usize), ApiFailure> {
        let (mut leases, mut left_out) = (Vec::new(), 0);
        let mut add = |object: String, lease: LeaseFields, seconds_left: Option<u64>| {
            let account = self.account.name().to_string();
            let lease = ObjectLease { account, object, lease, seconds_left };
            leases.push(LeaseRow { lease, holder: None });
        };
        for info in self.account.file().every_share(&ListOptions::default())? {
            if info.lease.status == LeaseStatus::Locked {
                let fields = LeaseFields::of_share(&info.lease);
                add(format!("share:{}", info.name), fields, info.lease.seconds_left);
            }
        }
        for (share, (files, moved)) in self.ask_shares(None, None, Share::leased_files)? {
            left_out += moved;
            for (path, id) in files {
                let path = path.as_str().trim_matches('/').to_owned();
                let address = ObjectAddress::File { share: share.name().to_string(), path };
                add(address.to_string(), LeaseFields::of_file(FileLease::Leased(id)), None);
            }
        }
        Ok((leases, left_out))
    }
}

fn without_lease(address: &ObjectAddress) -> String {
    format!("{address} has no lease: blobs, containers, shares and files have")
}

/// Waits for an operation of the engine. A connection has a thread of its own.
fn wait<T>(operation: impl Future<Output = T>) -> Result<T, ApiFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| {
        ApiFailure::failed(format!("no thread can wait for the engine: {error}"))
    })?;
    Ok(runtime.block_on(operation))
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
