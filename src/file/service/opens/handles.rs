//! Listing handles: who has a file, a directory or a whole subtree open.
//!
//! Works on a delete-pending file too, since the list shows who keeps the file. Leases are no
//! handles and do not appear.

use super::super::error::Result;
use super::super::share::Share;
use super::open::Handle;
use crate::file::rules::opens::Open;
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::requests::listing::PAGE_MAX;
use crate::file::store::share::{FileKind, FoundFile};
use crate::rules::{FileId, HandleId, Owner, Timestamp};

/// One open, as listings show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedHandle {
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
    pub access: Access,
    pub share: ShareMode,
    /// It marks the name when it closes.
    pub delete_on_close: bool,
    /// The name is marked for deletion.
    pub delete_pending: bool,
}

/// The state of an open, for its own program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Described {
    pub access: Access,
    pub share: ShareMode,
    /// The name it was opened by is delete pending.
    pub delete_pending: bool,
}

/// A page of handles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandlePage {
    /// The handles, by identity.
    pub handles: Vec<ListedHandle>,
    /// The last of them, if more follow: the next page starts after it.
    pub next: Option<HandleId>,
}

/// The file or subtree whose handles are listed.
pub(crate) struct HandleScope {
    found: FoundFile,
    recursive: bool,
}

impl HandleScope {
    pub(crate) fn is_directory(&self) -> bool {
        self.found.stat.kind == FileKind::Directory
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
            // A directory that was removed directly on the disk has no identity to show.
            handle.parent = self.parent_id(&handle.path).unwrap_or_default();
        }
        let next = if more { handles.last().map(|handle| handle.id) } else { None };
        Ok(HandlePage { handles, next })
    }

    /// All handles in one list, by identity, without the identities of their parent directories.
    pub fn all_handles(&self, path: &SharePath, recursive: bool) -> Result<Vec<ListedHandle>> {
        let _names = self.names()?;
        let scope = self.scope(path, recursive)?;
        let mut handles = Vec::new();
        self.each_handle(&scope, |at, (open, path), pending| {
            handles.push(describe(at.file(), (open, path), pending));
        });
        handles.sort_unstable_by_key(|handle| handle.id);
        Ok(handles)
    }

    /// The path a handle's file has now.
    pub fn path_of(&self, handle: &Handle) -> Result<SharePath> {
        self.latched(handle, |_, path| Ok(path.clone()))
    }

    /// The state of a handle.
    pub fn describe(&self, handle: &Handle) -> Result<Described> {
        self.latched(handle, |latched, _| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let delete_pending = latched.state.is_pending(open);
            Ok(Described { access: open.access(), share: open.share, delete_pending })
        })
    }

    pub(crate) fn scope(&self, path: &SharePath, recursive: bool) -> Result<HandleScope> {
        let found = self.disk().lookup(path)?;
        if matches!(found.stat.kind, FileKind::Symlink | FileKind::Special) {
            return Err(Denial::NotFound.into());
        }
        Ok(HandleScope { found, recursive })
    }

    /// Calls `show` for every open within `scope`, with one file's lock at a time. The caller holds
    /// the name lock, so that no path changes during the walk.
    pub(crate) fn each_handle(
        &self,
        scope: &HandleScope,
        mut show: impl FnMut(Handle, (&Open, &SharePath), bool),
    ) {
        let cells = if scope.recursive {
            self.table().cells()
        } else {
            self.table().get(scope.found.stat.id).into_iter().collect()
        };
        for cell in cells {
            let latched = cell.latch();
            for (slot, open, path) in latched.state.opens() {
                if scope.holds(cell.id, path) {
                    let handle = Handle::new(open.id, slot, &cell);
                    show(handle, (open, path), latched.state.is_pending(open));
                }
            }
        }
    }
}

/// The description of an open without its parent directory, which needs a look at the disk.
pub(crate) fn describe(
    file: FileId,
    (open, path): (&Open, &SharePath),
    delete_pending: bool,
) -> ListedHandle {
    ListedHandle {
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
