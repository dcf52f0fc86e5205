//! How many bytes a share holds, for its quota and for `statfs`.
//!
//! Decides what counts: the logical length of regular files, as the service bills them, holes
//! included; a file with several names counts once, directories and links count nothing. The sum
//! is kept between walks and moved by the deltas callers report; what to do with a full share is
//! left to them (the quota is advisory).

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::error::{StoreError, doing};
use super::tree;
use crate::core::Timestamp;

/// The bytes of one share, counted now and then.
#[derive(Debug)]
pub struct Usage {
    root: PathBuf,
    refresh: Duration,
    counted: Mutex<Option<Count>>,
    /// Held by the one that walks.
    walking: Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    at: Timestamp,
    bytes: u64,
}

impl Usage {
    /// Of the tree at `root`, counted anew when the last count is `refresh` old.
    pub fn new(root: impl Into<PathBuf>, refresh: Duration) -> Self {
        Self { root: root.into(), refresh, counted: Mutex::new(None), walking: Mutex::new(()) }
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
        let bytes = logical_bytes(&self.root)?;
        *self.counted() = Some(Count { at: now, bytes });
        drop(walker);
        Ok(bytes)
    }

    /// Takes note of bytes added or, below zero, removed. A change that comes while the tree is
    /// being walked may be missed or counted twice until the next walk.
    pub fn add(&self, bytes: i64) {
        if let Some(count) = self.counted().as_mut() {
            count.bytes = count.bytes.saturating_add_signed(bytes);
        }
    }

    fn fresh(&self, now: Timestamp) -> Option<u64> {
        let count = (*self.counted())?;
        (now.since(count.at) < self.refresh).then_some(count.bytes)
    }

    fn counted(&self) -> MutexGuard<'_, Option<Count>> {
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
    fn deltas_move_the_count_until_the_next_walk_and_never_below_zero() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("one"), [0; 10]).unwrap();
        let usage = Usage::new(root.path(), MINUTE);
        let start = Timestamp(0);
        usage.add(7);
        assert_eq!(usage.usage(start).unwrap(), 10, "nothing to move before the first walk");
        usage.add(100);
        usage.add(-30);
        assert_eq!(usage.usage(start).unwrap(), 80);
        usage.add(-1_000);
        assert_eq!(usage.usage(start).unwrap(), 0);
        assert_eq!(usage.usage(start.after(MINUTE)).unwrap(), 10);
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
    fn a_missing_root_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let gone = root.path().join("gone");
        assert!(matches!(logical_bytes(&gone), Err(StoreError::NotFound)));
    }
}
