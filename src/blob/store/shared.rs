//! State that the parts of a blob store share. Nothing is decided here.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::content::Segments;
use super::files::Files;
use super::janitor::{Chore, Chores};
use super::reclaim::Readers;
use super::types::ContentId;

/// With more bytes than this to be unlinked, a checkpoint does not wait for its time.
const GARBAGE_MAX: u64 = 256 << 20;

pub(super) struct Shared {
    pub(super) files: Arc<Files>,
    pub(super) segments: Segments,
    pub(super) readers: Readers,
    pub(super) chores: Arc<Chores>,
    pub(super) unlinking: FilesToUnlink,
    pub(super) counters: Counters,
    /// Bytes of content that were dropped since a checkpoint was last asked for, about.
    pub(super) garbage: AtomicU64,
    /// The next number of a state or upload.
    pub(super) next_id: AtomicI64,
    /// The last counter that was given out.
    pub(super) last_counter: AtomicU64,
    /// What no counter may pass before a greater number is in the database. Raised after the commit
    /// that wrote it, so it may lag behind the database, and never leads.
    pub(super) ceiling: AtomicI64,
    /// How often all rows were replaced. Raised while the writer is held.
    pub(super) era: AtomicU64,
    pub(super) replacing: Replacing,
    /// The last row of `unsynced` whose content a checkpoint has synced, until it is forgotten; 0
    /// if there is none.
    pub(super) synced: AtomicI64,
}

/// Held while all rows are replaced, and while a content file is looked up and unlinked: a file
/// that the new rows refer to is not removed. Taken before the writer.
#[derive(Default)]
pub(super) struct Replacing(Mutex<()>);

impl Replacing {
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(super) fn new_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks for a checkpoint when much content waits for one to be unlinked.
    pub(super) fn add_garbage(&self, bytes: u64) {
        let before = self.garbage.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) >= GARBAGE_MAX && before < GARBAGE_MAX {
            self.garbage.store(0, Ordering::Relaxed);
            self.chores.add(Chore::Checkpoint);
        }
    }
}

/// Files that are about to be unlinked, so that they are not found a second time.
#[derive(Default)]
pub(super) struct FilesToUnlink(Mutex<HashSet<ContentId>>);

impl FilesToUnlink {
    /// True if the file was not there yet.
    pub(super) fn add(&self, file: ContentId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(file)
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn contains(&self, file: ContentId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&file)
    }

    pub(super) fn done(&self, files: &[ContentId]) {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files {
            set.remove(file);
        }
    }
}

#[derive(Default)]
pub(super) struct Counters {
    /// Files of bodies that were given up.
    pub(super) given_up: AtomicU64,
    /// Files that nothing referred to any more.
    pub(super) reclaimed: AtomicU64,
    /// Files that an earlier process left.
    pub(super) swept: AtomicU64,
}
