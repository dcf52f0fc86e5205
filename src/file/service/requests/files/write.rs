//! Put Range, Set File Properties and Set File Metadata, and the steps of every operation that
//! changes a file: space is reserved, then the record is saved, then the bytes are written, then
//! the times are set, and the `ETag` moves in every case.
//!
//! A refused request changes nothing: the reservation and the record can fail for lack of space,
//! and both come before the first byte. If a write fails nevertheless, the record is restored.

use std::ops::Range;
use std::os::fd::OwnedFd;

use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::opens::io::IO_MAX;
use crate::file::service::requests::file_properties::FileProperties;
use crate::file::service::requests::momentary::{Asking, Granted, WantedKind};
use crate::file::service::requests::property_changes::{FileChanges, TimeChange};
use crate::file::service::share::Share;
use crate::file::store::share::data::{self, Reserved};
use crate::file::store::share::{Metadata, OpenFor, Record, Stat, Touch};
use crate::rules::check_metadata;

impl Share {
    /// Put Range, update: writes all bytes at `offset`, at most [`IO_MAX`].
    pub fn put_range(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        offset: u64,
        bytes: &[u8],
        last_write: TimeChange,
    ) -> Result<FileProperties> {
        const NAME: &str = "Put Range";
        self.arguments(NAME, asking, path, check_body(bytes))?;
        let range = offset..offset.saturating_add(bytes.len() as u64);
        let what = (NAME, FileOperation::PutRange);
        self.write_range(what, asking, path, range, last_write, |fd, reserved| {
            Ok(data::write_or_restore(fd, bytes, offset, reserved)?)
        })
    }

    /// Put Range, clear: the bytes read as zeros from now on, and take no space where the file
    /// system can do that.
    pub fn clear_range(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        range: Range<u64>,
        last_write: TimeChange,
    ) -> Result<FileProperties> {
        let what = ("Put Range", FileOperation::ClearRange);
        self.write_range(what, asking, path, range.clone(), last_write, |fd, _| {
            Ok(data::clear_range(fd, range)?)
        })
    }

    fn write_range(
        &self,
        (name, operation): (&'static str, FileOperation),
        asking: Asking<'_>,
        path: &SharePath,
        range: Range<u64>,
        last_write: TimeChange,
        write: impl FnOnce(&OwnedFd, Reserved) -> Result<()>,
    ) -> Result<FileProperties> {
        self.momentarily(name, operation, asking, (path, WantedKind::File), None, |granted| {
            let stat = granted.found.stat;
            if range.is_empty() || range.end > stat.size {
                return Err(Denial::InvalidRange { size: stat.size }.into());
            }
            let mut record = granted.record.clone();
            record.changed = None;
            let touch = match operation {
                FileOperation::ClearRange => Touch::Cleared,
                _ => Touch::Written,
            };
            self.account_for(&mut record, &range, (touch, self.now()), stat.size);
            // Clearing gives space back: it needs none.
            let needed = if operation == FileOperation::ClearRange { 0..0 } else { range };
            self.publish(&granted, &mut record, needed, write)?;
            if last_write == TimeChange::Preserve {
                set_written(&granted, TimeChange::Preserve, Some(&stat))?;
            }
            self.changed(&granted, record)
        })
    }
}

/// Refuses a body that one request cannot carry.
pub(super) fn check_body(bytes: &[u8]) -> std::result::Result<(), Denial> {
    if bytes.len() > IO_MAX {
        return Err(Denial::BodyTooLarge { max: IO_MAX as u64 });
    }
    Ok(())
}

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

impl Share {
    /// Set File Properties, a new length included.
    pub fn set_file_properties(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        changes: &FileChanges,
    ) -> Result<FileProperties> {
        const NAME: &str = "Set File Properties";
        self.arguments(NAME, asking, path, changes.check())?;
        let operation = FileOperation::SetFileProperties {
            resize: changes.size.is_some(),
            attributes: changes.smb.attributes.is_some(),
        };
        self.momentarily(NAME, operation, asking, (path, WantedKind::File), None, |granted| {
            let mut record = granted.record.clone();
            changes.apply(&mut record, &granted.found.stat, granted.now);
            if let (Some(size), Some(account)) = (changes.size, record.ranges.as_mut()) {
                account.cut(size);
            }
            // A length that the file system cannot have is refused before old bytes are cut.
            self.publish(&granted, &mut record, 0..0, |fd, _| match changes.size {
                Some(size) => Ok(data::set_len(fd, size)?),
                None => Ok(()),
            })?;
            // A new length moves the last-write time even if it is to be preserved.
            set_written(&granted, changes.smb.written, None)?;
            self.changed(&granted, record)
        })
    }

    /// Set File Metadata: replaces all of it.
    pub fn set_file_metadata(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        metadata: &Metadata,
    ) -> Result<FileProperties> {
        const NAME: &str = "Set File Metadata";
        let legal = check_metadata(metadata.iter()).map_err(Denial::from);
        self.arguments(NAME, asking, path, legal)?;
        let target = (path, WantedKind::File);
        self.momentarily(NAME, FileOperation::SetFileMetadata, asking, target, None, |granted| {
            let mut record = granted.record.clone();
            record.metadata = metadata.clone();
            record.changed = None;
            self.keep_record(&granted, &mut record)?;
            self.changed(&granted, record)
        })
    }
}
