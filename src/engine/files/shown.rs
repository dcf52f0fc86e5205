//! What an answer shows of a file: the disk's word, the record's, and the lease.
//!
//! Decides which of them wins: a time or an attribute set by a request over the inode's, and
//! `Archive` for a file whose attributes nobody set (FILEREST section 4).

use super::super::error::Result;
use super::super::momentary::Granted;
use super::super::share::Share;
use crate::core::lease::FileLease;
use crate::core::{Attributes, FileId, SharePath, Timestamp};
use crate::store::{CopyState, ETag, HttpHeaders, Metadata, Record, Stat};

/// A file at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProperties {
    /// Its path, spelled as on disk.
    pub path: SharePath,
    /// What the disk says.
    pub stat: Stat,
    /// What is kept beside the inode.
    pub record: Record,
    /// The directory it stands in: `x-ms-file-parent-id`.
    pub parent: FileId,
    /// Its lease: state, status and duration.
    pub lease: FileLease,
}

impl FileProperties {
    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.stat.size
    }

    /// Identity; the inode number is `x-ms-file-id`.
    pub fn id(&self) -> FileId {
        self.stat.id
    }

    /// Changes with every change of the file, from whichever side.
    pub fn etag(&self) -> ETag {
        ETag::of(&self.stat, &self.record)
    }

    /// The last change of anything. No request can set it.
    pub fn last_modified(&self) -> Timestamp {
        self.stat.changed
    }

    /// The attributes; `Archive` where none were set.
    pub fn attributes(&self) -> Attributes {
        self.record.attributes.unwrap_or(Attributes::ARCHIVE)
    }

    /// `x-ms-file-creation-time`.
    pub fn created(&self) -> Timestamp {
        self.record.created.unwrap_or(self.stat.created)
    }

    /// `x-ms-file-last-write-time`.
    pub fn written(&self) -> Timestamp {
        self.stat.written
    }

    /// `x-ms-file-change-time`: as a request set it, until the next request that changes the
    /// file.
    pub fn changed(&self) -> Timestamp {
        self.record.changed.unwrap_or(self.stat.changed)
    }

    /// Key of its permission; none if it has the one it inherits.
    pub fn permission_key(&self) -> Option<&str> {
        self.record.permission_key.as_deref()
    }

    /// The stored content headers.
    pub fn headers(&self) -> &HttpHeaders {
        &self.record.headers
    }

    /// The user's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.record.metadata
    }

    /// The last copy onto it.
    pub fn copy(&self) -> Option<&CopyState> {
        self.record.copy.as_ref()
    }
}

impl Share {
    /// The file an operation was let through to, as it was when it came.
    pub(super) fn shown(&self, granted: &Granted<'_>) -> Result<FileProperties> {
        let lease = granted.latched.state.lease();
        self.shown_as(&granted.found.path, granted.found.stat, granted.record.clone(), lease)
    }

    pub(super) fn shown_as(
        &self,
        path: &SharePath,
        stat: Stat,
        record: Record,
        lease: FileLease,
    ) -> Result<FileProperties> {
        let parent = match path.parent() {
            Some(parent) => self.dir.stat(&parent)?.id,
            None => stat.id,
        };
        Ok(FileProperties { path: path.clone(), stat, record, parent, lease })
    }
}
