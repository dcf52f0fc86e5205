//! The rest of a copy, stretch by stretch, and how it ends: done, refused, or aborted.
//!
//! The bytes come from a file, or a front end fetches them from another server and passes them in,
//! in order: a source that fits in one stretch is copied at once, a longer one is pending until its
//! last byte was passed in.

use std::fmt::Display;
use std::os::fd::OwnedFd;

use super::{
    CopyOptions, Destination, FileCopySource, FileSource, RunningCopy, STRETCH_BYTES, SourceBytes,
};
use crate::file::rules::operation::FileOperation;
use crate::file::rules::ranges::ByteRange;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::requests::file_properties::FileProperties;
use crate::file::service::requests::momentary::{Asking, Granted, WantedKind};
use crate::file::service::requests::property_changes::check_size;
use crate::file::service::share::{Share, retry};
use crate::file::store::share::{
    Control, CopyProgress, ETag, HttpHeaders, Metadata, OpenFor, Record, Stat, clone, data,
};
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::{FileLease, LeaseId};
use crate::rules::{Context, FileId, Timestamp};

/// A pending copy from any source.
#[derive(Debug)]
pub(super) struct UnderWay {
    cx: Context,
    lease_id: Option<LeaseId>,
    to: SharePath,
    file: FileId,
    written: Option<Timestamp>,
    pub(super) size: u64,
    pub(super) done: u64,
    /// Held until the destination's record has the end of the copy.
    running: RunningCopy,
}

/// The rest of a pending copy of a file.
#[derive(Debug)]
pub struct PendingFileCopy {
    under_way: UnderWay,
    source: FileSource,
}

/// The outcome of a stretch.
pub(super) enum StretchOutcome {
    Copied(CopyProgress),
    /// Nothing is left, or the copy was aborted.
    Ended(Box<FileProperties>),
}

impl StretchOutcome {
    fn ended(copied: FileProperties) -> Self {
        Self::Ended(Box::new(copied))
    }
}

impl UnderWay {
    pub(super) fn new(
        asking: Asking<'_>,
        copied: &FileProperties,
        running: RunningCopy,
        written: Option<Timestamp>,
    ) -> Self {
        Self {
            cx: asking.cx.clone(),
            lease_id: asking.lease_id,
            to: copied.path.clone(),
            file: copied.id(),
            written,
            size: copied.size(),
            done: 0,
            running,
        }
    }

    /// True if the record speaks of this copy as under way.
    fn is_pending_in(&self, record: &Record) -> bool {
        let pending = |status| status == CopyStatus::Pending;
        record.copy.as_ref().is_some_and(|c| c.id == self.running.id() && pending(c.status))
    }
}

impl PendingFileCopy {
    pub(super) fn new(under_way: UnderWay, source: FileSource) -> Self {
        Self { under_way, source }
    }
}

impl Share {
    /// Does the rest of a copy, until it is done, refused, or aborted by another request. `from` is
    /// the source's share, `None` for a snapshot. `progress` is called between two stretches, with
    /// no lock held, and may end the copy.
    pub fn finish_copy(
        &self,
        from: Option<&Self>,
        mut copying: PendingFileCopy,
        progress: &mut dyn FnMut(CopyProgress) -> Control,
    ) -> Result<FileProperties> {
        let error = loop {
            match self.copy_stretch(from, &mut copying) {
                Ok(StretchOutcome::Ended(copied)) => return Ok(*copied),
                Ok(StretchOutcome::Copied(so_far)) => {
                    if progress(so_far) == Control::Cancel {
                        break Denial::Cancelled.into();
                    }
                }
                Err(error) => break error,
            }
        };
        self.end_failed(&copying.under_way, &error);
        Err(error)
    }

    fn copy_stretch(
        &self,
        from: Option<&Self>,
        copying: &mut PendingFileCopy,
    ) -> Result<StretchOutcome> {
        let PendingFileCopy { under_way, source } = copying;
        let start = under_way.done;
        let end = start.saturating_add(STRETCH_BYTES).min(under_way.size);
        if let (Some(from), Some(path)) = (from, &source.path) {
            from.check_copied_from(&under_way.cx, (path, source.etag), start..end)?;
        }
        self.stretch(under_way, end, |to| {
            clone::copy_range(&source.fd, to, start..end)?;
            source.check_unchanged()
        })
    }

