//! Backing files of kernel passthrough: one registration per inode, made from a descriptor that is
//! closed afterwards.
//!
//! A registration is kept while any open of the inode lasts, since the kernel refuses a second one,
//! and for a short time after it was made, so that the next open needs no system call for it. The
//! time is short because a registration keeps a deleted file's space in use.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use fuser::BackingId;

use crate::rules::FileId;

/// How long a registration is kept for the next open.
pub const KEPT_FOR: Duration = Duration::from_secs(1);

/// The most registrations that are kept for the next open.
const KEPT_MAX: usize = 1024;

const POISON: &str = "registrations are only kept and dropped";

/// A file's registration, while it lasts. Locked while it is made, so that there are never two.
type Slot<T> = Arc<Mutex<Weak<T>>>;

#[derive(Debug)]
struct Kept<T> {
    since: Instant,
    file: FileId,
    _held: Arc<T>,
}

/// The registrations of one mount. The table is never locked while a registration is made or
/// dropped: that opens a file, or frees the space of a deleted one, and every open on the mount
/// takes this lock.
#[derive(Debug)]
pub struct Backings<T = BackingId>(Mutex<Table<T>>);

#[derive(Debug)]
struct Table<T> {
    known: HashMap<FileId, Slot<T>>,
    kept: VecDeque<Kept<T>>,
}

impl<T> Default for Backings<T> {
    fn default() -> Self {
        Self(Mutex::new(Table { known: HashMap::new(), kept: VecDeque::new() }))
    }
}

impl<T> Backings<T> {
    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().expect(POISON)
    }

    /// The registration of a file, made with `register` if there is none, and kept beyond its opens
    /// if `keep_from` names the time. The flag is true for the first that is kept: the caller must
    /// then arrange for [`sweep`](Self::sweep).
    pub fn get(
        &self,
        file: FileId,
        keep_from: Option<Instant>,
        register: impl FnOnce() -> std::io::Result<T>,
    ) -> std::io::Result<(Arc<T>, bool)> {
        let slot = self.table().slot(file);
        let mut known = slot.lock().expect(POISON);
        if let Some(known) = known.upgrade() {
            return Ok((known, false));
        }
        let made = Arc::new(register()?);
        *known = Arc::downgrade(&made);
        drop(known);
        let Some(now) = keep_from else { return Ok((made, false)) };
        let mut table = self.table();
        let mut dropped = table.take_expired(now);
        let first = table.kept.is_empty();
        if table.kept.len() >= KEPT_MAX {
            dropped.extend(table.kept.pop_front());
        }
        table.kept.push_back(Kept { since: now, file, _held: Arc::clone(&made) });
        drop(table);
        drop(dropped);
        Ok((made, first))
    }

    /// Drops registrations that were kept long enough; true if any are left.
    pub fn sweep(&self, now: Instant) -> bool {
        let mut table = self.table();
        let dropped = table.take_expired(now);
        let any_left = !table.kept.is_empty();
        drop(table);
        drop(dropped);
        any_left
    }

    /// All files are gone: only their opens hold them now.
    pub fn let_go_all(&self) {
        let dropped = std::mem::take(&mut self.table().kept);
        drop(dropped);
    }

    /// Drops the kept registration of a file that has lost a name; its opens keep theirs.
    pub fn let_go(&self, file: FileId) {
        let mut table = self.table();
        let place = table.kept.iter().position(|kept| kept.file == file);
        let dropped = place.and_then(|place| table.kept.remove(place));
        drop(table);
        drop(dropped);
    }
}

impl<T> Table<T> {
    fn slot(&mut self, file: FileId) -> Slot<T> {
        if self.known.len() >= self.known.capacity() {
            // A slot that somebody else refers to is in use.
            self.known.retain(|_, slot| {
                Arc::get_mut(slot)
                    .is_none_or(|slot| slot.get_mut().expect(POISON).strong_count() > 0)
            });
        }
        Arc::clone(self.known.entry(file).or_default())
    }

    /// Takes out what was kept long enough; the caller drops it without the lock.
    fn take_expired(&mut self, now: Instant) -> Vec<Kept<T>> {
        let is_over = |kept: &Kept<T>| now.duration_since(kept.since) >= KEPT_FOR;
        let count = self.kept.iter().take_while(|kept| is_over(kept)).count();
        self.kept.drain(..count).collect()
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
        let (inside, start) = (Backings::default(), Instant::now());
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
        let inside = Backings::default();
        let (made, first) = inside.get(file(7), None, || Ok(1)).unwrap();
        let (again, _) = inside.get(file(7), None, || panic!("it is open")).unwrap();
        assert_eq!((*again, first, inside.table().kept.len()), (1, false, 0));
        drop((made, again));
        assert_eq!(*inside.get(file(7), None, || Ok(2)).unwrap().0, 2);
    }

    #[test]
    fn at_most_so_many_registrations_are_kept() {
        let (inside, start) = (Backings::default(), Instant::now());
        for ino in 0..=KEPT_MAX as u64 {
            inside.get(file(ino), Some(start), || Ok(ino)).unwrap();
        }
        assert_eq!(inside.table().kept.len(), KEPT_MAX);
        let is_registered =
            |ino| inside.table().known[&file(ino)].lock().unwrap().strong_count() > 0;
        assert!(!is_registered(0) && is_registered(1));
    }

    /// A registration that is made and dropped without the lock of its table.
    struct Unlocked<'a>(&'a Mutex<Vec<bool>>, Weak<Backings<Self>>);

    impl<'a> Unlocked<'a> {
        fn new(seen: &'a Mutex<Vec<bool>>, inside: &Arc<Backings<Self>>) -> Self {
            seen.lock().unwrap().push(inside.0.try_lock().is_ok());
            Self(seen, Arc::downgrade(inside))
        }
    }

    impl Drop for Unlocked<'_> {
        fn drop(&mut self) {
            if let Some(inside) = self.1.upgrade() {
                self.0.lock().unwrap().push(inside.0.try_lock().is_ok());
            }
        }
    }

    #[test]
    fn the_table_is_not_locked_while_a_registration_is_made_or_dropped() {
        let (seen, start) = (Mutex::default(), Instant::now());
        let inside = Arc::new(Backings::default());
        let make = |ino, since| {
            let made = inside.get(file(ino), Some(since), || Ok(Unlocked::new(&seen, &inside)));
            drop(made.unwrap());
        };
        make(1, start);
        inside.let_go(file(1));
        make(2, start);
        inside.sweep(start + KEPT_FOR);
        make(3, start);
        inside.let_go_all();
        make(4, start);
        make(5, start + KEPT_FOR);
        (6..).take(KEPT_MAX).for_each(|ino| make(ino, start + KEPT_FOR));
        let seen = seen.lock().unwrap();
        // All were made, and all but the last so many were dropped.
        assert_eq!(seen.len(), 5 + KEPT_MAX + 5);
        assert!(seen.iter().all(|unlocked| *unlocked));
    }
}
