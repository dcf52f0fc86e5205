//! Force Close Handles: ends opens of other clients and notifies the front ends that serve them.
//!
//! What the end of an open does (share mode and locks gone, a pending name removed, no mark by a
//! delete-on-close) is decided in [`super::open`]. A front end that hands out descriptors is
//! notified of each handle, so that it cuts the descriptor off.

use super::super::error::{FileError, Result};
use super::super::share::Share;
use super::open::{Handle, Wake};
use crate::file::rules::file::Closed;
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
            self.each_handle(&scope, |handle, _, _| match which {
                WhichHandles::One(id) if id != handle.id() => {}
                WhichHandles::One(_) | WhichHandles::All => opens.push(handle),
            });
        }
        let mut count = ForceClosed::default();
        for handle in opens {
            match self.force_close_at(cx.owner(), &handle, false) {
                // None, if its holder closed it meanwhile, or it ended with another.
                Ok(closed) => count.closed += closed,
                Err(error) => {
                    log::warn!("{path}: closing handle {} by force: {error}", handle.id());
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
                let opens = latched.state.opens();
                let open = opens.map(|(slot, open, _)| Handle::new(open.id, slot, &cell));
                (open.collect::<Vec<_>>(), wake)
            });
            self.wake(wake);
            for handle in open {
                if let Err(error) = self.force_close_at(who, &handle, true) {
                    log::warn!("share {}: closing handle {}: {error}", self.name(), handle.id());
                }
            }
            self.table().with_cell(&cell, |latched| latched.ending = false);
        }
    }

    /// Ends an open by force, and the opens that end with it; returns how many ended. `with_share`:
    /// all handles of the share are being closed.
    pub(super) fn force_close_at(
        &self,
        who: &Owner,
        handle: &Handle,
        with_share: bool,
    ) -> Result<u64> {
        let Some(closed) = self.end_forced(who, handle)? else { return Ok(0) };
        let mut count = 1;
        let Closed { open, path, remove: removed, .. } = closed;
        let (id, file, access) = (handle.id(), handle.file(), open.access());
        let told = ClosedHandle { id, file, path, owner: open.owner, access, removed, with_share };
        for other in self.tell_force_closed(&told)? {
            let slot = handle.cell().latch().state.find(other);
            let other = slot.map(|slot| Handle::new(other, slot, handle.cell()));
            if let Some(other) = other
                && self.end_forced(who, &other)?.is_some()
            {
                count += 1;
            }
        }
        Ok(count)
    }

    fn end_forced(&self, who: &Owner, handle: &Handle) -> Result<Option<Closed>> {
        match self.end(handle, Some(who)) {
            Ok(closed) => Ok(Some(closed)),
            Err(FileError::Denied(Denial::HandleClosed)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
