//! Containers: create, delete, restore, list; metadata, access policies, lease.
//!
//! Decides which changes move a container's `ETag`. Blobs coming and going do not.

use super::access::AccessConditions;
use super::change::BlobChange;
use super::lease::{LeaseAction, LeaseAnswer};
use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::{BlobDenial, BlobMetadata, BlobOperation, ContainerState, PublicAccess};
use crate::blob::store::{BlobTx, ContainerRow};
use crate::db::DbService as _;
use crate::rules::conditions::Conditions;
use crate::rules::lease::ContainerLease;
use crate::rules::policy::{StoredPolicy, check_policies};
use crate::rules::service::ServiceKind;
use crate::rules::{Context, Timestamp};

/// The arguments of Create Container.
#[derive(Clone, Debug, Default)]
pub struct NewContainer {
    /// `x-ms-meta-*`.
    pub metadata: BlobMetadata,
    /// The part that anonymous requests may read.
    pub access: PublicAccess,
    pub encryption_scope: Option<String>,
    pub deny_scope_override: bool,
}

/// A container as it is listed.
pub type Container = ContainerRow<ContainerState>;

/// A page of containers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContainerPage {
    /// In order of their names.
    pub containers: Vec<Container>,
    /// The name that the next page begins with.
    pub next: Option<String>,
}

impl BlobService {
    pub async fn create_container(
        &self,
        cx: &Context,
        name: &str,
        new: NewContainer,
    ) -> BlobResult<ContainerState> {
        let name = name.to_owned();
        self.change(cx, move |change| {
            change.check_container_free(&name)?;
            let etag = change.etag()?;
            let mut state = ContainerState::new(etag, change.now);
            state.metadata = new.metadata;
            state.access = new.access;
            state.encryption_scope = new.encryption_scope;
            state.deny_scope_override = new.deny_scope_override;
            let operation = BlobOperation::ContainerCreate;
            state.writer = Some(change.writer(operation, &name, None, (None, Some(etag))));
            let made = change.tx.add_container(&name, &state)?;
            made.ok_or(BlobDenial::ContainerAlreadyExists)?;
            Ok(state)
        })
        .await
    }

    /// Reads of a container: properties, metadata, access policies.
    pub fn container(
        &self,
        cx: &Context,
        operation: BlobOperation,
        name: &str,
        asked: &AccessConditions,
    ) -> BlobResult<ContainerState> {
        self.look(cx, |look| {
            let row = look.container(name)?;
            look.admit_container(operation, asked, &row)?;
            Ok(row.record)
        })
    }

    /// A container as it authorises requests; `None` if there is none, or it cannot be read. Not
    /// for an event loop.
    pub fn container_now(&self, name: &str) -> Option<ContainerState> {
        let find = |tx: &BlobTx<'_>| Ok::<_, BlobError>(tx.container::<ContainerState>(name)?);
        self.store.read(find).ok()?.map(|row| row.record)
    }

    /// Set Container Metadata: replaces all of it.
    pub async fn set_container_metadata(
        &self,
        cx: &Context,
        name: &str,
        asked: AccessConditions,
        metadata: BlobMetadata,
    ) -> BlobResult<ContainerState> {
        let operation = BlobOperation::ContainerSetMetadata;
        self.change_container(cx, operation, name, asked, move |_, state| {
            state.metadata = metadata;
            Ok(())
        })
        .await
    }

    /// Set Container ACL: replaces policies and public access (S18).
    pub async fn set_container_access(
        &self,
        cx: &Context,
        name: &str,
        asked: AccessConditions,
        access: PublicAccess,
        policies: Vec<StoredPolicy>,
    ) -> BlobResult<ContainerState> {
        check_policies(ServiceKind::Blob, &policies).map_err(BlobDenial::from)?;
        let operation = BlobOperation::ContainerSetAccessPolicy;
        self.change_container(cx, operation, name, asked, move |change, state| {
            let effective = change.now.after(change.memory.options.acl_delay);
            state.set_access(access, policies, change.now, effective);
            Ok(())
        })
        .await
    }

