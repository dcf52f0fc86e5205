//! Handles that were given up and not released yet, and other questions the mount asks.
//!
//! A conflict that only such handles cause is not decided but waited for, by the front end, with a
//! bound (DESIGN section 4, "End of an open").

use super::error::{Error, Result};
use super::events::Happening;
use super::open::{Handle, Wake};
use super::share::Share;
use super::table::Latched;
use super::waiting::Completion;
use crate::core::file_ranges::{LockAnswer, RangeUse};
use crate::core::ranges::{ByteRange, LockOwner, RangeLock, Ticket};
use crate::core::{Access, Denial, FileId, Owner, ShareMode, SharePath};

/// What an open looks like to its own program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Described {
    /// What it may do.
    pub access: Access,
    /// What it tolerates.
    pub share: ShareMode,
    /// The name it was opened by is delete pending.
    pub delete_pending: bool,
}

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes in all.
    pub total: u64,
    /// Bytes left.
    pub free: u64,
    /// Files that could be, in all.
    pub files: u64,
    /// Files that could be made.
    pub files_free: u64,
}

impl Share {
    /// The holder's last descriptor was closed: the release will follow.
    pub fn set_flushed(&self, handle: &Handle) -> Result<()> {
        self.latched(handle, |latched, _| {
            Ok(latched.state.set_flushed(handle.slot(), handle.id())?)
        })
    }

    /// True if the refusal of an open with `access` and `share` is due only to handles whose
    /// release is on its way.
    pub fn only_flushed_in_the_way(
        &self,
        path: &SharePath,
        denial: &Denial,
        access: Access,
        share: ShareMode,
    ) -> bool {
        match denial {
            Denial::SharingViolation { .. } => {
                self.of_file(path, |latched, _| latched.state.all_in_the_way_flushed(access, share))
            }
            Denial::DeletePending(_) => self.awaits_release(path),
            _ => false,
        }
    }

    /// True if the file has opens and all of them are being released.
    pub fn awaits_release(&self, path: &SharePath) -> bool {
        !self.table.is_empty()
            && self.of_file(path, |latched, _| {
                latched.state.open_count() > 0
                    && latched.state.opens().all(|(_, open, _)| open.flushed)
            })
    }

    /// True if the name is delete pending and goes as soon as the releases arrive.
    pub fn is_on_its_way_out(&self, path: &SharePath) -> bool {
        self.has_pending()
            && self.of_file(path, |latched, path| {
                latched.state.pending_holder(path).is_some()
                    && latched.state.opens().all(|(_, open, _)| open.flushed)
            })
    }

    fn of_file(&self, path: &SharePath, ask: impl FnOnce(&Latched, &SharePath) -> bool) -> bool {
        let Ok(found) = self.dir.lookup(path) else { return false };
        let Some(cell) = self.table.get(found.stat.id) else { return false };
        let latched = cell.latch();
        ask(&latched, &found.path)
    }

    /// True if the name, spelled as on disk, is delete pending.
    pub fn is_pending_name(&self, path: &SharePath, id: FileId) -> bool {
        self.has_pending()
            && self.table.get(id).is_some_and(|cell| {
                let latched = cell.latch();
                latched.state.pending_holder(path).is_some()
            })
    }

    /// The path a handle's file has now.
    pub fn path_of(&self, handle: &Handle) -> Result<SharePath> {
        self.latched(handle, |_, path| Ok(path.clone()))
    }

    /// What the handle is in the table.
    pub fn describe(&self, handle: &Handle) -> Result<Described> {
        self.latched(handle, |latched, _| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            let delete_pending = latched.state.is_pending(open);
            Ok(Described { access: open.access(), share: open.share, delete_pending })
        })
    }

    /// Marks the name a handle was opened by, or takes the mark away, for a holder that could not
    /// ask for DELETE: as a momentary open with D beside it (the mount's ioctl).
    pub fn set_disposition_of_file(
        &self,
        who: &Owner,
        handle: &Handle,
        delete: bool,
    ) -> Result<()> {
        let path = self.path_of(handle)?;
        let answer = self.latched(handle, |latched, path| {
            if !delete {
                let had = latched.state.undelete(path);
                if had {
                    self.forget_pending(handle.file(), path)?;
                }
                return Ok((had, Wake::changed(latched)));
            }
            let pending = latched.state.check_not_pending(path).is_err();
            if !pending {
                latched.state.check_access(Access::D, ShareMode::RWD)?;
                let directory = latched.state.is_directory();
                self.delete_facts_of(path, handle.file(), directory)?.check()?;
                latched.state.mark(path);
                self.remember_pending(handle.file(), path)?;
            }
            Ok((!pending, Wake::changed(latched)))
        });
        let (changed, wake) = self.note_refusal("delete", &path, who, answer)?;
        wake.call();
        if changed {
            let what = if delete { Happening::MarkedForDeletion } else { Happening::Unmarked };
            self.note(&path, who, what);
        }
        Ok(())
    }

    /// A ticket for a lock request that may wait.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.next_handle().0)
    }

    /// Takes the lock, or lets the request wait under `ticket`: then `completion` is called once,
    /// with the answer. Says whether it waits.
    pub fn lock_later_as(
        &self,
        handle: &Handle,
        lock: RangeLock,
        ticket: Ticket,
        completion: Completion,
    ) -> Result<bool> {
        let (waits, wake) = self.latched(handle, |latched, _| {
            match latched.state.lock_or_wait(handle.slot(), lock, ticket)? {
                LockAnswer::Granted => Ok((false, Wake::changed(latched))),
                LockAnswer::Waiting => {
                    latched.waiting.for_lock(ticket, completion);
                    Ok((true, Wake::nobody()))
                }
            }
        })?;
        wake.call();
        Ok(waits)
    }

    /// May `by` use the range so, through this handle?
    pub fn check_range(
        &self,
        handle: &Handle,
        range: ByteRange,
        by: Option<LockOwner>,
        using: RangeUse,
    ) -> Result<()> {
        self.latched(handle, |latched, _| Ok(latched.state.check_range(range, by, using)?))
    }

    /// How much room the file system below has.
    pub fn space(&self) -> Result<Space> {
        let stat = rustix::fs::statvfs(self.dir.root_path())
            .map_err(|errno| Error::Store(crate::store::StoreError::from_errno("statfs", errno)))?;
        Ok(Space {
            total: stat.f_blocks * stat.f_frsize,
            free: stat.f_bavail * stat.f_frsize,
            files: stat.f_files,
            files_free: stat.f_ffree,
        })
    }
}
