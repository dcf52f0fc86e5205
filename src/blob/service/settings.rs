//! Changes of a blob that leave its content: properties, metadata, tags, tier, immutability.
//!
//! Decides which of them move the `ETag` (properties and metadata) and which make a version
//! (metadata).

use super::access::{AccessConditions, BlobAt};
use super::{BlobResult, BlobService, WrittenBlob};
use crate::blob::rules::immutability::ImmutabilityPolicy;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tier::{Tier, TierChange};
use crate::blob::rules::{BlobMetadata, BlobOperation, BlobState, ContentProperties};
use crate::db::DbService as _;
use crate::rules::{Context, Timestamp};

impl BlobService {
    /// Set Blob Properties: all six are replaced, and those that were not sent are cleared.
    pub async fn set_properties(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        content: ContentProperties,
    ) -> BlobResult<WrittenBlob> {
        let at = at.clone();
        let operation = BlobOperation::BlobSetHttpHeaders;
        self.change(cx, move |change| {
            let row = change.admitted(operation, &at, &asked)?.admitted()?;
            let etag = change.etag()?;
            let state = change.update(operation, &at, &row, |state| {
                state.touch(etag, change.now);
                state.copy = None;
                state.content = content;
                Ok(())
            })?;
            Ok(state.into())
        })
        .await
    }

    /// Set Blob Metadata: all of it is replaced.
    pub async fn set_metadata(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        metadata: BlobMetadata,
    ) -> BlobResult<WrittenBlob> {
        let at = at.clone();
        let operation = BlobOperation::BlobSetMetadata;
        self.change(cx, move |change| {
            let place = change.admitted(operation, &at, &asked)?;
            let container = place.container;
            let row = place.admitted()?;
            change.keep_version(container, &row)?;
            let etag = change.etag()?;
            let versioning = change.memory.options.versioning;
            let state = change.update(operation, &at, &row, |state| {
                state.touch(etag, change.now);
                state.copy = None;
                state.metadata = metadata;
                if versioning {
                    state.version = Some(etag.moment());
                }
                Ok(())
            })?;
            Ok(state.into())
        })
        .await
    }

    /// Set Blob Tags: all are replaced.
    pub async fn set_tags(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        tags: Tags,
    ) -> BlobResult<()> {
        self.remark(cx, BlobOperation::BlobSetTags, at, asked, move |state, _| {
            state.tags = tags;
            Ok(())
        })
        .await
    }

    pub async fn set_tier(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        tier: Tier,
    ) -> BlobResult<TierChange> {
        let ready = cx.now.after(self.memory.options.rehydration);
        self.remark(cx, BlobOperation::BlobSetTier, at, asked, move |state, now| {
            Ok(state.tier.set(state.kind, tier, now, ready)?)
        })
        .await
    }

    /// Set Blob Immutability Policy.
    pub async fn set_immutability(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        policy: ImmutabilityPolicy,
    ) -> BlobResult<BlobState> {
        let operation = BlobOperation::BlobSetImmutabilityPolicy;
        self.remark(cx, operation, at, asked, move |state, now| {
            state.immutability.set_policy(policy, now)?;
            Ok(state.clone())
        })
        .await
    }

    /// Delete Blob Immutability Policy.
    pub async fn delete_immutability(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
    ) -> BlobResult<()> {
        let operation = BlobOperation::BlobDeleteImmutabilityPolicy;
        self.remark(cx, operation, at, asked, move |state, now| {
            Ok(state.immutability.delete_policy(now)?)
        })
        .await
    }

    /// Set Blob Legal Hold.
    pub async fn set_legal_hold(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        hold: bool,
    ) -> BlobResult<()> {
        self.remark(cx, BlobOperation::BlobSetLegalHold, at, asked, move |state, _| {
            state.immutability.legal_hold = Some(hold);
            Ok(())
        })
        .await
    }

    /// A change that does not move the `ETag`.
    async fn remark<T: Send + 'static>(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: AccessConditions,
        set: impl FnOnce(&mut BlobState, Timestamp) -> BlobResult<T> + Clone + Send + 'static,
    ) -> BlobResult<T> {
        let at = at.clone();
        self.change(cx, move |change| {
            let row = change.admitted(operation, &at, &asked)?.admitted()?;
            let mut answer = None;
            change.update(operation, &at, &row, |state| {
                answer = Some(set(state, change.now)?);
                Ok(())
            })?;
            Ok(answer.expect("an update that succeeded ran its change"))
        })
        .await
    }
}
