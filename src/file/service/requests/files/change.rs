//! The steps of every operation that changes a file: space is reserved, then the record is saved,
//! then the bytes are written, then the times are set, and the `ETag` moves in every case.
//!
//! A refused request changes nothing: the reservation and the record can fail for lack of space,
//! and both come before the first byte. If a write fails nevertheless, the record is restored.

use std::ops::Range;
use std::os::fd::OwnedFd;

use super::super::file_properties::FileProperties;
use super::super::momentary::Granted;
use super::super::property_changes::TimeChange;
use crate::file::rules::SharePath;
use crate::file::service::error::Result;
use crate::file::service::share::Share;
use crate::file::store::share::data::{self, Reserved};
use crate::file::store::share::{OpenFor, Record, Stat};

impl Share {
    /// Saves the record of a file that is being changed. Where change times are coarse, counts the
    /// change in the record.
    pub(super) fn keep_record(&self, granted: &Granted<'_>, record: &mut Record) -> Result<()> {
        if self.has_coarse_times() {
            record.changes = record.changes.wrapping_add(1);
        }
        if *record != granted.record {
            self.save_record(&granted.fd, granted.cell.id, record)?;
        }
        Ok(())
    }

    /// Publishes a change: reserves space for `range`, saves the record, then writes the bytes
    /// while no other request reads or writes those of this file (S3). After a failure the file
    /// has its old record.
    pub(super) fn publish(
        &self,
        granted: &Granted<'_>,
        record: &mut Record,
        range: Range<u64>,
        write: impl FnOnce(&OwnedFd, Reserved) -> Result<()>,
    ) -> Result<()> {
        let _writing = self.table().lock_to_write(granted.cell.id);
        let reserved = data::reserve(&granted.fd, range)?;
        self.keep_record(granted, record)?;
        write(&granted.fd, reserved).inspect_err(|_| self.put_record_back(granted))
    }

    /// After a change that failed: the file gets the record back that it had.
    pub(super) fn put_record_back(&self, granted: &Granted<'_>) {
        let mut before = granted.record.clone();
        if let Err(error) = self.save_record(&granted.fd, granted.cell.id, &mut before) {
            log::warn!("{}: its old record is lost: {error}", granted.found.path);
        }
    }

    /// The file after a change, with its new `ETag`; flushed under `--sync always`.
    pub(super) fn changed(&self, granted: &Granted<'_>, record: Record) -> Result<FileProperties> {
        let fd = &granted.fd;
        // Twice: the change was made, and a failure would be told as a refusal.
        let mut stat = Stat::of(fd).or_else(|_| Stat::of(fd))?;
        if stat.changed == granted.found.stat.changed && !self.has_coarse_times() {
            // Nothing differs from what was there, which the kernel does not count as a change.
            // A request that was carried out is one.
            data::set_times(fd, None, Some(stat.written))?;
            stat = Stat::of(fd)?;
        }
        if self.options().sync_always {
            data::sync(fd)?;
        }
        let mut lease = granted.latched.state.lease();
        lease.after_write();
        self.properties_as(&granted.found.path, stat, record, lease)
    }

    /// After a name was made: flushes its directory under `--sync always`.
    pub(crate) fn flush_name(&self, path: &SharePath) -> Result<()> {
        if self.options().sync_always
            && let Some(parent) = path.parent()
        {
            data::sync(self.disk().open_file(&parent, OpenFor::Read)?)?;
        }
        Ok(())
    }

    /// After a name was removed or moved, which cannot be undone: flushes its directory under
    /// `--sync always`. The request is carried out and is answered so; a failure is logged.
    pub(crate) fn flush_left(&self, path: &SharePath) {
        if let Err(error) = self.flush_name(path) {
            log::warn!(
                "share {}: the directory of {path} was changed and could not be flushed; a power \
                 cut may undo the change: {error}",
                self.name()
            );
        }
    }
}

/// Sets the last-write time, once all else is done that moves it. `before` is what it was,
/// if it is to be put back.
pub(super) fn set_written(
    granted: &Granted<'_>,
    written: TimeChange,
    before: Option<&Stat>,
) -> Result<()> {
    let time = written.named(granted.now).or(before.map(|stat| stat.written));
    if time.is_some() {
        data::set_times(&granted.fd, None, time)?;
    }
    Ok(())
}