    /// Calls `write` for the bytes up to `end`, if the rules still allow it and the copy was not
    /// aborted.
    pub(super) fn stretch(
        &self,
        under_way: &mut UnderWay,
        end: u64,
        write: impl FnOnce(&OwnedFd) -> Result<()>,
    ) -> Result<StretchOutcome> {
        let asking = Asking { cx: &under_way.cx, lease_id: under_way.lease_id };
        let at = (&under_way.to, WantedKind::File);
        let stretch =
            self.momentarily("Copy File", FileOperation::CopyStep, asking, at, None, |granted| {
                let Granted { found, fd, mut record, .. } = granted;
                let id = under_way.file;
                if found.stat.id != id {
                    return Err(Denial::NotFound.into()); // Another file of that name.
                }
                let to = Destination { path: &found.path, id, fd: &fd, before: None };
                if !under_way.is_pending_in(&record) {
                    return self.aborted(&to, record).map(StretchOutcome::ended);
                }
                let _writing = self.table().lock_to_write(id);
                write(&fd)?;
                if end == under_way.size {
                    return self
                        .copy_done(&to, record, under_way.written)
                        .map(StretchOutcome::ended);
                }
                let so_far = CopyProgress { done: end, total: under_way.size };
                if let Some(state) = &mut record.copy {
                    state.progress = so_far;
                }
                self.keep(&fd, id, &mut record, None)?;
                Ok(StretchOutcome::Copied(so_far))
            })?;
        under_way.done = end;
        Ok(stretch)
    }

    /// Ends a copy that failed.
    pub(super) fn end_failed(&self, under_way: &UnderWay, why: &dyn Display) {
        if let Err(second) = self.note_failure(under_way, why) {
            log::warn!("{}: that its copy failed could not be kept: {second}", under_way.to);
        }
    }

    /// Checks that the source may still be read and has not changed.
    fn check_copied_from(
        &self,
        cx: &Context,
        (path, etag): (&SharePath, ETag),
        bytes: std::ops::Range<u64>,
    ) -> Result<()> {
        let asking = Asking { cx, lease_id: None };
        let range = ByteRange::new(bytes.start, bytes.end - bytes.start).ok();
        let at = (path, WantedKind::File);
        self.momentarily("copy from", FileOperation::CopySource, asking, at, range, |granted| {
            let now = Stat::of(&granted.fd)?;
            if ETag::of(&now, &granted.record) != etag {
                return Err(Denial::CopySourceChanged.into());
            }
            Ok(())
        })
    }

    /// Keeps the reason of the failure in the destination's record. No rule is checked: the file
    /// itself does not change, and the rule that ended the copy would refuse.
    fn note_failure(&self, copying: &UnderWay, why: &dyn Display) -> Result<()> {
        let _names = self.names()?;
        retry(|| match self.see(&copying.to) {
            Ok(seen) if seen.found.stat.id == copying.file => self
                .lock_seen(&seen, |_, _| Ok(self.keep_failure(&seen.found.path, copying, why)?)),
            // Moved or removed: nothing is left to keep it in.
            _ => Ok(()),
        })
    }

    fn keep_failure(&self, path: &SharePath, copying: &UnderWay, why: &dyn Display) -> Result<()> {
        let fd = self.disk().open_file(path, OpenFor::Read)?;
        let mut record = self.load_record(&fd, copying.file)?;
        if !copying.is_pending_in(&record) {
            return Ok(());
        }
        self.copy_failed(&mut record, why);
        self.keep(&fd, copying.file, &mut record, None).map(drop)
    }

    /// Ends the copy of that ID; the destination is left empty, with its metadata.
    pub fn abort_copy(&self, asking: Asking<'_>, path: &SharePath, copy_id: &str) -> Result<()> {
        let at = (path, WantedKind::File);
        self.momentarily("Abort Copy File", FileOperation::AbortCopy, asking, at, None, |granted| {
            let Granted { now, found, fd, mut record, .. } = granted;
            let id = found.stat.id;
            let pending = record.copy.as_mut().filter(|c| c.status == CopyStatus::Pending);
            let state = pending.ok_or(Denial::NoPendingCopy)?;
            if state.id != copy_id {
                return Err(Denial::CopyIdMismatch.into());
            }
            state.status = CopyStatus::Aborted;
            state.completion = Some(now);
            let _writing = self.table().lock_to_write(id);
            data::set_len(&fd, 0)?;
            self.keep(&fd, id, &mut record, None).map(drop)
        })
    }

