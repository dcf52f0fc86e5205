//! The properties of a file or directory in answers, and how a changed record is saved.
//!
//! Decides which properties come from the inode and which from the record. The changes of a request
//! are in [`super::property_changes`].

use std::os::fd::OwnedFd;

use super::super::error::Result;
use super::super::share::Share;
use super::super::shares::inherited_permission_key;
use crate::file::rules::{Attributes, SharePath};
use crate::file::store::share::{ETag, FileKind, Record, Stat, data};
use crate::rules::{FileId, Timestamp};

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
        let mut attributes = record.attributes.unwrap_or(if directory {
            Attributes::NONE
        } else {
            Attributes::ARCHIVE
        });
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
    /// Keeps a changed record and write time of a file whose lock the caller holds, as durably as
    /// the share promises, and says what the file shows now. Each call is a change of its own to
    /// the `ETag`, also where the kernel's change times are coarse.
    pub(crate) fn keep(
        &self,
        fd: &OwnedFd,
        id: FileId,
        record: &mut Record,
        written: Option<Timestamp>,
    ) -> Result<SmbProperties> {
        record.changes = record.changes.wrapping_add(1);
        self.save_record(fd, id, record)?;
        self.settle(fd, record, written)
    }

    /// Sets the write time of a file whose record and bytes are saved, flushes the file if the
    /// share wants that, and says what it shows now.
    pub(crate) fn settle(
        &self,
        fd: &OwnedFd,
        record: &Record,
        written: Option<Timestamp>,
    ) -> Result<SmbProperties> {
        if written.is_some() {
            data::set_times(fd, None, written)?;
        }
        if self.options().sync_always {
            data::sync(fd)?;
        }
        Ok(SmbProperties::of(&Stat::of(fd)?, record))
    }

    /// The identity of the directory that holds `path`; nothing holds the root, which shows 0.
    pub(crate) fn parent_id(&self, path: &SharePath) -> Result<FileId> {
        match path.parent() {
            Some(parent) => Ok(self.disk().stat(&parent)?.id),
            None => Ok(FileId::default()),
        }
    }
}
