//! Takes a body: hashes it and writes it to its place, a piece at a time, with bounded memory.
//! Where the place is, is decided in [`super::places`]; a commit decides that the bytes are used.

use std::fs::File;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use md5::{Digest as _, Md5};
use rustix::io::{Errno, pwritev, retry_on_intr};

use super::files::OpenFile;
use super::janitor::Chore;
use super::places::{self, SHARED_MAX};
use super::shared::Shared;
use super::types::ContainerId;
use crate::db::DbError;

/// Bodies up to this size live in the row.
pub const INLINE_MAX: u64 = 16 << 10;

/// What is known of a body before it comes.
#[derive(Clone, Copy, Debug)]
pub struct ContentPlan<'a> {
    /// `Content-Length`, where there is one.
    pub length: Option<u64>,
    /// What the body will be.
    pub place: BodyRole<'a>,
    /// Compute the MD5. The CRC-64 is always computed.
    pub md5: bool,
}

/// What a body will be.
#[derive(Clone, Copy, Debug)]
pub enum BodyRole<'a> {
    /// The whole content of a blob.
    Whole,
    /// A block, an append or pages: parts of one blob share a file.
    PartOf(ContainerId, &'a str),
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
    part_of: Option<(ContainerId, String)>,
    received: u64,
    target: Target,
    claim: Option<Arc<PartClaim>>,
    md5: Option<Md5>,
    crc64: crc64fast_nvme::Digest,
}

enum Target {
    Memory(Vec<u8>),
    File(places::Place),
}

/// The claim of a body to bytes in the file of a blob's parts. If it is dropped and the body is not
/// used, the next parts of the blob get another file: so this one goes away with the parts in it
/// that are used, and at once if there are none.
pub(super) struct PartClaim {
    shared: Arc<Shared>,
    blob: (ContainerId, String),
    used: AtomicBool,
}

impl PartClaim {
    /// A row refers to the bytes now.
    pub(super) fn mark_used(&self) {
        self.used.store(true, Ordering::Release);
    }
}

impl Drop for PartClaim {
    fn drop(&mut self) {
        if self.used.load(Ordering::Acquire) {
            return;
        }
        let (container, name) = std::mem::replace(&mut self.blob, (ContainerId(0), String::new()));
        if let Some(parts) = self.shared.places.forget_parts(container, name) {
            self.shared.chores.add(Chore::Close(parts));
        }
    }
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
    claim: Option<Arc<PartClaim>>,
}

#[derive(Clone)]
pub(super) enum Bytes {
    Inline(Vec<u8>),
    /// In a file, from this offset.
    InFile(Arc<OpenFile>, u64),
}

impl ContentWriter {
    /// Finds a place. If the disk has no room for a body of known length, that is known now.
    pub(super) fn begin(shared: Arc<Shared>, plan: &ContentPlan<'_>) -> Result<Self, DbError> {
        let part_of = match plan.place {
            BodyRole::Whole => None,
            BodyRole::PartOf(container, name) => Some((container, name.to_owned())),
        };
        let target = match plan.length {
            // A body of unknown length stays in memory until it is too long for that.
            None => Target::Memory(Vec::new()),
            Some(length) => find_place(&shared, part_of.as_ref(), length)?,
        };
        let claim = claim(&shared, part_of.as_ref(), &target);
        Ok(Self {
            shared,
            declared: plan.length,
            part_of,
            received: 0,
            target,
            claim,
            md5: plan.md5.then(Md5::new),
            crc64: crc64fast_nvme::Digest::new(),
        })
    }

    /// As [`ContentWriter::write`], for event loops. `None`: a file has to be made for the body
    /// first, and nothing was taken.
    pub fn try_write(&mut self, pieces: &[impl AsRef<[u8]>]) -> Option<Result<(), ContentError>> {
        let received = self.received + length_of(pieces);
        let placed = matches!(self.target, Target::File(_)) || received <= INLINE_MAX;
        placed.then(|| self.write_pieces(pieces))
    }

