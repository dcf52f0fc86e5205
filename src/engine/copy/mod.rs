//! Copy File: start, go on, end, abort. Sources are files, files of snapshots, and bytes that a
//! front end has from elsewhere.
//!
//! Decides how a copy lives beside others. Its start is one step under the destination's lock,
//! and so is each stretch of bytes after it: the lock is let go in between, and the rules of both
//! ends are asked again before each stretch. A file whose extents can be shared, or that fits in
//! one stretch, is copied at the start, and nobody sees it under way. While a copy runs, the
//! destination's record says so, and other writes over REST are refused (LOCKING 7.9).
//!
//! ```text
//!   mod       what can be asked for, the record
//!   start     the start
//!   steps     the rest, stretch by stretch; failing, aborting
//!   elsewhere copies whose bytes are handed in
//!   running   which copies this process has under way
//! ```

mod elsewhere;
mod running;
mod start;
mod steps;

use std::fmt::Display;
use std::os::fd::OwnedFd;

pub use elsewhere::{Awaiting, Elsewhere, StartedElsewhere};
pub(super) use running::{Running, RunningCopies};
pub use steps::Copying;
use steps::UnderWay;

use super::account::SnapshotView;
use super::error::Result;
use super::momentary::Asking;
use super::share::Share;
use super::shown::Shown;
use super::table::FileCell;
use crate::core::{Attributes, Denial, FileId, SharePath, Timestamp};
use crate::store::{Control, CopyProgress, CopyState, CopyStatus, ETag, Metadata, Record, Stat};

/// The most bytes copied under one hold of the destination's lock (as one Put Range).
const STRETCH_BYTES: u64 = 4 << 20;

/// Where a property of the copy comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Taken<T> {
    /// As for a new file.
    #[default]
    Default,
    /// From the source.
    Source,
    /// From the request.
    Value(T),
}

impl<T> Taken<T> {
    fn or(self, default: impl FnOnce() -> Option<T>, source: Option<T>) -> Option<T> {
        match self {
            Self::Default => default(),
            Self::Source => source,
            Self::Value(value) => Some(value),
        }
    }
}

/// A copy as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CopyOptions {
    /// Its identity, fresh for each copy.
    pub id: String,
    /// The source as the request names it, to be shown later.
    pub source: String,
    /// A read-only destination may be overwritten.
    pub ignore_read_only: bool,
    /// Adds `Archive` to the attributes.
    pub set_archive: bool,
    /// Metadata in place of the source's.
    pub metadata: Option<Metadata>,
    /// Attributes.
    pub attributes: Taken<Attributes>,
    /// Creation time.
    pub created: Taken<Timestamp>,
    /// Last write time.
    pub written: Taken<Timestamp>,
    /// Change time.
    pub changed: Taken<Timestamp>,
    /// Key of the permission.
    pub permission_key: Taken<String>,
}

/// The destination of a copy, as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Its path as spelled on disk.
    pub path: SharePath,
    /// Its identity.
    pub id: FileId,
    /// How far the copy is.
    pub state: CopyState,
    /// Attributes, times, `ETag`.
    pub shown: Shown,
}

/// A copy that was started.
#[derive(Debug)]
pub struct Started {
    /// The destination.
    pub copied: Copied,
    /// What is left to do, if it is not done yet. Dropped, the copy counts as failed.
    pub rest: Option<Copying>,
}

/// A file as it was when it was let be read.
#[derive(Debug)]
struct FileSource {
    /// Under which name its share's rules are asked again; none in a snapshot, which has none
    /// (LOCKING 2.2, last row).
    path: Option<SharePath>,
    fd: OwnedFd,
    stat: Stat,
    record: Record,
    etag: ETag,
}

impl FileSource {
    /// Refuses once anything about the source changed: what was copied meanwhile may be of
    /// neither version (LOCKING 7.9).
    fn check_unchanged(&self) -> Result<()> {
        let stat = Stat::of(&self.fd)?;
        if stat.changed == self.stat.changed && stat.size == self.stat.size {
            return Ok(());
        }
        Err(Denial::CopySourceChanged.into())
    }

    fn source(&self) -> Source<'_> {
        let shown = Some(Shown::of(&self.stat, &self.record));
        Source { size: self.stat.size, record: &self.record, shown, bytes: Bytes::File(self) }
    }
}

/// What the start of a copy needs to know of its source.
struct Source<'a> {
    size: u64,
    record: &'a Record,
    /// What it shows of itself; a source elsewhere has no such properties.
    shown: Option<Shown>,
    bytes: Bytes<'a>,
}

/// Where the bytes of a copy are.
enum Bytes<'a> {
    /// In a file of this machine.
    File(&'a FileSource),
    /// All of them here.
    Here(&'a [u8]),
    /// To be handed in.
    Awaited,
}

impl Source<'_> {
    /// The write time that the copy gets; its own, if none.
    fn written(&self, options: &CopyOptions) -> Option<Timestamp> {
        options.written.or(|| None, self.shown.as_ref().map(|shown| shown.written))
    }
}

