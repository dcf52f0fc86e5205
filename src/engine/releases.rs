//! Handles that were given up and not released yet, and other questions the mount asks.
//!
//! A conflict that only such handles cause is not decided but waited for, by the front end, with a
//! bound (DESIGN section 4, "End of an open").

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::events::Happening;
use super::haste::check_may_wait;
use super::open::{Handle, Opened, Wake};
use super::posix::PosixOpen;
use super::share::Share;
use super::table::Latched;
use super::waiting::Completion;
use crate::core::create::OpenRequest;
use crate::core::file_ranges::{LockAnswer, RangeUse};
use crate::core::opens::Open;
use crate::core::ranges::{ByteRange, LockOwner, RangeLock, Ticket};
use crate::core::share::clash;
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

/// The most entries a directory may have for its removal to wait until they are gone.
const EMPTIES_MAX: usize = 64;

/// How long a request of REST waits for releases.
pub(super) const REST_PATIENCE: Duration = Duration::from_millis(100);

/// What came of asking.
pub(super) struct Asked<T> {
    pub answer: Result<T>,
    /// It may be asked again, should it have been refused: nothing was done.
    pub repeatable: bool,
}

impl<T> Asked<T> {
    /// It can always be asked again.
    pub fn again(answer: Result<T>) -> Self {
        Self { answer, repeatable: true }
    }
}

/// The longest a caller waits for releases in one call.
pub const RELEASE_WAIT_MAX: Duration = Duration::from_secs(10);

impl Share {
    /// Opens as [`Share::open`] does; a refusal that is due only to handles whose release is on
    /// its way is waited for, at most for `patience`. Blocks: for callers on a thread of their own.
    pub fn open_waiting(
        &self,
        who: &Owner,
        path: &SharePath,
        request: &OpenRequest,
        patience: Duration,
    ) -> Result<Opened> {
        let wants = (request.rights.access(), request.share);
        let answer = self.once_released(patience, &[path], wants, || {
            Asked::again(self.open_unnoted(who, path, request, PosixOpen::default()))
        });
        self.note_open(who, path, answer)
    }

    /// Does `ask`, and again while it is refused only because of handles whose release is on its
    /// way, at most for `patience`. `paths` are the names it is about, `wants` what it asks of each
    /// of them. Blocks: for callers on a thread of their own, who hold no lock.
    pub(super) fn once_released<T>(
        &self,
        patience: Duration,
        paths: &[&SharePath],
        wants: (Access, ShareMode),
        mut ask: impl FnMut() -> Asked<T>,
    ) -> Result<T> {
        let mut end = None;
        loop {
            let refused = match ask() {
                Asked { answer: Err(Error::Denied(refused)), repeatable: true } => refused,
                Asked { answer, .. } => return answer,
            };
            let Some(path) = self.awaited(paths, &refused, wants) else {
                return Err(refused.into());
            };
            check_may_wait()?;
            let now = Instant::now();
            let end = *end.get_or_insert(now + patience.min(RELEASE_WAIT_MAX));
            if end <= now {
                return Err(refused.into());
            }
            self.wait_for_release(&path, end - now);
        }
    }

    /// The file whose release lets a refused request through, as far as is known; none if the
    /// refusal stands.
    fn awaited(
        &self,
        paths: &[&SharePath],
        refused: &Denial,
        (access, share): (Access, ShareMode),
    ) -> Option<SharePath> {
        let holder = refused.holder().map(|holder| holder.handle);
        let holds = |latched: &Latched| latched.state.opens().any(|(_, o, _)| Some(o.id) == holder);
        // Of several names, the one whose file the holder has open.
        let held = |path: &&&SharePath| self.of_file(path, |file, _| holds(file)) == Some(true);
        let path = *paths.iter().find(held).or(paths.first())?;
        if !self.only_flushed_in_the_way(path, refused, access, share) {
            return None;
        }
        let below = match refused {
            Denial::OpenBelow(_) => self.table.cells().iter().find_map(|cell| {
                let latched = cell.latch();
                let mut opens = latched.state.opens();
                opens.find(|(_, open, _)| Some(open.id) == holder).map(|(_, _, path)| path.clone())
            }),
            Denial::DirectoryNotEmpty => self.dir.lookup(path).ok().and_then(|dir| {
                let first = self.dir.list(&dir.path, None, 1).ok()?.pop()?;
                dir.path.join(&first.name).ok()
            }),
            _ => None,
        };
        Some(below.unwrap_or_else(|| path.clone()))
    }

    /// Returns when something about the file changed, or after `patience`; at once if it is not
    /// waiting for a release any more.
    fn wait_for_release(&self, path: &SharePath, patience: Duration) {
        let Ok(found) = self.dir.lookup(path) else { return };
        let Some(cell) = self.table.get(found.stat.id) else { return };
        let (sender, changed) = mpsc::channel();
        {
            // The last open may have ended since the refusal: then no change is to come.
            let mut latched = cell.latch();
            if !latched.state.opens().any(|(_, open, _)| open.flushed) {
                return;
            }
            // The receiver is gone only if the caller stopped waiting: nobody is left to tell.
            latched.waiting.for_change(Box::new(move || sender.send(()).unwrap_or_default()));
        }
        if changed.recv_timeout(patience).is_err() {
            // It stops waiting: whoever else does is woken too, and asks again. A list of those
            // who gave up would grow while a file stays open.
            let nudges = self.table.with_cell(&cell, |latched| latched.waiting.changed());
            for nudge in nudges {
                nudge();
            }
        }
    }

