//! Create File: a new file, or an overwritten one, which keeps its identity and its lease and
//! nothing else. Delete File: atomic, and never delete pending.

use std::os::fd::OwnedFd;

use super::super::file_properties::FileProperties;
use super::super::momentary::{Asking, FileVisit, Granted, WantedKind, ask_new};
use super::super::property_changes::{NewProperties, TimeChange};
use super::write::{check_body, set_written};
use crate::disk::StoreError;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::opens::open::Wake;
use crate::file::service::share::{Missed, Seen, Share};
use crate::file::store::share::{FileKind, FoundFile, Stat, data};
use crate::journal::Happening;
use crate::rules::Timestamp;
use crate::rules::lease::FileLease;

/// The content and properties of a file to be created.
#[derive(Clone, Copy)]
struct Wish<'a> {
    now: Timestamp,
    size: u64,
    properties: &'a NewProperties,
    /// Its first bytes; the others are zeros.
    bytes: &'a [u8],
}

impl Share {
    /// Deletes a file that has no opens. When this returns, the file is gone and its name is free.
    pub fn delete_file(&self, asking: Asking<'_>, path: &SharePath) -> Result<()> {
        let target = (path, WantedKind::File);
        let step = |granted: Granted<'_>| {
            let Granted { found, cell, latched, .. } = granted;
            self.remove_name(&found.path, cell.id, false)?;
            self.forget_file(latched, cell.id, found.stat.links);
            self.flush_left(&found.path);
            Ok(())
        };
        self.momentarily("Delete File", FileOperation::DeleteFile, asking, target, None, step)?;
        self.note(None, path, asking.cx.owner(), Happening::Removed);
        Ok(())
    }

    /// Makes a file of `size` bytes: those given, then zeros. A file of that name is overwritten.
    pub fn create_file(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        size: u64,
        properties: &NewProperties,
        bytes: Option<&[u8]>,
    ) -> Result<FileProperties> {
        const NAME: &str = "Create File";
        let (now, bytes) = (asking.cx.now, bytes.unwrap_or_default());
        let wish = Wish { now, size, properties, bytes };
        self.arguments(NAME, asking, path, wish.check())?;
        let visit = FileVisit {
            operation: FileOperation::CreateFileOver,
            asking,
            wanted: WantedKind::File,
            range: None,
        };
        let visited = self.when_free(&[path], visit.operation.wants(), || {
            self.at_name(path, |seen| match seen {
                // A link or special file, which REST does not know, keeps its name all the same.
                Ok(Seen { found: FoundFile { stat, .. }, .. })
                    if properties.only_new
                        || matches!(stat.kind, FileKind::Symlink | FileKind::Special) =>
                {
                    Err(Denial::NameTaken.into())
                }
                Ok(seen) => {
                    let mut step = Some(|granted: Granted<'_>| self.create_over(&granted, wish));
                    self.visit(&visit, &seen, &mut step)
                }
                Err(StoreError::NotFound) => match self.create_new(asking, path, wish) {
                    // Somebody else made it in between: it exists now.
                    Err(FileError::Denied(Denial::NameTaken)) => Err(Missed::Moved),
                    made => Ok((made?, Wake::nobody())),
                },
                Err(error) => Err(error.into()),
            })
        });
        let created = self.visited(NAME, asking, path, visited)?;
        self.tell_done(visit.operation, path);
        Ok(created)
    }

    fn create_over(&self, granted: &Granted<'_>, wish: Wish<'_>) -> Result<FileProperties> {
        let stat = granted.found.stat;
        let mut record = wish.properties.record_over(&granted.record, &stat, granted.now);
        let head = 0..wish.bytes.len() as u64;
        self.publish(granted, &mut record, head, |fd, reserved| {
            Ok(data::replace(fd, &[(0, wish.bytes)], wish.size, reserved)?)
        })?;
        match wish.properties.smb.written.or(TimeChange::Now) {
            TimeChange::Now => {} // The bytes were written just now.
            written => set_written(granted, written, Some(&stat))?,
        }
        self.changed(granted, record)
    }

    fn create_new(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        wish: Wish<'_>,
    ) -> Result<FileProperties> {
        let mut answer = None;
        let make = |path: &SharePath| {
            ask_new(asking.lease_id, path)?;
            let (fd, stat) = self.disk().create_file(path, self.options().file_mode)?;
            // Under its lock, so that a caller who finds the name waits for the rest.
            let filled = self.table().with(stat.id, |_, latched| {
                let lease = latched.state.lease();
                let filled = self.fill_new(path, &fd, stat, lease, wish);
                match &filled {
                    Ok(_) => self.note_change(asking.cx, path, (None, None)),
                    Err(_) => self.unmake(path, stat),
                }
                filled
            });
            answer = Some(filled?);
            Ok(stat)
        };
        self.make_entry(path, make, |_, _| Ok(()))?;
        Ok(answer.expect("an entry that was made has been filled"))
    }

    fn fill_new(
        &self,
        path: &SharePath,
        fd: &OwnedFd,
        stat: Stat,
        lease: FileLease,
        wish: Wish<'_>,
    ) -> Result<FileProperties> {
        let mut record = wish.properties.record(&stat, wish.now);
        if !record.is_default() {
            self.save_record(fd, stat.id, &mut record)?;
        }
        data::set_len(fd, wish.size)?;
        data::write_at(fd, wish.bytes, 0)?;
        if let TimeChange::At(time) = wish.properties.smb.written {
            data::set_times(fd, None, Some(time))?;
        }
        if self.options().sync_always {
            data::sync(fd)?;
            self.flush_name(path)?;
        }
        self.properties_as(path, Stat::of(fd)?, record, lease)
    }
}

impl Wish<'_> {
    fn check(&self) -> std::result::Result<(), Denial> {
        check_body(self.bytes)?;
        self.properties.check(self.size)?;
        if self.bytes.len() as u64 > self.size {
            return Err(Denial::InvalidRange { size: self.size });
        }
        Ok(())
    }
}