/// The destination of a copy; its lock is held.
struct Destination<'a> {
    path: &'a SharePath,
    id: FileId,
    fd: &'a OwnedFd,
    cell: &'a FileCell,
    /// Its record before the copy; none if it was made for it.
    before: Option<&'a Record>,
}

impl Share {
    /// Copies a file of this or another share, and comes back when that is done, or refused, or
    /// aborted by somebody else. `progress` is called between two stretches, with no lock held,
    /// and may end the copy.
    pub fn copy_file(
        &self,
        asking: Asking<'_>,
        source: (&Self, &SharePath),
        to: &SharePath,
        options: &CopyOptions,
        progress: &mut dyn FnMut(CopyProgress) -> Control,
    ) -> Result<Copied> {
        let Started { copied, rest } = self.start_copy(asking, source, to, options)?;
        match rest {
            Some(copying) => self.finish_copy(Some(source.0), copying, progress),
            None => Ok(copied),
        }
    }

    /// Starts a copy; one that is quickly done is done then. The rest is for
    /// [`Share::finish_copy`].
    pub fn start_copy(
        &self,
        asking: Asking<'_>,
        (from, path): (&Self, &SharePath),
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<Started> {
        let source = from.copy_source(asking.who, path)?;
        self.start_from(asking, source, std::ptr::eq(self, from), to, options)
    }

    /// The same, from a file of a snapshot.
    pub fn start_copy_of_snapshot(
        &self,
        asking: Asking<'_>,
        (view, path): (&SnapshotView, &SharePath),
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<Started> {
        let (fd, file) = view.open_to_copy(path)?;
        let source =
            FileSource { path: None, fd, stat: file.stat, record: file.record, etag: file.tag };
        self.start_from(asking, source, false, to, options)
    }

    fn start_from(
        &self,
        asking: Asking<'_>,
        file: FileSource,
        same_share: bool,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<Started> {
        let source = file.source();
        let (copied, running) = self.begin_copy(asking, &source, same_share, to, options)?;
        let under_way =
            running.map(|running| UnderWay::new(asking, &copied, running, source.written(options)));
        let rest = under_way.map(|under_way| Copying::new(under_way, file));
        Ok(Started { copied, rest })
    }

    fn copy_failed(&self, record: &mut Record, why: &dyn Display) {
        if let Some(state) = &mut record.copy {
            state.status = CopyStatus::Failed;
            state.completion = Some(self.clock.now());
            state.description = Some(why.to_string());
        }
    }

    /// The record of the destination, the copy to it being under way.
    fn copied_record(
        &self,
        source: &Source<'_>,
        options: &CopyOptions,
        to: &Destination<'_>,
    ) -> Record {
        let from = source.record;
        let shown = source.shown.as_ref();
        let now = self.clock.now();
        let mut attributes = options.attributes.or(|| None, shown.map(|shown| shown.attributes));
        if options.set_archive {
            attributes.get_or_insert_default().insert(Attributes::ARCHIVE);
        }
        Record {
            metadata: options.metadata.as_ref().unwrap_or(&from.metadata).clone(),
            headers: from.headers.clone(),
            attributes,
            // A file that was there before is as old as its inode otherwise.
            created: options
                .created
                .or(|| to.before.map(|_| now), shown.map(|shown| shown.created)),
            changed: options.changed.or(|| None, shown.map(|shown| shown.changed)),
            permission_key: options
                .permission_key
                .clone()
                .or(|| None, shown.and_then(|shown| shown.permission_key.clone())),
            copy: Some(CopyState {
                id: options.id.clone(),
                source: options.source.clone(),
                status: CopyStatus::Pending,
                progress: CopyProgress { done: 0, total: source.size },
                completion: None,
                description: None,
            }),
            changes: to.before.map_or(0, |before| before.changes),
        }
    }

    /// Ends a copy whose bytes are all there.
    fn copy_done(
        &self,
        to: &Destination<'_>,
        mut record: Record,
        written: Option<Timestamp>,
    ) -> Result<Copied> {
        if let Some(state) = &mut record.copy {
            state.status = CopyStatus::Success;
            state.progress.done = state.progress.total;
            state.completion = Some(self.clock.now());
        }
        self.copy_kept(to, record, written)
    }

    fn copy_kept(
        &self,
        to: &Destination<'_>,
        mut record: Record,
        written: Option<Timestamp>,
    ) -> Result<Copied> {
        let shown = self.keep(to.fd, to.id, &mut record, written)?;
        let state = record.copy.ok_or(Denial::NoPendingCopy)?;
        Ok(Copied { path: to.path.clone(), id: to.id, state, shown })
    }
}
