//! Leases of blobs and containers, shown with their ID and ended without it. The rules are decided
//! by the engine; leases of files and shares are in [`super::account`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{ObjectAddress, PrintedFile};
use super::failure::ApiFailure;
use super::objects::address;
use super::rows::FileLeaseRow;
use super::session::Session;
use crate::blob::rules::BlobDenial;
use crate::blob::service::{BlobAt, BlobError, LeaseAction};
use crate::rules::Timestamp;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{LeaseDenial, LeaseKind, LeaseState, TimedLease};

/// The lease of a blob or a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLease {
    pub account: String,
    pub object: String,
    /// The value of `x-ms-lease-state`.
    pub state: String,
    /// The value of `x-ms-lease-status`.
    pub status: String,
    /// The value of `x-ms-lease-duration`, while the object is leased.
    pub duration: Option<String>,
    /// Its ID, also of one that is over.
    pub id: Option<String>,
    /// When it ends by itself.
    pub seconds_left: Option<u64>,
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
            None => LeaseShown::Object(self.object_lease(&object)?),
        })
    }

    /// Ends a lease.
    pub fn break_lease(&self, of: BreakLease) -> Result<LeaseBroken, ApiFailure> {
        let BreakLease { object, period } = of;
        match file_of(&object) {
            Some((share, path)) => self.break_file_lease(share.as_deref(), &path, period),
            None => self.break_object_lease(&object, period),
        }
    }

    /// The lease of a blob or a container.
    pub(super) fn object_lease(&self, object: &str) -> Result<ObjectLease, ApiFailure> {
        self.lease_of(&address(object)?)
    }

    fn lease_of(&self, address: &ObjectAddress) -> Result<ObjectLease, ApiFailure> {
        let (now, service) = (self.now(), self.blob()?);
        Ok(match address {
            ObjectAddress::Blob { container, name } => {
                let at = BlobAt::new(container.as_str(), name.as_str());
                let state = service.why(now, &at)?.state;
                let state = state
                    .ok_or_else(|| ApiFailure::from(BlobError::from(BlobDenial::BlobNotFound)))?;
                self.lease_row(address, &state.lease, now)
            }
            ObjectAddress::Container(name) => {
                let state = service.container_now(name);
                let state = state.ok_or_else(|| {
                    ApiFailure::from(BlobError::from(BlobDenial::ContainerNotFound))
                })?;
                self.lease_row(address, &state.lease, now)
            }
            other => Err(without_lease(other))?,
        })
    }

    /// Ends the lease of a blob or a container, at once or within `period` seconds.
    pub(super) fn break_object_lease(
        &self,
        object: &str,
        period: Option<u32>,
    ) -> Result<LeaseBroken, ApiFailure> {
        let address = address(object)?;
        let service = self.blob()?;
        let context = self.context("Break Lease");
        let action = LeaseAction::Break(period.map(Into::into));
        // A lease that was broken before can be broken again; then there is none to end.
        let before = self.lease_of(&address)?;
        let was_leased = before.state != LeaseState::Broken.to_string();
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
                Some(BlobDenial::Lease(LeaseDenial::LeaseNotPresentWithLeaseOperation(_))) => {
                    Ok(LeaseBroken { was_leased: false, seconds: 0 })
                }
                _ => Err(error.into()),
            },
        }
    }

    pub(super) fn lease_row<K: LeaseKind>(
        &self,
        address: &ObjectAddress,
        lease: &TimedLease<K>,
        now: Timestamp,
    ) -> ObjectLease {
        ObjectLease {
            account: self.account.name().to_string(),
            object: address.to_string(),
            state: lease.state(now).to_string(),
            status: lease.status(now).to_string(),
            duration: lease.duration(now).map(|duration| duration.to_string()),
            id: lease.id().map(|id| id.to_string()),
            seconds_left: lease.seconds_left(now),
        }
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
