//! A cache of blobs for reads: the only one above the database, since Get Blob alone needs it.
//!
//! Decides which blobs are cached: current ones whose record does not change with time, with their
//! bytes if these are in the row. Any write to the database invalidates all of them
//! ([`crate::db::Version`]), so no writer has to say what it changes. Whether a request may read a
//! blob is decided by the rules, for a cached one too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::access::{BlobAt, Selector};
use crate::blob::rules::BlobState;
use crate::db::Version;
use crate::rules::copy_status::CopyStatus;

/// Bytes of blobs that an account caches. One more clears the cache.
const BYTES_MAX: usize = 4 << 20;
/// Bytes that are counted for a record besides its content and the texts that clients choose; the
/// texts about its writers are bounded.
const RECORD_BYTES: usize = 1 << 10;

/// The cached blobs of an account.
#[derive(Debug, Default)]
pub(super) struct BlobCache(Mutex<Cached>);

/// Blobs of one version of the database.
#[derive(Debug, Default)]
struct Cached {
    version: Version,
    bytes: usize,
    /// By container, then by name.
    blobs: HashMap<String, HashMap<String, CachedBlob>>,
}

#[derive(Clone, Debug)]
pub(super) struct CachedBlob {
    pub state: Arc<BlobState>,
    /// All bytes of the content, if they were read too.
    pub content: Option<Arc<[u8]>>,
}

impl BlobCache {
    /// The blob at an address, if it was read since the last write.
    pub fn get(&self, version: Option<Version>, at: &BlobAt) -> Option<CachedBlob> {
        let version = version.filter(|_| at.selector == Selector::Current)?;
        let cached = self.lock();
        if cached.version != version {
            return None;
        }
        cached.blobs.get(&at.container)?.get(&at.name).cloned()
    }

    /// Caches a blob that was read after `version` was noted.
    pub fn put(&self, version: Option<Version>, at: &BlobAt, blob: CachedBlob) {
        let Some(version) = version.filter(|_| at.selector == Selector::Current) else { return };
        // The end of a pending copy changes the record without a write.
        if blob.state.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending) {
            return;
        }
        let content = blob.content.as_ref().map_or(0, |content| content.len());
        let names = at.container.len() + at.name.len();
        let bytes = RECORD_BYTES + names + text_bytes(&blob.state) + content;
        let mut cached = self.lock();
        if cached.version > version {
            return;
        }
        // An entry that is replaced stays counted until the next clearing.
        if cached.version < version || cached.bytes + bytes > BYTES_MAX {
            *cached = Cached { version, ..Cached::default() };
        }
        cached.bytes += bytes;
        let container = cached.blobs.entry(at.container.clone()).or_default();
        container.insert(at.name.clone(), blob);
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
