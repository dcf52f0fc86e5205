//! A cache of the names of directories, folded and sorted.
//!
//! Answers two questions without reading the whole directory: which spellings of a name exist, and
//! which name comes next in a listing. Decides when cached names are valid: while the directory's
//! change time is the one before it was read, or the one after a change of this process that was
//! noted ([`OwnChange`]). So creating 100,000 files in one directory stays linear. A change that
//! another process makes between two changes of this one is seen at the next reading, after
//! [`TRUSTED_FOR`] at the latest.
//!
//! A directory is locked while it is read; other directories are not.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use super::listing::{ListedName, read_dir};
use super::stat::{FileKind, Stat};
use crate::disk::error::StoreError;
use crate::file::rules::fold;
use crate::rules::{FileId, Timestamp};

#[cfg(test)]
mod tests;

/// Most names kept in all, about 120 bytes each; a directory counts as one more. The directory
/// in use stays even if it alone has more: its listing would be quadratic otherwise.
const NAMES_MAX: usize = 500_000;

/// Kernels before 6.13 move a change time in steps of up to 10 ms: a directory that changed less
/// than this before it was read may have changed again since, and show the same time.
const CHANGE_TIME_STEP: Duration = Duration::from_millis(20);

/// How long after a reading a directory is not read again because of changes of this process.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// Which names a directory has.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<NameKey, (FileKind, u64)>);

/// Order of listings: folded, then exact.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct NameKey {
    folded: Box<str>,
    name: Box<str>,
}

impl NameKey {
    fn new(name: &str) -> Self {
        Self { folded: fold(name).into(), name: name.into() }
    }
}

impl Names {
    /// This name stands for that file now.
    pub(crate) fn insert(&mut self, name: &str, stat: &Stat) {
        self.0.insert(NameKey::new(name), (stat.kind, stat.id.ino));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(&NameKey::new(name));
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        if let Some(file) = self.0.remove(&NameKey::new(from)) {
            self.0.insert(NameKey::new(to), file);
        }
    }

    /// All spellings of `name` that exist, in byte order.
    pub(crate) fn spellings<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let folded = fold(name).into_owned();
        let first = NameKey { folded: folded.as_str().into(), name: "".into() };
        self.0
            .range(first..)
            .map(|(key, _)| key)
            .take_while(move |key| *key.folded == *folded)
            .map(|key| &*key.name)
    }

    /// The spelling that `name` finds: the exact one, else the first in byte order.
    pub(crate) fn spelling(&self, name: &str) -> Option<&str> {
        let exact = self.0.get_key_value(&NameKey::new(name));
        exact.map(|(key, _)| &*key.name).or_else(|| self.spellings(name).next())
    }

    /// Up to `limit` entries that begin with `prefix`, spelled in any case, and follow `after` in
    /// the order of listings.
    pub(crate) fn page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<ListedName> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let prefix = fold(prefix);
        let first = NameKey { folded: (*prefix).into(), name: "".into() };
        let from = match after.map(NameKey::new) {
            Some(after) if after >= first => Excluded(after),
            _ => Included(first),
        };
        self.0
            .range((from, Unbounded))
            .take_while(|(key, _)| key.folded.starts_with(&*prefix))
            .take(limit)
            .map(|(key, &(kind, ino))| ListedName { name: key.name.to_string(), kind, ino })
            .collect()
    }
}

/// One directory as it was last read.
#[derive(Debug, Default)]
struct CachedDirectory {
    names: Names,
    /// Its change time then, and whether a later change must have moved it; none if the names
    /// cannot be believed.
    as_of: Option<(Timestamp, bool)>,
    /// When it was read.
    read: Option<Instant>,
    /// Its change time after the last change of this process that is in `names`.
    own: Option<Timestamp>,
    /// Names that are no UTF-8 have been reported.
    warned: bool,
}

impl CachedDirectory {
    /// True if the directory was read so lately that changes of this process can be added.
    fn is_read_lately(&self) -> bool {
        self.as_of.is_some() && self.read.is_some_and(|read| read.elapsed() < TRUSTED_FOR)
    }
}

#[derive(Debug, Default)]
struct Directory {
    seen: Mutex<CachedDirectory>,
    /// How many changes of this process have begun, and how many of them have ended.
    begun: AtomicU64,
    ended: AtomicU64,
    /// A change of this process is not in the names.
    stale: AtomicBool,
}

#[derive(Debug)]
struct CacheSlot {
    directory: Arc<Directory>,
    weight: usize,
    used: u64,
}

#[derive(Debug, Default)]
struct CacheTable {
    slots: HashMap<FileId, CacheSlot>,
    weight: usize,
    uses: u64,
}

/// The names of a share's directories. See the module.
#[derive(Debug)]
pub(crate) struct NameCache {
    table: Mutex<CacheTable>,
    names_max: usize,
}

const SEEN: &str = "nothing panics while it reads names";

impl NameCache {
    pub(crate) fn new() -> Self {
        Self::with(NAMES_MAX)
    }

    fn with(names_max: usize) -> Self {
        Self { table: Mutex::default(), names_max }
    }

