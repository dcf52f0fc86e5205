//! The metadata records of a share's files, and what the `ETag` needs of them.
//!
//! Decides how a record is loaded and saved, that a copy nobody works on any more counts as
//! failed, and which changes are counted in the record because the kernel's times may not show
//! them. What a request makes of a record is decided in `requests/`.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use super::{Seen, Share};
use crate::disk::StoreError;
use crate::file::rules::create::ExistingFile;
use crate::file::rules::{Attributes, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::requests::copy::RunningCopy;
use crate::file::store::share::{
    ETag, FileKind, FoundFile, Granularity, OpenFor, Record, ShareDir, Stat, Touch, splits_a_block,
};
use crate::rules::{FileId, Timestamp};

impl Share {
    /// True if two changes in a row may have the same change time: front ends that see a write
    /// then count it, with [`Share::count_change`].
    pub fn has_coarse_times(&self) -> bool {
        self.granularity == Granularity::Coarse
    }

    /// Has the share behave as on a file system with coarse times.
    #[cfg(test)]
    pub(crate) fn coarsen_times(&mut self) {
        self.granularity = Granularity::Coarse;
    }

    /// The metadata record of an open file. One that lost its sidecar (a copy made directly in
    /// the directory) has a default one, and is named in the log.
    pub(crate) fn load_record(&self, fd: &OwnedFd, id: FileId) -> Result<Record> {
        self.living_record(self.records.load(fd, id), id)
    }

    fn living_record(
        &self,
        loaded: std::result::Result<Record, StoreError>,
        id: FileId,
    ) -> Result<Record> {
        let mut record = match loaded {
            Err(StoreError::Damaged { what, why }) => {
                log::warn!("share {}: {what} is damaged: {why}", self.name());
                Record::default()
            }
            loaded => loaded?,
        };
        self.copies.end_if_dead(id, &mut record);
        Ok(record)
    }

    /// The metadata record of a file, a symbolic link or a special file. One that this process
    /// may not read has none to show.
    pub(crate) fn record(&self, path: &SharePath, id: FileId) -> Result<Record> {
        let loaded = self.disk.at_place(path, |named| self.records.load_named(named, id));
        let loaded = match loaded {
            Some(loaded) => self.living_record(loaded, id),
            None => self.load_record(&self.disk.open_file(path, OpenFor::Path)?, id),
        };
        match loaded {
            Err(FileError::Store(StoreError::PermissionDenied)) => Ok(Record::default()),
            loaded => loaded,
        }
    }

    /// The record of a file that was looked up a moment ago: one that is known to have none is not
    /// asked for it.
    pub(crate) fn record_of(&self, path: &SharePath, stat: &Stat) -> Result<Record> {
        if self.records.is_without(stat) {
            return Ok(Record::default());
        }
        self.record(path, stat.id)
    }

    /// The `ETag` of an open file, whose lock the caller holds.
    pub(in crate::file::service) fn etag_of(&self, fd: &OwnedFd) -> Result<ETag> {
        let stat = Stat::of(fd)?;
        let is_without = self.records.is_without(&stat);
        let record = if is_without { Record::default() } else { self.load_record(fd, stat.id)? };
        Ok(ETag::of(&stat, &record))
    }

    /// The `ETag` of the file of that name, whose lock the caller holds.
    pub(in crate::file::service) fn etag_at(&self, path: &SharePath) -> Result<ETag> {
        let stat = self.disk.stat(path)?;
        Ok(ETag::of(&stat, &self.record_of(path, &stat)?))
    }

    /// To be called after the permissions or the owner of `path` were changed.
    pub fn permissions_changed(&self, path: &SharePath) {
        self.disk.permissions_changed(path);
    }

    /// Saves the record of an open file, whose lock the caller holds.
    pub(crate) fn save_record(&self, fd: &OwnedFd, id: FileId, record: &mut Record) -> Result<()> {
        Ok(self.records.save(fd, id, record)?)
    }

    /// The record as it is on disk, between two changes of it.
    pub(crate) fn record_on_disk(
        &self,
        path: &SharePath,
    ) -> std::result::Result<Record, StoreError> {
        let fd = self.disk.open_file(path, OpenFor::Read)?;
        let id = Stat::of(&fd)?.id;
        self.table.with(id, |_, _| self.records.load(&fd, id))
    }

    /// Counts a change of the bytes where the kernel's change times may not show it, so that the
    /// `ETag` moves. The file is open as `fd`; its lock, or a write of it, is the caller's.
    pub fn count_change(&self, fd: &OwnedFd, id: FileId) -> Result<()> {
        if self.has_coarse_times() {
            let mut record = self.load_record(fd, id)?;
            record.changes = record.changes.wrapping_add(1);
            self.save_record(fd, id, &mut record)?;
        }
        Ok(())
    }

    /// The facts of an existing file that the rules ask for.
    pub(crate) fn target(&self, path: &SharePath, stat: &Stat) -> Result<ExistingFile> {
        let attributes = self.record(path, stat.id)?.attributes.unwrap_or_default();
        Ok(ExistingFile { directory: stat.kind == FileKind::Directory, attributes })
    }

    pub(crate) fn is_read_only(&self, path: &SharePath, id: FileId) -> Result<bool> {
        let attributes = self.record(path, id)?.attributes.unwrap_or_default();
        Ok(attributes.contains(Attributes::READ_ONLY))
    }

    /// As [`Share::is_read_only`], for a file that was looked up a moment ago: one that is known to
    /// have no record is not asked for it. The caller holds the file's lock.
    pub(crate) fn is_seen_read_only(&self, seen: &Seen) -> Result<bool> {
        let FoundFile { path, stat } = &seen.found;
        if self.place_of(seen).is_some() && self.records.is_without(stat) {
            return Ok(false);
        }
        self.is_read_only(path, stat.id)
    }

    /// A file was made and has no record; its maker holds the lock of the directory.
    pub(crate) fn note_without_record(&self, made: &Stat) {
        // Where two changes may have one time, the time does not show that nothing has changed.
        if !self.has_coarse_times() {
            self.records.note_without(made);
        }
    }

    /// A copy to the file begins; it is under way until the answer is dropped.
    pub(crate) fn copy_begins(&self, to: FileId, copy_id: &str) -> RunningCopy {
        self.copies.begin(to, copy_id)
    }

    /// From now on, or no longer, files may be compared with a snapshot.
    pub(crate) fn set_snapshotted(&self, snapshotted: bool) {
        self.snapshotted.store(snapshotted, Ordering::Relaxed);
    }

    /// Notes in the record that bytes are written or cleared. A file gets an account with the
    /// first change that the file system cannot account for itself: within a block, or after a
    /// snapshot, where bytes that are written as they were count as a change.
    pub(crate) fn account_for(
        &self,
        record: &mut Record,
        range: &Range<u64>,
        (touch, now): (Touch, Timestamp),
        size: u64,
    ) {
        let snapshotted = self.snapshotted.load(Ordering::Relaxed);
        if record.ranges.is_none() && !snapshotted && !splits_a_block(range, size) {
            return;
        }
        let mut account = record.ranges.take().unwrap_or_default();
        account.note(range, touch, now);
        record.ranges = account.bounded();
    }
}

/// How well change times tell changes apart on this file system. Where that cannot be tried out,
/// the changes of this process are counted.
pub(super) fn granularity(dir: &ShareDir) -> Result<Granularity> {
    match Granularity::probe(dir.open_file(&SharePath::root(), OpenFor::Read)?) {
        Err(StoreError::ReadOnly | StoreError::PermissionDenied | StoreError::NoSpace) => {
            Ok(Granularity::Coarse)
        }
        probed => Ok(probed?),
    }
}
