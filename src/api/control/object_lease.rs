//! Leases of blobs and containers, shown with their ID and ended without it. The rules are decided
//! by the engine; leases of files and shares are in [`super::account`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::address::ObjectAddress;
use super::connection::{ControlConnection, RequestFailure};
use super::objects::address;
use super::protocol::ControlAnswer;
use crate::blob::rules::BlobDenial;
use crate::blob::service::{BlobAt, BlobError, LeaseAction};
use crate::rules::conditions::Conditions;
use crate::rules::lease::{LeaseDenial, LeaseKind, LeaseState, TimedLease};
use crate::rules::{Caller, Context, Timestamp};

/// The lease of a blob or a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl ControlConnection {
    /// The lease of a blob or a container.
    pub(super) fn object_lease(&self, object: &str) -> Result<ControlAnswer, RequestFailure> {
        Ok(ControlAnswer::ObjectLease(self.lease_of(&address(object)?)?))
    }

    fn lease_of(&self, address: &ObjectAddress) -> Result<ObjectLease, RequestFailure> {
        let (now, service) = (self.now(), self.blob()?);
        Ok(match address {
            ObjectAddress::Blob { container, name } => {
                let at = BlobAt::new(container.as_str(), name.as_str());
                let state = service.why(now, &at)?.state;
                let state = state.ok_or_else(|| {
                    RequestFailure::from(BlobError::from(BlobDenial::BlobNotFound))
                })?;
                self.lease_row(address, &state.lease, now)
            }
            ObjectAddress::Container(name) => {
                let state = service.container_now(name);
                let state = state.ok_or_else(|| {
                    RequestFailure::from(BlobError::from(BlobDenial::ContainerNotFound))
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
    ) -> Result<ControlAnswer, RequestFailure> {
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
                Ok(ControlAnswer::LeaseBroken { was_leased, seconds })
            }
            Err(error) => match error.denial() {
                Some(BlobDenial::Lease(LeaseDenial::LeaseNotPresentWithLeaseOperation(_))) => {
                    Ok(ControlAnswer::LeaseBroken { was_leased: false, seconds: 0 })
                }
                _ => Err(error.into()),
            },
        }
    }

    /// The context of a request that has no operation of a service; `command` is the command that
    /// sends it.
    pub(super) fn context(&self, command: &'static str) -> Context {
        let mut owner = self.owner.clone();
        owner.program.get_or_insert_with(|| format!("latchfs {command}").into());
        let mut caller = Caller::local(Arc::new(owner), command);
        caller.user_agent = Some(self.owner.client.name.as_str().into());
        Context::new(self.now(), caller)
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
fn wait<T>(operation: impl Future<Output = T>) -> Result<T, RequestFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| {
        RequestFailure::system(format!("no thread can wait for the engine: {error}"))
    })?;
    Ok(runtime.block_on(operation))
}
