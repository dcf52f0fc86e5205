//! Takes a body: finds its place, hashes it and writes it, a piece at a time, with bounded memory.
//! A commit decides that the bytes are used.
//!
//! A short body is in its row, a longer one in a segment that many bodies share, a long one in a
//! file of its own. Each body in a file gets a range that no other body is written to.

use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use md5::{Digest as _, Md5};

use super::Shared;
use super::files::{Files, OpenFile};
use super::types::ContentId;
use crate::db::DbError;

/// Bodies up to this size live in the row.
pub const INLINE_MAX: u64 = 16 << 10;
/// Bodies up to this size share segments.
const SHARED_MAX: u64 = 1 << 20;
/// A segment is full at this size. It is removed when nothing in it is in use, so it is small.
const SEGMENT_MAX: u64 = 32 << 20;

/// What is known of a body before it comes.
#[derive(Clone, Copy, Debug)]
pub struct ContentPlan {
    /// `Content-Length`, where there is one.
    pub length: Option<u64>,
    /// What the body will be.
    pub role: BodyRole,
    /// Compute the MD5. The CRC-64 is always computed.
    pub md5: bool,
}

impl ContentPlan {
    /// Whether the body needs no place on the disk, at least until more of it has come.
    pub fn is_kept_in_memory(self) -> bool {
        let in_row = |length| self.role == BodyRole::Whole && length <= INLINE_MAX;
        self.length.is_none_or(in_row)
    }
}

/// What a body will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyRole {
    /// The whole content of a blob.
    Whole,
    /// A block, an append or pages. Never in the row. Blobs that are written in parts live long, so
    /// their parts do not share segments with whole blobs, which would stay as long.
    Part,
}

/// Why a body was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ContentError {
    /// More or fewer bytes than announced.
    #[error("the body has {received} bytes, {declared} were announced")]
    Length { declared: u64, received: u64 },
    #[error(transparent)]
    Store(#[from] DbError),
}

/// Takes a body. Dropping it gives the place back.
pub struct ContentWriter {
    shared: Arc<Shared>,
    declared: Option<u64>,
    role: BodyRole,
    received: u64,
    target: Target,
    md5: Option<Md5>,
    crc64: crc64fast_nvme::Digest,
}

enum Target {
    Memory(Vec<u8>),
    File(Place),
}

/// The place of a body: the bytes of the file from `offset` are its own.
struct Place {
    file: Arc<OpenFile>,
    offset: u64,
}

/// Bytes that are written and not yet referred to. When the last copy of this value is dropped
/// without a commit, the bytes go away.
#[derive(Clone)]
pub struct Content {
    length: u64,
    md5: Option<[u8; 16]>,
    crc64: u64,
    pub(super) bytes: Bytes,
    /// The bytes are on the disk, and the name of their file.
    pub(super) synced: bool,
}

#[derive(Clone)]
pub(super) enum Bytes {
    Inline(Vec<u8>),
    /// In a file, from this offset.
    InFile(Arc<OpenFile>, u64),
}

impl ContentWriter {
    /// Finds a place. If the disk has no room for a body of known length, that is known now.
    pub(super) fn begin(shared: Arc<Shared>, plan: &ContentPlan) -> Result<Self, DbError> {
        let target = match plan.length {
            // A body of unknown length stays in memory until it is too long for that.
            None => Target::Memory(Vec::new()),
            Some(length) => shared.segments.find_place(plan.role, length)?,
        };
        Ok(Self {
            shared,
            declared: plan.length,
            role: plan.role,
            received: 0,
            target,
            md5: plan.md5.then(Md5::new),
            crc64: crc64fast_nvme::Digest::new(),
        })
    }

    /// As [`ContentWriter::write`], for event loops. `None`: a file has to be made for the body
    /// first, and nothing was taken.
    pub fn try_write(&mut self, bytes: &[u8]) -> Option<Result<(), ContentError>> {
        let received = self.received + bytes.len() as u64;
        let placed = matches!(self.target, Target::File(_)) || received <= INLINE_MAX;
        placed.then(|| self.write(bytes))
    }

    /// Takes the next bytes. They go to the system's cache: this does not wait for the disk, but
    /// it may make a file for a body of unknown length.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        let received = self.received + bytes.len() as u64;
        if let Some(declared) = self.declared.filter(|declared| received > *declared) {
            return Err(ContentError::Length { declared, received });
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.crc64.write(bytes);
        if let Target::Memory(memory) = &mut self.target {
            if received <= INLINE_MAX {
                memory.extend_from_slice(bytes);
                self.received = received;
                return Ok(());
            }
            let place = Place { file: self.shared.files.create()?, offset: 0 };
            write_at(&place, 0, memory)?;
            self.target = Target::File(place);
        }
        if let Target::File(place) = &self.target {
            write_at(place, self.received, bytes)?;
        }
        self.received = received;
        Ok(())
    }

