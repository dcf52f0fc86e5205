//! Copies: within the account without moving a byte, and from elsewhere.
//!
//! Decides what a copy takes from its source. A copy that is held back has its bytes from the
//! beginning and shows them when its time comes (`BlobState::at`), so it goes on over a restart.
//! Copies whose bytes are still to be fetched are in [`super::fetching`]; the answers of conditions
//! are decided in [`crate::rules::conditions::copy`].

use super::access::{AccessConditions, BlobAt};
use super::change::{BlobChange, BlobRow, ResolvedBlob, SetAside};
use super::fetching::forget_fetch;
use super::{BlobError, BlobResult, BlobService, Content, NewBlob, WrittenBlob};
use crate::blob::rules::copy::{CopyRecord, HeldCopy, check_abort, check_source_tier};
use crate::blob::rules::tags::query::TagQuery;
use crate::blob::rules::tier::Tier;
use crate::blob::rules::{
    BlobDenial, BlobMetadata, BlobOperation, BlobState, BlobType, ContentProperties,
};
use crate::blob::store::{StateId, StateKey};
use crate::db::DbService as _;
use crate::rules::Context;
use crate::rules::conditions::copy::source_failure;
use crate::rules::conditions::{Conditions, Subject};
use crate::rules::copy_status::CopyStatus;

/// Where the bytes of a copy come from.
#[derive(Clone)]
pub enum CopyFrom {
    /// A blob of this account.
    Here {
        at: BlobAt,
        /// The demands on the source.
        asked: SourceAsked,
    },
    /// Bytes that were fetched, and what came with them.
    Fetched {
        /// The type that the source has.
        kind: BlobType,
        content: Content,
        /// Properties of the source.
        properties: ContentProperties,
        /// Metadata of the source.
        metadata: BlobMetadata,
    },
}

/// The demands of a copy on its source.
#[derive(Clone, Debug, Default)]
pub struct SourceAsked {
    /// `x-ms-source-if-*`.
    pub conditions: Conditions,
    /// `x-ms-source-if-tags`.
    pub tags: Option<TagQuery>,
    /// The SHA-256 of the customer's key of the source, base64.
    pub key: Option<String>,
}

/// The arguments of a copy.
#[derive(Clone, Debug, Default)]
pub struct CopyRequest {
    /// `x-ms-copy-id` of the answer.
    pub id: String,
    /// The source as the answer shows it.
    pub source: String,
    /// Metadata in place of the source's.
    pub metadata: Option<BlobMetadata>,
    /// Properties in place of the source's.
    pub properties: ContentProperties,
    /// Whether the properties that were not sent are cleared, not those of the source.
    pub drops_properties: bool,
    /// Whether the tags of the source are copied; else those of `new` count.
    pub copy_tags: bool,
    /// Whether an append blob is sealed after the copy; `None` as the source.
    pub seal: Option<bool>,
    /// Tags, tier, immutability, key of the new blob.
    pub new: NewBlob,
}

/// The answer of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedBlob {
    pub written: WrittenBlob,
    pub copy: CopyRecord,
}

impl BlobService {
    /// Copy Blob, Copy Blob From URL, Put Blob From URL: `operation` says which. Copy Blob stays
    /// pending as long as the service is told to hold copies back.
    pub async fn copy_blob(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: AccessConditions,
        from: CopyFrom,
        request: CopyRequest,
    ) -> BlobResult<CopiedBlob> {
        let at = at.clone();
        self.change(cx, move |change| {
            let source = match from {
                CopyFrom::Here { at: from, asked } => {
                    find_source(change, operation, &from, &asked, request.new.tier)?
                }
                CopyFrom::Fetched { kind, content, properties, metadata } => {
                    let mut record =
                        BlobState::new(kind, crate::rules::Etag::default(), change.now);
                    record.length = content.length();
                    (record.content, record.metadata) = (properties, metadata);
                    BlobCopySource { record, bytes: CopyBytes::New(content) }
                }
            };
            let place = change.admitted(operation, &at, &asked)?;
            let taken = place.blob().map(|row| row.record.kind);
            let differs = taken.is_some_and(|kind| kind != source.record.kind);
            if operation == BlobOperation::BlobStartCopyFromURL && differs {
                return Err(BlobDenial::InvalidBlobType.into());
            }
            copy(change, operation, &at, &place, source, request)
        })
        .await
    }

    /// Abort Copy Blob: the destination stays, empty.
    pub async fn abort_copy(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        id: String,
    ) -> BlobResult<()> {
        let at = at.clone();
        let operation = BlobOperation::BlobAbortCopyFromURL;
        self.delete(cx, move |change| {
            let place = change.admitted(operation, &at, &asked)?;
            let container = place.container;
            let mut state = place.admitted()?.record;
            check_abort(state.copy.as_ref(), &id)?;
            forget_fetch(change, &id)?;
            let (before, etag) = (state.etag, change.etag()?);
            state.touch(etag, change.now);
            state.length = 0;
            let etags = (Some(before), Some(etag));
            let writer = change.writer(operation, &at.container, Some(&at.name), etags);
            state.writer = Some(writer);
            if let Some(copy) = &mut state.copy {
                copy.abort(change.now);
            }
            // What a copy that was held back had ready goes.
            let (key, none) = (StateKey::Current, Content::default());
            let id = change.tx.put(container, &at.name, key, &state, none)?;
            Ok(change.tx.set_tags(id, state.tags.iter())?)
        })
        .await
    }
}

