//! Copy File: start, continue, end, abort. Sources are files, files of snapshots, and bytes that a
//! front end fetches from another server.
//!
//! Decides how a copy takes turns with other requests. Its start is one step under the
//! destination's lock, and so is each later stretch of bytes. The lock is released in between, and
//! the rules of both ends are checked again before each stretch. A file whose extents can be
//! shared, or that fits in one stretch, is copied at the start and is never seen pending. While a
//! copy is pending, the destination's record says so, and other writes over REST are refused.
//!
//! ```text
//!   mod       options and results, the record of a copy; the copies that this process carries out
//!   start     the start
//!   steps     the rest, stretch by stretch; failing, aborting
//! ```

use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dashmap::DashSet;
use steps::UnderWay;

use super::file_properties::{FileProperties, SmbProperties};
use super::momentary::Asking;
use super::property_changes::TimeChange;
use crate::file::rules::{Attributes, Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::share::Share;
use crate::file::service::shares::SnapshotView;
use crate::file::store::share::{CopyProgress, CopyState, ETag, Metadata, Record, Stat};
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::FileLease;
use crate::rules::{FileId, Timestamp};

mod start;
mod steps;

pub use steps::{Awaiting, PendingFileCopy, RemoteSource, StartedRemote};

/// The most bytes copied under one hold of the destination's lock (as one Put Range).
const STRETCH_BYTES: u64 = 4 << 20;

/// Where a property of the copy comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CopyProperty<T> {
    /// The default of a new file.
    #[default]
    Default,
    Source,
    Value(T),
}

impl<T> CopyProperty<T> {
    fn or_of(self, source: Option<T>) -> Option<T> {
        match self {
            Self::Default => None,
            Self::Source => source,
            Self::Value(value) => Some(value),
        }
    }
}

/// The options of a copy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a header of the request, or an option")]
pub struct CopyOptions {
    /// Its identity, fresh for each copy.
    pub id: String,
    /// The source as the request names it, to be shown later.
    pub source: String,
    /// A read-only destination may be overwritten.
    pub ignore_read_only: bool,
    /// The caller may create a file and may not overwrite one: an existing file is refused as a
    /// name that is taken.
    pub only_new: bool,
    /// The copy stays pending after its start, however short it is.
    pub stays_pending: bool,
    /// Adds `Archive` to the attributes.
    pub set_archive: bool,
    /// Metadata in place of the source's.
    pub metadata: Option<Metadata>,
    pub attributes: CopyProperty<Attributes>,
    pub created: TimeChange,
    pub written: TimeChange,
    pub changed: TimeChange,
    /// Key of the permission.
    pub permission_key: CopyProperty<String>,
}

/// A copy that was started.
#[derive(Debug)]
pub struct Started {
    pub copied: FileProperties,
    /// The rest of the copy; `None` if the copy is done. If the value is dropped, the copy fails.
    pub rest: Option<PendingFileCopy>,
}

/// The source file's state at the moment its read was authorised.
#[derive(Debug)]
struct FileSource {
    /// Under which name its share's rules are asked again; none in a snapshot, which has none.
    path: Option<SharePath>,
    fd: OwnedFd,
    stat: Stat,
    record: Record,
    etag: ETag,
}

impl FileSource {
    /// Refuses once anything about the source changed: what was copied meanwhile may be of
    /// neither version.
    fn check_unchanged(&self) -> Result<()> {
        let stat = Stat::of(&self.fd)?;
        if stat.changed == self.stat.changed && stat.size == self.stat.size {
            return Ok(());
        }
        Err(Denial::CopySourceChanged.into())
    }

    fn source(&self) -> FileCopySource<'_> {
        let smb = Some(SmbProperties::of(&self.stat, &self.record));
        FileCopySource {
            size: self.stat.size,
            record: &self.record,
            smb,
            bytes: SourceBytes::File(self),
        }
    }
}

/// The source of a copy, as its start needs it.
struct FileCopySource<'a> {
    size: u64,
    record: &'a Record,
    /// Attributes and times; `None` for a source on another server.
    smb: Option<SmbProperties>,
    bytes: SourceBytes<'a>,
}

/// The bytes of a copy's source.
enum SourceBytes<'a> {
    /// In a file of this server.
    File(&'a FileSource),
    /// In memory, all of them.
    Here(&'a [u8]),
    /// To be passed in later.
    Awaited,
}

impl FileCopySource<'_> {
    /// The write time that the copy gets; its own, if none.
    fn written(&self, options: &CopyOptions, now: Timestamp) -> Option<Timestamp> {
        copied_time(options.written, now, self.smb.as_ref().map(|smb| smb.written), None)
    }
}

/// A time of the copy: as the request names it, as the source has it, or `default`.
fn copied_time(
    given: TimeChange,
    now: Timestamp,
    source: Option<Timestamp>,
    default: Option<Timestamp>,
) -> Option<Timestamp> {
    if given == TimeChange::Source { source } else { given.named(now).or(default) }
}

/// The destination of a copy; its lock is held.
struct Destination<'a> {
    path: &'a SharePath,
    id: FileId,
    fd: &'a OwnedFd,
    /// Its record before the copy; none if it was made for it.
    before: Option<&'a Record>,
}

