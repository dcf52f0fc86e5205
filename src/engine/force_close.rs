//! Force Close Handles: ending other people's opens, and telling those who serve them.
//!
//! What the end of an open means (share mode and locks gone, a pending name removed, no mark by a
//! delete-on-close) is decided where opens end. A front end that hands out descriptors is told of
//! each one, to cut it off.

use std::fmt;
use std::sync::Arc;

use super::error::{Error, Result};
use super::share::Share;
use super::table::FileCell;
use crate::core::file::Closed;
use crate::core::opens::Slot;
use crate::core::{Access, Denial, FileId, HandleId, Owner, SharePath};
use crate::sync::RwLock;

/// The most listeners a share has: one for each front end, and then some.
pub const LISTENERS_MAX: usize = 16;

/// A handle that was closed over its holder's head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClosedHandle {
    /// Its identity.
    pub id: HandleId,
    /// The file it was open on.
    pub file: FileId,
    /// The name it was opened by.
    pub path: SharePath,
    /// Who held it.
    pub owner: Owner,
    /// What it could do.
    pub access: Access,
    /// The name was delete pending and this was its last open: it is gone.
    pub removed: bool,
}

/// Which handles to close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhichHandles {
    /// The one of that identity.
    One(HandleId),
    /// All of them.
    All,
}

/// How many were closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForceClosed {
    /// Closed now.
    pub closed: u64,
    /// Still open, or ended with its name still there.
    pub failed: u64,
}

type Listener = Box<dyn Fn(&ClosedHandle) -> Vec<HandleId> + Send + Sync>;

/// Those who are told of forced closes.
#[derive(Default)]
pub(super) struct Listeners(RwLock<Vec<Listener>>);

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listeners")
    }
}

impl Share {
    /// Has `listener` called after each forced close, from the thread that closed, with no lock
    /// held. It says which other handles of the file end with that one, because it cannot tell
    /// them apart; they are closed too, and counted. Refused past [`LISTENERS_MAX`].
    pub fn on_force_close(
        &self,
        listener: impl Fn(&ClosedHandle) -> Vec<HandleId> + Send + Sync + 'static,
    ) -> Result<()> {
        let mut listeners = self.listeners.0.write().expect("nothing panics while it is held");
        if listeners.len() == LISTENERS_MAX {
            return Err(Denial::InvalidParameter("too many listeners to forced closes").into());
        }
        listeners.push(Box::new(listener));
        Ok(())
    }

    /// Closes handles of a file or directory, or with `recursive` of a directory and all below
    /// it. An identity that is not among them closes nothing.
    pub fn force_close_handles(
        &self,
        who: &Owner,
        path: &SharePath,
        which: WhichHandles,
        recursive: bool,
    ) -> Result<ForceClosed> {
        let mut places = Vec::new();
        {
            let _names = self.names()?;
            let extent = self.extent(path, recursive)?;
            if recursive && !extent.is_directory() {
                return Err(Denial::InvalidParameter("a file has nothing below it").into());
            }
            self.each_handle(&extent, |place, (open, _), _| match which {
                WhichHandles::One(id) if id != open.id => {}
                WhichHandles::One(_) | WhichHandles::All => places.push(place),
            });
        }
        let mut count = ForceClosed::default();
        for place in places {
            match self.force_close_at(who, &place.cell, place.slot, place.id) {
                // None, if its holder closed it meanwhile, or it ended with another.
                Ok(closed) => count.closed += closed,
                Err(error) => {
                    log::warn!("{path}: closing handle {} by force: {error}", place.id);
                    count.failed += 1;
                }
            }
        }
        Ok(count)
    }

    /// Ends an open by force, and those that end with it; says how many.
    pub(super) fn force_close_at(
        &self,
        who: &Owner,
        cell: &Arc<FileCell>,
        slot: Slot,
        id: HandleId,
    ) -> Result<u64> {
        let Some(closed) = self.end_forced(who, cell, slot, id)? else { return Ok(0) };
        let mut count = 1;
        for other in self.tell_force_closed(cell.id, closed) {
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
        slot: Slot,
        id: HandleId,
    ) -> Result<Option<Closed>> {
        match self.end(cell, slot, id, Some(who)) {
            Ok(closed) => Ok(Some(closed)),
            Err(Error::Denied(Denial::HandleClosed)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn tell_force_closed(&self, file: FileId, closed: Closed) -> Vec<HandleId> {
        let Closed { open, path, remove, .. } = closed;
        let access = open.access();
        let closed =
            ClosedHandle { id: open.id, file, path, owner: open.owner, access, removed: remove };
        let listeners = self.listeners.0.read().expect("nothing panics while it is held");
        listeners.iter().flat_map(|listener| listener(&closed)).collect()
    }
}
