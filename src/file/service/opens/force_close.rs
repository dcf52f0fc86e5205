//! Force Close Handles: ends opens of other clients and notifies the front ends that serve them.
//!
//! What the end of an open does (share mode and locks gone, a pending name removed, no mark by a
//! delete-on-close) is decided in [`super::open`]. A front end that hands out descriptors is
//! notified of each handle, so that it cuts the descriptor off.

use std::sync::Arc;

use super::super::error::{FileError, Result};
use super::super::share::Share;
use super::open::Wake;
use super::table::FileCell;
use crate::file::rules::file::Closed;
use crate::file::rules::opens::OpenSlot;
use crate::file::rules::{Access, Denial, SharePath};
use crate::rules::{Context, FileId, HandleId, Owner};

/// A handle that was closed by force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClosedHandle {
    pub id: HandleId,
    /// The file it was open on.
    pub file: FileId,
    /// The name it was opened by.
    pub path: SharePath,
    pub owner: Owner,
    pub access: Access,
    /// The name was delete pending and this was its last open: the name was removed.
    pub removed: bool,
    /// All handles of the share are being closed: reads through this one must end too.
    pub with_share: bool,
}

/// Which handles to close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhichHandles {
    /// The handle with this identity.
    One(HandleId),
    All,
}

/// How many were closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForceClosed {
    pub closed: u64,
    /// Still open, or ended with its name still there, or with a descriptor that still works.
    pub failed: u64,
}

impl Share {
    /// Closes handles of a file or directory, or with `recursive` of a directory and all below
    /// it. An identity that is not among them closes nothing.
    pub fn force_close_handles(
        &self,
        cx: &Context,
        path: &SharePath,
        which: WhichHandles,
        recursive: bool,
    ) -> Result<ForceClosed> {
        let mut opens = Vec::new();
        {
            let _names = self.names()?;
            let scope = self.scope(path, recursive)?;
            if recursive && !scope.is_directory() {
                return Err(Denial::InvalidParameter("a file has nothing below it").into());
            }
            self.each_handle(&scope, |open_at, (open, _), _| match which {
                WhichHandles::One(id) if id != open.id => {}
                WhichHandles::One(_) | WhichHandles::All => opens.push(open_at),
            });
        }
        let mut count = ForceClosed::default();
        for open_at in opens {
            match self.force_close_at(cx.owner(), &open_at.cell, open_at.slot, open_at.id) {
                // None, if its holder closed it meanwhile, or it ended with another.
                Ok(closed) => count.closed += closed,
                Err(error) => {
                    log::warn!("{path}: closing handle {} by force: {error}", open_at.id);
                    count.failed += 1;
                }
            }
        }
        Ok(count)
    }

    /// Ends every open of the share, as Force Close Handles does. A handle whose name cannot be
    /// removed ends as well, and the failure is logged.
    pub(crate) fn close_all_handles(&self, who: &Owner) {
        for cell in self.table().cells() {
            // Waiting lock requests first: the close of the lock's holder would grant them.
            let (open, wake) = self.table().with_cell(&cell, |latched| {
                latched.ending = true;
                let mut wake = Wake::nobody();
                for ticket in latched.waiting.tickets() {
                    latched.state.cancel_lock(ticket);
                    wake.add(latched, ticket, Err(Denial::HandleClosed));
                }
                let open = latched.state.opens().map(|(slot, open, _)| (slot, open.id));
                (open.collect::<Vec<_>>(), wake)
            });
            self.wake(wake);
            for (slot, id) in open {
                if let Err(error) = self.force_close_with(who, &cell, slot, id, true) {
                    log::warn!("share {}: closing handle {id}: {error}", self.name());
                }
            }
            self.table().with_cell(&cell, |latched| latched.ending = false);
        }
    }

    /// Ends an open by force, and the opens that end with it; returns how many ended.
    pub(crate) fn force_close_at(
        &self,
        who: &Owner,
        cell: &Arc<FileCell>,
        slot: OpenSlot,
        id: HandleId,
    ) -> Result<u64> {
        self.force_close_with(who, cell, slot, id, false)
    }

    fn force_close_with(
        &self,
        who: &Owner,
        cell: &Arc<FileCell>,
        slot: OpenSlot,
        id: HandleId,
        with_share: bool,
    ) -> Result<u64> {
        let Some(closed) = self.end_forced(who, cell, slot, id)? else { return Ok(0) };
        let mut count = 1;
        let Closed { open, path, remove: removed, .. } = closed;
        let access = open.access();
        let (file, owner) = (cell.id, open.owner);
        let told = ClosedHandle { id, file, path, owner, access, removed, with_share };
        for other in self.tell_force_closed(&told)? {
            let slot = cell.latch().state.find(other);
            if let Some(slot) = slot
                && self.end_forced(who, cell, slot, other)?.is_some()
            {
                count += 1;
            }
        }
        Ok(count)
    }

    fn end_forced(
        &self,
        who: &Owner,
        cell: &Arc<FileCell>,
        slot: OpenSlot,
        id: HandleId,
    ) -> Result<Option<Closed>> {
        match self.end(cell, slot, id, Some(who)) {
            Ok(closed) => Ok(Some(closed)),
            Err(FileError::Denied(Denial::HandleClosed)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
