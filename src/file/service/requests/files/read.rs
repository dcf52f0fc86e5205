//! Get File Properties, Get File, List Ranges.
//!
//! A Get File is checked once and then holds nothing but its descriptor: no open on the mount fails
//! because of it. Each single read sees all of another request's range or nothing of it (S3). A
//! short range is read when the request is admitted, so that the bytes belong to the `ETag` in the
//! answer even if the file changes right after.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::file::rules::operation::FileOperation;
use crate::file::rules::ranges::ByteRange;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::opens::io::IO_MAX;
use crate::file::service::requests::file_properties::FileProperties;
use crate::file::service::requests::momentary::{Asking, Granted, WantedKind};
use crate::file::service::share::Share;
use crate::file::service::shares::{EarlierFile, SnapshotView};
use crate::file::store::share::data;
use crate::file::store::share::difference::ChangedRange;
use crate::file::store::share::pages::{Accounted, changed_pages, data_pages};

/// The longest range that is read when the request is admitted: the longest range that one request
/// writes, so that no reader sees half of one (S3).
const AT_ONCE_MAX: u64 = IO_MAX as u64;

/// A Get File that was admitted.
#[derive(Debug)]
pub struct FileReader {
    share: Arc<Share>,
    fd: OwnedFd,
    range: Range<u64>,
    /// All of the range, if it is short.
    bytes: Option<Vec<u8>>,
    properties: FileProperties,
}

/// Which parts of a file were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeList {
    /// The file at that moment.
    pub properties: FileProperties,
    /// Ascending, apart from each other, within the window asked for. Granular as the backing
    /// file system is.
    pub ranges: Vec<Range<u64>>,
}

impl Share {
    /// Get File Properties, Get File Metadata. No handle can deny it.
    pub fn file_properties(&self, asking: Asking<'_>, path: &SharePath) -> Result<FileProperties> {
        self.momentarily(
            "Get File Properties",
            FileOperation::GetFileProperties,
            asking,
            (path, WantedKind::File),
            None,
            |granted| self.properties_of(&granted),
        )
    }

    /// Get File: the whole of it, or the part of `range` that it has.
    pub fn open_reader(
        self: &Arc<Self>,
        asking: Asking<'_>,
        path: &SharePath,
        range: Option<Range<u64>>,
    ) -> Result<FileReader> {
        let asked = range.as_ref().map(byte_range);
        let target = (path, WantedKind::File);
        let (fd, (range, bytes), properties) = self.momentarily(
            "Get File",
            FileOperation::GetFile,
            asking,
            target,
            asked,
            |granted| {
                let range = clipped(range, granted.found.stat.size)?;
                let properties = self.properties_of(&granted)?;
                let bytes = self.read_at_once(&granted, &range)?;
                Ok((granted.fd, (range, bytes), properties))
            },
        )?;
        Ok(FileReader { share: Arc::clone(self), fd, range, bytes, properties })
    }

    /// List Ranges: what was written of the file, or of the part of `window` that it has.
    pub fn range_list(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        window: Option<Range<u64>>,
    ) -> Result<RangeList> {
        let target = (path, WantedKind::File);
        self.momentarily(
            "List Ranges",
            FileOperation::ListRanges,
            asking,
            target,
            None,
            |granted| {
                let window = clipped(window, granted.found.stat.size)?;
                let properties = self.properties_of(&granted)?;
                let account = granted.record.ranges.as_ref();
                let ranges = data_pages(Accounted { fd: granted.fd.as_fd(), account }, window)?;
                Ok(RangeList { properties, ranges })
            },
        )
    }

    /// All bytes of a range that is short.
    fn read_at_once(&self, at: &Granted<'_>, range: &Range<u64>) -> Result<Option<Vec<u8>>> {
        let length = range.end - range.start;
        if length > AT_ONCE_MAX {
            return Ok(None);
        }
        let length = usize::try_from(length).expect("a short range fits in memory");
        let _reading = self.table().lock_to_read(at.cell.id);
        Ok(Some(data::read_bytes(&at.fd, range.start, length)?))
    }
}

impl FileReader {
    /// The file at the moment the request was admitted.
    pub fn properties(&self) -> &FileProperties {
        &self.properties
    }

    /// The bytes there are to read.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Takes all bytes of the range, if they were read when the request was admitted.
    pub fn take_bytes(&mut self) -> Option<Vec<u8>> {
        self.bytes.take()
    }

