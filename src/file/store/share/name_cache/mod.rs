//! A cache of the names of directories, folded and sorted.
//!
//! Answers two questions without reading the whole directory: which spellings of a name exist, and
//! which name comes next in a listing. Decides when cached names are valid:
//!
//! - by inotify events ([`super::dir_watch`]): only names in doubt are looked at again, and only
//!   when a caller asks about them, so that creating 100,000 files in one directory stays linear.
//!   On a file system that only this machine writes to, the events are complete;
//! - by the directory's change time, for changes without events: by other hosts, or where no watch
//!   can be had. If the change time moved and no name is in doubt, the directory is read again.
//!
//! A directory is locked while it is read or looked at; other directories are not.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use super::dir_watch::{DirWatch, Doubts, NamesInDoubt, WatchId};
use super::listing::{ListedName, read_dir};
use super::stat::{FileKind, Stat};
use crate::disk::error::StoreError;
use crate::file::rules::fold;
use crate::rules::{FileId, Timestamp};
use crate::sync::front_end;

#[cfg(test)]
mod tests;

/// Most names kept in all, about 120 bytes each; a directory counts as one more. The directory
/// in use stays even if it alone has more: its listing would be quadratic otherwise.
const NAMES_MAX: usize = 500_000;

/// Kernels before 6.13 move a change time in steps of up to 10 ms: a directory that changed less
/// than this before it was read may have changed again since, and show the same time.
const CHANGE_TIME_STEP: Duration = Duration::from_millis(20);

/// How long after a reading a directory without a watch is not read again because of names that
/// this process made.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// How often an event is looked for that belongs to a change of the directory's time. One that
/// does not come was another host's: the directory is read again, which costs more by far.
const EVENT_TRIES: u32 = 64;

/// The largest directory, in bytes as `stat(2)` shows them, that is read in non-blocking mode:
/// some hundred names.
const NON_BLOCKING_MAX: u64 = 32 << 10;

/// The most names that are copied or looked at again in non-blocking mode: some milliseconds.
const NON_BLOCKING_NAMES: usize = 2_048;

/// File systems whose directories only this machine changes, by the magic numbers of `statfs(2)`:
/// ext2 to ext4, xfs, btrfs, tmpfs, ramfs, f2fs, bcachefs, zfs.
const LOCAL: [i64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
];

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

/// One directory as it was last seen.
#[derive(Debug, Default)]
struct CachedDirectory {
    names: Names,
    /// Its change time then, and whether a later change must have moved it; none if the names
    /// cannot be believed.
    as_of: Option<(Timestamp, bool)>,
    watch: Option<WatchId>,
    /// When it was read.
    read: Option<Instant>,
    /// Its change time after this process made a name, where there is no watch.
    own: Option<Timestamp>,
    /// Nothing changes here that the account does not show.
    complete: bool,
    /// Names that are no UTF-8 have been reported.
    warned: bool,
}

#[derive(Debug)]
struct CacheSlot {
    seen: Arc<Mutex<CachedDirectory>>,
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
    /// From the first directory that is read on: a share that nobody asks takes none. Asked for
    /// again at each reading while there is none to be had.
    watch: OnceLock<Arc<DirWatch>>,
    open_watch: fn() -> Option<Arc<DirWatch>>,
    /// Tells the accounts of this share from those of others.
    number: u64,
    table: Mutex<CacheTable>,
    names_max: usize,
    /// Believes a complete account; tests have it doubt.
    trusting: bool,
}

const SEEN: &str = "nothing panics while it reads names";

impl NameCache {
    pub(crate) fn new() -> Self {
        Self::with(DirWatch::shared, NAMES_MAX)
    }

