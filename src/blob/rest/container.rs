//! Containers: create, delete, restore; properties, metadata, access policies, lease.

use hyper::body::Incoming;

use super::BlobCall;
use super::body::DOCUMENT_MAX;
use super::settings::leased_reply;
use crate::blob::rules::{BlobOperation, ContainerState, PublicAccess};
use crate::blob::service::NewContainer;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_timed_policies, write_policies};
use crate::http::reply::Reply;
use crate::rules::policy::SentPolicy;

const ACCESS: &str = "x-ms-blob-public-access";

impl BlobCall<'_> {
    pub(super) async fn create_container(self, _: Incoming) -> Answer {
        let name = self.container_name()?;
        let new = NewContainer {
            metadata: self.metadata_sent()?,
            access: self.access_sent()?,
            encryption_scope: self.header("x-ms-default-encryption-scope")?.map(str::to_owned),
            deny_scope_override: self.flag("x-ms-deny-encryption-scope-override")?,
        };
        let made = self.told(self.engine()?.create_container(self.cx(), name, new).await)?;
        Ok(Reply::created().etag(made.etag, made.modified))
    }

    /// `x-ms-blob-public-access`; absent is private.
    fn access_sent(&self) -> Result<PublicAccess, Refusal> {
        let Some(text) = self.header(ACCESS)? else { return Ok(PublicAccess::Private) };
        text.parse().map_err(|()| Refusal::header(ACCESS, text, "it must be blob or container"))
    }

    fn container(&self, operation: BlobOperation) -> Result<ContainerState, Refusal> {
        let (name, asked) = (self.container_name()?, self.asked(operation)?);
        self.told(self.engine()?.container(self.cx(), operation, name, &asked))
    }

    pub(super) fn container_properties(self) -> Answer {
        let state = self.container(BlobOperation::ContainerGetProperties)?;
        let scope = state.encryption_scope.as_deref().unwrap_or("$account-encryption-key");
        Ok(Reply::ok()
            .etag(state.etag, state.modified)
            .blob_metadata(&state.metadata)
            .lease(&state.lease, self.now)
            .maybe(ACCESS, shown_access(state.access))
            .header("x-ms-has-immutability-policy", "false")
            .header("x-ms-has-legal-hold", "false")
            .header("x-ms-immutable-storage-with-versioning-enabled", "false")
            .header("x-ms-default-encryption-scope", scope)
            .header("x-ms-deny-encryption-scope-override", state.deny_scope_override))
    }

    pub(super) fn container_metadata(self) -> Answer {
        let state = self.container(BlobOperation::ContainerGetMetadata)?;
        Ok(Reply::ok().etag(state.etag, state.modified).blob_metadata(&state.metadata))
    }

    pub(super) async fn set_container_metadata(self, _: Incoming) -> Answer {
        let operation = BlobOperation::ContainerSetMetadata;
        let (name, asked) = (self.container_name()?, self.asked(operation)?);
        let metadata = self.metadata_sent()?;
        let set = self.engine()?.set_container_metadata(self.cx(), name, asked, metadata).await;
        let state = self.told(set)?;
        Ok(Reply::ok().etag(state.etag, state.modified))
    }

    pub(super) fn container_acl(self) -> Answer {
        let state = self.container(BlobOperation::ContainerGetAccessPolicy)?;
        let policies = state.policies.iter().map(SentPolicy::from);
        let xml = write_policies(policies);
        Ok(Reply::ok()
            .xml(xml)
            .etag(state.etag, state.modified)
            .maybe(ACCESS, shown_access(state.access)))
    }

    pub(super) async fn set_container_acl(self, body: Incoming) -> Answer {
        let document = self.collect_up_to(DOCUMENT_MAX, body).await?;
        let operation = BlobOperation::ContainerSetAccessPolicy;
        let (name, asked) = (self.container_name()?, self.asked(operation)?);
        let (access, policies) = (self.access_sent()?, read_timed_policies(&document)?);
        let engine = self.engine()?;
        let set = engine.set_container_access(self.cx(), name, asked, access, policies).await;
        let state = self.told(set)?;
        Ok(Reply::ok().etag(state.etag, state.modified))
    }

    pub(super) async fn delete_container(self, _: Incoming) -> Answer {
        let (name, asked) = (self.container_name()?, self.asked(BlobOperation::ContainerDelete)?);
        self.told(self.engine()?.delete_container(self.cx(), name, asked).await)?;
        Ok(Reply::accepted())
    }

    pub(super) async fn restore_container(self, _: Incoming) -> Answer {
        let to = self.container_name()?;
        let deleted = self.required("x-ms-deleted-container-name")?;
        let version = self.required("x-ms-deleted-container-version")?;
        let engine = self.engine()?;
        self.told(engine.restore_container(self.cx(), deleted, version, to).await)?;
        Ok(Reply::created())
    }

    pub(super) async fn lease_container(self, _: Incoming) -> Answer {
        let action = self.lease_action()?;
        let name = self.container_name()?;
        let conditions = self.asked(action.on_container())?.conditions;
        let done = self.engine()?.lease_container(self.cx(), name, conditions, action).await;
        Ok(leased_reply(action, &self.told(done)?))
    }
}

/// The level of public access, unless there is none.
pub(super) fn shown_access(access: PublicAccess) -> Option<PublicAccess> {
    Some(access).filter(|access| *access != PublicAccess::Private)
}
