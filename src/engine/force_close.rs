//! Force Close Handles: ending other people's opens, and telling those who serve them.
//!
//! What the end of an open means (share mode and locks gone, a pending name removed, no mark by a
//! delete-on-close) is decided where opens end. A front end that hands out descriptors is told of
//! each one, to cut it off.

use std::fmt;

use super::error::Result;
use super::share::Share;
use crate::core::file::Closed;
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

type Listener = Box<dyn Fn(&ClosedHandle) + Send + Sync>;

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
    /// held. Refused past [`LISTENERS_MAX`].
    pub fn on_force_close(
        &self,
        listener: impl Fn(&ClosedHandle) + Send + Sync + 'static,
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
            self.each_handle(&extent, |place, open, _| match which {
                WhichHandles::One(id) if id != open.id => {}
                WhichHandles::One(_) | WhichHandles::All => places.push(place),
            });
        }
        let mut count = ForceClosed::default();
        for place in places {
            match self.force_close_at(who, &place.cell, place.slot, place.id) {
                Ok(true) => count.closed += 1,
                Ok(false) => {} // Closed by its holder meanwhile.
                Err(error) => {
                    log::warn!("{path}: closing handle {} by force: {error}", place.id);
                    count.failed += 1;
                }
            }
        }
        Ok(count)
    }

    pub(super) fn tell_force_closed(&self, file: FileId, closed: Closed) {
        let Closed { open, path, remove, .. } = closed;
        let access = open.access();
        let closed =
            ClosedHandle { id: open.id, file, path, owner: open.owner, access, removed: remove };
        let listeners = self.listeners.0.read().expect("nothing panics while it is held");
        listeners.iter().for_each(|listener| listener(&closed));
    }
}
