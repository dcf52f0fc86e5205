//! Put Range: writing and clearing bytes of a file, which never grows by it.

use std::ops::Range;
use std::os::fd::OwnedFd;

use super::super::file_properties::FileProperties;
use super::super::momentary::{Asking, WantedKind};
use super::super::property_changes::TimeChange;
use super::change::set_written;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::opens::io::IO_MAX;
use crate::file::service::share::Share;
use crate::file::store::share::Touch;
use crate::file::store::share::data::{self, Reserved};

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
