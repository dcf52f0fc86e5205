//! Waiting for a release: which refusals end with the release of a handle, and for how long a
//! request waits for it.
//!
//! The kernel releases an open a moment after its program has closed the last descriptor, so a
//! request can meet a handle that its program has closed already. A request that only such handles
//! refuse is asked again after each change that could let it through, for [`RELEASE_WAIT`] at most,
//! and counts as refused only if it is refused then. Callers on a thread of their own wait in
//! [`Share::when_free`]. The mount keeps the request without a thread, and asks again after
//! [`ChangeNotice::Released`]: its requests, `mount_open` and the others, answer `None` while
//! only handles that are being released refuse them, and nothing was done or noted then.

use std::time::{Duration, Instant};

use super::{ChangeNotice, Share};
use crate::file::rules::create::OpenRequest;
use crate::file::rules::opens::{FLUSH_COUNTS_NANOS, Open, REPEATED_FLUSH_COUNTS_NANOS};
use crate::file::rules::share::clash;
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::opens::open::{Handle, OpenedFile, Wake};
use crate::file::service::opens::posix::PosixOpen;
use crate::file::service::opens::table::Latched;
use crate::rules::{Context, HandleId, Owner, Timestamp};
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// How long a request waits for releases: as long as a closed descriptor announces one.
pub const RELEASE_WAIT: Duration = Duration::from_nanos(FLUSH_COUNTS_NANOS.unsigned_abs());

/// How often a waiting request is asked again without a change: a flush that is not the first
/// counts only so long, and nothing tells that it has ceased to count.
pub const RELEASE_LOOK: Duration = Duration::from_nanos(REPEATED_FLUSH_COUNTS_NANOS.unsigned_abs());

/// The most entries a directory may have for its removal to wait until they are gone.
const EMPTIES_MAX: usize = 64;

const POISON: &str = "nothing panics while releases are counted";

/// Counts the changes that could let a refused request through, for requests that wait for the
/// next.
#[derive(Default)]
pub(super) struct Releases {
    count: Mutex<u64>,
    counted: Condvar,
    /// How many requests wait; while there are none, nothing is counted.
    watchers: AtomicU64,
}

/// A waiting request. It misses no change that comes after its creation or after the last
/// [`ReleaseWatch::next`].
struct ReleaseWatch<'a> {
    releases: &'a Releases,
    seen: u64,
}

impl Releases {
    fn watch(&self) -> ReleaseWatch<'_> {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        ReleaseWatch { releases: self, seen: *self.count.lock().expect(POISON) }
    }

    fn tell(&self) {
        if self.watchers.load(Ordering::SeqCst) > 0 {
            let mut count = self.count.lock().expect(POISON);
            *count = count.wrapping_add(1);
            self.counted.notify_all();
        }
    }
}

impl ReleaseWatch<'_> {
    /// Waits for the next change, until `end` at the latest.
    fn next(&mut self, end: Instant) {
        let mut count = self.releases.count.lock().expect(POISON);
        while *count == self.seen {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            count = self.releases.counted.wait_timeout(count, left).expect(POISON).0;
        }
        self.seen = *count;
    }
}

impl Drop for ReleaseWatch<'_> {
    fn drop(&mut self) {
        self.releases.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a request that only handles being released refuse may be asked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    Repeatable,
    Last,
}

