//! The start of a copy: the read of the source is authorised, the destination is emptied or made,
//! and a file that one step can copy is copied. A start that fails leaves the destination as it
//! was.

use super::super::file_properties::FileProperties;
use super::super::momentary::{Asking, Granted, WantedKind, ask_new};
use super::{
    CopyOptions, Destination, FileCopySource, FileSource, RunningCopy, STRETCH_BYTES, SourceBytes,
};
use crate::disk::StoreError;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::share::{Missed, Share, retry};
use crate::file::store::share::data::{self, Reserved};
use crate::file::store::share::{ETag, FileKind, OpenFor, Record, Stat, clone};
use crate::rules::{Context, Timestamp};

impl Share {
    pub(super) fn copy_source(&self, cx: &Context, path: &SharePath) -> Result<FileSource> {
        let asking = Asking { cx, lease_id: None };
        let at = (path, WantedKind::File);
        self.momentarily("copy from", FileOperation::CopySource, asking, at, None, |granted| {
            let Granted { found, fd, record, .. } = granted;
            // Under the lock no request of ours is half way through writing it.
            let stat = Stat::of(&fd)?;
            let etag = ETag::of(&stat, &record);
            Ok(FileSource { path: Some(found.path.clone()), fd, stat, record, etag })
        })
    }