    fn with(open_watch: fn() -> Option<Arc<DirWatch>>, names_max: usize) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (watch, table) = (OnceLock::new(), Mutex::default());
        Self { watch, open_watch, number, table, names_max, trusting: true }
    }

    /// Asks about the names of the directory `id`, open as `dir`, as they are now: about those that
    /// are `wanted`.
    pub(crate) fn ask<T>(
        &self,
        (dir, id): (impl AsFd, FileId),
        wanted: NamesInDoubt<'_>,
        question: impl FnOnce(&Names) -> T,
    ) -> Result<T, StoreError> {
        let slot = self.slot(id);
        let mut seen = lock_in_time(&slot)?;
        let refreshed = self.refresh(&mut seen, dir.as_fd(), wanted);
        // A caller that cannot wait leaves the names to one that can.
        if !matches!(refreshed, Ok(()) | Err(StoreError::WouldWait)) {
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
        self.ask(dir, NamesInDoubt::All, |names| {
            if names.0.len().min(limit) > NON_BLOCKING_NAMES && front_end::gives_up() {
                return Err(StoreError::WouldWait);
            }
            Ok(names.page(prefix, after, limit))
        })?
    }

    /// The caller is about to make `name` in the directory `id`, and says when it has.
    pub(crate) fn expect<'a>(
        &'a self,
        id: FileId,
        name: &'a str,
    ) -> Result<Expected<'a>, StoreError> {
        let slot = self.slot(id);
        let (watch, unwatched) = {
            let seen = lock_in_time(&slot)?;
            let lately = seen.watch.is_none() && seen.complete && seen.is_read_lately();
            let as_of = seen.as_of.filter(|_| lately);
            // Where the change time is asked too, an event must explain why it moved: else the
            // directory would be read anew for each name of ours.
            let watch = seen.watch.filter(|_| seen.complete);
            (watch, as_of.map(|(as_of, _)| seen.own.unwrap_or(as_of)))
        };
        let watched = watch.and_then(|id| Some((self.watch.get()?, id)));
        if let Some((watch, id)) = watched {
            watch.expect(id, name);
        }
        Ok(Expected { watched, unwatched, seen: slot, name })
    }

    fn slot(&self, dir: FileId) -> Arc<Mutex<CachedDirectory>> {
        let mut table = self.table();
        table.uses += 1;
        let used = table.uses;
        let slot = table.slots.entry(dir).or_insert_with(|| CacheSlot {
            seen: Arc::default(),
            weight: 0,
            used,
        });
        slot.used = used;
        Arc::clone(&slot.seen)
    }

    /// Makes what was `seen` right again, as far as it is `wanted`.
    fn refresh(
        &self,
        seen: &mut CachedDirectory,
        dir: BorrowedFd<'_>,
        wanted: NamesInDoubt<'_>,
    ) -> Result<(), StoreError> {
        let Some((as_of, settled)) = seen.as_of else {
            return self.read(seen, dir);
        };
        let watched = self.watch.get().zip(seen.watch);
        let most = if front_end::is_non_blocking() { NON_BLOCKING_NAMES } else { usize::MAX };
        if let Some((watch, id)) = watched
            && seen.complete
        {
            return match watch.take(id, wanted, most) {
                Doubts::Names(doubts) => match look_again(seen, dir, doubts) {
                    // Names can be read where they cannot be looked at.
                    Err(StoreError::PermissionDenied) => self.read(seen, dir),
                    looked => looked,
                },
                Doubts::TooMany => Err(give_up()),
                Doubts::Unknown => self.read(seen, dir),
            };
        }
        let changed = Stat::of(dir)?.changed;
        let Some((watch, id)) = watched else {
            let ours = seen.own == Some(changed) && seen.is_read_lately();
            let holds = ours || settled && as_of == changed;
            return if holds { Ok(()) } else { self.read(seen, dir) };
        };
        let none = Doubts::Names(Vec::new());
        let mut doubts = watch.take(id, NamesInDoubt::All, most);
        let mut tries = 0;
        while as_of != changed && doubts == none && tries < EVENT_TRIES {
            // A change shows on the disk before its event arrives: the event gets time to arrive.
            std::thread::yield_now();
            doubts = watch.take(id, NamesInDoubt::All, most);
            tries += 1;
        }
        match doubts {
            Doubts::Names(doubts) if doubts.is_empty() && as_of == changed => Ok(()),
            Doubts::TooMany => Err(give_up()),
            Doubts::Names(doubts) if !doubts.is_empty() => {
                // Changes up to here are explained by what was in doubt; later ones bring events.
                let (changed, settled) = (Stat::of(dir)?.changed, false);
                look_again(seen, dir, doubts)?;
                seen.as_of = Some((changed, settled));
                Ok(())
            }
            Doubts::Names(_) | Doubts::Unknown => self.read(seen, dir),
        }
    }

    /// Reads the whole directory. A large one is not read in non-blocking mode.
    fn read(&self, seen: &mut CachedDirectory, dir: BorrowedFd<'_>) -> Result<(), StoreError> {
        // The names are out of date, also if they are not read now.
        seen.as_of = None;
        if front_end::is_non_blocking()
            && Stat::of(dir)?.size > NON_BLOCKING_MAX
            && front_end::gives_up()
        {
            return Err(StoreError::WouldWait);
        }
        // In this order: what changes while it is read is then in doubt, or shows in the time.
        if self.watch.get().is_none()
            && let Some(watch) = (self.open_watch)()
        {
            // Another thread may have been faster: it set the same one.
            let _ = self.watch.set(watch);
        }
        seen.watch = self.watch.get().and_then(|watch| watch.watch(self.number, dir));
        seen.complete = self.trusting && is_local(dir);
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
        if let Some((watch, id)) = self.watch.get().zip(seen.watch) {
            watch.sized(id, seen.names.0.len());
        }
        Ok(())
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
            .filter(|(_, slot)| Arc::strong_count(&slot.seen) == 1)
            .map(|(&dir, slot)| (slot.used, dir))
            .collect();
        oldest.sort_unstable();
        for (_, dir) in oldest {
            if table.weight <= goal {
                return;
            }
            let Some(slot) = table.slots.remove(&dir) else {
                continue;
            };
            table.weight -= slot.weight;
            let seen = slot.seen.lock().expect(SEEN);
            if let Some((watch, id)) = self.watch.get().zip(seen.watch) {
                watch.forget(id);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, CacheTable> {
        self.table.lock().expect("nothing panics while it holds the table of directories")
    }
}

impl Drop for NameCache {
    fn drop(&mut self) {
        let Some(watch) = self.watch.get() else { return };
        for slot in self.table().slots.values() {
            if let Some(id) = slot.seen.lock().expect(SEEN).watch {
                watch.forget(id);
            }
        }
    }
}

/// A name that is being made. If it is not made, the name is in doubt.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    watched: Option<(&'a Arc<DirWatch>, WatchId)>,
    /// The change time of a directory without a watch, whose names are known.
    unwatched: Option<Timestamp>,
    seen: Arc<Mutex<CachedDirectory>>,
    name: &'a str,
}

impl CachedDirectory {
    /// True if the directory was read so lately that names which this process makes can be added to
    /// the result. Names that other processes make in the same moments are then seen at the next
    /// reading.
    fn is_read_lately(&self) -> bool {
        self.read.is_some_and(|read| read.elapsed() < TRUSTED_FOR)
    }
}

impl Expected<'_> {
    /// It was made in this directory, and is this. Without a watch the directory would be read
    /// again for each name that this process makes; its change time is noted instead.
    pub(crate) fn made_in(self, dir: impl AsFd, stat: &Stat) {
        if let Some(before) = self.unwatched
            && let Ok(now) = Stat::of(dir)
        {
            // Not added if another thread has the names: then the directory is read again.
            if let Ok(mut seen) = self.seen.try_lock() {
                let known = seen.as_of.map(|(as_of, _)| seen.own.unwrap_or(as_of));
                if known == Some(before) {
                    seen.names.0.insert(NameKey::new(self.name), (stat.kind, stat.id.ino));
                    seen.own = Some(now.changed);
                }
            }
        }
        self.made(stat);
    }

    /// It was made, and is this.
    pub(crate) fn made(mut self, stat: &Stat) {
        // Where it was not expected, the next who asks looks at it anyway.
        let Some((watch, id)) = self.watched else { return };
        // Another thread may have the names for long, to read or copy them, and this one cannot
        // give up any more. The name is in doubt then.
        let Ok(mut seen) = self.seen.try_lock() else { return };
        self.watched = None;
        // Another may have removed it already, and somebody may have looked at it since.
        if watch.made(id, self.name) {
            seen.names.0.insert(NameKey::new(self.name), (stat.kind, stat.id.ino));
        }
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        if let Some((watch, id)) = self.watched {
            watch.expect_no_more(id, self.name);
        }
    }
}

