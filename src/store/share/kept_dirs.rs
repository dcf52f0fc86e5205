//! Directories that were opened a moment ago, kept open for the calls that follow.
//!
//! Most work comes in runs: a program creates, looks at and removes many names in one directory.
//! Decides how long a descriptor is kept, and for how long it is believed to be the directory of
//! its path. A change of that path through this process is seen at once ([`KeptDirs::forget`]);
//! one that is made by hand beside it is seen after [`BELIEVED_FOR`].

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::core::FileId;

/// How long a directory is kept after it was last checked.
const KEPT_FOR: Duration = Duration::from_millis(100);

/// How long a directory is taken for that of its path without a check. The steps of one request
/// take less.
pub const BELIEVED_FOR: Duration = Duration::from_micros(250);

/// The most directories that this process keeps, and the share of its descriptors they may take.
const KEPT_MAX: usize = 64;
const DESCRIPTORS_PER_KEPT: u64 = 16;

/// The kept directories of this process.
static KEPT: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Kept directories by the number of their [`KeptDirs`].
#[derive(Default)]
struct Table {
    last_number: u64,
    shares: HashMap<u64, Share>,
    /// How many directories are kept in all.
    count: usize,
}

#[derive(Default)]
struct Share {
    /// Moves with every change that may move a directory. A directory that was opened before the
    /// change must not be kept after it.
    generation: u64,
    dirs: HashMap<Box<str>, Entry>,
}

struct Entry {
    dir: KeptDir,
    checked: Instant,
}

/// The entry of the table for a path.
#[derive(Debug)]
pub enum Known {
    /// The directory.
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
    table: &'static Mutex<Table>,
    number: u64,
}

/// A moment before a directory is opened: [`KeptDirs::keep`] compares it with the present.
#[derive(Clone, Copy, Debug)]
pub struct Generation(u64);

impl KeptDirs {
    pub fn new() -> Self {
        Self::in_table(&KEPT)
    }

    fn in_table(table: &'static Mutex<Table>) -> Self {
        let mut locked = lock(table);
        locked.last_number += 1;
        let number = locked.last_number;
        locked.shares.insert(number, Share::default());
        Self { table, number }
    }

    /// The directory `path`, if it was opened a moment ago.
    pub fn get(&self, path: &str) -> Known {
        let mut table = lock(self.table);
        let share = table.share(self.number);
        let generation = Generation(share.generation);
        let Some(entry) = share.dirs.get(path) else { return Known::Unknown(generation) };
        let age = entry.checked.elapsed();
        if age < BELIEVED_FOR {
            return Known::Fresh(entry.dir.clone());
        }
        if age < KEPT_FOR {
            return Known::Check(entry.dir.clone(), generation);
        }
        let expired = share.dirs.remove(path);
        table.count -= 1;
        drop(table);
        // Closed without the lock.
        drop(expired);
        Known::Unknown(generation)
    }

    /// Keeps a directory, unless a name was moved or removed since `opened`.
    pub fn keep(&self, path: &str, dir: KeptDir, opened: Generation) {
        let now = Instant::now();
        let mut closed = Vec::new();
        let mut table = lock(self.table);
        if table.share(self.number).generation != opened.0 {
            return;
        }
        if table.count >= max() {
            table.make_room(now, &mut closed);
        }
        let entry = Entry { dir, checked: now };
        match table.share(self.number).dirs.insert(path.into(), entry) {
            Some(before) => closed.push(before),
            None => table.count += 1,
        }
        drop(table);
        drop(closed);
    }

    /// Forgets `path` and all below it, after it was moved, removed or given other permissions.
    pub fn forget(&self, path: &str) {
        let is_meant = |kept: &str| {
            kept.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut table = lock(self.table);
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
        let mut table = lock(self.table);
        let closed = table.shares.remove(&self.number);
        table.count -= closed.as_ref().map_or(0, |share| share.dirs.len());
        drop(table);
        drop(closed);
    }
}

impl Table {
    fn share(&mut self, number: u64) -> &mut Share {
        self.shares.get_mut(&number).expect("a share is there until its KeptDirs is dropped")
    }

    /// Takes out what has expired, or everything if nothing has.
    fn make_room(&mut self, now: Instant, closed: &mut Vec<Entry>) {
        for share in self.shares.values_mut() {
            let expired =
                share.dirs.extract_if(|_, entry| now.duration_since(entry.checked) >= KEPT_FOR);
            closed.extend(expired.map(|(_, entry)| entry));
        }
        if closed.is_empty() {
            let shares = self.shares.values_mut();
            closed.extend(shares.flat_map(|share| share.dirs.drain().map(|(_, entry)| entry)));
        }
        self.count -= closed.len();
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("count", &self.count).finish_non_exhaustive()
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // No step in here panics half done.
    table.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::store::share::stat::Stat;

    /// A table of the test's own: shares of other tests make room in the process's.
    fn table() -> &'static Mutex<Table> {
        Box::leak(Box::default())
    }

    fn open(dir: &std::path::Path) -> KeptDir {
        let fd = std::fs::File::open(dir).unwrap();
        let id = Stat::of(&fd).unwrap().id;
        KeptDir { fd: Arc::new(fd.into()), id }
    }

    fn keep(kept: &KeptDirs, path: &str, dir: &KeptDir) {
        match kept.get(path) {
            Known::Unknown(opened) => kept.keep(path, dir.clone(), opened),
            known => panic!("{known:?}"),
        }
    }

    fn is_unknown(kept: &KeptDirs, path: &str) -> bool {
        matches!(kept.get(path), Known::Unknown(_))
    }

    #[test]
    fn a_directory_is_found_until_its_time_is_over_and_by_its_own_share_alone() {
        let folder = tempfile::tempdir().unwrap();
        let table = table();
        let (kept, other) = (KeptDirs::in_table(table), KeptDirs::in_table(table));
        let dir = open(folder.path());
        keep(&kept, "a/b", &dir);
        assert!(is_unknown(&other, "a/b"));
        let start = Instant::now();
        let mut checks = 0;
        while !is_unknown(&kept, "a/b") {
            checks += usize::from(matches!(kept.get("a/b"), Known::Check(..)));
            assert!(start.elapsed() < Duration::from_secs(20), "it is kept for ever");
        }
        assert!(checks > 0, "it was never to be checked");
        assert!(Arc::strong_count(&dir.fd) == 1, "the table still has the descriptor");
    }

    #[test]
    fn a_change_forgets_the_path_and_all_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, dir) = (KeptDirs::in_table(table()), open(folder.path()));
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
        let (kept, dir) = (KeptDirs::in_table(table()), open(folder.path()));
        let Known::Unknown(opened) = kept.get("a") else { panic!("it was never kept") };
        kept.forget("elsewhere");
        kept.keep("a", dir.clone(), opened);
        assert!(is_unknown(&kept, "a"));
        assert_eq!(Arc::strong_count(&dir.fd), 1);
    }

    #[test]
    fn there_are_only_so_many_and_a_share_that_ends_closes_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, dir) = (KeptDirs::in_table(table()), open(folder.path()));
        for number in 0..3 * KEPT_MAX {
            keep(&kept, &format!("d{number}"), &dir);
            assert!(Arc::strong_count(&dir.fd) <= max() + 1);
        }
        drop(kept);
        assert_eq!(Arc::strong_count(&dir.fd), 1);
    }
}
