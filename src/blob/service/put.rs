//! Put Blob: new content in place of what was there.
//!
//! Decides what a new blob takes over from the one before it: creation time, lease, tier. Blocks
//! are in [`super::blocks`].

use super::access::{AccessConditions, BlobAt};
use super::change::{BlobChange, ResolvedBlob, SetAside};
use super::{BlobResult, BlobService, Content, ContentWriter};
use crate::blob::rules::immutability::Immutability;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tier::Tier;
use crate::blob::rules::{
    BlobDenial, BlobMetadata, BlobOperation, BlobState, BlobType, ContentProperties, Encryption,
    pages,
};
use crate::blob::store::{ContentPlan, StateKey};
use crate::db::DbService as _;
use crate::rules::{Context, Etag, Timestamp};

/// The arguments of a request that creates a blob, without its content.
#[derive(Clone, Debug, Default)]
pub struct NewBlob {
    /// The six properties of the content.
    pub content: ContentProperties,
    /// `x-ms-meta-*`.
    pub metadata: BlobMetadata,
    pub tags: Tags,
    pub tier: Option<Tier>,
    /// Customer's key and scope.
    pub encryption: Encryption,
    /// Policy and legal hold.
    pub immutability: Immutability,
    /// The length of a page blob.
    pub page_length: u64,
    /// The sequence number of a page blob.
    pub sequence_number: u64,
}

/// The answer to a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenBlob {
    pub etag: Etag,
    pub modified: Timestamp,
    /// `x-ms-version-id`.
    pub version: Option<Timestamp>,
    /// The record as it is now.
    pub state: BlobState,
}

impl From<BlobState> for WrittenBlob {
    fn from(state: BlobState) -> Self {
        Self { etag: state.etag, modified: state.modified, version: state.version, state }
    }
}

impl NewBlob {
    /// Fills in a new state.
    pub(super) fn apply(
        self,
        state: &mut BlobState,
        place: &ResolvedBlob,
        now: Timestamp,
    ) -> Result<(), BlobDenial> {
        let (scope, only) = &place.scope;
        let inherited = place.blob().map(|before| before.record.tier);
        state.content = self.content;
        state.metadata = self.metadata;
        state.tags = self.tags;
        state.encryption = self.encryption.within(scope.as_deref(), *only)?;
        state.immutability = self.immutability;
        if state.kind == BlobType::Block {
            match self.tier {
                Some(tier) => {
                    state.tier.explicit = Some(tier);
                    state.tier.changed = Some(now);
                }
                None => state.tier = inherited.unwrap_or_default(),
            }
        }
        if state.kind == BlobType::Page {
            state.length = self.page_length;
            state.sequence_number = self.sequence_number;
        }
        Ok(())
    }
}

impl BlobService {
    /// Asks the rules about a write before its body is received, so that a refusal costs no upload.
    pub fn check(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: &AccessConditions,
    ) -> BlobResult<()> {
        self.look(cx, |look| look.admitted(operation, at, asked).map(drop))
    }

    /// A place for the body of a write.
    pub fn begin_body(&self, plan: ContentPlan) -> BlobResult<ContentWriter> {
        Ok(self.store.content(plan)?)
    }

    /// Put Blob, of any type.
    pub async fn put_blob(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        kind: BlobType,
        new: NewBlob,
        content: Content,
    ) -> BlobResult<WrittenBlob> {
        let operation = match kind {
            BlobType::Block => BlobOperation::BlockBlobUpload,
            BlobType::Append => BlobOperation::AppendBlobCreate,
            BlobType::Page => BlobOperation::PageBlobCreate,
        };
        if kind == BlobType::Page && !pages::is_length(new.page_length) {
            return Err(BlobDenial::InvalidPageRange.into());
        }
        let at = at.clone();
        self.change(cx, move |change| put(change, operation, &at, &asked, kind, new, content)).await
    }
}

/// Put Blob inside its transaction.
fn put(
    change: &BlobChange<'_>,
    operation: BlobOperation,
    at: &BlobAt,
    asked: &AccessConditions,
    kind: BlobType,
    new: NewBlob,
    content: Content,
) -> BlobResult<WrittenBlob> {
    let place = change.admitted(operation, at, asked)?;
    let mut state = change.new_state(kind, &place)?;
    state.length = content.length();
    new.apply(&mut state, &place, change.now)?;
    let state = change.publish(operation, at, &place, state, SetAside::Moved, |state| {
        let container = place.container;
        change.tx.drop_blocks(container, &at.name)?;
        let (name, key) = (&at.name, StateKey::Current);
        let id = match place.row {
            Some(_) => change.tx.put(container, name, key, state, content)?,
            None => change.tx.add(container, name, key, state, content)?,
        };
        if kind == BlobType::Page {
            change.tx.resize(id, state.length)?;
        }
        Ok(id)
    })?;
    Ok(state.into())
}
