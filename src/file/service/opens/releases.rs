//! Handles that their program has closed and the kernel has not released yet: decides which
//! refusals are caused by such handles alone.
//!
//! The wait itself is in `share/releases`.

use std::sync::Arc;
use std::time::Duration;

use super::super::error::Result;
use super::super::share::{Asked, Share};
use super::open::{Handle, OpenedFile};
use super::posix::PosixOpen;
use super::table::{FileCell, Latched};
use crate::file::rules::create::OpenRequest;
use crate::file::rules::opens::Open;
use crate::file::rules::share::clash;
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::rules::{Context, HandleId, Timestamp};

/// The most entries a directory may have for its removal to wait until they are gone.
const EMPTIES_MAX: usize = 64;

/// How long a request of REST waits for releases.
pub(in crate::file::service) const REST_PATIENCE: Duration = Duration::from_millis(100);

impl Share {
    /// Opens as [`Share::open`] does; a refusal that is due only to handles whose release is on
    /// its way is waited for, at most for `patience`. Blocks: for callers on a thread of their own.
    pub fn open_waiting(
        &self,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
        patience: Duration,
    ) -> Result<OpenedFile> {
        let wants = (request.rights.access(), request.share);
        let answer = self.when_free(patience, &[path], wants, || {
            Asked::again(self.open_unnoted(cx, path, request, PosixOpen::default()))
        });
        self.note_open(cx, path, answer)
    }

    /// A descriptor of the holder was closed: the release may follow.
    pub fn set_flushed(&self, handle: &Handle) -> Result<()> {
        let now = self.now();
        self.latched(handle, |latched, _| {
            Ok(latched.state.set_flushed(handle.slot(), handle.id(), now)?)
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
        let now = self.now();
        let all_flushed =
            |latched: &Latched| latched.state.opens().all(|(_, open, _)| open.is_flushed(now));
        match denial {
            Denial::SharingViolation { .. } => self
                .of_file(path, |latched, _| {
                    latched.state.all_in_the_way_flushed(access, share, now)
                })
                .unwrap_or(true),
            // A lock goes with the handle it was taken through.
            Denial::RangeLocked { lock, .. } => self
                .of_file(path, |latched, _| {
                    let is_its = |open: &Open| open.id == lock.handle && open.is_flushed(now);
                    latched.state.may_be_flushed(now)
                        && (latched.state.locks().all(|held| held != lock)
                            || latched.state.opens().any(|(_, open, _)| is_its(open)))
                })
                .unwrap_or(true),
            Denial::DeletePending(_) | Denial::Open(_) => {
                self.of_file(path, |latched, _| all_flushed(latched)).unwrap_or(true)
            }
            Denial::OpenBelow(_) => {
                let Ok(dir) = self.disk().lookup(path) else { return true };
                // Not known in non-blocking mode: the request is asked again where it may wait.
                self.all_in_use().iter().all(|cell| {
                    let Ok(latched) = cell.latch() else { return false };
                    let mut below = latched.state.opens().filter(|(_, _, p)| p.is_below(&dir.path));
                    below.all(|(_, open, _)| open.is_flushed(now))
                })
            }
            Denial::DirectoryNotEmpty => self.empties_soon(path),
            _ => false,
        }
    }

    /// True if everything in the directory is delete pending and goes as soon as the releases
    /// arrive.
    fn empties_soon(&self, dir: &SharePath) -> bool {
        let Ok(dir) = self.disk().lookup(dir) else { return true };
        // One more than are worth waiting for: a full directory is not read to its end.
        let Ok(listed) = self.disk().list(&dir.path, None, EMPTIES_MAX + 1) else { return false };
        listed.len() <= EMPTIES_MAX
            && listed
                .iter()
                .all(|entry| dir.path.join(&entry.name).is_ok_and(|child| self.goes_soon(&child)))
    }

    /// True if the name, spelled as on disk, is gone or goes as soon as the releases arrive.
    fn goes_soon(&self, path: &SharePath) -> bool {
        let Ok(stat) = self.disk().stat(path) else { return true };
        let cell = self.in_use(stat.id);
        let goes = |cell: Arc<FileCell>| {
            cell.latch().is_ok_and(|latched| is_on_its_way_out(&latched, path, self.now()))
        };
        cell.is_some_and(goes)
            // Not pending: an ordinary file, or one that went since it was looked at.
            || self.disk().stat(path).is_err()
    }

    /// True if a name in the directory is delete pending and goes as soon as the releases arrive.
    pub fn loses_names_soon(&self, dir: &SharePath) -> bool {
        let now = self.now();
        self.has_pending()
            && self.all_in_use().iter().any(|cell| {
                let Ok(latched) = cell.latch() else { return false };
                let pending: Vec<_> =
                    latched.state.names().filter(|(_, pending)| *pending).map(|(p, _)| p).collect();
                pending.iter().any(|path| {
                    path.parent().as_ref() == Some(dir) && is_on_its_way_out(&latched, path, now)
                })
            })
    }

    /// True if the only handles that conflict with a new share mode are being released, or are
    /// gone.
    pub fn only_flushed_beside(&self, handle: &Handle, share: ShareMode) -> bool {
        let now = self.now();
        let asked = self.latched(handle, |latched, _| {
            let (own, _) = latched.state.get(handle.slot(), handle.id())?;
            let access = own.access();
            Ok(latched.state.opens().all(|(_, open, _)| {
                open.id == handle.id()
                    || open.is_flushed(now)
                    || !clash(access, share, open.access(), open.share)
            }))
        });
        asked.unwrap_or(false)
    }

    /// True if the file has opens and all of them are being released.
    pub(in crate::file::service) fn awaits_release(&self, latched: &Latched) -> bool {
        latched.state.open_count() > 0 && {
            let now = self.now();
            latched.state.opens().all(|(_, open, _)| open.is_flushed(now))
        }
    }

    /// True if the name is delete pending and goes as soon as the releases arrive.
    pub fn is_on_its_way_out(&self, path: &SharePath) -> bool {
        let goes =
            |latched: &Latched, path: &SharePath| is_on_its_way_out(latched, path, self.now());
        self.has_pending() && self.of_file(path, goes).unwrap_or(false)
    }

    /// True if that handle is open on the file behind `path`.
    pub(in crate::file::service) fn is_open_as(&self, path: &SharePath, id: HandleId) -> bool {
        self.of_file(path, |file, _| file.state.find(id).is_some()) == Some(true)
    }

    /// Asks about the state of a file; `None` if the name does not exist or the file is not in use.
    fn of_file(
        &self,
        path: &SharePath,
        ask: impl FnOnce(&Latched, &SharePath) -> bool,
    ) -> Option<bool> {
        let found = self.disk().lookup(path).ok()?;
        let cell = self.in_use(found.stat.id)?;
        // In non-blocking mode not known: then the request is asked again where it may wait.
        let latched = cell.latch().ok()?;
        Some(ask(&latched, &found.path))
    }
}

/// The name is delete pending, and all its opens are being released. An open by another name of
/// the file does not keep it.
fn is_on_its_way_out(latched: &Latched, path: &SharePath, now: Timestamp) -> bool {
    latched.state.pending_holder(path).is_some()
        && latched.state.opens().all(|(_, open, name)| open.is_flushed(now) || name != path)
}