/// Locks a directory's names; in non-blocking mode only if no other thread is reading them.
fn lock_in_time(
    slot: &Mutex<CachedDirectory>,
) -> Result<MutexGuard<'_, CachedDirectory>, StoreError> {
    match slot.try_lock() {
        Err(TryLockError::WouldBlock) if front_end::gives_up() => Err(StoreError::WouldWait),
        Err(TryLockError::WouldBlock) => Ok(slot.lock().expect(SEEN)),
        taken => Ok(taken.expect(SEEN)),
    }
}

/// Ends an operation in non-blocking mode.
fn give_up() -> StoreError {
    // True: in other modes no number of names is too many.
    let _ = front_end::gives_up();
    StoreError::WouldWait
}

/// Looks at each name in doubt: is it there, and what is it?
fn look_again(
    seen: &mut CachedDirectory,
    dir: BorrowedFd<'_>,
    doubts: Vec<Box<str>>,
) -> Result<(), StoreError> {
    for name in doubts {
        match Stat::at(dir, &*name) {
            Ok(stat) => {
                let entry = (stat.kind, stat.id.ino);
                seen.names.0.insert(NameKey::new(&name), entry);
            }
            Err(StoreError::NotFound) => {
                seen.names.0.remove(&NameKey::new(&name));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True if only this machine can change the directory, so that each change brings an event.
fn is_local(dir: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(dir).is_ok_and(|fs| LOCAL.contains(&fs.f_type))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::default().after(since.unwrap_or_default())
}