    /// Reads from `offset` on until `buffer` is full, the range ends, or the file does, which may
    /// have become shorter. Returns how many bytes were read. Refused once the share is deleted.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let buffer = self.within(offset, buffer);
        if let Some(count) = self.copied(offset, buffer) {
            return Ok(count);
        }
        self.share.check_served()?;
        let _reading = self.share.table().lock_to_read(self.properties.id());
        Ok(data::read_at(&self.fd, buffer, offset)?)
    }

    /// Reads what is available without waiting for the disk or for a writer; `None` if that is
    /// nothing.
    pub fn read_now(&self, offset: u64, buffer: &mut [u8]) -> Result<Option<usize>> {
        let buffer = self.within(offset, buffer);
        if let Some(count) = self.copied(offset, buffer) {
            return Ok(Some(count));
        }
        self.share.check_served()?;
        let Some(_reading) = self.share.table().try_lock_to_read(self.properties.id()) else {
            return Ok(None);
        };
        Ok(data::read_now(&self.fd, buffer, offset)?)
    }

    /// Fills `buffer` with bytes that were read at once, if they were.
    fn copied(&self, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let bytes = self.bytes.as_ref()?;
        let skipped = offset.checked_sub(self.range.start).map(usize::try_from);
        let there = skipped.and_then(|skipped| bytes.get(skipped.ok()?..)).unwrap_or_default();
        let count = buffer.len().min(there.len());
        buffer[..count].copy_from_slice(&there[..count]);
        Some(count)
    }

    /// As much of `buffer` as there are bytes for from `offset` on.
    fn within<'b>(&self, offset: u64, buffer: &'b mut [u8]) -> &'b mut [u8] {
        let left = if self.range.contains(&offset) { self.range.end - offset } else { 0 };
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        &mut buffer[..wanted]
    }
}

/// A range as the rules know it. One that ends before it starts has no bytes.
fn byte_range(range: &Range<u64>) -> ByteRange {
    ByteRange::new(range.start, range.end.saturating_sub(range.start))
        .expect("a range between two offsets has a last byte below 2^64")
}

/// The part of `range` that a file of `size` bytes has; all of it, if none is named. A range
/// that starts at or past the end has none.
pub(super) fn clipped(
    range: Option<Range<u64>>,
    size: u64,
) -> std::result::Result<Range<u64>, Denial> {
    let Some(range) = range else { return Ok(0..size) };
    let clipped = range.start..range.end.min(size);
    if clipped.is_empty() { Err(Denial::InvalidRange { size }) } else { Ok(clipped) }
}

/// The options of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiffOptions {
    /// The bytes it is about; all, if none are named.
    pub window: Option<Range<u64>>,
    /// Nothing before this is wanted: the next page starts here.
    pub from: u64,
    pub most: usize,
    /// A file that was moved here is compared with its copy under the former name.
    pub moved: bool,
}

/// The changed ranges of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeChanges {
    /// The file at the moment the request was admitted.
    pub properties: FileProperties,
    /// Ascending, apart from each other.
    pub changes: Vec<ChangedRange>,
}

impl DiffOptions {
    /// The bytes to look at of a file of `size` bytes.
    pub fn bytes(&self, size: u64) -> std::result::Result<Range<u64>, Denial> {
        let window = clipped(self.window.clone(), size)?;
        Ok(window.start.max(self.from)..window.end)
    }
}

impl Share {
    /// List Ranges with `prevsharesnapshot`: the file now against `since`. The rules are asked
    /// once; what is written while it is compared may or may not show.
    pub fn changes_since(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        since: &SnapshotView,
        options: &DiffOptions,
    ) -> Result<RangeChanges> {
        let target = (path, WantedKind::File);
        let (properties, new, window) = self.momentarily(
            "List Ranges",
            FileOperation::ListRanges,
            asking,
            target,
            None,
            |at| {
                let window = options.bytes(at.found.stat.size)?;
                let properties = self.properties_of(&at)?;
                let Granted { fd, .. } = at;
                Ok((properties, fd, window))
            },
        )?;
        let mut old = since.earlier(&properties.path)?;
        let id = properties.stat.id;
        let other = match &old {
            Some(copy) => !copy.may_be_of(id),
            None => id.born < since.begun()?.0,
        };
        // A file system without birth times does not tell.
        if other && id.born != 0 {
            let copy = if options.moved { since.copy_of(id)? } else { None };
            // Moved from where copies do not know their originals: all of it is new here.
            if copy.is_none() && (old.is_some() || !options.moved) {
                return Err(Denial::OtherGeneration.into());
            }
            old = copy;
        }
        let account = properties.record.ranges.as_ref();
        let new = Accounted { fd: new.as_fd(), account };
        let old = old.as_ref().map(EarlierFile::accounted);
        let changes = changed_pages(new, old, window, since.taken(), options.most)?;
        Ok(RangeChanges { properties, changes })
    }
}
