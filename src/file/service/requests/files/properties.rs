//! Set File Properties and Set File Metadata.

use super::super::file_properties::FileProperties;
use super::super::momentary::{Asking, WantedKind};
use super::super::property_changes::FileChanges;
use super::change::set_written;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::share::Share;
use crate::file::store::share::{Metadata, data};
use crate::rules::check_metadata;

impl Share {
    /// Set File Properties, a new length included.
    pub fn set_file_properties(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        changes: &FileChanges,
    ) -> Result<FileProperties> {
        const NAME: &str = "Set File Properties";
        self.arguments(NAME, asking, path, changes.check())?;
        let operation = FileOperation::SetFileProperties {
            resize: changes.size.is_some(),
            attributes: changes.smb.attributes.is_some(),
        };
        self.momentarily(NAME, operation, asking, (path, WantedKind::File), None, |granted| {
            let mut record = granted.record.clone();
            changes.apply(&mut record, &granted.found.stat, granted.now);
            if let (Some(size), Some(account)) = (changes.size, record.ranges.as_mut()) {
                account.cut(size);
            }
            // A length that the file system cannot have is refused before old bytes are cut.
            self.publish(&granted, &mut record, 0..0, |fd, _| match changes.size {
                Some(size) => Ok(data::set_len(fd, size)?),
                None => Ok(()),
            })?;
            // A new length moves the last-write time even if it is to be preserved.
            set_written(&granted, changes.smb.written, None)?;
            self.changed(&granted, record)
        })
    }

    /// Set File Metadata: replaces all of it.
    pub fn set_file_metadata(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        metadata: &Metadata,
    ) -> Result<FileProperties> {
        const NAME: &str = "Set File Metadata";
        let legal = check_metadata(metadata.iter()).map_err(Denial::from);
        self.arguments(NAME, asking, path, legal)?;
        let target = (path, WantedKind::File);
        self.momentarily(NAME, FileOperation::SetFileMetadata, asking, target, None, |granted| {
            let mut record = granted.record.clone();
            record.metadata = metadata.clone();
            record.changed = None;
            self.keep_record(&granted, &mut record)?;
            self.changed(&granted, record)
        })
    }
}
