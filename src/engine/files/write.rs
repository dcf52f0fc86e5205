//! Put Range: writing and clearing bytes of a file, which never grows by it (FILEREST 10.11).

use std::ops::Range;
use std::os::fd::OwnedFd;

use super::super::error::Result;
use super::super::io::IO_MAX;
use super::super::momentary::{Asking, Wanted};
use super::super::share::Share;
use super::asked::{LastWrite, TimeChange};
use super::shown::FileProperties;
use crate::core::operation::Operation;
use crate::core::{Denial, SharePath};
use crate::store::data;

impl Share {
    /// Put Range, update: writes all bytes at `offset`, at most [`IO_MAX`].
    pub fn put_range(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        offset: u64,
        bytes: &[u8],
        last_write: LastWrite,
    ) -> Result<FileProperties> {
        const NAME: &str = "put range";
        self.arguments(NAME, asking, path, check_body(bytes))?;
        let range = offset..offset.saturating_add(bytes.len() as u64);
        self.write_range((NAME, Operation::PutRange), asking, path, range, last_write, |fd| {
            Ok(data::write_at(fd, bytes, offset)?)
        })
    }

    /// Put Range, clear: the bytes read as zeros from now on, and take no space where the file
    /// system can do that.
    pub fn clear_range(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        range: Range<u64>,
        last_write: LastWrite,
    ) -> Result<FileProperties> {
        let what = ("clear range", Operation::ClearRange);
        self.write_range(what, asking, path, range.clone(), last_write, |fd| {
            Ok(data::clear_range(fd, range)?)
        })
    }

    fn write_range(
        &self,
        (name, operation): (&'static str, Operation),
        asking: Asking<'_>,
        path: &SharePath,
        range: Range<u64>,
        last_write: LastWrite,
        write: impl FnOnce(&OwnedFd) -> Result<()>,
    ) -> Result<FileProperties> {
        self.momentarily(name, operation, asking, (path, Wanted::File), None, |granted| {
            let stat = granted.found.stat;
            if range.is_empty() || range.end > stat.size {
                return Err(Denial::InvalidRange { size: stat.size }.into());
            }
            let mut record = granted.record.clone();
            record.changed = None;
            self.keep_record(&granted, &mut record)?;
            Self::with_bytes(&granted, || write(&granted.fd))?;
            if last_write == LastWrite::Preserve {
                self.set_written(&granted, TimeChange::Preserve, Some(&stat))?;
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
