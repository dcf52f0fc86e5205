//! Where a body goes: into a segment that many share, into the file of its blob, or into a file of
//! its own. Each body gets a range that no other body is written to. The bytes are written in
//! [`super::content`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;

use super::files::{Files, OpenFile};
use super::types::ContainerId;
use crate::db::DbError;
use crate::sync::front_end::assert_may_block;

/// Bodies up to this size share segments.
pub(super) const SHARED_MAX: u64 = 1 << 20;
/// A segment is full at this size. It is removed when nothing in it is in use, so it is small.
const SEGMENT_MAX: u64 = 32 << 20;
/// Space is taken from the file system in pieces of this size.
const PIECE: u64 = 4 << 20;
/// A blob whose parts took this much of segments gets a file for its next parts.
const PARTS_IN_SEGMENTS: u64 = 4 << 20;
/// The file of a blob's parts is full at this size.
const PARTS_MAX: u64 = 1 << 30;
/// Blobs that have a place for their parts; the one used least recently loses it.
const BLOBS_MAX: usize = 256;

/// A place for a body: these bytes of the file are its own.
pub(super) struct Place {
    pub(super) file: Arc<OpenFile>,
    pub(super) offset: u64,
    /// The file is that of a blob's parts.
    pub(super) among_parts: bool,
}

/// A file that is filled from its beginning.
struct Space {
    file: Arc<OpenFile>,
    kind: SpaceKind,
    used: u64,
    /// The file is this long, and a segment has space up to here.
    prepared: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SpaceKind {
    /// Many small bodies share it: space is taken in pieces.
    Segment,
    /// Long bodies: they take space when their bytes are written, so that a client that only
    /// promises bytes takes none. The length is set in advance; it takes no space.
    Parts,
}

/// Where the next part of a blob goes.
#[derive(Default)]
struct Parts {
    space: Option<Space>,
    in_segments: u64,
}

pub(super) struct Places {
    files: Arc<Files>,
    /// Held while a file is made.
    segment: Mutex<Option<Space>>,
    /// Held for a moment only: event loops take it.
    parts: Mutex<PartsOfBlobs>,
}

/// The place of one blob's parts. Held while a file is made.
type PartsOfBlob = Arc<Mutex<Parts>>;

/// The place of a blob's parts that is not used any more. Dropping it may wait for the disk.
pub(super) struct ForgottenParts(PartsOfBlob);

impl ForgottenParts {
    /// Closes the file and cuts what was not used.
    pub(super) fn close(&self) {
        let space = lock(&self.0).space.take();
        drop(space);
    }
}

impl std::fmt::Debug for ForgottenParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForgottenParts")
    }
}

#[derive(Default)]
struct PartsOfBlobs {
    blobs: HashMap<(ContainerId, String), (u64, PartsOfBlob)>,
    uses: u64,
}

impl Places {
    pub(super) fn new(files: Arc<Files>) -> Self {
        Self { files, segment: Mutex::default(), parts: Mutex::default() }
    }

    /// A place in a segment.
    pub(super) fn shared(&self, length: u64) -> Result<Place, DbError> {
        assert_may_block("the segment");
        reserve(&self.files, &mut lock(&self.segment), SpaceKind::Segment, length)
    }

    /// A file of its own. With a length, the disk has that much space now; it is taken when bytes
    /// are written.
    pub(super) fn alone(&self, length: Option<u64>) -> Result<Place, DbError> {
        if let Some(length) = length {
            self.files.check_room(length)?;
        }
        let file = self.files.create()?;
        if let Some(length) = length {
            set_length(&file, length)?;
        }
        Ok(Place { file, offset: 0, among_parts: false })
    }

    /// A place for a block, an append or pages of this blob.
    pub(super) fn part_of(
        &self,
        container: ContainerId,
        name: &str,
        length: u64,
    ) -> Result<Place, DbError> {
        assert_may_block("the parts of a blob");
        let (parts, _evicted) = lock(&self.parts).of(container, name);
        let mut parts = lock(&parts);
        let small = length <= SHARED_MAX && parts.in_segments + length <= PARTS_IN_SEGMENTS;
        if parts.space.is_none() && small {
            parts.in_segments += length;
            return self.shared(length);
        }
        self.files.check_room(length)?;
        reserve(&self.files, &mut parts.space, SpaceKind::Parts, length)
    }

