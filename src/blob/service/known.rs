//! Blobs that were read lately, in memory, for reads that come again while nothing is written.
//!
//! Decides which blobs are kept: current ones whose record does not change with time, with their
//! bytes if these are in the row. How long they are used, and how many there are, is decided in
//! `db/cache`; whether a request may read one, by the rules, as for any blob.

use std::sync::Arc;

use super::access::{BlobAt, Selector};
use crate::blob::rules::BlobState;
use crate::db::{Cache, Version};
use crate::rules::copy_status::CopyStatus;

/// Bytes of blobs that an account keeps.
const BYTES_MAX: usize = 4 << 20;
/// Bytes that are counted for a record besides its content and the texts that clients choose; the
/// texts about its writers are bounded.
const RECORD_BYTES: usize = 1 << 10;

/// The blobs of an account that were read lately.
#[derive(Debug)]
pub(super) struct KnownBlobs(Cache<Arc<KnownBlob>>);

/// A blob that was read.
#[derive(Debug)]
pub(super) struct KnownBlob {
    container: String,
    name: String,
    pub state: Arc<BlobState>,
    /// All bytes of the content, if they were read too.
    pub content: Option<Arc<[u8]>>,
}

impl Default for KnownBlobs {
    fn default() -> Self {
        Self(Cache::new(BYTES_MAX))
    }
}

impl KnownBlobs {
    /// The blob at an address, if it was read since the last write.
    pub fn get(&self, version: Option<Version>, at: &BlobAt) -> Option<Arc<KnownBlob>> {
        if at.selector != Selector::Current {
            return None;
        }
        let is_it =
            |known: &Arc<KnownBlob>| known.container == at.container && known.name == at.name;
        self.0.get(version?, &(&at.container, &at.name), is_it)
    }

    /// Keeps a blob that was read after `version` was noted.
    pub fn put(
        &self,
        version: Option<Version>,
        at: &BlobAt,
        state: &Arc<BlobState>,
        content: Option<&Arc<[u8]>>,
    ) {
        let Some(version) = version.filter(|_| at.selector == Selector::Current) else { return };
        // Such a record is another one when the copy ends, without a write.
        if state.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending) {
            return;
        }
        let bytes = RECORD_BYTES
            + at.container.len()
            + at.name.len()
            + text_bytes(state)
            + content.map_or(0, |content| content.len());
        let known = KnownBlob {
            container: at.container.clone(),
            name: at.name.clone(),
            state: Arc::clone(state),
            content: content.cloned(),
        };
        self.0.put(version, &(&at.container, &at.name), bytes, Arc::new(known));
    }
}

/// Bytes of the texts in a record that clients choose.
fn text_bytes(state: &BlobState) -> usize {
    let metadata = state.metadata.iter().map(|(name, value)| name.len() + value.len());
    let tags = state.tags.iter().map(|(name, value)| name.len() + value.len());
    let headers = &state.content;
    let headers = [
        &headers.content_type,
        &headers.encoding,
        &headers.language,
        &headers.disposition,
        &headers.cache_control,
    ];
    let source = state.copy.as_ref().map_or(0, |copy| copy.source.len());
    let headers = headers.into_iter().flatten().map(String::len);
    metadata.chain(tags).chain(headers).sum::<usize>() + source
}
