//! Listing handles: who has a file, a directory or a whole subtree open.
//!
//! Works on a delete-pending file too, being part of the cure (LOCKING 3.4, section 5). Leases
//! are no handles and do not appear.

use std::sync::Arc;

use super::error::Result;
use super::listing::PAGE_MAX;
use super::share::Share;
use super::table::FileCell;
use crate::core::opens::{Open, Slot};
use crate::core::{Access, Denial, FileId, HandleId, Owner, ShareMode, SharePath, Timestamp};
use crate::store::{Found, Kind};

/// One open as others are told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandleInfo {
    /// Its identity.
    pub id: HandleId,
    /// The name it was opened by, as it is now.
    pub path: SharePath,
    /// The file; survives renames.
    pub file: FileId,
    /// The directory that holds the name; 0 for the share's root.
    pub parent: FileId,
    /// Who holds it: client and session, program and process.
    pub owner: Owner,
    /// When it was granted.
    pub since: Timestamp,
    /// What it may do.
    pub access: Access,
    /// What it tolerates.
    pub share: ShareMode,
    /// It marks the name when it closes.
    pub delete_on_close: bool,
    /// The name is marked for deletion.
    pub delete_pending: bool,
}

/// A page of handles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandlePage {
    /// The handles, by identity.
    pub handles: Vec<HandleInfo>,
    /// The last of them, if more follow: the next page starts after it.
    pub next: Option<HandleId>,
}

/// Where an open lies.
pub(super) struct Place {
    pub cell: Arc<FileCell>,
    pub slot: Slot,
    pub id: HandleId,
}

/// Whose handles are meant.
pub(super) struct Extent {
    found: Found,
    recursive: bool,
}

impl Extent {
    pub(super) fn is_directory(&self) -> bool {
        self.found.stat.kind == Kind::Directory
    }

    fn holds(&self, file: FileId, path: &SharePath) -> bool {
        file == self.found.stat.id || self.recursive && path.is_below(&self.found.path)
    }
}

impl Share {
    /// The handles of a file or directory, or with `recursive` of a directory and all below it,
    /// that follow `after`. At most [`PAGE_MAX`] at a time; a handle that is open throughout comes
    /// exactly once.
    pub fn list_handles(
        &self,
        path: &SharePath,
        recursive: bool,
        after: Option<HandleId>,
        limit: usize,
    ) -> Result<HandlePage> {
        if limit == 0 {
            return Err(Denial::InvalidParameter("a page has at least one handle").into());
        }
        let limit = limit.min(PAGE_MAX);
        let mut handles = self.all_handles(path, recursive)?;
        handles.retain(|handle| after.is_none_or(|after| handle.id > after));
        let more = handles.len() > limit;
        handles.truncate(limit);
        for handle in &mut handles {
            // A directory that was taken away beside us has no identity to show.
            handle.parent = self.parent_id(&handle.path).unwrap_or_default();
        }
        let next = if more { handles.last().map(|handle| handle.id) } else { None };
        Ok(HandlePage { handles, next })
    }

    /// All of them at once, by identity; the directories that hold their names are not looked at.
    pub fn all_handles(&self, path: &SharePath, recursive: bool) -> Result<Vec<HandleInfo>> {
        let _names = self.names()?;
        let extent = self.extent(path, recursive)?;
        let mut handles = Vec::new();
        self.each_handle(&extent, |place, (open, path), pending| {
            handles.push(describe(place.cell.id, (open, path), pending));
        });
        handles.sort_unstable_by_key(|handle| handle.id);
        Ok(handles)
    }

    pub(super) fn extent(&self, path: &SharePath, recursive: bool) -> Result<Extent> {
        let found = self.dir.lookup(path)?;
        if matches!(found.stat.kind, Kind::Symlink | Kind::Special) {
            return Err(Denial::NotFound.into());
        }
        Ok(Extent { found, recursive })
    }

    /// Shows every open within `extent`, one file's lock at a time. The caller holds the name
    /// lock, so that no path changes on the way.
    pub(super) fn each_handle(
        &self,
        extent: &Extent,
        mut show: impl FnMut(Place, (&Open, &SharePath), bool),
    ) {
        let cells = if extent.recursive {
            self.table.cells()
        } else {
            self.table.get(extent.found.stat.id).into_iter().collect()
        };
        for cell in cells {
            let latched = cell.latch();
            for (slot, open, path) in latched.state.opens() {
                if extent.holds(cell.id, path) {
                    let place = Place { cell: Arc::clone(&cell), slot, id: open.id };
                    show(place, (open, path), latched.state.is_pending(open));
                }
            }
        }
    }
}

/// All but the parent, which takes a look at the disk.
pub(super) fn describe(
    file: FileId,
    (open, path): (&Open, &SharePath),
    delete_pending: bool,
) -> HandleInfo {
    HandleInfo {
        id: open.id,
        path: path.clone(),
        file,
        parent: FileId::default(),
        owner: open.owner.clone(),
        since: open.since,
        access: open.access(),
        share: open.share,
        delete_on_close: open.delete_on_close,
        delete_pending,
    }
}
