//! Delete File: atomic, and never delete pending.

use super::super::momentary::{Asking, Granted, WantedKind};
use crate::file::rules::SharePath;
use crate::file::rules::operation::FileOperation;
use crate::file::service::error::Result;
use crate::file::service::share::Share;
use crate::journal::Happening;

impl Share {
    /// Deletes a file that has no opens. When this returns, the file is gone and its name is free.
    pub fn delete_file(&self, asking: Asking<'_>, path: &SharePath) -> Result<()> {
        let target = (path, WantedKind::File);
        let step = |granted: Granted<'_>| {
            let Granted { found, cell, latched, .. } = granted;
            self.remove_name(&found.path, cell.id, false)?;
            self.forget_file(latched, cell.id, found.stat.links);
            self.flush_name(&found.path)
        };
        self.momentarily("Delete File", FileOperation::DeleteFile, asking, target, None, step)?;
        self.note(path, asking.cx.owner(), Happening::Removed);
        Ok(())
    }
}
