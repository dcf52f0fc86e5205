//! Counts the bytes that a share holds, for its quota and for `statfs`.
//!
//! Decides what counts: the logical length of regular files, as the service bills them, holes
//! included; a file with several names counts once, directories and links count nothing. The sum
//! is kept between walks. What to do with a full share is left to callers: the quota is advisory.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::disk::error::{StoreError, doing};
use crate::disk::tree;
use crate::rules::Timestamp;
use crate::sync::front_end;

/// The bytes of one share, counted now and then.
#[derive(Debug)]
pub struct Usage {
    root: PathBuf,
    refresh: Duration,
    counted: Mutex<Option<UsageCount>>,
    /// Held by the one that walks.
    walking: Mutex<()>,
    /// A background thread is counting.
    counting: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct UsageCount {
    at: Timestamp,
    bytes: u64,
}

impl Usage {
    /// Of the tree at `root`, counted anew when the last count is `refresh` old.
    pub fn new(root: impl Into<PathBuf>, refresh: Duration) -> Self {
        let (counted, walking) = (Mutex::new(None), Mutex::new(()));
        let counting = AtomicBool::new(false);
        Self { root: root.into(), refresh, counted, walking, counting }
    }

    /// Bytes in use, at most the refresh interval old; walks the tree if it must. While one caller
    /// walks, the others are given the last count.
    pub fn usage(&self, now: Timestamp) -> Result<u64, StoreError> {
        if let Some(bytes) = self.fresh(now) {
            return Ok(bytes);
        }
        let last = self.counted().map(|count| count.bytes);
        let walker = match (self.walking.try_lock(), last) {
            (Ok(walker), _) => walker,
            (Err(_), Some(bytes)) => return Ok(bytes),
            (Err(_), None) => lock(&self.walking),
        };
        // Another may have counted while this one waited.
        if let Some(bytes) = self.fresh(now) {
            return Ok(bytes);
        }
        front_end::assert_may_block("a walk of the share");
        let bytes = logical_bytes(&self.root)?;
        *self.counted() = Some(UsageCount { at: now, bytes });
        drop(walker);
        Ok(bytes)
    }

    /// Bytes in use by the last count, however old; none before the first. One that is older than
    /// the refresh interval is replaced by a thread of its own. Never waits.
    pub fn last(self: &Arc<Self>, now: Timestamp) -> Option<u64> {
        if let Some(bytes) = self.fresh(now) {
            return Some(bytes);
        }
        if !self.counting.swap(true, Ordering::AcqRel) {
            let counts = Arc::clone(self);
            let thread = thread::Builder::new().name("latchfs-usage".into()).spawn(move || {
                if let Err(error) = counts.usage(now) {
                    log::debug!("counting the bytes of a share: {error}");
                }
                counts.counting.store(false, Ordering::Release);
            });
            if let Err(error) = thread {
                self.counting.store(false, Ordering::Release);
                log::debug!("no thread to count the bytes of a share: {error}");
            }
        }
        self.counted().map(|count| count.bytes)
    }

    fn fresh(&self, now: Timestamp) -> Option<u64> {
        let count = (*self.counted())?;
        (now.since(count.at) < self.refresh).then_some(count.bytes)
    }

    fn counted(&self) -> MutexGuard<'_, Option<UsageCount>> {
        lock(&self.counted)
    }
}

/// A count is whole at any moment, so one left by a panicking thread is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sum of the lengths of all regular files below `root`, each file once.
pub fn logical_bytes(root: &Path) -> Result<u64, StoreError> {
    let root = tree::open_root(root)?;
    let mut seen = HashSet::new();
    let mut sum = 0;
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        match tree::descend(&root, &path) {
            Ok(dir) => sum += count_folder(dir, &path, &mut seen, &mut pending)?,
            // Removed or moved since its parent was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err(doing("opening a directory")(errno)),
        }
    }
    Ok(sum)
}

fn count_folder(
    dir: impl AsFd,
    path: &Path,
    seen: &mut HashSet<(u64, u64)>,
    pending: &mut Vec<PathBuf>,
) -> Result<u64, StoreError> {
    let mut sum = 0_u64;
    for name in tree::entries(&dir)? {
        let name = name?;
        let stat = match rustix::fs::statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(doing("reading attributes")(errno)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => pending.push(tree::child(path, &name)),
            FileType::RegularFile
                if stat.st_nlink == 1 || seen.insert((stat.st_dev, stat.st_ino)) =>
            {
                sum = sum.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            }
            _ => {}
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn logical_lengths_are_counted_and_hard_links_once() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a/b/file"), [0; 1000]).unwrap();
        fs::hard_link(root.path().join("a/b/file"), root.path().join("again")).unwrap();
        std::os::unix::fs::symlink("a/b/file", root.path().join("link")).unwrap();
        let sparse = fs::File::create(root.path().join("sparse")).unwrap();
        sparse.set_len(5_000_000).unwrap();
        assert_eq!(logical_bytes(root.path()).unwrap(), 5_001_000);
    }

    #[test]
    fn a_count_is_kept_until_it_is_as_old_as_the_interval() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("one"), [0; 10]).unwrap();
        let usage = Usage::new(root.path(), MINUTE);
        let start = Timestamp(1_000);
        assert_eq!(usage.usage(start).unwrap(), 10);
        fs::write(root.path().join("two"), [0; 5]).unwrap();
        let almost = Timestamp(start.after(MINUTE).0 - 1);
        assert_eq!(usage.usage(almost).unwrap(), 10);
        assert_eq!(usage.usage(start.after(MINUTE)).unwrap(), 15);
    }

    #[test]
    fn while_one_walks_others_get_the_last_count() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("one"), [0; 10]).unwrap();
        let usage = Usage::new(root.path(), MINUTE);
        usage.usage(Timestamp(0)).unwrap();
        fs::write(root.path().join("two"), [0; 5]).unwrap();
        let walker = usage.walking.lock().unwrap();
        let late = Timestamp(0).after(MINUTE);
        assert_eq!(usage.usage(late).unwrap(), 10);
        drop(walker);
        assert_eq!(usage.usage(late).unwrap(), 15);
    }

    #[test]
    fn who_does_not_wait_gets_the_last_count_while_another_thread_counts() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("one"), [0; 10]).unwrap();
        let usage = Arc::new(Usage::new(root.path(), MINUTE));
        let ask = |now| front_end::during("worker", || usage.last(now));
        let counted = |now, bytes| {
            let end = std::time::Instant::now() + Duration::from_secs(20);
            while ask(now) != Some(bytes) {
                assert!(std::time::Instant::now() < end, "never counted");
                thread::yield_now();
            }
        };
        // Nothing was counted yet, unless the thread was very quick.
        assert!(matches!(ask(Timestamp(0)), None | Some(10)));
        counted(Timestamp(0), 10);
        fs::write(root.path().join("two"), [0; 5]).unwrap();
        let late = Timestamp(0).after(MINUTE);
        let walker = usage.walking.lock().unwrap();
        assert_eq!(ask(late), Some(10));
        drop(walker);
        counted(late, 15);
    }

    #[test]
    fn a_missing_root_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let gone = root.path().join("gone");
        assert!(matches!(logical_bytes(&gone), Err(StoreError::NotFound)));
    }
}
