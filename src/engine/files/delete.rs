//! Delete File: atomic, and never delete pending (LOCKING 3.8).

use super::super::error::Result;
use super::super::events::Happening;
use super::super::momentary::{Asking, Granted, Wanted};
use super::super::share::Share;
use crate::core::SharePath;
use crate::core::operation::Operation;

impl Share {
    /// Deletes a file that nobody has open. It is gone when this returns, and the name is free.
    pub fn delete_file(&self, asking: Asking<'_>, path: &SharePath) -> Result<()> {
        let target = (path, Wanted::File);
        let step = |granted: Granted<'_>| {
            let Granted { found, cell, latched, .. } = granted;
            self.remove_name(&found.path, cell.id, false)?;
            self.forget_file(latched, cell.id, found.stat.links)?;
            self.flush_name(&found.path)
        };
        self.momentarily("delete file", Operation::DeleteFile, asking, target, None, step)?;
        self.note(path, asking.who, Happening::Removed);
        Ok(())
    }
}