    /// Asks about the names of the directory `id`, open as `dir`, as they are now.
    pub(crate) fn ask<T>(
        &self,
        (dir, id): (impl AsFd, FileId),
        question: impl FnOnce(&Names) -> T,
    ) -> Result<T, StoreError> {
        let directory = self.directory(id);
        let mut seen = directory.seen.lock().expect(SEEN);
        if directory.stale.swap(false, Ordering::SeqCst) {
            seen.as_of = None;
        }
        let refreshed = refresh(&mut seen, dir.as_fd());
        if refreshed.is_err() {
            seen.as_of = None;
            seen.names.0.clear();
        }
        let answer = refreshed.map(|()| question(&seen.names));
        self.weigh(id, seen.names.0.len() + 1);
        answer
    }

    /// Up to `limit` entries of the directory `id`, open as `dir`, in the order of listings: those
    /// that begin with `prefix`, spelled in any case, and follow `after`.
    pub(crate) fn page(
        &self,
        dir: (impl AsFd, FileId),
        (prefix, after): (&str, Option<&str>),
        limit: usize,
    ) -> Result<Vec<ListedName>, StoreError> {
        self.ask(dir, |names| names.page(prefix, after, limit))
    }

    /// The caller is about to change a name in the directory `id`.
    pub(crate) fn change(&self, id: FileId) -> OwnChange {
        let directory = self.directory(id);
        let ended = directory.ended.load(Ordering::SeqCst);
        let number = directory.begun.fetch_add(1, Ordering::SeqCst);
        OwnChange { directory, number, alone: number == ended, is_noted: false }
    }

    fn directory(&self, id: FileId) -> Arc<Directory> {
        let mut table = self.table();
        let table = &mut *table;
        table.uses += 1;
        let slot = table.slots.entry(id).or_insert_with(|| {
            table.weight += 1;
            CacheSlot { directory: Arc::default(), weight: 1, used: 0 }
        });
        slot.used = table.uses;
        let directory = Arc::clone(&slot.directory);
        if table.weight > self.names_max {
            self.make_room(table);
        }
        directory
    }

    /// Notes how many names a directory has, and makes room if that is too many.
    fn weigh(&self, dir: FileId, weight: usize) {
        let mut table = self.table();
        let table = &mut *table;
        if let Some(slot) = table.slots.get_mut(&dir) {
            table.weight = table.weight - slot.weight + weight;
            slot.weight = weight;
        }
        if table.weight > self.names_max {
            self.make_room(table);
        }
    }

    /// Forgets the directories not asked about for longest. A quarter at a time, so that the
    /// search for them is paid for by many additions; none that is in use.
    fn make_room(&self, table: &mut CacheTable) {
        let goal = self.names_max / 4 * 3;
        let mut oldest: Vec<_> = table
            .slots
            .iter()
            .filter(|(_, slot)| Arc::strong_count(&slot.directory) == 1)
            .map(|(&dir, slot)| (slot.used, dir))
            .collect();
        oldest.sort_unstable();
        for (_, dir) in oldest {
            if table.weight <= goal {
                return;
            }
            if let Some(slot) = table.slots.remove(&dir) {
                table.weight -= slot.weight;
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, CacheTable> {
        self.table.lock().expect("nothing panics while it holds the table of directories")
    }
}

/// A change of a directory's names that this process makes. The directory is read again if the
/// change is not [done](Self::done), or if another one is under way: the change time does not tell
/// which of them it shows.
#[derive(Debug)]
pub(crate) struct OwnChange {
    directory: Arc<Directory>,
    number: u64,
    /// No other one was under way when this one began.
    alone: bool,
    is_noted: bool,
}

impl OwnChange {
    /// The change was made in `dir`; `note` makes it in the names.
    pub(crate) fn done(mut self, dir: impl AsFd, note: impl FnOnce(&mut Names)) {
        let now = Stat::of(dir);
        // A change that begins from here on is not in `now`.
        let alone = self.alone && self.directory.begun.load(Ordering::SeqCst) == self.number + 1;
        // Another thread may have the names for long, to read or copy them.
        if let (true, Ok(now), Ok(mut seen)) = (alone, now, self.directory.seen.try_lock())
            && seen.is_read_lately()
        {
            note(&mut seen.names);
            seen.own = Some(now.changed);
            self.is_noted = true;
        }
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        if !self.is_noted {
            self.directory.stale.store(true, Ordering::SeqCst);
        }
        self.directory.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads the directory again unless all changes of it are known.
fn refresh(seen: &mut CachedDirectory, dir: BorrowedFd<'_>) -> Result<(), StoreError> {
    if let Some((as_of, settled)) = seen.as_of {
        let changed = Stat::of(dir)?.changed;
        let ours = seen.own == Some(changed) && seen.is_read_lately();
        if ours || settled && as_of == changed {
            return Ok(());
        }
    }
    read(seen, dir)
}

/// Reads the whole directory.
fn read(seen: &mut CachedDirectory, dir: BorrowedFd<'_>) -> Result<(), StoreError> {
    // Before the names: what changes while they are read shows in the time.
    let Stat { id, changed, .. } = Stat::of(dir)?;
    let settled = now().since(changed) > CHANGE_TIME_STEP;
    let entries = read_dir(dir)?;
    if entries.unnameable > 0 && !seen.warned {
        seen.warned = true;
        log::warn!(
            "directory with inode {}: {} names are no UTF-8 and are left out",
            id.ino,
            entries.unnameable,
        );
    }
    let keyed = |entry: ListedName| (NameKey::new(&entry.name), (entry.kind, entry.ino));
    seen.names.0 = entries.listed.into_iter().map(keyed).collect();
    seen.as_of = Some((changed, settled));
    (seen.read, seen.own) = (Some(Instant::now()), None);
    Ok(())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::default().after(since.unwrap_or_default())
}