    /// Takes the next bytes. They go to the system's cache: this does not wait for the disk, but
    /// it may make a file for a body of unknown length.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        self.write_pieces(&[bytes])
    }

    /// As [`ContentWriter::write`] with these pieces, one after another. They are written with one
    /// system call: the system's cache takes many bytes at once for less than few at a time.
    pub fn write_pieces(&mut self, pieces: &[impl AsRef<[u8]>]) -> Result<(), ContentError> {
        let received = self.received + length_of(pieces);
        if let Some(declared) = self.declared.filter(|declared| received > *declared) {
            return Err(ContentError::Length { declared, received });
        }
        for bytes in pieces {
            if let Some(md5) = &mut self.md5 {
                md5.update(bytes.as_ref());
            }
            self.crc64.write(bytes.as_ref());
        }
        if let Target::Memory(memory) = &mut self.target {
            if received <= INLINE_MAX {
                for bytes in pieces {
                    memory.extend_from_slice(bytes.as_ref());
                }
                self.received = received;
                return Ok(());
            }
            let place = self.shared.places.alone(None)?;
            write_at(&place, 0, &[memory])?;
            self.target = Target::File(place);
        }
        if let Target::File(place) = &self.target {
            write_at(place, self.received, pieces)?;
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
            Target::Memory(memory) => memory.is_empty() || self.part_of.is_none(),
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
        if let (Target::Memory(memory), Some(_)) = (&self.target, &self.part_of)
            && !memory.is_empty()
        {
            let target = find_place(&self.shared, self.part_of.as_ref(), self.received)?;
            self.claim = claim(&self.shared, self.part_of.as_ref(), &target);
            if let Target::File(place) = &target {
                write_at(place, 0, &[memory])?;
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
            claim: self.claim.take(),
        }
    }
}

fn find_place(
    shared: &Shared,
    part_of: Option<&(ContainerId, String)>,
    length: u64,
) -> Result<Target, DbError> {
    let places = &shared.places;
    let place = match part_of {
        _ if length == 0 => return Ok(Target::Memory(Vec::new())),
        Some((container, name)) => places.part_of(*container, name, length)?,
        None if length <= INLINE_MAX => {
            let capacity = usize::try_from(length).unwrap_or(0);
            return Ok(Target::Memory(Vec::with_capacity(capacity)));
        }
        None if length <= SHARED_MAX => places.shared(length)?,
        None => places.alone(Some(length))?,
    };
    Ok(Target::File(place))
}

fn claim(
    shared: &Arc<Shared>,
    part_of: Option<&(ContainerId, String)>,
    target: &Target,
) -> Option<Arc<PartClaim>> {
    let Target::File(places::Place { among_parts: true, .. }) = target else { return None };
    let (shared, blob) = (Arc::clone(shared), part_of?.clone());
    Some(Arc::new(PartClaim { shared, blob, used: AtomicBool::new(false) }))
}

fn length_of(pieces: &[impl AsRef<[u8]>]) -> u64 {
    pieces.iter().map(|bytes| bytes.as_ref().len() as u64).sum()
}

fn write_at(place: &places::Place, at: u64, pieces: &[impl AsRef<[u8]>]) -> Result<(), DbError> {
    let written = write_all_at(&place.file.file, place.offset + at, pieces);
    written.map_err(|errno| DbError::from_errno("write", &place.file.path(), errno))
}

fn write_all_at(file: &File, mut at: u64, pieces: &[impl AsRef<[u8]>]) -> Result<(), Errno> {
    let mut slices: Vec<_> = pieces.iter().map(|bytes| IoSlice::new(bytes.as_ref())).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let written = match retry_on_intr(|| pwritev(file, left, at))? {
            // Never seen on a regular file; an endless loop would be the worse answer.
            0 => return Err(Errno::IO),
            written => written,
        };
        at += written as u64;
        IoSlice::advance_slices(&mut left, written);
    }
    Ok(())
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

    /// The CRC-64/NVME.
    pub fn crc64(&self) -> u64 {
        self.crc64
    }

    /// The bytes, and their claim to a place among the parts of a blob.
    pub(super) fn into_parts(self) -> (Bytes, Option<Arc<PartClaim>>) {
        (self.bytes, self.claim)
    }
}

impl Default for Content {
    fn default() -> Self {
        let bytes = Bytes::Inline(Vec::new());
        Self { length: 0, md5: None, crc64: 0, bytes, synced: false, claim: None }
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").field("length", &self.length).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ContentWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentWriter").field("received", &self.received).finish_non_exhaustive()
    }
}
