//! What a file or directory shows of itself over REST, and how that is changed.
//!
//! Decides which of inode and record has the word (FILEREST section 4: defaults on create and on
//! set). Who may look or change was decided before.

use std::os::fd::OwnedFd;

use super::account::inherited_permission_key;
use super::error::Result;
use super::share::Share;
use crate::core::{Attributes, FileId, SharePath, Timestamp};
use crate::store::{ETag, Kind, Record, Stat, data};

/// The properties that every answer about a file or directory carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Moves with every change.
    pub etag: ETag,
    /// When anything last changed.
    pub last_modified: Timestamp,
    /// Attributes; those of a file that never had any set are `Archive`.
    pub attributes: Attributes,
    /// Creation time.
    pub created: Timestamp,
    /// Last access time.
    pub accessed: Timestamp,
    /// Last write time.
    pub written: Timestamp,
    /// Change time.
    pub changed: Timestamp,
    /// Key of the permission, if one was set.
    pub permission_key: Option<String>,
}

impl Shown {
    /// Of a file as the disk and its record tell it.
    pub fn of(stat: &Stat, record: &Record) -> Self {
        let directory = stat.kind == Kind::Directory;
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

    /// Key of the permission that was set, or of the one that those have that were given none.
    pub fn permission_key(&self) -> &str {
        self.permission_key.as_deref().unwrap_or(inherited_permission_key())
    }
}

/// Properties to be set; what is not named stays, but for the change time, which is then now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PropertyChanges {
    /// Attributes.
    pub attributes: Option<Attributes>,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Last write time.
    pub written: Option<Timestamp>,
    /// Change time.
    pub changed: Option<Timestamp>,
    /// Key of the permission.
    pub permission_key: Option<String>,
}

impl PropertyChanges {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Puts what belongs there into the record; the write time is the inode's.
    pub(super) fn apply(&self, record: &mut Record) {
        record.attributes = self.attributes.or(record.attributes);
        record.created = self.created.or(record.created);
        record.changed = self.changed;
        if let Some(key) = &self.permission_key {
            record.permission_key = Some(key.clone());
        }
    }
}

impl Share {
    /// Keeps a changed record and write time of a file whose lock the caller holds, as durably as
    /// the share promises, and says what the file shows now. Each call is a change of its own to
    /// the `ETag`, also where the kernel's change times are coarse.
    pub(super) fn keep(
        &self,
        fd: &OwnedFd,
        id: FileId,
        record: &mut Record,
        written: Option<Timestamp>,
    ) -> Result<Shown> {
        record.changes = record.changes.wrapping_add(1);
        self.records.save(fd, id, record)?;
        if written.is_some() {
            data::set_times(fd, None, written)?;
        }
        if self.options.sync_always {
            data::sync(fd)?;
        }
        Ok(Shown::of(&Stat::of(fd)?, record))
    }

    /// The identity of the directory that holds `path`; nothing holds the root, which shows 0.
    pub(super) fn parent_id(&self, path: &SharePath) -> Result<FileId> {
        match path.parent() {
            Some(parent) => Ok(self.dir.stat(&parent)?.id),
            None => Ok(FileId::default()),
        }
    }
}