    async fn change_container<F>(
        &self,
        cx: &Context,
        operation: BlobOperation,
        name: &str,
        asked: AccessConditions,
        set: F,
    ) -> BlobResult<ContainerState>
    where
        F: FnOnce(&BlobChange<'_>, &mut ContainerState) -> BlobResult<()> + Clone + Send + 'static,
    {
        let name = name.to_owned();
        self.change(cx, move |change| {
            let mut row = change.container(&name)?;
            change.admit_container(operation, &asked, &row)?;
            set(change, &mut row.record)?;
            let (before, etag) = (row.record.etag, change.etag()?);
            row.record.touch(etag, change.now);
            let writer = change.writer(operation, &name, None, (Some(before), Some(etag)));
            row.record.writer = Some(writer);
            change.tx.update_container(row.id, &row.record)?;
            Ok(row.record)
        })
        .await
    }

    /// Delete Container. Leases of its blobs do not stand in the way.
    pub async fn delete_container(
        &self,
        cx: &Context,
        name: &str,
        asked: AccessConditions,
    ) -> BlobResult<()> {
        let name = name.to_owned();
        self.delete(cx, move |change| {
            let mut row = change.container(&name)?;
            let operation = BlobOperation::ContainerDelete;
            change.admit_container(operation, &asked, &row)?;
            change.writer(operation, &name, None, (Some(row.record.etag), None));
            let Some(retained) = change.retention() else {
                return Ok(change.tx.delete_container(row.id, None)?);
            };
            row.record.lease = ContainerLease::default();
            row.record.leaser = None;
            change.tx.update_container(row.id, &row.record)?;
            let version = change.etag()?.to_string();
            Ok(change.tx.delete_container(row.id, Some((&version, retained)))?)
        })
        .await
    }

    /// Restore Container: the deleted container of that name and version comes back as `to`.
    pub async fn restore_container(
        &self,
        cx: &Context,
        deleted: &str,
        version: &str,
        to: &str,
    ) -> BlobResult<()> {
        let (deleted, version, to) = (deleted.to_owned(), version.to_owned(), to.to_owned());
        self.change(cx, move |change| {
            let found = change.tx.deleted_container::<ContainerState>(&deleted, &version)?;
            let row = found.filter(|row| is_kept(row, change.now));
            let row = row.ok_or(BlobDenial::ContainerNotFound)?;
            change.check_container_free(&to)?;
            let etags = (None, Some(row.record.etag));
            change.writer(BlobOperation::ContainerRestore, &to, None, etags);
            if !change.tx.restore_container(row.id, &to)? {
                return Err(BlobDenial::ContainerAlreadyExists.into());
            }
            Ok(())
        })
        .await
    }

    pub fn list_containers(
        &self,
        cx: &Context,
        prefix: &str,
        from: Option<&str>,
        limit: usize,
        deleted: bool,
    ) -> BlobResult<ContainerPage> {
        self.look(cx, |look| {
            let (mut containers, next) = look.tx.list_containers(prefix, from, limit, deleted)?;
            containers.retain(|row| is_kept(row, look.now));
            Ok(ContainerPage { containers, next })
        })
    }

    pub async fn lease_container(
        &self,
        cx: &Context,
        name: &str,
        conditions: Conditions,
        action: LeaseAction,
    ) -> BlobResult<LeaseAnswer> {
        let name = name.to_owned();
        self.change(cx, move |change| {
            let mut row = change.container(&name)?;
            let operation = action.on_container();
            let asked = AccessConditions { conditions, ..AccessConditions::default() };
            change.admit_container(operation, &asked, &row)?;
            let applied = action.apply(&mut row.record.lease, change.now);
            let leaser = row.record.leaser.take();
            let (id, seconds) =
                applied.map_err(|denial| BlobError::by(denial.into(), None, leaser.as_ref()))?;
            let etag = Some(row.record.etag);
            let by = change.writer(operation, &name, None, (etag, etag));
            change.leased_until(row.record.lease.until());
            row.record.leaser = action.leaser(by);
            change.tx.update_container(row.id, &row.record)?;
            let version = Some((row.record.etag, row.record.modified));
            Ok(LeaseAnswer { id, seconds, version })
        })
        .await
    }
}

/// Whether a container is there, or deleted and still kept.
fn is_kept(row: &Container, now: Timestamp) -> bool {
    row.retained.as_ref().is_none_or(|(_, retained)| retained.until > now)
}
