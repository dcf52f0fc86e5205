//! The properties of a file or directory in answers, and how a changed record is saved.
//!
//! Decides precedence: a time or attribute that a request has set wins over the inode's; a file
//! whose attributes were never set shows `Archive`. The changes of a request are in
//! [`super::property_changes`].

use std::os::fd::OwnedFd;

use super::super::error::Result;
use super::super::share::Share;
use super::super::shares::inherited_permission_key;
use super::momentary::Granted;
use crate::file::rules::{Attributes, SharePath};
use crate::file::store::share::{
    CopyState, ETag, FileKind, HttpHeaders, Metadata, Record, Stat, data,
};
use crate::rules::lease::FileLease;
use crate::rules::{FileId, Timestamp};

/// A file or directory at one moment: the answer of every operation on one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProperties {
    /// Its path, spelled as on disk.
    pub path: SharePath,
    /// The attributes of the inode.
    pub stat: Stat,
    pub record: Record,
    /// The directory that holds it; 0 for the share's root.
    pub parent: FileId,
    /// Its lease, which a directory and a file of a snapshot do not have.
    pub lease: FileLease,
}

impl FileProperties {
    pub fn size(&self) -> u64 {
        self.stat.size
    }

    /// Identity; the inode number is `x-ms-file-id`.
    pub fn id(&self) -> FileId {
        self.stat.id
    }

    /// Attributes and times; the record's before the inode's.
    pub fn smb(&self) -> SmbProperties {
        SmbProperties::of(&self.stat, &self.record)
    }

    /// Changes with every change of the file, from whichever side.
    pub fn etag(&self) -> ETag {
        ETag::of(&self.stat, &self.record)
    }

    /// The last change of anything. No request can set it.
    pub fn last_modified(&self) -> Timestamp {
        self.stat.changed
    }

    /// The stored content headers.
    pub fn headers(&self) -> &HttpHeaders {
        &self.record.headers
    }

    pub fn metadata(&self) -> &Metadata {
        &self.record.metadata
    }

    /// The last copy onto it.
    pub fn copy(&self) -> Option<&CopyState> {
        self.record.copy.as_ref()
    }
}

/// The properties that every answer about a file or directory carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SmbProperties {
    /// The `ETag`; changes with every change of the file.
    pub etag: ETag,
    /// The time of the last change.
    pub last_modified: Timestamp,
    /// Attributes; those of a file that never had any set are `Archive`.
    pub attributes: Attributes,
    pub created: Timestamp,
    pub accessed: Timestamp,
    pub written: Timestamp,
    pub changed: Timestamp,
    /// Key of the permission, if one was set.
    pub permission_key: Option<String>,
}

impl SmbProperties {
    /// The properties of a file with this inode and record.
    pub fn of(stat: &Stat, record: &Record) -> Self {
        let directory = stat.kind == FileKind::Directory;
        let default = if directory { Attributes::NONE } else { Attributes::ARCHIVE };
        let mut attributes = record.attributes.unwrap_or(default);
        if directory {
            attributes.insert(Attributes::DIRECTORY);
        }
        Self {
            etag: ETag::of(stat, record),
            last_modified: stat.changed,
            attributes,
            created: record.created.unwrap_or(stat.created),
            accessed: stat.accessed,
            written: stat.written,
            changed: record.changed.unwrap_or(stat.changed),
            permission_key: record.permission_key.clone(),
        }
    }

    /// The key of the permission that was set, or of the default permission.
    pub fn permission_key(&self) -> &str {
        self.permission_key.as_deref().unwrap_or(inherited_permission_key())
    }
}

impl Share {
    /// The file that an operation was admitted to, as it was when it came.
    pub(super) fn properties_of(&self, granted: &Granted<'_>) -> Result<FileProperties> {
        let lease = granted.latched.state.lease();
        self.properties_as(&granted.found.path, granted.found.stat, granted.record.clone(), lease)
    }

    pub(crate) fn properties_as(
        &self,
        path: &SharePath,
        stat: Stat,
        record: Record,
        lease: FileLease,
    ) -> Result<FileProperties> {
        // Twice: after a change a failure would be told as a refusal.
        let parent = self.parent_id(path).or_else(|_| self.parent_id(path))?;
        Ok(FileProperties { path: path.clone(), stat, record, parent, lease })
    }

    /// Keeps a changed record and write time of a file whose lock the caller holds, as durably as
    /// the share promises. Returns the attributes of the inode now. Each call is a change of its
    /// own to the `ETag`, also where the kernel's change times are coarse.
    pub(crate) fn keep(
        &self,
        fd: &OwnedFd,
        id: FileId,
        record: &mut Record,
        written: Option<Timestamp>,
    ) -> Result<Stat> {
        record.changes = record.changes.wrapping_add(1);
        self.save_record(fd, id, record)?;
        self.settle(fd, written)
    }

    /// Sets the write time of a file whose record and bytes are saved, and flushes the file if the
    /// share wants that. Returns the attributes of the inode now.
    pub(crate) fn settle(&self, fd: &OwnedFd, written: Option<Timestamp>) -> Result<Stat> {
        if written.is_some() {
            data::set_times(fd, None, written)?;
        }
        if self.options().sync_always {
            data::sync(fd)?;
        }
        Ok(Stat::of(fd)?)
    }

    /// The identity of the directory that holds `path`; nothing holds the root, which shows 0.
    pub(crate) fn parent_id(&self, path: &SharePath) -> Result<FileId> {
        match path.parent() {
            Some(parent) => Ok(self.disk().stat(&parent)?.id),
            None => Ok(FileId::default()),
        }
    }
}