    /// Bytes taken so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// As [`ContentWriter::finish`], for event loops. `None`: that would wait, and nothing was
    /// done.
    pub fn try_finish(&mut self) -> Option<Result<Content, ContentError>> {
        if let Some(declared) = self.declared.filter(|declared| self.received != *declared) {
            return Some(Err(ContentError::Length { declared, received: self.received }));
        }
        let written = match &self.target {
            Target::Memory(memory) => memory.is_empty() || self.role == BodyRole::Whole,
            Target::File(place) => place.file.try_written(),
        };
        written.then(|| Ok(self.content(false)))
    }

    /// Ends the body. With [`SyncMode::Always`](crate::db::SyncMode), and while a checkpoint
    /// is under way, it waits for the disk.
    pub fn finish(mut self) -> Result<Content, ContentError> {
        if let Some(declared) = self.declared.filter(|declared| self.received != *declared) {
            return Err(ContentError::Length { declared, received: self.received });
        }
        if let (Target::Memory(memory), BodyRole::Part) = (&self.target, self.role) {
            let target = self.shared.segments.find_place(self.role, self.received)?;
            if let Target::File(place) = &target {
                write_at(place, 0, memory)?;
            }
            self.target = target;
        }
        let synced = match &self.target {
            Target::Memory(_) => false,
            Target::File(place) => place.file.written()?,
        };
        Ok(self.content(synced))
    }

    /// What was received, with nothing left to do for it.
    fn content(&mut self, synced: bool) -> Content {
        let bytes = match std::mem::replace(&mut self.target, Target::Memory(Vec::new())) {
            Target::Memory(memory) => Bytes::Inline(memory),
            Target::File(place) => Bytes::InFile(place.file, place.offset),
        };
        Content {
            length: self.received,
            md5: self.md5.take().map(|md5| md5.finalize().into()),
            crc64: self.crc64.sum64(),
            bytes,
            synced,
        }
    }
}

fn write_at(place: &Place, at: u64, bytes: &[u8]) -> Result<(), DbError> {
    let written = place.file.file.write_all_at(bytes, place.offset + at);
    written.map_err(|error| DbError::from_io("write", &place.file.path(), &error))
}

/// The segments that take bodies now: one for whole blobs, one for parts.
pub(super) struct Segments {
    files: Arc<Files>,
    /// Locked while a file is made.
    open: [Mutex<Option<Segment>>; 2],
}

/// A file that is filled from its beginning. It is as long as the bytes that were written to it.
struct Segment {
    file: Arc<OpenFile>,
    used: u64,
}

impl Segments {
    pub(super) fn new(files: Arc<Files>) -> Self {
        Self { files, open: Default::default() }
    }

    fn find_place(&self, role: BodyRole, length: u64) -> Result<Target, DbError> {
        if length == 0 || (role == BodyRole::Whole && length <= INLINE_MAX) {
            return Ok(Target::Memory(Vec::with_capacity(usize::try_from(length).unwrap_or(0))));
        }
        // Takes no space before bytes come: a client that only promises bytes must not fill the
        // disk.
        self.files.check_room(length)?;
        if length > SHARED_MAX {
            return Ok(Target::File(Place { file: self.files.create()?, offset: 0 }));
        }
        let mut slot = lock(&self.open[usize::from(role == BodyRole::Part)]);
        if slot.as_ref().is_some_and(|segment| segment.used + length > SEGMENT_MAX) {
            *slot = None;
        }
        let segment = match &mut *slot {
            Some(segment) => segment,
            None => slot.insert(Segment { file: self.files.create()?, used: 0 }),
        };
        let place = Place { file: Arc::clone(&segment.file), offset: segment.used };
        segment.used += length;
        Ok(Target::File(place))
    }

    /// Closes segments that are among these files, without a reference: only a closed file is
    /// removed.
    pub(super) fn close(&self, files: &[ContentId]) {
        for slot in &self.open {
            lock(slot).take_if(|segment| files.contains(&segment.file.id));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Content {
    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The MD5, if the plan asked for it.
    pub fn md5(&self) -> Option<[u8; 16]> {
        self.md5
    }

    pub fn crc64(&self) -> u64 {
        self.crc64
    }
}

impl Default for Content {
    fn default() -> Self {
        let bytes = Bytes::Inline(Vec::new());
        Self { length: 0, md5: None, crc64: 0, bytes, synced: false }
    }
}
