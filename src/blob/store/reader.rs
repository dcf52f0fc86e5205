//! Reads the bytes of one committed state, even if the blob is overwritten or deleted meanwhile.
//! The transaction that made the reader decided which bytes these are.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::extents::{Extent, PackedRow};
use super::files::Files;
use super::reclaim::ReaderToken;
use super::types::ContentId;
use crate::db::DbError;

/// The bytes of a state. Needs no transaction and holds no lock.
pub struct ContentReader {
    length: u64,
    /// The part whose extents were loaded.
    loaded: Range<u64>,
    inline: Vec<u8>,
    rows: Vec<PackedRow>,
    /// The row that was used last, unpacked.
    unpacked: Option<(usize, Vec<Extent>)>,
    /// The file that was used last. One alone: the share of descriptors that connections get counts
    /// one file for each request.
    open: Option<(ContentId, File)>,
    files: Arc<Files>,
    /// Kept while not all files are open: no file that it needs is unlinked before it ends.
    token: Option<ReaderToken>,
}

/// What is at an offset.
enum Piece {
    Inline(Range<usize>),
    /// Never written: zeros up to this offset.
    Hole(u64),
    InFile(Extent),
}

impl ContentReader {
    /// A state whose bytes are in its row.
    pub(super) fn inline(inline: Vec<u8>, files: Arc<Files>) -> Self {
        let length = inline.len() as u64;
        Self { inline, ..Self::new(length, 0..length, Vec::new(), files) }
    }

    fn new(length: u64, loaded: Range<u64>, rows: Vec<PackedRow>, files: Arc<Files>) -> Self {
        Self {
            length,
            loaded,
            inline: Vec::new(),
            rows,
            unpacked: None,
            open: None,
            files,
            token: None,
        }
    }

    /// A state whose bytes are in files. Opens the first; the others are opened when they are
    /// reached, and `token` keeps them from being unlinked.
    pub(super) fn open(
        length: u64,
        loaded: Range<u64>,
        rows: Vec<PackedRow>,
        files: Arc<Files>,
        token: &ReaderToken,
    ) -> Result<Self, DbError> {
        let mut reader = Self::new(length, loaded, rows, files);
        for index in 0..reader.rows.len() {
            let extents = reader.rows[index].unpack()?;
            for extent in &extents {
                let inside = extent.cut(reader.loaded.start, reader.loaded.end).is_some();
                match &reader.open {
                    _ if !inside || extent.is_cleared() => {}
                    None => reader.open = Some((extent.file, reader.files.read(extent.file)?)),
                    Some((open, _)) if *open == extent.file => {}
                    Some(_) => {
                        reader.token = Some(Arc::clone(token));
                        return Ok(reader);
                    }
                }
            }
            reader.unpacked = Some((index, extents));
        }
        Ok(reader)
    }

    /// Takes all bytes of the state out of the reader, if they were in its row.
    pub fn take_bytes(&mut self) -> Option<Vec<u8>> {
        let whole = self.inline.len() as u64 == self.length && self.loaded == (0..self.length);
        whole.then(|| std::mem::take(&mut self.inline))
    }

    /// Length of the whole state.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads from `offset` until `into` is full or the state ends. May wait for the disk.
    pub fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, DbError> {
        self.read_with(offset, into, true)
    }

    /// As [`ContentReader::read_at`], but only what is in memory: `None` if the first byte would
    /// have to come from the disk, fewer bytes if a later one would.
    pub fn read_now(&mut self, offset: u64, into: &mut [u8]) -> Result<Option<usize>, DbError> {
        let done = self.read_with(offset, into, false)?;
        let at_end = offset >= self.length || into.is_empty();
        Ok((done > 0 || at_end).then_some(done))
    }

