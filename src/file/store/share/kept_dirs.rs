//! Directories that were opened a moment ago, kept open for the calls that follow.
//!
//! Most work comes in runs: a program creates, looks at and removes many names in one directory.
//! Decides how long a descriptor is kept, and for how long it is believed to be the directory of
//! its path. A change of that path through this process is seen at once ([`KeptDirs::forget`]);
//! one that is made by hand beside it is seen after [`BELIEVED_FOR`]. A thread of its own closes
//! directories that nobody uses: an open descriptor keeps its file system from being unmounted.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::rules::FileId;

/// How long a directory is kept after it was last checked. Within that time again it is closed.
const KEPT_FOR: Duration = Duration::from_millis(100);

/// How long a directory is taken for that of its path without a check. The steps of one request
/// take less.
pub const BELIEVED_FOR: Duration = Duration::from_micros(250);

/// The most directories that this process keeps, and the share of its descriptors they may take.
const KEPT_MAX: usize = 64;
const DESCRIPTORS_PER_KEPT: u64 = 16;

/// The kept directories of this process.
static KEPT: LazyLock<KeptDirCache> = LazyLock::new(|| KeptDirCache::new(KEPT_FOR));

/// A table, and the thread that closes what has expired in it.
#[derive(Debug)]
struct KeptDirCache {
    table: Mutex<DirTable>,
    lifetime: Duration,
    /// The thread was started, with the first directory.
    has_sweeper: AtomicBool,
    /// Tells the thread that the table is not empty any more.
    filled: Condvar,
}

impl KeptDirCache {
    fn new(lifetime: Duration) -> Self {
        let (table, filled) = (Mutex::default(), Condvar::new());
        Self { table, lifetime, has_sweeper: AtomicBool::new(false), filled }
    }

    fn lock(&self) -> MutexGuard<'_, DirTable> {
        // No step in here panics half done.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called without the lock when the first directory was kept.
    fn sweep_later(&'static self) {
        if self.has_sweeper.swap(true, Ordering::Relaxed) {
            return self.filled.notify_one();
        }
        let sweeper = thread::Builder::new().name("latchfs-kept".into());
        if let Err(error) = sweeper.spawn(|| self.sweep()) {
            log::warn!("unused directories stay open: no thread to close them: {error}");
            self.has_sweeper.store(false, Ordering::Relaxed);
        }
    }

    /// Closes what has expired, as long as this process lives; sleeps while the table is empty.
    fn sweep(&self) {
        loop {
            let filled = self.filled.wait_while(self.lock(), |table| table.count == 0);
            drop(filled.unwrap_or_else(PoisonError::into_inner));
            thread::sleep(self.lifetime);
            let mut closed = Vec::new();
            self.lock().take_expired(Instant::now(), self.lifetime, &mut closed);
        }
    }
}

/// Kept directories by the number of their [`KeptDirs`].
#[derive(Default)]
struct DirTable {
    last_number: u64,
    shares: HashMap<u64, ShareDirs>,
    /// How many directories are kept in all.
    count: usize,
}

#[derive(Default)]
struct ShareDirs {
    /// Moves with every change that may move a directory. A directory that was opened before the
    /// change must not be kept after it.
    generation: u64,
    dirs: HashMap<Box<str>, CachedDir>,
}

struct CachedDir {
    dir: KeptDir,
    checked: Instant,
}

/// The entry of the table for a path.
#[derive(Debug)]
pub enum KnownDir {
    Fresh(KeptDir),
    /// The directory as it was a moment ago: the caller checks that the path still leads to it and
    /// keeps it again.
    Check(KeptDir, Generation),
    /// Nothing: the caller opens the directory and keeps it.
    Unknown(Generation),
}

/// An open directory and its identity.
#[derive(Clone, Debug)]
pub struct KeptDir {
    pub fd: Arc<OwnedFd>,
    pub id: FileId,
}

/// The kept directories of one share.
#[derive(Debug)]
pub struct KeptDirs {
    kept: &'static KeptDirCache,
    number: u64,
}

