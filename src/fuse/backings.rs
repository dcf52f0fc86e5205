//! Backing files of kernel passthrough: one registration per inode, made from a descriptor that is
//! closed afterwards.
//!
//! A registration is kept while any open of the inode lasts, since the kernel refuses a second one,
//! and for a short time after it was made, so that the next open needs no system call for it. The
//! time is short because a registration keeps a deleted file's space in use.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use fuser::BackingId;

use crate::core::FileId;

/// How long a registration is kept for the next open.
pub const KEPT_FOR: Duration = Duration::from_secs(1);

/// The most registrations that are kept for the next open.
const KEPT_MAX: usize = 1024;

/// The registrations of one mount.
#[derive(Debug, Default)]
pub struct Backings(Mutex<Inside<BackingId>>);

const POISON: &str = "registrations are only kept and dropped";

impl Backings {
    /// The registration of a file, made with `register` if there is none, and kept beyond its opens
    /// if `keep`. The flag is true for the first that is kept: the caller must then arrange for
    /// [`sweep`](Self::sweep).
    pub fn get(
        &self,
        file: FileId,
        keep: bool,
        register: impl FnOnce() -> std::io::Result<BackingId>,
    ) -> std::io::Result<(Arc<BackingId>, bool)> {
        self.0.lock().expect(POISON).get(file, keep.then(Instant::now), register)
    }

    /// Drops registrations that were kept long enough; true if any are left.
    pub fn sweep(&self) -> bool {
        self.0.lock().expect(POISON).sweep(Instant::now())
    }

    /// All files are gone: only their opens hold them now.
    pub fn let_go_all(&self) {
        self.0.lock().expect(POISON).kept.clear();
    }

    /// Drops the kept registration of a file that has lost a name; its opens keep theirs.
    pub fn let_go(&self, file: FileId) {
        self.0.lock().expect(POISON).kept.retain(|kept| kept.file != file);
    }
}

#[derive(Debug)]
struct Kept<T> {
    since: Instant,
    file: FileId,
    _held: Arc<T>,
}

#[derive(Debug)]
struct Inside<T> {
    known: HashMap<FileId, Weak<T>>,
    /// The oldest first.
    kept: VecDeque<Kept<T>>,
}

impl<T> Default for Inside<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), kept: VecDeque::new() }
    }
}

impl<T> Inside<T> {
    fn get(
        &mut self,
        file: FileId,
        keep_from: Option<Instant>,
        register: impl FnOnce() -> std::io::Result<T>,
    ) -> std::io::Result<(Arc<T>, bool)> {
        if let Some(known) = self.known.get(&file).and_then(Weak::upgrade) {
            return Ok((known, false));
        }
        let made = Arc::new(register()?);
        if self.known.len() >= self.known.capacity() {
            self.known.retain(|_, known| known.strong_count() > 0);
        }
        self.known.insert(file, Arc::downgrade(&made));
        let Some(now) = keep_from else { return Ok((made, false)) };
        let first = !self.sweep(now);
        if self.kept.len() >= KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Kept { since: now, file, _held: Arc::clone(&made) });
        Ok((made, first))
    }

    fn sweep(&mut self, now: Instant) -> bool {
        while self.kept.front().is_some_and(|kept| now.duration_since(kept.since) >= KEPT_FOR) {
            self.kept.pop_front();
        }
        !self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(ino: u64) -> FileId {
        FileId { ino, born: 0 }
    }

    #[test]
    fn a_registration_outlives_its_last_open_for_a_moment_only() {
        let (mut inside, start) = (Inside::default(), Instant::now());
        let (made, first) = inside.get(file(7), Some(start), || Ok(1)).unwrap();
        assert!(first);
        drop(made);
        let soon = start + KEPT_FOR / 2;
        let (again, first) =
            inside.get(file(7), Some(soon), || panic!("it is registered")).unwrap();
        assert_eq!((*again, first), (1, false));
        assert!(inside.sweep(soon));
        assert!(!inside.sweep(start + KEPT_FOR));
        // Open still: the kernel would refuse a second one.
        let late = start + 2 * KEPT_FOR;
        assert_eq!(*inside.get(file(7), Some(late), || panic!("it is open")).unwrap().0, 1);
        drop(again);
        assert_eq!(*inside.get(file(7), Some(late), || Ok(2)).unwrap().0, 2);
    }

    #[test]
    fn a_registration_that_must_not_be_kept_ends_with_its_last_open() {
        let mut inside = Inside::default();
        let (made, first) = inside.get(file(7), None, || Ok(1)).unwrap();
        let (again, _) = inside.get(file(7), None, || panic!("it is open")).unwrap();
        assert_eq!((*again, first, inside.kept.len()), (1, false, 0));
        drop((made, again));
        assert_eq!(*inside.get(file(7), None, || Ok(2)).unwrap().0, 2);
    }

    #[test]
    fn at_most_so_many_registrations_are_kept() {
        let (mut inside, start) = (Inside::default(), Instant::now());
        for ino in 0..=KEPT_MAX as u64 {
            inside.get(file(ino), Some(start), || Ok(ino)).unwrap();
        }
        assert_eq!(inside.kept.len(), KEPT_MAX);
        assert!(inside.known[&file(0)].upgrade().is_none());
        assert!(inside.known[&file(1)].upgrade().is_some());
    }
}
