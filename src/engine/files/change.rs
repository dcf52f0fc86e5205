//! What all operations that change a file have in common: record first, bytes next, then times,
//! and a new `ETag` for certain.
//!
//! The record goes first because it is what can fail for want of room, and a request that fails
//! should rather have left the bytes alone.

use super::super::error::Result;
use super::super::momentary::Granted;
use super::super::share::Share;
use super::asked::TimeChange;
use super::shown::FileProperties;
use crate::core::SharePath;
use crate::store::{Granularity, OpenFor, Record, Stat, data};

impl Share {
    /// Keeps the record of a file that is being changed. Where change times are coarse, the
    /// change is counted in it.
    pub(super) fn keep_record(&self, granted: &Granted<'_>, record: &mut Record) -> Result<()> {
        if self.granularity == Granularity::Coarse {
            record.changes = record.changes.wrapping_add(1);
        }
        if *record != granted.record {
            self.records.save(&granted.fd, granted.cell.id, record)?;
        }
        Ok(())
    }

    /// Moves bytes while no other request reads or writes those of this file (S3).
    pub(super) fn with_bytes<T>(
        granted: &Granted<'_>,
        step: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let _writing = granted.cell.data.write().expect("nothing panics while bytes move");
        step()
    }

    /// Sets the last-write time, once all else is done that moves it. `before` is what it was,
    /// if it is to be put back.
    pub(super) fn set_written(
        &self,
        granted: &Granted<'_>,
        written: TimeChange,
        before: Option<&Stat>,
    ) -> Result<()> {
        let time = match (written, before) {
            (TimeChange::Now, _) => Some(self.clock.now()),
            (TimeChange::At(time), _) => Some(time),
            (TimeChange::Preserve, Some(stat)) => Some(stat.written),
            (TimeChange::Preserve, None) => None,
        };
        if time.is_some() {
            data::set_times(&granted.fd, None, time)?;
        }
        Ok(())
    }

    /// The file after a change: flushed, if the share wants that, and with another `ETag`.
    pub(super) fn changed(&self, granted: &Granted<'_>, record: Record) -> Result<FileProperties> {
        let fd = &granted.fd;
        let mut stat = Stat::of(fd)?;
        if stat.changed == granted.found.stat.changed && self.granularity == Granularity::Fine {
            // Nothing differs from what was there, which the kernel does not count as a change.
            // A request that was carried out is one (LOCKING 7.4).
            data::set_times(fd, None, Some(stat.written))?;
            stat = Stat::of(fd)?;
        }
        if self.options.sync_always {
            data::sync(fd)?;
        }
        let mut lease = granted.latched.state.lease();
        lease.after_write();
        self.shown_as(&granted.found.path, stat, record, lease)
    }

    /// A name was made or removed: if the share wants that, its directory is flushed.
    pub(super) fn flush_name(&self, path: &SharePath) -> Result<()> {
        if self.options.sync_always
            && let Some(parent) = path.parent()
        {
            data::sync(self.dir.open_file(&parent, OpenFor::Read)?)?;
        }
        Ok(())
    }
}
