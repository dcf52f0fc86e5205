//! Directories over REST: create, look at, change, delete.
//!
//! What each operation asks of the directory is the rules' table; emptiness is the disk's word.
//! Listing is in [`super::listing`], renaming in [`super::rest_rename`].

use super::error::{Error, Result};
use super::momentary::{Asking, Granted, Visit, Wanted};
use super::releases::{Asked, REST_PATIENCE};
use super::share::{Attempt, Share};
use super::shown::{PropertyChanges, Shown};
use crate::core::operation::Operation;
use crate::core::{Denial, FileId, Owner, SharePath};
use crate::store::{Found, Metadata, OpenFor, Record, Stat, StoreError};

/// What is known of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryProperties {
    /// Its path as spelled on disk.
    pub path: SharePath,
    /// Its identity.
    pub id: FileId,
    /// The directory that holds it; 0 for the share's root.
    pub parent: FileId,
    /// Attributes, times, `ETag`.
    pub shown: Shown,
    /// `x-ms-meta-*`.
    pub metadata: Metadata,
}

impl Share {
    /// Makes a directory.
    pub fn create_directory(
        &self,
        who: &Owner,
        path: &SharePath,
        properties: &PropertyChanges,
        metadata: &Metadata,
    ) -> Result<DirectoryProperties> {
        let wants = Operation::CreateDirectory.wants();
        let answer = self.once_released(REST_PATIENCE, &[path], wants, || {
            Asked::again(self.at_name(path, |found, generation| match found {
                Ok(found) => self.refuse_taken(&found, generation),
                Err(StoreError::NotFound) => self.make_directory(path, properties, metadata),
                Err(error) => Attempt::Done(Err(error.into())),
            }))
        });
        self.note_refusal("create directory", path, who, answer)
    }

    /// A name that exists is taken; if it is on its way out, that is the better answer, since
    /// trying again will help (LOCKING 3.3, 3.10).
    pub(super) fn refuse_taken<T>(&self, found: &Found, generation: u64) -> Attempt<T> {
        self.table.with(found.stat.id, |_, latched| {
            if !self.is_still(&found.path, found.stat.id, generation) {
                return Attempt::Again;
            }
            let pending = latched.state.check_not_pending(&found.path);
            Attempt::Done(Err(pending.err().unwrap_or(Denial::NameTaken).into()))
        })
    }

    fn make_directory(
        &self,
        path: &SharePath,
        properties: &PropertyChanges,
        metadata: &Metadata,
    ) -> Attempt<DirectoryProperties> {
        let create = |path: &SharePath| Ok(self.dir.create_dir(path, self.options.dir_mode)?);
        let made = self.make_entry(path, create, |path, stat| {
            self.table.with(stat.id, |_, _| {
                let described = self.describe_new(path, &stat, properties, metadata);
                if described.is_err() {
                    // Without what it was to have it is not what was asked for. What cannot be
                    // removed either stays as an ordinary directory.
                    let _ = self.dir.remove_dir(path, stat.id);
                    self.names_changed();
                }
                described
            })
        });
        match made {
            // Somebody else made it in between: it exists now.
            Err(Error::Denied(Denial::NameTaken)) => Attempt::Again,
            answer => Attempt::Done(answer),
        }
    }

    fn describe_new(
        &self,
        path: &SharePath,
        stat: &Stat,
        properties: &PropertyChanges,
        metadata: &Metadata,
    ) -> Result<DirectoryProperties> {
        let mut record = Record { metadata: metadata.clone(), ..Record::default() };
        properties.apply(&mut record);
        let shown = if record.is_default() && properties.written.is_none() {
            Shown::of(stat, &record)
        } else {
            let fd = self.dir.open_file(path, OpenFor::Read)?;
            self.keep(&fd, stat.id, &mut record, properties.written)?
        };
        self.directory_answer(path, stat.id, shown, record)
    }

    /// What a directory shows of itself, metadata included.
    pub fn directory_properties(
        &self,
        who: &Owner,
        path: &SharePath,
    ) -> Result<DirectoryProperties> {
        let operation = Operation::GetDirectoryProperties;
        self.on_directory("get directory properties", operation, who, path, |granted| {
            let Granted { found, record, .. } = granted;
            let shown = Shown::of(&found.stat, &record);
            self.directory_answer(&found.path, found.stat.id, shown, record)
        })
    }

    /// Sets attributes, times and permission.
    pub fn set_directory_properties(
        &self,
        who: &Owner,
        path: &SharePath,
        properties: &PropertyChanges,
    ) -> Result<DirectoryProperties> {
        let operation = Operation::SetDirectoryProperties;
        self.on_directory("set directory properties", operation, who, path, |granted| {
            let Granted { found, fd, mut record, .. } = granted;
            properties.apply(&mut record);
            let shown = self.keep(&fd, found.stat.id, &mut record, properties.written)?;
            self.directory_answer(&found.path, found.stat.id, shown, record)
        })
    }

    /// Replaces all metadata (FILEREST section 10, 13).
    pub fn set_directory_metadata(
        &self,
        who: &Owner,
        path: &SharePath,
        metadata: Metadata,
    ) -> Result<DirectoryProperties> {
        let operation = Operation::SetDirectoryMetadata;
        self.on_directory("set directory metadata", operation, who, path, |granted| {
            let Granted { found, fd, mut record, .. } = granted;
            record.metadata = metadata;
            record.changed = None;
            let shown = self.keep(&fd, found.stat.id, &mut record, None)?;
            self.directory_answer(&found.path, found.stat.id, shown, record)
        })
    }

    /// Deletes an empty directory that nobody has open: gone at once or refused, never pending
    /// (LOCKING 3.8).
    pub fn delete_directory(&self, who: &Owner, path: &SharePath) -> Result<()> {
        let operation = Operation::DeleteDirectory;
        let asking = Asking { who, lease_id: None };
        let visit = Visit { operation, asking, wanted: Wanted::Directory, range: None };
        let visited = self.once_released(REST_PATIENCE, &[path], operation.wants(), || {
            // That it is not empty is the step's own word, and nothing was done then.
            let mut step = Some(|granted: Granted<'_>| self.remove_directory(granted));
            Asked::again(self.at_name(path, |found, generation| match found {
                Ok(found) => self.visit(&visit, found, generation, &mut step),
                Err(error) => Attempt::Done(Err(error.into())),
            }))
        });
        self.visited("delete directory", asking, path, visited)?;
        self.tell_done(operation, path);
        Ok(())
    }

    fn remove_directory(&self, granted: Granted<'_>) -> Result<()> {
        let Granted { found, latched, .. } = granted;
        if found.path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        self.remove_name(&found.path, found.stat.id, true)?;
        self.forget_file(latched, found.stat.id, 1)
    }

    fn on_directory<T>(
        &self,
        name: &'static str,
        operation: Operation,
        who: &Owner,
        path: &SharePath,
        step: impl FnOnce(Granted<'_>) -> Result<T>,
    ) -> Result<T> {
        let asking = Asking { who, lease_id: None };
        self.momentarily(name, operation, asking, (path, Wanted::Directory), None, step)
    }

    fn directory_answer(
        &self,
        path: &SharePath,
        id: FileId,
        shown: Shown,
        record: Record,
    ) -> Result<DirectoryProperties> {
        let parent = self.parent_id(path)?;
        let Record { metadata, .. } = record;
        Ok(DirectoryProperties { path: path.clone(), id, parent, shown, metadata })
    }
}
