//! Set File Properties and Set File Metadata.

use super::super::error::Result;
use super::super::momentary::{Asking, Wanted};
use super::super::share::Share;
use super::asked::FileChanges;
use super::shown::FileProperties;
use crate::core::operation::Operation;
use crate::core::{Denial, SharePath, check_metadata};
use crate::store::{Metadata, data};

impl Share {
    /// Set File Properties, a new length included.
    pub fn set_file_properties(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        changes: &FileChanges,
    ) -> Result<FileProperties> {
        const NAME: &str = "set file properties";
        self.arguments(NAME, asking, path, changes.check())?;
        let operation = Operation::SetFileProperties {
            resize: changes.size.is_some(),
            attributes: changes.attributes.is_some(),
        };
        self.momentarily(NAME, operation, asking, (path, Wanted::File), None, |granted| {
            let mut record = granted.record.clone();
            changes.apply(&mut record, &granted.found.stat, self.clock.now());
            self.keep_record(&granted, &mut record)?;
            if let Some(size) = changes.size {
                Self::with_bytes(&granted, || Ok(data::set_len(&granted.fd, size)?))?;
            }
            // A new length moves the last-write time even if it is to be preserved (LOCKING 7.6).
            self.set_written(&granted, changes.written, None)?;
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
        const NAME: &str = "set file metadata";
        let legal = check_metadata(metadata.iter()).map_err(Denial::from);
        self.arguments(NAME, asking, path, legal)?;
        let target = (path, Wanted::File);
        self.momentarily(NAME, Operation::SetFileMetadata, asking, target, None, |granted| {
            let mut record = granted.record.clone();
            record.metadata = metadata.clone();
            record.changed = None;
            self.keep_record(&granted, &mut record)?;
            self.changed(&granted, record)
        })
    }
}