    /// The holder's last descriptor was closed: the release will follow.
    pub fn set_flushed(&self, handle: &Handle) -> Result<()> {
        self.latched(handle, |latched, _| {
            Ok(latched.state.set_flushed(handle.slot(), handle.id())?)
        })
    }

    /// True if the refusal of a request for `access` and `share` is due only to handles whose
    /// release is on its way, or which are gone by now: it is worth asking again.
    pub fn only_flushed_in_the_way(
        &self,
        path: &SharePath,
        denial: &Denial,
        access: Access,
        share: ShareMode,
    ) -> bool {
        let all_flushed =
            |latched: &Latched| latched.state.opens().all(|(_, open, _)| open.flushed);
        match denial {
            Denial::SharingViolation { .. } => self
                .of_file(path, |latched, _| latched.state.all_in_the_way_flushed(access, share))
                .unwrap_or(true),
            // A lock goes with the handle it was taken through.
            Denial::RangeLocked { lock, .. } => self
                .of_file(path, |latched, _| {
                    let gone = latched.state.locks().all(|held| held != lock);
                    let is_flushed = |open: &Open| open.id == lock.handle && open.flushed;
                    gone || latched.state.opens().any(|(_, open, _)| is_flushed(open))
                })
                .unwrap_or(true),
            Denial::DeletePending(_) | Denial::Open(_) => {
                self.of_file(path, |latched, _| all_flushed(latched)).unwrap_or(true)
            }
            Denial::OpenBelow(_) => {
                let Ok(dir) = self.dir.lookup(path) else { return true };
                self.table.cells().iter().all(|cell| {
                    let latched = cell.latch();
                    let mut below = latched.state.opens().filter(|(_, _, p)| p.is_below(&dir.path));
                    below.all(|(_, open, _)| open.flushed)
                })
            }
            Denial::DirectoryNotEmpty => self.empties_soon(path),
            _ => false,
        }
    }

    /// True if everything in the directory is delete pending and goes as soon as the releases
    /// arrive.
    fn empties_soon(&self, dir: &SharePath) -> bool {
        let Ok(dir) = self.dir.lookup(dir) else { return true };
        // One more than are worth waiting for: a full directory is not read to its end.
        let Ok(listed) = self.dir.list(&dir.path, None, EMPTIES_MAX + 1) else { return false };
        listed.len() <= EMPTIES_MAX
            && listed
                .iter()
                .all(|entry| dir.path.join(&entry.name).is_ok_and(|child| self.goes_soon(&child)))
    }

    /// True if the name, spelled as on disk, is gone or goes as soon as the releases arrive.
    fn goes_soon(&self, path: &SharePath) -> bool {
        let Ok(stat) = self.dir.stat(path) else { return true };
        let cell = self.table.get(stat.id);
        cell.is_some_and(|cell| is_on_its_way_out(&cell.latch(), path))
            // Not pending: an ordinary file, or one that went since it was looked at.
            || self.dir.stat(path).is_err()
    }

    /// True if a name in the directory is delete pending and goes as soon as the releases arrive.
    pub fn loses_names_soon(&self, dir: &SharePath) -> bool {
        self.has_pending()
            && self.table.cells().iter().any(|cell| {
                let latched = cell.latch();
                let pending: Vec<_> =
                    latched.state.names().filter(|(_, pending)| *pending).map(|(p, _)| p).collect();
                pending.iter().any(|path| {
                    path.parent().as_ref() == Some(dir) && is_on_its_way_out(&latched, path)
                })
            })
    }

    /// True if what keeps an open from a share mode are only handles whose release is on its way,
    /// or which are gone by now.
    pub fn only_flushed_beside(&self, handle: &Handle, share: ShareMode) -> bool {
        let asked = self.latched(handle, |latched, _| {
            let (own, _) = latched.state.get(handle.slot(), handle.id())?;
            let access = own.access();
            Ok(latched.state.opens().all(|(_, open, _)| {
                open.id == handle.id()
                    || open.flushed
                    || !clash(access, share, open.access(), open.share)
            }))
        });
        asked.unwrap_or(false)
    }

    /// True if the file has opens and all of them are being released.
    pub fn awaits_release(&self, path: &SharePath) -> bool {
        !self.table.is_empty()
            && self
                .of_file(path, |latched, _| {
                    latched.state.open_count() > 0
                        && latched.state.opens().all(|(_, open, _)| open.flushed)
                })
                .unwrap_or(false)
    }

    /// True if the name is delete pending and goes as soon as the releases arrive.
    pub fn is_on_its_way_out(&self, path: &SharePath) -> bool {
        self.has_pending() && self.of_file(path, is_on_its_way_out).unwrap_or(false)
    }

    /// Asks about a file in use; none if there is no such name, or nobody uses the file.
    fn of_file(
        &self,
        path: &SharePath,
        ask: impl FnOnce(&Latched, &SharePath) -> bool,
    ) -> Option<bool> {
        let found = self.dir.lookup(path).ok()?;
        let cell = self.table.get(found.stat.id)?;
        let latched = cell.latch();
        Some(ask(&latched, &found.path))
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

/// The name is delete pending, and all its opens are being released. An open by another name of
/// the file does not keep it.
fn is_on_its_way_out(latched: &Latched, path: &SharePath) -> bool {
    latched.state.pending_holder(path).is_some()
        && latched.state.opens().all(|(_, open, name)| open.flushed || name != path)
}