/// The source of a copy inside the transaction.
struct BlobCopySource {
    record: BlobState,
    bytes: CopyBytes,
}

pub(super) enum CopyBytes {
    Shared(StateId),
    New(Content),
}

/// Finds the source and asks the rules about it. `tier` is the tier that the destination asks for.
fn find_source(
    change: &BlobChange<'_>,
    operation: BlobOperation,
    at: &BlobAt,
    asked: &SourceAsked,
    tier: Option<Tier>,
) -> BlobResult<BlobCopySource> {
    let found = change.place(at).and_then(ResolvedBlob::admitted);
    let row: BlobRow = found.map_err(|error| error.of_source(operation))?;
    let keyed = row.record.encryption.check_key(asked.key.as_deref());
    keyed.map_err(|denial| BlobError::from(denial).of_source(operation))?;
    let etag = row.record.etag.to_string();
    let subject = Subject {
        etag: &etag,
        last_modified: row.record.modified,
        tags_hold: asked
            .tags
            .as_ref()
            .is_none_or(|query| query.holds(&at.container, &row.record.tags)),
        lease_held: false,
    };
    if let (Some(failed), Some(kind)) =
        (source_failure(&asked.conditions, &subject), operation.rules().copy)
    {
        let denial = BlobDenial::CopyCondition(kind.source_refusal(failed));
        return Err(BlobError::by(denial, row.record.writer.as_ref(), None));
    }
    if row.record.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending) {
        return Err(BlobDenial::PendingCopyOperation.into());
    }
    if let Some(kind) = operation.rules().copy {
        check_source_tier(kind, &row.record.tier, tier, change.now)?;
    }
    Ok(BlobCopySource { bytes: CopyBytes::Shared(row.id), record: row.record })
}

fn copy(
    change: &BlobChange<'_>,
    operation: BlobOperation,
    at: &BlobAt,
    place: &ResolvedBlob,
    source: BlobCopySource,
    request: CopyRequest,
) -> BlobResult<CopiedBlob> {
    let mut from = source.record;
    if operation == BlobOperation::BlockBlobPutBlobFromUrl && from.kind != BlobType::Block {
        // What only append and page blobs have stays behind.
        from.kind = BlobType::Block;
        (from.blocks, from.sequence_number, from.sealed) = (0, 0, false);
    }
    let mut state = change.new_state(from.kind, place)?;
    let tags = if request.copy_tags { from.tags } else { request.new.tags.clone() };
    request.new.apply(&mut state, place, change.now)?;
    state.tags = tags;
    state.length = from.length;
    state.blocks = from.blocks;
    state.sequence_number = from.sequence_number;
    state.sealed = request.seal.unwrap_or(from.sealed);
    let kept = if request.drops_properties { None } else { Some(from.content) };
    state.content = request.properties.or(kept.unwrap_or_default());
    state.metadata = request.metadata.unwrap_or(from.metadata);
    let delay = change.memory.options.copy_delay;
    let held = operation == BlobOperation::BlobStartCopyFromURL && !delay.is_zero();
    let record = if held {
        let mut record = CopyRecord::pending(request.id, request.source, from.length);
        let due = change.now.after(delay);
        record.held = Some(HeldCopy { due, etag: change.etag()?, blocks: from.blocks });
        record
    } else {
        CopyRecord::done(request.id, request.source, from.length, change.now)
    };
    if operation != BlobOperation::BlockBlobPutBlobFromUrl {
        state.copy = Some(record.clone());
    }
    if held && state.kind != BlobType::Page {
        // The content is there already and is shown when the copy ends.
        (state.length, state.blocks) = (0, 0);
    }
    let written = publish(change, operation, at, place, state, source.bytes)?;
    Ok(CopiedBlob { written: written.into(), copy: record })
}

/// Makes the destination the blob, with the bytes of its source.
pub(super) fn publish(
    change: &BlobChange<'_>,
    operation: BlobOperation,
    at: &BlobAt,
    place: &ResolvedBlob,
    state: BlobState,
    bytes: CopyBytes,
) -> BlobResult<BlobState> {
    // A blob may be copied over itself: it stays until the new one has taken its bytes.
    change.publish(operation, at, place, state, SetAside::Copied, |state| {
        let (container, key) = (place.container, StateKey::Current);
        change.tx.drop_blocks(container, &at.name)?;
        Ok(match bytes {
            CopyBytes::Shared(from) => {
                change.tx.put_shared(container, &at.name, key, state, from, None)?
            }
            CopyBytes::New(content) => change.tx.put(container, &at.name, key, state, content)?,
        })
    })
}
