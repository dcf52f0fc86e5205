//! The start of a copy: the source is let be read, the destination emptied or made, and a file
//! that one step can copy is copied.

use std::os::fd::OwnedFd;

use super::{Bytes, Copied, CopyOptions, Destination, FileSource, Running, STRETCH_BYTES, Source};
use crate::core::file::FileState;
use crate::core::momentary::Circumstances;
use crate::core::operation::Operation;
use crate::core::{Denial, Owner, SharePath};
use crate::engine::error::{Error, Result};
use crate::engine::momentary::{Asking, Granted, Wanted};
use crate::engine::share::{NAME_RETRIES_MAX, Share};
use crate::store::{ETag, Kind, OpenFor, Stat, StoreError, clone, data};

impl Share {
    pub(super) fn copy_source(&self, who: &Owner, path: &SharePath) -> Result<FileSource> {
        let asking = Asking { who, lease_id: None };
        let at = (path, Wanted::File);
        self.momentarily("copy from", Operation::CopySource, asking, at, None, |granted| {
            let Granted { found, fd, record, .. } = granted;
            // Under the lock no request of ours is half way through writing it.
            let stat = Stat::of(&fd)?;
            let etag = ETag::of(&stat, &record);
            Ok(FileSource { path: Some(found.path.clone()), fd, stat, record, etag })
        })
    }

    /// Overwrites the destination or makes it, whichever it takes.
    pub(super) fn begin_copy(
        &self,
        asking: Asking<'_>,
        source: &Source<'_>,
        same_share: bool,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<(Copied, Option<Running>)> {
        for _ in 0..NAME_RETRIES_MAX {
            let begun = match self.find(to) {
                // REST does not see it, and cannot make it either.
                Ok(found) if matches!(found.stat.kind, Kind::Symlink | Kind::Special) => {
                    self.note_refusal("copy to", to, asking.who, Err(Denial::NameTaken.into()))
                }
                Ok(_) => self.begin_over(asking, source, same_share, to, options),
                Err(StoreError::NotFound) => {
                    let begun = self.begin_new(asking, source, to, options);
                    if matches!(begun, Err(Error::Denied(Denial::NameTaken))) {
                        continue; // Made since it was looked up.
                    }
                    self.note_refusal("copy to", to, asking.who, begun)
                }
                Err(error) => self.note_refusal("copy to", to, asking.who, Err(error.into())),
            };
            match begun {
                Err(Error::Denied(Denial::NotFound)) => {} // Removed since it was looked up.
                begun => return begun,
            }
        }
        Err(Denial::NotFound.into())
    }

    fn begin_over(
        &self,
        asking: Asking<'_>,
        source: &Source<'_>,
        same_share: bool,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<(Copied, Option<Running>)> {
        let operation =
            Operation::CopyDestinationOver { ignore_read_only: options.ignore_read_only };
        self.momentarily("copy to", operation, asking, (to, Wanted::File), None, |granted| {
            let Granted { found, fd, record, cell, .. } = granted;
            let id = found.stat.id;
            let to = Destination { path: &found.path, id, fd: &fd, cell, before: Some(&record) };
            // An identity with a birth time is one file on any share of the machine.
            let same = |file: &FileSource| id == file.stat.id && (same_share || id.born != 0);
            if matches!(source.bytes, Bytes::File(file) if same(file)) {
                let record = self.copied_record(source, options, &to);
                return Ok((self.copy_done(&to, record, None)?, None));
            }
            self.begin_at(&to, source, options)
        })
    }

    fn begin_new(
        &self,
        asking: Asking<'_>,
        source: &Source<'_>,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<(Copied, Option<Running>)> {
        let at = Circumstances {
            path: to,
            lease_id: asking.lease_id,
            copy_pending: false,
            read_only: false,
            range: None,
        };
        FileState::default().check_operation(Operation::CreateFileNew, &at)?;
        let _names = self.names()?;
        let make = |path: &SharePath| {
            let (_, stat) = self.dir.create_file(path, self.options.file_mode)?;
            Ok(stat)
        };
        self.make_entry(to, make, |path, stat| {
            self.table.with(stat.id, |cell, latched| {
                let begun = self.dir.open_file(path, OpenFor::Write).map_err(Error::from);
                let begun = begun.and_then(|fd| {
                    let to = Destination { path, id: stat.id, fd: &fd, cell, before: None };
                    self.begin_at(&to, source, options)
                });
                if begun.is_err() && latched.state.open_count() == 0 {
                    // Nobody has seen it. What cannot be removed either stays, empty.
                    let _ = self.dir.remove_file(path, stat.id);
                    self.names_changed();
                }
                begun
            })
        })
    }

    /// Empties the destination and copies what one step may: all of it, or nothing yet with the
    /// copy under way. The destination's lock is held.
    fn begin_at(
        &self,
        to: &Destination<'_>,
        source: &Source<'_>,
        options: &CopyOptions,
    ) -> Result<(Copied, Option<Running>)> {
        let mut record = self.copied_record(source, options, to);
        let _writing = to.cell.data.write().expect("nothing panics while bytes move");
        match copy_at_once(source, to.fd) {
            Ok(true) => Ok((self.copy_done(to, record, source.written(options))?, None)),
            Ok(false) => {
                let running = self.copies.begin(to.id, &options.id);
                Ok((self.copy_kept(to, record, None)?, Some(running)))
            }
            Err(error) => {
                // The old bytes are gone: the record says why, as far as it can be kept.
                self.copy_failed(&mut record, &error);
                let _ = self.copy_kept(to, record, None);
                Err(error)
            }
        }
    }
}

/// Empties `to` and fills it with the bytes of the source, if that takes one step; else gives it
/// the length, so that what is not copied yet reads as zeros, and says no.
fn copy_at_once(source: &Source<'_>, to: &OwnedFd) -> Result<bool> {
    data::set_len(to, 0)?;
    match source.bytes {
        Bytes::File(file) => {
            if !clone::share_extents(&file.fd, to)? {
                data::set_len(to, source.size)?;
                if source.size > STRETCH_BYTES {
                    return Ok(false);
                }
                clone::copy_range(&file.fd, to, 0..source.size)?;
            }
            file.check_unchanged()?;
            Ok(true)
        }
        Bytes::Here(bytes) => {
            data::write_at(to, bytes, 0)?;
            Ok(true)
        }
        Bytes::Awaited => {
            data::set_len(to, source.size)?;
            Ok(false)
        }
    }
}