    /// Overwrites the destination, or creates it if it does not exist.
    pub(super) fn begin_copy(
        &self,
        asking: Asking<'_>,
        source: &FileCopySource<'_>,
        same_share: bool,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<(FileProperties, Option<RunningCopy>)> {
        let note = |begun| self.note_refusal("Copy File", to, asking.cx.owner(), begun);
        retry(|| {
            let begun = match self.find(to) {
                // A link or special file: REST does not see it, and cannot make it either.
                Ok(found)
                    if options.only_new
                        || matches!(found.stat.kind, FileKind::Symlink | FileKind::Special) =>
                {
                    note(Err(Denial::NameTaken.into()))
                }
                Ok(_) => self.begin_over(asking, source, same_share, to, options),
                Err(StoreError::NotFound) => match self.begin_new(asking, source, to, options) {
                    // Made since it was looked up.
                    Err(FileError::Denied(Denial::NameTaken)) => return Err(Missed::Moved),
                    begun => note(begun),
                },
                Err(error) => note(Err(error.into())),
            };
            match begun {
                // Removed since it was looked up.
                Err(FileError::Denied(Denial::NotFound)) => Err(Missed::Moved),
                begun => Ok(begun?),
            }
        })
    }

    fn begin_over(
        &self,
        asking: Asking<'_>,
        source: &FileCopySource<'_>,
        same_share: bool,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<(FileProperties, Option<RunningCopy>)> {
        let operation =
            FileOperation::CopyDestinationOver { ignore_read_only: options.ignore_read_only };
        self.momentarily("Copy File", operation, asking, (to, WantedKind::File), None, |granted| {
            let Granted { found, fd, record, .. } = granted;
            let id = found.stat.id;
            let to = Destination { path: &found.path, id, fd: &fd, before: Some(&record) };
            // An identity with a birth time is one file on any share of the machine.
            let same = |file: &FileSource| id == file.stat.id && (same_share || id.born != 0);
            if matches!(source.bytes, SourceBytes::File(file) if same(file)) {
                let record = self.copied_record(source, options, &to);
                return Ok((self.copy_done(&to, record, None)?, None));
            }
            self.begin_at(&to, source, options)
        })
    }

    fn begin_new(
        &self,
        asking: Asking<'_>,
        source: &FileCopySource<'_>,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<(FileProperties, Option<RunningCopy>)> {
        ask_new(asking.lease_id, to)?;
        let _names = self.names()?;
        let make = |path: &SharePath| {
            let (_, stat) = self.disk().create_file(path, self.options().file_mode)?;
            Ok(stat)
        };
        self.make_entry(to, make, |path, stat| {
            self.table().with(stat.id, |_, latched| {
                let begun = self.disk().open_file(path, OpenFor::Write).map_err(FileError::from);
                let begun = begun.and_then(|fd| {
                    let to = Destination { path, id: stat.id, fd: &fd, before: None };
                    self.begin_at(&to, source, options)
                });
                if begun.is_err() && latched.state.open_count() == 0 {
                    self.unmake(path, stat); // Nobody has seen it.
                }
                begun
            })
        })
    }

    /// Does the first step of a copy: copies all bytes, or none and leaves the copy pending. The
    /// destination's lock is held. After a failure the destination is as it was.
    fn begin_at(
        &self,
        to: &Destination<'_>,
        source: &FileCopySource<'_>,
        options: &CopyOptions,
    ) -> Result<(FileProperties, Option<RunningCopy>)> {
        let record = self.copied_record(source, options, to);
        let written = source.written(options, self.now());
        let _writing = self.table().lock_to_write(to.id);
        match &source.bytes {
            SourceBytes::File(file) if options.stays_pending => {
                self.copy_later(to, record, source.size, file.stat.allocated, options)
            }
            SourceBytes::File(file) if source.size <= STRETCH_BYTES => {
                let pieces = data::read_pieces(&file.fd, source.size)?;
                file.check_unchanged()?;
                let pieces: Vec<_> = pieces.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
                self.copy_pieces(to, record, written, &pieces, source.size)
            }
            SourceBytes::File(file) if clone::share_extents(&file.fd, to.fd)? => {
                data::set_len(to.fd, source.size)?;
                file.check_unchanged()?;
                Ok((self.copy_done(to, record, written)?, None))
            }
            SourceBytes::File(file) => {
                self.copy_later(to, record, source.size, file.stat.allocated, options)
            }
            SourceBytes::Here(bytes) => {
                self.copy_pieces(to, record, written, &[(0, bytes)], source.size)
            }
            SourceBytes::Awaited => self.copy_later(to, record, source.size, source.size, options),
        }
    }

    /// Replaces the bytes of the destination by these, and ends the copy.
    fn copy_pieces(
        &self,
        to: &Destination<'_>,
        mut record: Record,
        written: Option<Timestamp>,
        pieces: &[(u64, &[u8])],
        size: u64,
    ) -> Result<(FileProperties, Option<RunningCopy>)> {
        let mut reserved = Reserved::Yes;
        for (at, bytes) in pieces {
            if data::reserve(to.fd, *at..at + bytes.len() as u64)? == Reserved::No {
                reserved = Reserved::No;
            }
        }
        let dense = (reserved == Reserved::No).then(|| dense(pieces));
        let dense = dense.as_ref().map(|bytes| [(0, &bytes[..])]);
        let pieces = dense.as_ref().map_or(pieces, |dense| &dense[..]);
        self.end_of_copy(&mut record);
        self.save_copy(to, &mut record)?;
        data::replace(to.fd, pieces, size, reserved).inspect_err(|_| self.undo_copy(to))?;
        Ok((self.copy_settled(to, record, written)?, None))
    }

    /// Empties the destination, which has the length of the source from now on, and leaves the
    /// copy under way. Refused if `needed` bytes have no room now.
    fn copy_later(
        &self,
        to: &Destination<'_>,
        mut record: Record,
        size: u64,
        needed: u64,
        options: &CopyOptions,
    ) -> Result<(FileProperties, Option<RunningCopy>)> {
        // What the destination has is given back.
        let freed = Stat::of(to.fd)?.allocated;
        data::check_room(to.fd, needed.saturating_sub(freed))?;
        self.save_copy(to, &mut record)?;
        let running = self.copy_begins(to.id, &options.id);
        data::replace(to.fd, &[], size, Reserved::Yes).inspect_err(|_| self.undo_copy(to))?;
        Ok((self.copy_settled(to, record, None)?, Some(running)))
    }

    /// After a copy that failed at its start: the destination gets its old record back.
    fn undo_copy(&self, to: &Destination<'_>) {
        if let Some(before) = to.before
            && let Err(error) = self.save_record(to.fd, to.id, &mut before.clone())
        {
            log::warn!("{}: its old record is lost: {error}", to.path);
        }
    }
}

/// All bytes of the pieces, with zeros between them.
fn dense(pieces: &[(u64, &[u8])]) -> Vec<u8> {
    let mut dense = Vec::new();
    for (at, bytes) in pieces {
        dense.resize(usize::try_from(*at).unwrap_or(usize::MAX), 0);
        dense.extend_from_slice(bytes);
    }
    dense
}