    fn read_with(
        &mut self,
        offset: u64,
        into: &mut [u8],
        may_wait: bool,
    ) -> Result<usize, DbError> {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let Some(piece) = self.piece(at)? else { break };
            let rest = &mut into[done..];
            done += match piece {
                Piece::InFile(extent) => {
                    // To open a file may wait.
                    if !may_wait && self.open.as_ref().is_none_or(|(id, _)| *id != extent.file) {
                        break;
                    }
                    let wanted = limit(rest, extent.end() - at);
                    let from = extent.offset + (at - extent.start);
                    let file = self.file(extent.file)?;
                    let read = if may_wait {
                        read_all(file, wanted, from)
                    } else {
                        read_cached(file, wanted, from)
                    };
                    match read {
                        Ok(0) => return Err(self.cut_short(extent.file)),
                        Ok(read) => read,
                        Err(error) if !may_wait && would_wait(&error) => break,
                        Err(error) => return Err(self.failed(extent.file, &error)),
                    }
                }
                Piece::Inline(range) => {
                    let count = range.len().min(rest.len());
                    rest[..count].copy_from_slice(&self.inline[range.start..range.start + count]);
                    count
                }
                Piece::Hole(end) => {
                    let hole = limit(rest, end - at);
                    hole.fill(0);
                    hole.len()
                }
            };
        }
        Ok(done)
    }

    fn piece(&mut self, at: u64) -> Result<Option<Piece>, DbError> {
        if at >= self.length || !self.loaded.contains(&at) {
            return Ok(None);
        }
        if let Some(start) = usize::try_from(at).ok().filter(|start| *start < self.inline.len()) {
            return Ok(Some(Piece::Inline(start..self.inline.len())));
        }
        let row = self.rows.partition_point(|row| row.first <= at);
        let next_row = self.rows.get(row).map_or(u64::MAX, |row| row.first);
        let next_row = next_row.min(self.loaded.end);
        let Some(row) = row.checked_sub(1) else { return Ok(Some(Piece::Hole(next_row))) };
        let end = self.loaded.end;
        let extents = self.unpack(row)?;
        let index = extents.partition_point(|extent| extent.end() <= at);
        Ok(Some(match extents.get(index).and_then(|extent| extent.cut(0, end)) {
            Some(extent) if extent.start <= at && extent.is_cleared() => Piece::Hole(extent.end()),
            Some(extent) if extent.start <= at => Piece::InFile(extent),
            Some(extent) => Piece::Hole(extent.start),
            None => Piece::Hole(next_row),
        }))
    }

    fn unpack(&mut self, row: usize) -> Result<&[Extent], DbError> {
        if self.unpacked.as_ref().is_none_or(|(index, _)| *index != row) {
            self.unpacked = Some((row, self.rows[row].unpack()?));
        }
        Ok(self.unpacked.as_ref().map_or(&[], |(_, extents)| extents))
    }

    fn file(&mut self, id: ContentId) -> Result<&File, DbError> {
        let open = match self.open.take_if(|(open, _)| *open == id) {
            Some(open) => open,
            None => (id, self.files.read(id)?),
        };
        Ok(&self.open.insert(open).1)
    }

    fn failed(&self, id: ContentId, error: &std::io::Error) -> DbError {
        DbError::from_io("read", &self.files.path(id), error)
    }

    fn cut_short(&self, id: ContentId) -> DbError {
        let why = "it is shorter than the blobs in it".to_owned();
        DbError::Damaged { file: self.files.path(id), why }
    }
}

fn limit(bytes: &mut [u8], most: u64) -> &mut [u8] {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
    &mut bytes[..count]
}

fn read_all(file: &File, into: &mut [u8], mut from: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], from) {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                from += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn read_cached(file: &File, into: &mut [u8], from: u64) -> std::io::Result<usize> {
    let mut slices = [IoSliceMut::new(into)];
    let read = || preadv2(file, &mut slices, from, ReadWriteFlags::NOWAIT);
    Ok(rustix::io::retry_on_intr(read)?)
}

/// The bytes are not in memory, or the file system cannot tell.
fn would_wait(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::OPNOTSUPP))
}