/// A moment before a directory is opened: [`KeptDirs::keep`] compares it with the present.
#[derive(Clone, Copy, Debug)]
pub struct Generation(u64);

impl KeptDirs {
    pub fn new() -> Self {
        Self::within(&KEPT)
    }

    fn within(kept: &'static KeptDirCache) -> Self {
        let mut table = kept.lock();
        table.last_number += 1;
        let number = table.last_number;
        table.shares.insert(number, ShareDirs::default());
        Self { kept, number }
    }

    /// The directory `path`, if it was opened a moment ago.
    pub fn get(&self, path: &str) -> KnownDir {
        let mut table = self.kept.lock();
        let share = table.share(self.number);
        let generation = Generation(share.generation);
        let Some(entry) = share.dirs.get(path) else { return KnownDir::Unknown(generation) };
        let age = entry.checked.elapsed();
        if age < BELIEVED_FOR {
            return KnownDir::Fresh(entry.dir.clone());
        }
        if age < self.kept.lifetime {
            return KnownDir::Check(entry.dir.clone(), generation);
        }
        let expired = share.dirs.remove(path);
        table.count -= 1;
        drop(table);
        // Closed without the lock.
        drop(expired);
        KnownDir::Unknown(generation)
    }

    /// Keeps a directory, unless a name was moved or removed since `opened`.
    pub fn keep(&self, path: &str, dir: KeptDir, opened: Generation) {
        let now = Instant::now();
        let mut closed = Vec::new();
        let mut table = self.kept.lock();
        if table.share(self.number).generation != opened.0 {
            return;
        }
        if table.count >= max() {
            table.make_room(now, self.kept.lifetime, &mut closed);
        }
        let is_first = table.count == 0;
        let entry = CachedDir { dir, checked: now };
        match table.share(self.number).dirs.insert(path.into(), entry) {
            Some(before) => closed.push(before),
            None => table.count += 1,
        }
        drop(table);
        drop(closed);
        if is_first {
            self.kept.sweep_later();
        }
    }

    /// Forgets `path` and all below it, after it was moved, removed or given other permissions.
    pub fn forget(&self, path: &str) {
        let is_meant = |kept: &str| {
            kept.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut table = self.kept.lock();
        let share = table.share(self.number);
        share.generation += 1;
        let closed: Vec<_> = share.dirs.extract_if(|kept, _| is_meant(kept)).collect();
        table.count -= closed.len();
        drop(table);
        drop(closed);
    }
}

impl Drop for KeptDirs {
    fn drop(&mut self) {
        let mut table = self.kept.lock();
        let closed = table.shares.remove(&self.number);
        table.count -= closed.as_ref().map_or(0, |share| share.dirs.len());
        drop(table);
        drop(closed);
    }
}

impl DirTable {
    fn share(&mut self, number: u64) -> &mut ShareDirs {
        self.shares.get_mut(&number).expect("a share is there until its KeptDirs is dropped")
    }

    /// Takes out what has expired; the caller closes it without the lock.
    fn take_expired(&mut self, now: Instant, lifetime: Duration, closed: &mut Vec<CachedDir>) {
        for share in self.shares.values_mut() {
            let expired =
                share.dirs.extract_if(|_, entry| now.duration_since(entry.checked) >= lifetime);
            closed.extend(expired.map(|(_, entry)| entry));
        }
        self.count -= closed.len();
    }

    /// Takes out what has expired, or everything if nothing has.
    fn make_room(&mut self, now: Instant, lifetime: Duration, closed: &mut Vec<CachedDir>) {
        self.take_expired(now, lifetime, closed);
        if closed.is_empty() {
            let shares = self.shares.values_mut();
            closed.extend(shares.flat_map(|share| share.dirs.drain().map(|(_, entry)| entry)));
            self.count -= closed.len();
        }
    }
}

impl fmt::Debug for DirTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("count", &self.count).finish_non_exhaustive()
    }
}

