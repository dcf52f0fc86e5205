//! Create File: under a free name, or over an existing file, which keeps its identity and its
//! lease and loses all else (LOCKING 4.1; FILEREST 10.11).

use std::os::fd::OwnedFd;

use super::super::error::{Error, Result};
use super::super::momentary::{Asking, Granted, Visit, Visited, Wanted};
use super::super::releases::{Asked, REST_PATIENCE};
use super::super::share::{Attempt, Share};
use super::asked::{NewProperties, TimeChange};
use super::shown::FileProperties;
use super::write::check_body;
use crate::core::file::FileState;
use crate::core::lease::FileLease;
use crate::core::momentary::Circumstances;
use crate::core::operation::Operation;
use crate::core::{Denial, SharePath};
use crate::store::{Found, Kind, Stat, StoreError, data};

/// What a file is to be.
#[derive(Clone, Copy)]
struct Wish<'a> {
    size: u64,
    properties: &'a NewProperties,
    /// Its first bytes; the others are zeros.
    bytes: &'a [u8],
}

impl Share {
    /// Makes a file of `size` bytes: those given, then zeros. A file of that name is overwritten.
    pub fn create_file(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        size: u64,
        properties: &NewProperties,
        bytes: Option<&[u8]>,
    ) -> Result<FileProperties> {
        const NAME: &str = "create file";
        let wish = Wish { size, properties, bytes: bytes.unwrap_or_default() };
        self.arguments(NAME, asking, path, wish.check())?;
        let visit = Visit {
            operation: Operation::CreateFileOver,
            asking,
            wanted: Wanted::File,
            range: None,
        };
        let visited = self.once_released(REST_PATIENCE, &[path], visit.operation.wants(), || {
            Asked::again(self.at_name(path, |found, generation| match found {
                // A link or special file, which REST does not know, keeps its name all the same.
                Ok(Found { stat, .. }) if matches!(stat.kind, Kind::Symlink | Kind::Special) => {
                    Attempt::Done(Err(Denial::NameTaken.into()))
                }
                Ok(found) => {
                    let mut step = Some(|granted: Granted<'_>| self.create_over(&granted, wish));
                    self.visit(&visit, found, generation, &mut step)
                }
                Err(StoreError::NotFound) => match self.create_new(asking, path, wish) {
                    // Somebody else made it in between: it exists now.
                    Err(Error::Denied(Denial::NameTaken)) => Attempt::Again,
                    made => Attempt::Done(made.map(Visited::quietly)),
                },
                Err(error) => Attempt::Done(Err(error.into())),
            }))
        });
        let created = self.visited(NAME, asking, path, visited)?;
        self.tell_done(visit.operation, path);
        Ok(created)
    }

    fn create_over(&self, granted: &Granted<'_>, wish: Wish<'_>) -> Result<FileProperties> {
        let stat = granted.found.stat;
        let mut record = wish.properties.record_over(&granted.record, &stat, self.clock.now());
        self.keep_record(granted, &mut record)?;
        Self::with_bytes(granted, || wish.fill(&granted.fd))?;
        match wish.properties.written {
            TimeChange::Now => {} // The bytes were written just now.
            written => self.set_written(granted, written, Some(&stat))?,
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
            check_new(asking, path)?;
            let (fd, stat) = self.dir.create_file(path, self.options.file_mode)?;
            // Under its lock, so that whoever finds the name waits for the rest.
            let filled = self.table.with(stat.id, |_, latched| {
                let lease = latched.state.lease();
                self.fill_new(path, &fd, stat, lease, wish).inspect_err(|_| self.unmake(path, stat))
            });
            answer = Some(filled?);
            Ok(stat)
        };
        self.make_entry(path, make, |_, _| Ok(()))?;
        Ok(answer.expect("an entry that was made has been filled"))
    }

    /// Takes a file back that could not be filled.
    fn unmake(&self, path: &SharePath, stat: Stat) {
        let removed = self
            .remove_name(path, stat.id, false)
            .and_then(|()| Ok(self.records.forget(stat.id)?));
        if let Err(error) = removed {
            log::warn!("{path}: made, could not be filled, and stays: {error}");
        }
    }

    fn fill_new(
        &self,
        path: &SharePath,
        fd: &OwnedFd,
        stat: Stat,
        lease: FileLease,
        wish: Wish<'_>,
    ) -> Result<FileProperties> {
        let mut record = wish.properties.record(&stat, self.clock.now());
        if !record.is_default() {
            self.records.save(fd, stat.id, &mut record)?;
        }
        wish.fill(fd)?;
        if let TimeChange::At(time) = wish.properties.written {
            data::set_times(fd, None, Some(time))?;
        }
        if self.options.sync_always {
            data::sync(fd)?;
            self.flush_name(path)?;
        }
        self.shown_as(path, Stat::of(fd)?, record, lease)
    }
}

/// What the rules say to a name that is free: a lease ID is for a file that there is not
/// (LOCKING 4.1).
fn check_new(asking: Asking<'_>, path: &SharePath) -> Result<()> {
    let at = Circumstances {
        path,
        lease_id: asking.lease_id,
        copy_pending: false,
        read_only: false,
        range: None,
    };
    Ok(FileState::default().check_operation(Operation::CreateFileNew, &at)?)
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

    /// Gives a file its bytes, in place of any others.
    fn fill(&self, fd: &OwnedFd) -> Result<()> {
        data::set_len(fd, 0)?;
        data::set_len(fd, self.size)?;
        Ok(data::write_at(fd, self.bytes, 0)?)
    }
}
