//! The rest of a copy, stretch by stretch, and how it ends: done, refused, or aborted.

use super::{Copied, Destination, Running, STRETCH_BYTES, Source};
use crate::core::lease::LeaseId;
use crate::core::operation::Operation;
use crate::core::ranges::ByteRange;
use crate::core::{Denial, FileId, Owner, SharePath, Timestamp};
use crate::engine::error::{Error, Result};
use crate::engine::momentary::{Asking, Granted, Wanted};
use crate::engine::share::{Attempt, Share};
use crate::engine::shown::Shown;
use crate::store::{
    Control, CopyProgress, CopyStatus, ETag, Found, OpenFor, Record, Stat, clone, data,
};

/// A copy under way: what is left of it to do.
#[derive(Debug)]
pub struct Copying {
    who: Owner,
    lease_id: Option<LeaseId>,
    source: Source,
    to: SharePath,
    file: FileId,
    written: Option<Timestamp>,
    done: u64,
    /// Held until the destination's record has the end of the copy.
    running: Running,
}

/// What a stretch came to.
enum Stretch {
    /// More is left.
    Copied(CopyProgress),
    /// Nothing is left, or the copy was aborted.
    Ended(Box<Copied>),
}

impl Stretch {
    fn ended(copied: Copied) -> Self {
        Self::Ended(Box::new(copied))
    }
}

impl Copying {
    pub(super) fn new(
        asking: Asking<'_>,
        source: Source,
        copied: &Copied,
        running: Running,
        written: Option<Timestamp>,
    ) -> Self {
        Self {
            who: asking.who.clone(),
            lease_id: asking.lease_id,
            source,
            to: copied.path.clone(),
            file: copied.id,
            written,
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

impl Share {
    /// Does the rest of a copy; see [`Share::copy_file`]. `from` is the source's share.
    pub fn finish_copy(
        &self,
        from: &Self,
        mut copying: Copying,
        progress: &mut dyn FnMut(CopyProgress) -> Control,
    ) -> Result<Copied> {
        let error = loop {
            match self.copy_stretch(from, &mut copying) {
                Ok(Stretch::Ended(copied)) => return Ok(*copied),
                Ok(Stretch::Copied(so_far)) => {
                    if progress(so_far) == Control::Cancel {
                        break Denial::Cancelled.into();
                    }
                }
                Err(error) => break error,
            }
        };
        if let Err(second) = self.note_failure(&copying, &error) {
            log::warn!("{}: that its copy failed could not be kept: {second}", copying.to);
        }
        Err(error)
    }

    fn copy_stretch(&self, from: &Self, copying: &mut Copying) -> Result<Stretch> {
        let size = copying.source.stat.size;
        let end = copying.done.saturating_add(STRETCH_BYTES).min(size);
        from.check_source_of(copying, copying.done..end)?;
        let asking = Asking { who: &copying.who, lease_id: copying.lease_id };
        let at = (&copying.to, Wanted::File);
        let stretch =
            self.momentarily("copy to", Operation::CopyStep, asking, at, None, |granted| {
                let Granted { found, fd, mut record, cell, .. } = granted;
                if found.stat.id != copying.file {
                    return Err(Denial::NotFound.into()); // Another file of that name.
                }
                let to = Destination {
                    path: &found.path,
                    id: copying.file,
                    fd: &fd,
                    cell,
                    before: None,
                };
                if !copying.is_pending_in(&record) {
                    return aborted(&to, record).map(Stretch::ended);
                }
                let _writing = cell.data.write().expect("nothing panics while bytes move");
                clone::copy_range(&copying.source.fd, &fd, copying.done..end)?;
                copying.source.check_unchanged()?;
                if end == size {
                    return self.copy_done(&to, record, copying.written).map(Stretch::ended);
                }
                let so_far = CopyProgress { done: end, total: size };
                if let Some(state) = &mut record.copy {
                    state.progress = so_far;
                }
                self.keep(&fd, copying.file, &mut record, None)?;
                Ok(Stretch::Copied(so_far))
            })?;
        copying.done = end;
        Ok(stretch)
    }

    /// May the source still be read, and is it still the same?
    fn check_source_of(&self, copying: &Copying, bytes: std::ops::Range<u64>) -> Result<()> {
        let asking = Asking { who: &copying.who, lease_id: None };
        let source = &copying.source;
        let range = ByteRange::new(bytes.start, bytes.end - bytes.start).ok();
        let at = (&source.path, Wanted::File);
        self.momentarily("copy from", Operation::CopySource, asking, at, range, |granted| {
            let now = Stat::of(&granted.fd)?;
            if ETag::of(&now, &granted.record) != source.etag {
                return Err(Denial::CopySourceChanged.into());
            }
            Ok(())
        })
    }

    /// Keeps in the destination's record why the copy ended. No rule is asked: it is no change
    /// of the file but of what is said about it, and the rule that ended the copy would refuse.
    fn note_failure(&self, copying: &Copying, error: &Error) -> Result<()> {
        let _names = self.names()?;
        self.with_name(&copying.to, |found, generation| match found {
            Ok(Found { path, stat }) if stat.id == copying.file => {
                self.table.with(stat.id, |_, _| {
                    if !self.is_still(&path, stat.id, generation) {
                        return Attempt::Again;
                    }
                    Attempt::Done(self.keep_failure(&path, copying, error))
                })
            }
            // Moved or removed: nothing is left to keep it in.
            _ => Attempt::Done(Ok(())),
        })
    }

    fn keep_failure(&self, path: &SharePath, copying: &Copying, error: &Error) -> Result<()> {
        let fd = self.dir.open_file(path, OpenFor::Read)?;
        let mut record = self.load_record(&fd, copying.file)?;
        if !copying.is_pending_in(&record) {
            return Ok(());
        }
        self.copy_failed(&mut record, error);
        self.keep(&fd, copying.file, &mut record, None).map(drop)
    }

    /// Ends the copy of that ID; the destination is left empty, with its metadata (LOCKING 7.9).
    pub fn abort_copy(&self, asking: Asking<'_>, path: &SharePath, copy_id: &str) -> Result<()> {
        let at = (path, Wanted::File);
        self.momentarily("abort copy", Operation::AbortCopy, asking, at, None, |granted| {
            let Granted { found, fd, mut record, cell, .. } = granted;
            let pending = record.copy.as_mut().filter(|c| c.status == CopyStatus::Pending);
            let state = pending.ok_or(Denial::NoPendingCopy)?;
            if state.id != copy_id {
                return Err(Denial::CopyIdMismatch.into());
            }
            state.status = CopyStatus::Aborted;
            state.completion = Some(self.clock.now());
            let _writing = cell.data.write().expect("nothing panics while bytes move");
            data::set_len(&fd, 0)?;
            self.keep(&fd, found.stat.id, &mut record, None).map(drop)
        })
    }
}

/// The destination of a copy that somebody else ended.
fn aborted(to: &Destination<'_>, record: Record) -> Result<Copied> {
    let shown = Shown::of(&Stat::of(to.fd)?, &record);
    // Overwritten since: then nothing speaks of this copy any more.
    let state = record.copy.ok_or(Denial::NotFound)?;
    Ok(Copied { path: to.path.clone(), id: to.id, state, shown })
}
