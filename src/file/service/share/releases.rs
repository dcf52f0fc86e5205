//! The one way to wait for a release.
//!
//! The end of an open reaches the engine a moment after the program closed its descriptor, so a
//! request can meet a conflict that is about to end. Such a request waits here, with a bound, and
//! is asked again after each change that could let it through. Which refusals are worth the wait
//! is decided in `opens/releases`; callers that must not block listen for
//! [`ChangeNotice::Released`] and ask again themselves.

use std::time::{Duration, Instant};

use super::{ChangeNotice, Share};
use crate::disk::non_blocking::check_may_wait;
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::opens::open::Wake;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// The longest a caller waits for releases in one call.
pub const RELEASE_WAIT_MAX: Duration = Duration::from_secs(10);

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
    /// Waits for the next change; false if `end` comes first.
    fn next(&mut self, end: Instant) -> bool {
        // Also where changes never cease: patience has an end.
        if Instant::now() >= end {
            return false;
        }
        let mut count = self.releases.count.lock().expect(POISON);
        while *count == self.seen {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            count = self.releases.counted.wait_timeout(count, left).expect(POISON).0;
        }
        self.seen = *count;
        true
    }
}

impl Drop for ReleaseWatch<'_> {
    fn drop(&mut self) {
        self.releases.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The answer to a request that may be repeated.
pub(in crate::file::service) struct Asked<T> {
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

impl Share {
    /// Does `ask`, and again while it is refused only because of handles whose release is on its
    /// way, at most for `patience`. `paths` are the names it is about, `wants` what it asks of each
    /// of them. Blocks: for callers on a thread of their own, who hold no lock.
    pub(in crate::file::service) fn when_free<T>(
        &self,
        patience: Duration,
        paths: &[&SharePath],
        (access, share): (Access, ShareMode),
        mut ask: impl FnMut() -> Asked<T>,
    ) -> Result<T> {
        let mut waiting = None;
        let mut last = false;
        loop {
            let refused = match ask() {
                Asked { answer: Err(FileError::Denied(refused)), repeatable: true } => refused,
                Asked { answer, .. } => return answer,
            };
            if last || !self.passes_soon(paths, &refused, access, share) {
                return Err(refused.into());
            }
            check_may_wait()?;
            match &mut waiting {
                // A release since the refusal went unnoticed: ask once more.
                None => {
                    let end = Instant::now() + patience.min(RELEASE_WAIT_MAX);
                    waiting = Some((self.releases.watch(), end));
                }
                Some((watch, end)) => last = !watch.next(*end),
            }
        }
    }

    fn passes_soon(
        &self,
        paths: &[&SharePath],
        refused: &Denial,
        access: Access,
        share: ShareMode,
    ) -> bool {
        // Of several names, the one whose file the holder has open.
        let holder = refused.holder().map(|holder| holder.handle);
        let holds = |path: &&&SharePath| holder.is_some_and(|id| self.is_open_as(path, id));
        let path = if let [only] = paths { Some(only) } else { paths.iter().find(holds) };
        path.or(paths.first())
            .is_some_and(|path| self.only_flushed_in_the_way(path, refused, access, share))
    }

    /// After a change of a file, with no lock held: answers requests that waited for a byte-range
    /// lock, and lets refused requests try again.
    pub(in crate::file::service) fn wake(&self, wake: Wake) {
        if wake.answer() {
            self.releases.tell();
            self.tell(ChangeNotice::Released);
        }
    }
}
