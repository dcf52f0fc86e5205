//! The files in use: ways to lock a file without its name.
//!
//! A caller that has a name uses [`super::locate`], which checks the name under the lock. The
//! methods here are for holders of a handle, for operations that have just made a file, and for
//! reports.

use std::sync::Arc;

use super::{HANDLE_BITS, Share};
use crate::file::rules::SharePath;
use crate::file::service::error::Result;
use crate::file::service::opens::open::Handle;
use crate::file::service::opens::table::{FileCell, Latched};
use crate::rules::{FileId, HandleId};
use crate::sync::Ordering;

impl Share {
    /// How many files have opens, locks or leases.
    pub fn files_in_use(&self) -> usize {
        self.table.len()
    }

    pub(in crate::file::service) fn next_handle(&self) -> HandleId {
        HandleId(self.next_handle.fetch_add(1, Ordering::Relaxed))
    }

    /// The epoch that the numbers of its handles begin with.
    pub(in crate::file::service) fn epoch(&self) -> u32 {
        let next = self.next_handle.load(Ordering::Relaxed);
        u32::try_from(next >> HANDLE_BITS).unwrap_or(u32::MAX)
    }

    /// The cell of a file; `None` if the file is not in use.
    pub(in crate::file::service) fn in_use(&self, id: FileId) -> Option<Arc<FileCell>> {
        self.table.get(id)
    }

    /// The cells of all files in use, for reports and for operations on a whole subtree.
    pub(in crate::file::service) fn all_in_use(&self) -> Vec<Arc<FileCell>> {
        self.table.cells()
    }

    /// Does `step` under the lock of the handle's file, with the name it was opened by.
    pub(in crate::file::service) fn latched<T>(
        &self,
        handle: &Handle,
        step: impl FnOnce(&mut Latched, &SharePath) -> Result<T>,
    ) -> Result<T> {
        self.with_cell(handle.cell(), |latched| {
            let (_, path) = latched.state.get(handle.slot(), handle.id())?;
            let path = path.clone();
            step(latched, &path)
        })
    }

    /// Does `step` under the lock of a file in use, open or not.
    pub(in crate::file::service) fn with_cell<T>(
        &self,
        cell: &Arc<FileCell>,
        step: impl FnOnce(&mut Latched) -> T,
    ) -> T {
        self.table.with_cell(cell, step)
    }

    /// Does `step` under the lock of a file whose identity is known for certain: the caller has
    /// just made it, or holds the file itself.
    pub(in crate::file::service) fn with_file<T>(
        &self,
        id: FileId,
        step: impl FnOnce(&Arc<FileCell>, &mut Latched) -> T,
    ) -> T {
        self.table.with(id, step)
    }

    /// Takes one [`Latched::pin`] back; waits for the file's lock.
    pub(in crate::file::service) fn unpin(&self, cell: &Arc<FileCell>) {
        self.table.unpin(cell);
    }

    /// Takes one [`Latched::pin`] back; false if another thread has the file's lock.
    pub(in crate::file::service) fn try_unpin(&self, cell: &Arc<FileCell>) -> bool {
        self.table.try_unpin(cell)
    }
}
