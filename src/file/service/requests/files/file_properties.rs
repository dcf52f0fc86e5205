//! The properties of a file in answers: from the inode, the record and the lease.
//!
//! Decides precedence: a time or attribute that a request has set wins over the inode's; a file
//! whose attributes were never set shows `Archive`.

use super::super::momentary::Granted;
use super::super::smb_properties::SmbProperties;
use crate::file::rules::SharePath;
use crate::file::service::error::Result;
use crate::file::service::share::Share;
use crate::file::store::share::{CopyState, ETag, HttpHeaders, Metadata, Record, Stat};
use crate::rules::lease::FileLease;
use crate::rules::{FileId, Timestamp};

/// A file at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProperties {
    /// Its path, spelled as on disk.
    pub path: SharePath,
    /// The attributes of the inode.
    pub stat: Stat,
    pub record: Record,
    /// The directory it stands in: `x-ms-file-parent-id`.
    pub parent: FileId,
    /// Its lease: state, status and duration.
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

impl Share {
    /// The file that an operation was admitted to, as it was when it came.
    pub(super) fn properties_of(&self, granted: &Granted<'_>) -> Result<FileProperties> {
        let lease = granted.latched.state.lease();
        self.properties_as(&granted.found.path, granted.found.stat, granted.record.clone(), lease)
    }

    pub(super) fn properties_as(
        &self,
        path: &SharePath,
        stat: Stat,
        record: Record,
        lease: FileLease,
    ) -> Result<FileProperties> {
        let parent = match path.parent() {
            // Twice: after a change a failure would be told as a refusal.
            Some(parent) => self.disk().stat(&parent).or_else(|_| self.disk().stat(&parent))?.id,
            None => stat.id,
        };
        Ok(FileProperties { path: path.clone(), stat, record, parent, lease })
    }
}