    /// The destination of a copy that another request has aborted.
    fn aborted(&self, to: &Destination<'_>, record: Record) -> Result<FileProperties> {
        if record.copy.is_none() {
            return Err(Denial::NotFound.into()); // Overwritten since.
        }
        self.properties_as(to.path, Stat::of(to.fd)?, record, FileLease::default())
    }
}

/// A source on another server, as its answer describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemoteSource {
    /// How many bytes it has.
    pub size: u64,
    /// The headers that its copy is shown with.
    pub headers: HttpHeaders,
    /// Its metadata, for a copy that is given none of its own.
    pub metadata: Metadata,
}

/// A copy that was started.
#[derive(Debug)]
pub struct StartedRemote {
    pub copied: FileProperties,
    /// The rest of the copy, which waits for bytes; `None` if all are there. If the value is
    /// dropped, the copy fails.
    pub rest: Option<Awaiting>,
}

/// A copy that waits for bytes.
#[derive(Debug)]
pub struct Awaiting(UnderWay);

impl Awaiting {
    /// How many bytes to pass in next: all that are left, or as many as one step takes.
    pub fn wanted(&self) -> u64 {
        (self.0.size - self.0.done).min(STRETCH_BYTES)
    }
}

impl Share {
    /// Starts a copy of a file on another server. `bytes` is the whole source; without it the bytes
    /// are passed to [`Share::copy_next`].
    pub fn start_copy_from_remote(
        &self,
        asking: Asking<'_>,
        from: &RemoteSource,
        bytes: Option<&[u8]>,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<StartedRemote> {
        check_size(from.size)?;
        let record = Record {
            metadata: from.metadata.clone(),
            headers: from.headers.clone(),
            ..Record::default()
        };
        let bytes = match bytes {
            Some(bytes) if bytes.len() as u64 != from.size => return Err(wrong_length()),
            Some(bytes) => SourceBytes::Here(bytes),
            None if from.size == 0 => SourceBytes::Here(&[]),
            None => SourceBytes::Awaited,
        };
        let source = FileCopySource { size: from.size, record: &record, smb: None, bytes };
        let (copied, running) = self.begin_copy(asking, &source, false, to, options)?;
        let rest = running.map(|running| {
            Awaiting(UnderWay::new(
                asking,
                &copied,
                running,
                source.written(options, asking.cx.now),
            ))
        });
        Ok(StartedRemote { copied, rest })
    }

    /// Writes the next bytes, as many as [`Awaiting::wanted`] says. Returns the destination after
    /// the last of them, or if the copy was aborted. After an error the copy has failed.
    pub fn copy_next(
        &self,
        awaiting: &mut Awaiting,
        bytes: &[u8],
    ) -> Result<Option<FileProperties>> {
        let wanted = awaiting.wanted();
        let Awaiting(under_way) = awaiting;
        let (start, end) = (under_way.done, under_way.done + wanted);
        let written = if bytes.len() as u64 == wanted {
            self.stretch(under_way, end, |to| Ok(data::write_at(to, bytes, start)?))
        } else {
            Err(wrong_length())
        };
        match written {
            Ok(StretchOutcome::Copied(_)) => Ok(None),
            Ok(StretchOutcome::Ended(copied)) => Ok(Some(*copied)),
            Err(error) => {
                self.end_failed(under_way, &error);
                Err(error)
            }
        }
    }

    /// Ends a copy whose bytes cannot be fetched, and keeps the reason.
    pub fn copy_broke_off(&self, awaiting: &Awaiting, why: &str) {
        self.end_failed(&awaiting.0, &why);
    }
}

fn wrong_length() -> FileError {
    Denial::InvalidParameter("a copy is handed as many bytes as it asks for").into()
}