impl Share {
    /// Starts a copy. A short copy is done when this returns; otherwise [`Share::finish_copy`] does
    /// the rest.
    pub fn start_copy(
        &self,
        asking: Asking<'_>,
        (from, path): (&Self, &SharePath),
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<Started> {
        let source = from.copy_source(asking.cx, path)?;
        self.start_from(asking, source, std::ptr::eq(self, from), to, options)
    }

    /// Starts a copy of a file of a snapshot.
    pub fn start_copy_of_snapshot(
        &self,
        asking: Asking<'_>,
        (view, path): (&SnapshotView, &SharePath),
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<Started> {
        let (fd, file) = view.open_to_copy(path)?;
        let etag = file.etag();
        let source = FileSource { path: None, fd, stat: file.stat, record: file.record, etag };
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
        let under_way = running.map(|running| {
            UnderWay::new(asking, &copied, running, source.written(options, asking.cx.now))
        });
        let rest = under_way.map(|under_way| PendingFileCopy::new(under_way, file));
        Ok(Started { copied, rest })
    }

    fn copy_failed(&self, record: &mut Record, why: &dyn Display) {
        if let Some(state) = &mut record.copy {
            state.status = CopyStatus::Failed;
            state.completion = Some(self.now());
            state.description = Some(why.to_string());
        }
    }

    /// The record of the destination, the copy to it being under way.
    fn copied_record(
        &self,
        source: &FileCopySource<'_>,
        options: &CopyOptions,
        to: &Destination<'_>,
    ) -> Record {
        let from = source.record;
        let smb = source.smb.as_ref();
        let now = self.now();
        let time = |given, of: fn(&SmbProperties) -> Timestamp, default| {
            copied_time(given, now, smb.map(of), default)
        };
        let mut attributes = options.attributes.or_of(smb.map(|smb| smb.attributes));
        if options.set_archive {
            attributes.get_or_insert_default().insert(Attributes::ARCHIVE);
        }
        Record {
            metadata: options.metadata.as_ref().unwrap_or(&from.metadata).clone(),
            headers: from.headers.clone(),
            attributes,
            // A file that was there before is as old as its inode otherwise.
            created: time(options.created, |smb| smb.created, to.before.map(|_| now)),
            changed: time(options.changed, |smb| smb.changed, None),
            permission_key: options
                .permission_key
                .clone()
                .or_of(smb.and_then(|smb| smb.permission_key.clone())),
            copy: Some(CopyState {
                id: options.id.clone(),
                source: options.source.clone(),
                status: CopyStatus::Pending,
                progress: CopyProgress { done: 0, total: source.size },
                completion: None,
                description: None,
            }),
            ranges: None,
            changes: to.before.map_or(0, |before| before.changes),
        }
    }

    /// Ends a copy whose bytes are all there.
    fn copy_done(
        &self,
        to: &Destination<'_>,
        mut record: Record,
        written: Option<Timestamp>,
    ) -> Result<FileProperties> {
        self.end_of_copy(&mut record);
        self.save_copy(to, &mut record)?;
        self.copy_settled(to, record, written)
    }

    fn end_of_copy(&self, record: &mut Record) {
        if let Some(state) = &mut record.copy {
            state.status = CopyStatus::Success;
            state.progress.done = state.progress.total;
            state.completion = Some(self.now());
        }
    }

    /// Saves the destination's record. Each call is a change of its own to the `ETag`.
    fn save_copy(&self, to: &Destination<'_>, record: &mut Record) -> Result<()> {
        record.changes = record.changes.wrapping_add(1);
        self.save_record(to.fd, to.id, record)
    }

    /// The destination, now that record and bytes are there.
    fn copy_settled(
        &self,
        to: &Destination<'_>,
        record: Record,
        written: Option<Timestamp>,
    ) -> Result<FileProperties> {
        let stat = self.settle(to.fd, written)?;
        self.properties_as(to.path, stat, record, FileLease::default())
    }
}

type CopySet = DashSet<(FileId, String)>;

/// The copies under way, by destination and copy ID.
#[derive(Debug, Default)]
pub(crate) struct RunningCopies(Arc<CopySet>);

/// Marks a copy as under way until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningCopy {
    copies: Arc<CopySet>,
    key: (FileId, String),
}

impl RunningCopies {
    pub(crate) fn begin(&self, to: FileId, id: &str) -> RunningCopy {
        let key = (to, id.to_owned());
        self.0.insert(key.clone());
        RunningCopy { copies: Arc::clone(&self.0), key }
    }

    /// Turns a pending copy in a record into a failed one, if this process does not carry it out.
    pub(crate) fn end_if_dead(&self, to: FileId, record: &mut Record) {
        let Some(copy) = &mut record.copy else { return };
        if copy.status == CopyStatus::Pending && !self.0.contains(&(to, copy.id.clone())) {
            copy.status = CopyStatus::Failed;
            copy.description = Some("the copy was interrupted".to_owned());
        }
    }
}

impl RunningCopy {
    /// The ID of the copy.
    pub(crate) fn id(&self) -> &str {
        &self.key.1
    }
}

impl Drop for RunningCopy {
    fn drop(&mut self) {
        self.copies.remove(&self.key);
    }
}
