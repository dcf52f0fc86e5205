//! Operations of REST on directories: create, get and set properties and metadata, delete.
//!
//! What each operation needs of the directory is decided in `file/rules/operation`; whether it is
//! empty, by the disk.
//! Listing is in [`super::listing`], renaming in [`super::rename`].

use super::super::error::Result;
use super::super::share::{Seen, Share, TryResult};
use super::file_properties::FileProperties;
use super::momentary::{Asking, FileVisit, Granted, WantedKind};
use super::property_changes::PropertyChanges;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::{Metadata, OpenFor, Record, Stat};
use crate::journal::Happening;
use crate::rules::lease::FileLease;
use crate::rules::{Context, Timestamp};

impl Share {
    pub fn create_directory(
        &self,
        cx: &Context,
        path: &SharePath,
        properties: &PropertyChanges,
        metadata: &Metadata,
    ) -> Result<FileProperties> {
        let (name, operation) = ("Create Directory", FileOperation::CreateDirectory);
        let create =
            |path: &SharePath| Ok(self.disk().create_dir(path, self.options().dir_mode)?);
        self.make_free(name, (cx, path), operation, || {
            self.make_entry(path, create, |path, stat| {
                self.table().with(stat.id, |_, _| {
                    // Without what it was to have it is not what was asked for.
                    self.describe_new(cx.now, (path, &stat), properties, metadata)
                        .inspect_err(|_| self.unmake(path, stat))
                })
            })
        })
    }

    /// Refuses a name that exists. If the name is delete pending, the refusal says so: the request
    /// may succeed later.
    pub(crate) fn refuse_taken<T>(&self, seen: &Seen) -> TryResult<T> {
        self.lock_seen(seen, |_, latched| {
            latched.state.check_not_pending(&seen.found.path)?;
            Err(Denial::NameTaken.into())
        })
    }

    fn describe_new(
        &self,
        now: Timestamp,
        (path, stat): (&SharePath, &Stat),
        properties: &PropertyChanges,
        metadata: &Metadata,
    ) -> Result<FileProperties> {
        let written = properties.written.named(now);
        let mut record = Record { metadata: metadata.clone(), ..Record::default() };
        properties.apply(&mut record, now);
        let mut stat = *stat;
        if !record.is_default() || written.is_some() {
            let fd = self.disk().open_file(path, OpenFor::Read)?;
            stat = self.keep(&fd, stat.id, &mut record, written)?;
        }
        self.flush_name(path)?;
        self.properties_as(path, stat, record, FileLease::default())
    }

    /// The properties of a directory, metadata included.
    pub fn directory_properties(&self, cx: &Context, path: &SharePath) -> Result<FileProperties> {
        let operation = FileOperation::GetDirectoryProperties;
        let asking = Asking { cx, lease_id: None };
        let at = (path, WantedKind::Directory);
        let get = |granted: Granted<'_>| self.properties_of(&granted);
        self.momentarily("Get Directory Properties", operation, asking, at, None, get)
    }

    /// Sets attributes, times and permission.
    pub fn set_directory_properties(
        &self,
        cx: &Context,
        path: &SharePath,
        properties: &PropertyChanges,
    ) -> Result<FileProperties> {
        let operation = FileOperation::SetDirectoryProperties;
        self.change_directory("Set Directory Properties", operation, cx, path, |record| {
            properties.apply(record, cx.now);
            properties.written.named(cx.now)
        })
    }

    pub fn set_directory_metadata(
        &self,
        cx: &Context,
        path: &SharePath,
        metadata: Metadata,
    ) -> Result<FileProperties> {
        let operation = FileOperation::SetDirectoryMetadata;
        self.change_directory("Set Directory Metadata", operation, cx, path, |record| {
            record.metadata = metadata;
            record.changed = None;
            None
        })
    }

    /// Deletes an empty directory without opens. The directory is gone at once, never pending.
    pub fn delete_directory(&self, cx: &Context, path: &SharePath) -> Result<()> {
        let operation = FileOperation::DeleteDirectory;
        let asking = Asking { cx, lease_id: None };
        let visit = FileVisit { operation, asking, wanted: WantedKind::Directory, range: None };
        let visited = self.when_free(&[path], operation.wants(), || {
            // That it is not empty is the step's own word, and nothing was done then.
            let mut step = Some(|granted: Granted<'_>| self.remove_directory(granted));
            self.at_name(path, |seen| self.visit(&visit, &seen?, &mut step))
        });
        self.visited("Delete Directory", asking, path, visited)?;
        self.tell_done(operation, path);
        self.note(None, path, cx.owner(), Happening::Removed);
        Ok(())
    }

    fn remove_directory(&self, granted: Granted<'_>) -> Result<()> {
        let Granted { found, latched, .. } = granted;
        if found.path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        self.remove_name(&found.path, found.stat.id, true)?;
        self.forget_file(latched, found.stat.id, 1);
        self.flush_left(&found.path);
        Ok(())
    }

    /// Changes the record of a directory; `change` returns the write time to set.
    fn change_directory(
        &self,
        name: &'static str,
        operation: FileOperation,
        cx: &Context,
        path: &SharePath,
        change: impl FnOnce(&mut Record) -> Option<Timestamp>,
    ) -> Result<FileProperties> {
        let asking = Asking { cx, lease_id: None };
        let at = (path, WantedKind::Directory);
        self.momentarily(name, operation, asking, at, None, |granted| {
            let Granted { found, fd, mut record, .. } = granted;
            let written = change(&mut record);
            let stat = self.keep(&fd, found.stat.id, &mut record, written)?;
            self.properties_as(&found.path, stat, record, FileLease::default())
        })
    }
}