    /// The blob was replaced or removed: later parts do not share a file with earlier ones, so
    /// that the earlier file can go away. It is to be closed where a thread may block.
    pub(super) fn forget_parts(
        &self,
        container: ContainerId,
        name: String,
    ) -> Option<ForgottenParts> {
        let found = lock(&self.parts).blobs.remove(&(container, name));
        found.map(|(_, parts)| ForgottenParts(parts))
    }

    /// All blobs were replaced: as [`Places::forget_parts`] for all of them.
    pub(super) fn forget_all_parts(&self) -> Vec<ForgottenParts> {
        let found = std::mem::take(&mut lock(&self.parts).blobs);
        found.into_values().map(|(_, parts)| ForgottenParts(parts)).collect()
    }

    /// Closes the segment, if it has been used: what is in it may be all unused, and only a
    /// closed file is removed.
    pub(super) fn close_segment(&self) {
        let mut segment = lock(&self.segment);
        if segment.as_ref().is_some_and(|space| space.used > 0) {
            *segment = None;
        }
    }

    /// The segment that takes bodies now.
    pub(super) fn segment(&self) -> Option<super::types::ContentId> {
        lock(&self.segment).as_ref().map(|space| space.file.id)
    }
}

fn reserve(
    files: &Arc<Files>,
    slot: &mut Option<Space>,
    kind: SpaceKind,
    length: u64,
) -> Result<Place, DbError> {
    let max = match kind {
        SpaceKind::Segment => SEGMENT_MAX,
        SpaceKind::Parts => PARTS_MAX,
    };
    if slot.as_ref().is_some_and(|space| space.used > 0 && space.used + length > max) {
        *slot = None;
    }
    let space = match slot {
        Some(space) => space,
        None => slot.insert(Space::new(files.create()?, kind)),
    };
    space.take(length)
}

impl PartsOfBlobs {
    /// The place of a blob, and one that it drives out, to be dropped without the lock.
    fn of(
        &mut self,
        container: ContainerId,
        name: &str,
    ) -> (PartsOfBlob, Option<(u64, PartsOfBlob)>) {
        self.uses += 1;
        let key = (container, name.to_owned());
        let mut evicted = None;
        if self.blobs.len() >= BLOBS_MAX && !self.blobs.contains_key(&key) {
            let oldest = self.blobs.iter().min_by_key(|(_, (last_use, _))| *last_use);
            let oldest = oldest.map(|(key, _)| key.clone());
            evicted = oldest.and_then(|key| self.blobs.remove(&key));
        }
        let (last_use, parts) = self.blobs.entry(key).or_default();
        *last_use = self.uses;
        (Arc::clone(parts), evicted)
    }
}

impl Space {
    fn new(file: Arc<OpenFile>, kind: SpaceKind) -> Self {
        Self { file, kind, used: 0, prepared: 0 }
    }

    fn take(&mut self, length: u64) -> Result<Place, DbError> {
        let end = self.used + length;
        let wish = end.next_multiple_of(PIECE);
        if end > self.prepared {
            match self.kind {
                SpaceKind::Segment => self.allocate(end, wish)?,
                SpaceKind::Parts => {
                    set_length(&self.file, wish)?;
                    self.prepared = wish;
                }
            }
        }
        let among_parts = self.kind == SpaceKind::Parts;
        let place = Place { file: Arc::clone(&self.file), offset: self.used, among_parts };
        self.used = end;
        Ok(place)
    }

    /// Has the file system promise space up to `wish`, or at least up to `need`.
    fn allocate(&mut self, need: u64, wish: u64) -> Result<(), DbError> {
        assert_may_block("space in a content file");
        let promise = |end: u64| {
            let flags = FallocateFlags::empty();
            fallocate(&self.file.file, flags, self.prepared, end - self.prepared)
        };
        let (end, result) = match promise(wish) {
            Err(Errno::NOSPC | Errno::DQUOT) if need < wish => (need, promise(need)),
            result => (wish, result),
        };
        match result {
            // Some file systems cannot promise; there a full disk is met while writing.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => {
                return Err(DbError::from_errno("reserve space in", &self.file.path(), errno));
            }
        }
        self.prepared = end;
        Ok(())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.used < self.prepared
            && let Err(error) = set_length(&self.file, self.used)
        {
            log::warn!("cannot cut {}: {error}", self.file.path().display());
        }
    }
}

fn set_length(file: &OpenFile, length: u64) -> Result<(), DbError> {
    assert_may_block("the length of a content file");
    let set = ftruncate(&file.file, length);
    set.map_err(|errno| DbError::from_errno("lengthen", &file.path(), errno))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