/// How many directories are kept at most: few where descriptors are few.
fn max() -> usize {
    static MAX: LazyLock<usize> = LazyLock::new(|| {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(descriptors / DESCRIPTORS_PER_KEPT).unwrap_or(usize::MAX);
        most.clamp(1, KEPT_MAX)
    });
    *MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::store::share::stat::Stat;

    /// Longer than a test runs.
    const FOR_EVER: Duration = Duration::from_hours(1);

    /// A table of the test's own: shares of other tests make room in the process's.
    fn table(lifetime: Duration) -> &'static KeptDirCache {
        Box::leak(Box::new(KeptDirCache::new(lifetime)))
    }

    fn open(dir: &std::path::Path) -> KeptDir {
        let fd = std::fs::File::open(dir).unwrap();
        let id = Stat::of(&fd).unwrap().id;
        KeptDir { fd: Arc::new(fd.into()), id }
    }

    fn keep(kept: &KeptDirs, path: &str, dir: &KeptDir) {
        match kept.get(path) {
            KnownDir::Unknown(opened) => kept.keep(path, dir.clone(), opened),
            known => panic!("{known:?}"),
        }
    }

    fn is_unknown(kept: &KeptDirs, path: &str) -> bool {
        matches!(kept.get(path), KnownDir::Unknown(_))
    }

    #[test]
    fn a_directory_is_found_until_its_time_is_over_and_by_its_own_share_alone() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(KEPT_FOR);
        let (kept, other) = (KeptDirs::within(table), KeptDirs::within(table));
        let dir = open(folder.path());
        keep(&kept, "a/b", &dir);
        assert!(is_unknown(&other, "a/b"));
        let start = Instant::now();
        let mut checks = 0;
        while !is_unknown(&kept, "a/b") {
            checks += usize::from(matches!(kept.get("a/b"), KnownDir::Check(..)));
            assert!(start.elapsed() < Duration::from_secs(20), "it is kept for ever");
        }
        assert!(checks > 0, "it was never to be checked");
        assert!(Arc::strong_count(&dir.fd) == 1, "the table still has the descriptor");
    }

    #[test]
    fn a_directory_that_nobody_uses_is_closed_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, dir) = (KeptDirs::within(table(KEPT_FOR)), open(folder.path()));
        for round in 0..3 {
            keep(&kept, "a", &dir);
            let start = Instant::now();
            while Arc::strong_count(&dir.fd) > 1 {
                assert!(start.elapsed() < Duration::from_secs(20), "round {round}: it stays open");
                thread::yield_now();
            }
        }
    }

    #[test]
    fn a_change_forgets_the_path_and_all_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, dir) = (KeptDirs::within(table(FOR_EVER)), open(folder.path()));
        for path in ["a", "a/b", "ab", "c"] {
            keep(&kept, path, &dir);
        }
        kept.forget("a");
        assert!(is_unknown(&kept, "a") && is_unknown(&kept, "a/b"));
        assert_eq!(Arc::strong_count(&dir.fd), 3, "ab and c are kept");
    }

    #[test]
    fn what_was_opened_before_a_change_is_not_kept_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, dir) = (KeptDirs::within(table(FOR_EVER)), open(folder.path()));
        let KnownDir::Unknown(opened) = kept.get("a") else { panic!("it was never kept") };
        kept.forget("elsewhere");
        kept.keep("a", dir.clone(), opened);
        assert!(is_unknown(&kept, "a"));
        assert_eq!(Arc::strong_count(&dir.fd), 1);
    }

    #[test]
    fn there_are_only_so_many_and_a_share_that_ends_closes_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, dir) = (KeptDirs::within(table(FOR_EVER)), open(folder.path()));
        for number in 0..3 * KEPT_MAX {
            keep(&kept, &format!("d{number}"), &dir);
            assert!(Arc::strong_count(&dir.fd) <= max() + 1);
        }
        drop(kept);
        assert_eq!(Arc::strong_count(&dir.fd), 1);
    }
}