/// The file that a request is about.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// The file of one of these names.
    Names(&'a [&'a SharePath]),
    /// The file of a handle.
    Open(&'a Handle),
    /// The file of a handle which itself is not in the way.
    Beside(&'a Handle),
}

impl Share {
    /// Does `ask`, and again while it is refused only because of handles whose release is on its
    /// way. `paths` are the names it is about, `wants` what it asks of each of them. A refusal
    /// means that nothing was done. Blocks: for callers on a thread of their own, without a lock.
    pub(crate) fn when_free<T>(
        &self,
        paths: &[&SharePath],
        wants: (Access, ShareMode),
        mut ask: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut waiting = None;
        let mut last = false;
        loop {
            let refused = match ask() {
                Err(FileError::Denied(refused)) => refused,
                answer => return answer,
            };
            if last || !self.passes_soon(&refused, Target::Names(paths), wants) {
                return Err(refused.into());
            }
            match &mut waiting {
                // A release since the refusal went unnoticed: ask once more.
                None => waiting = Some((self.releases.watch(), Instant::now() + RELEASE_WAIT)),
                Some((watch, end)) => {
                    watch.next((*end).min(Instant::now() + RELEASE_LOOK));
                    last = Instant::now() >= *end;
                }
            }
        }
    }

    /// Opens as [`Share::open`] does; waits for handles whose release is on its way. Blocks: for
    /// callers on a thread of their own.
    pub fn open_waiting(
        &self,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
    ) -> Result<OpenedFile> {
        let wants = (request.rights.access(), request.share);
        let answer = self.when_free(&[path], wants, || {
            self.open_unnoted(cx, path, request, PosixOpen::default())
        });
        self.note_refusal("open", path, cx.owner(), answer)
    }

    /// The final answer to a request of the mount, whose refusal is noted. `None` if only handles
    /// that are being released refuse it, and it may be asked again.
    pub(crate) fn final_answer<T>(
        &self,
        attempt: Attempt,
        (operation, path, who): (&'static str, &SharePath, &Owner),
        (target, wants): (Target<'_>, (Access, ShareMode)),
        answer: Result<T>,
    ) -> Option<Result<T>> {
        if attempt == Attempt::Repeatable
            && let Err(FileError::Denied(refused)) = &answer
            && self.passes_soon(refused, target, wants)
        {
            return None;
        }
        Some(self.note_refusal(operation, path, who, answer))
    }

    /// True if the refusal is due only to handles whose release is on its way, or which are gone
    /// by now: it is worth asking again.
    pub(crate) fn passes_soon(
        &self,
        refused: &Denial,
        target: Target<'_>,
        wants: (Access, ShareMode),
    ) -> bool {
        let now = self.now();
        let waits = |latched: &Latched| ends_with_releases(latched, refused, target, wants, now);
        let name = match target {
            Target::Open(handle) | Target::Beside(handle) => {
                return waits(&handle.cell().latch());
            }
            // Of several names, the one whose file the holder has open.
            Target::Names(names) => {
                let holder = refused.holder().map(|holder| holder.handle);
                let holds = |name: &&&SharePath| holder.is_some_and(|id| self.is_open_as(name, id));
                let found = if let [only] = names { Some(only) } else { names.iter().find(holds) };
                let Some(name) = found.or(names.first()) else { return false };
                *name
            }
        };
        match refused {
            Denial::OpenBelow(_) => {
                let Ok(dir) = self.disk().lookup(name) else { return true };
                self.table().cells().iter().all(|cell| {
                    let latched = cell.latch();
                    let mut below = latched.state.opens().filter(|(_, _, p)| p.is_below(&dir.path));
                    below.all(|(_, open, _)| open.is_flushed(now))
                })
            }
            Denial::DirectoryNotEmpty => self.empties_soon(name),
            Denial::SharingViolation { .. }
            | Denial::RangeLocked { .. }
            | Denial::LockNotGranted { .. }
            | Denial::DeletePending(_)
            | Denial::Open(_) => self.of_file(name, |latched, _| waits(latched)).unwrap_or(true),
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
        let goes = self
            .table()
            .get(stat.id)
            .is_some_and(|cell| goes_with_releases(&cell.latch(), path, self.now()));
        // Not pending: an ordinary file, or one that went since it was looked at.
        goes || self.disk().stat(path).is_err()
    }

    /// True if a name in the directory is delete pending and goes as soon as the releases arrive.
    pub fn loses_names_soon(&self, dir: &SharePath) -> bool {
        let now = self.now();
        self.has_pending()
            && self.table().cells().iter().any(|cell| {
                let latched = cell.latch();
                let pending: Vec<_> =
                    latched.state.names().filter(|(_, pending)| *pending).map(|(p, _)| p).collect();
                pending.iter().any(|path| {
                    path.parent().as_ref() == Some(dir) && goes_with_releases(&latched, path, now)
                })
            })
    }

    /// True if the name is delete pending and goes as soon as the releases arrive.
    pub fn is_on_its_way_out(&self, path: &SharePath) -> bool {
        let goes =
            |latched: &Latched, path: &SharePath| goes_with_releases(latched, path, self.now());
        self.has_pending() && self.of_file(path, goes).unwrap_or(false)
    }

    /// True if that handle is open on the file behind `path`.
    fn is_open_as(&self, path: &SharePath, id: HandleId) -> bool {
        self.of_file(path, |file, _| file.state.find(id).is_some()) == Some(true)
    }

    /// Asks about the state of a file; `None` if the name does not exist or the file is not in use.
    fn of_file(
        &self,
        path: &SharePath,
        ask: impl FnOnce(&Latched, &SharePath) -> bool,
    ) -> Option<bool> {
        let found = self.disk().lookup(path).ok()?;
        let cell = self.table().get(found.stat.id)?;
        let latched = cell.latch();
        Some(ask(&latched, &found.path))
    }

    /// A descriptor of the holder was closed: the release may follow.
    pub fn set_flushed(&self, handle: &Handle) -> Result<()> {
        let now = self.now();
        self.latched(handle, |latched, _| {
            Ok(latched.state.set_flushed(handle.slot(), handle.id(), now)?)
        })
    }

    /// After a change of a file, with no lock held: answers requests that waited for a byte-range
    /// lock, and lets refused requests try again.
    pub(crate) fn wake(&self, wake: Wake) {
        if wake.answer() {
            self.releases.tell();
            self.tell(ChangeNotice::Released);
        }
    }
}

/// True if the file has opens and all of them are being released.
pub(crate) fn awaits_release(latched: &Latched, now: Timestamp) -> bool {
    latched.state.open_count() > 0 && all_flushed(latched, now)
}

fn all_flushed(latched: &Latched, now: Timestamp) -> bool {
    latched.state.opens().all(|(_, open, _)| open.is_flushed(now))
}

/// True if the name is delete pending, and all its opens are being released. An open by another
/// name of the file does not keep it.
fn goes_with_releases(latched: &Latched, path: &SharePath, now: Timestamp) -> bool {
    latched.state.pending_holder(path).is_some()
        && latched.state.opens().all(|(_, open, name)| open.is_flushed(now) || name != path)
}

/// True if only handles of the file whose release is on its way cause the refusal, or none any
/// more.
fn ends_with_releases(
    latched: &Latched,
    refused: &Denial,
    target: Target<'_>,
    (access, share): (Access, ShareMode),
    now: Timestamp,
) -> bool {
    match (refused, target) {
        (Denial::SharingViolation { .. }, Target::Beside(own)) => {
            let stays = |open: &Open| {
                open.id != own.id()
                    && !open.is_flushed(now)
                    && clash(access, share, open.access(), open.share)
            };
            !latched.state.opens().any(|(_, open, _)| stays(open))
        }
        (Denial::SharingViolation { .. }, _) => {
            latched.state.all_in_the_way_flushed(access, share, now)
        }
        // A lock goes with the handle it was taken through.
        (Denial::RangeLocked { lock, .. } | Denial::LockNotGranted { lock, .. }, _) => {
            let is_its = |open: &Open| open.id == lock.handle && open.is_flushed(now);
            latched.state.may_be_flushed(now)
                && (latched.state.locks().all(|held| held != lock)
                    || latched.state.opens().any(|(_, open, _)| is_its(open)))
        }
        (Denial::DeletePending(_) | Denial::Open(_), _) => all_flushed(latched, now),
        _ => false,
    }
}
