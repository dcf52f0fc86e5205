//! The names of directories, folded and in order, kept while they are known to be right.
//!
//! Serves two questions that would else mean reading the whole directory each time: which
//! spellings of a name exist, and what comes next in a listing. Decides when what it keeps may be
//! believed:
//!
//! - by the account of the kernel ([`super::dir_watch`]): only the names it puts in doubt are
//!   looked at again, and those only by whoever asks about them, so that making 100,000 files in
//!   one directory stays linear. On a file system of this machine alone the account is complete;
//! - by the directory's change time elsewhere, for what the account does not show: other hosts, or
//!   a system with no watches to give. If it moved and no name is in doubt, the directory is read
//!   again.
//!
//! A directory is locked while it is read or looked at; others are not held up.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use super::dir_watch::{DirWatch, Wanted, WatchId};
use super::error::StoreError;
use super::listing::{Listed, read_dir};
use super::stat::{Kind, Stat};
use crate::core::{FileId, Timestamp, fold};

#[cfg(test)]
mod tests;

/// Most names kept in all, about 120 bytes each; a directory counts as one more. The directory
/// in use stays even if it alone has more: its listing would be quadratic otherwise.
const NAMES_MAX: usize = 500_000;

/// Kernels before 6.13 move a change time in steps of up to 10 ms: a directory that changed less
/// than this before it was read may have changed again since, and show the same time.
const CHANGE_TIME_STEP: Duration = Duration::from_millis(20);

/// How often an event is looked for that belongs to a change of the directory's time. One that
/// does not come was another host's: the directory is read again, which costs more by far.
const EVENT_TRIES: u32 = 64;

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
pub(super) struct Names(BTreeMap<Key, (Kind, u64)>);

/// Order of listings: folded, then exact.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    folded: Box<str>,
    name: Box<str>,
}

impl Key {
    fn new(name: &str) -> Self {
        Self { folded: fold(name).into(), name: name.into() }
    }
}

impl Names {
    /// All spellings of `name` that exist, in byte order.
    pub(super) fn spellings<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let folded = fold(name).into_owned();
        let first = Key { folded: folded.as_str().into(), name: "".into() };
        self.0
            .range(first..)
            .map(|(key, _)| key)
            .take_while(move |key| *key.folded == *folded)
            .map(|key| &*key.name)
    }

    /// The spelling that `name` stands for: the exact one, else the first in byte order.
    pub(super) fn spelling(&self, name: &str) -> Option<&str> {
        let exact = self.0.get_key_value(&Key::new(name));
        exact.map(|(key, _)| &*key.name).or_else(|| self.spellings(name).next())
    }

    /// Up to `limit` entries that begin with `prefix`, spelled in any case, and follow `after` in
    /// the order of listings.
    pub(super) fn page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Listed> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let prefix = fold(prefix);
        let first = Key { folded: (*prefix).into(), name: "".into() };
        let from = match after.map(Key::new) {
            Some(after) if after >= first => Excluded(after),
            _ => Included(first),
        };
        self.0
            .range((from, Unbounded))
            .take_while(|(key, _)| key.folded.starts_with(&*prefix))
            .take(limit)
            .map(|(key, &(kind, ino))| Listed { name: key.name.to_string(), kind, ino })
            .collect()
    }
}

/// One directory as it was last seen.
#[derive(Debug, Default)]
struct Seen {
    names: Names,
    /// Its change time then, and whether a later change must have moved it; none if the names
    /// cannot be believed.
    as_of: Option<(Timestamp, bool)>,
    watch: Option<WatchId>,
    /// Nothing changes here that the account does not show.
    complete: bool,
    /// Names that are no UTF-8 have been reported.
    warned: bool,
}

#[derive(Debug)]
struct Slot {
    seen: Arc<Mutex<Seen>>,
    weight: usize,
    used: u64,
}

#[derive(Debug, Default)]
struct Table {
    slots: HashMap<FileId, Slot>,
    weight: usize,
    uses: u64,
}

/// The names of a share's directories. See the module.
#[derive(Debug)]
pub(super) struct NameCache {
    /// From the first directory that is read on: a user has 128 of them by default, and a share
    /// that nobody asks takes none.
    watch: LazyLock<Option<DirWatch>>,
    table: Mutex<Table>,
    names_max: usize,
    /// Believes a complete account; tests have it doubt.
    trusting: bool,
}

const SEEN: &str = "nothing panics while it reads names";

impl NameCache {
    pub(super) fn new() -> Self {
        Self::with(DirWatch::new, NAMES_MAX)
    }

    fn with(watch: fn() -> Option<DirWatch>, names_max: usize) -> Self {
        Self { watch: LazyLock::new(watch), table: Mutex::default(), names_max, trusting: true }
    }

    /// Asks about the names of the directory `id`, open as `dir`, as they are now: about those that
    /// are `wanted`.
    pub(super) fn ask<T>(
        &self,
        (dir, id): (impl AsFd, FileId),
        wanted: Wanted<'_>,
        question: impl FnOnce(&Names) -> T,
    ) -> Result<T, StoreError> {
        let slot = self.slot(id);
        let mut seen = slot.lock().expect(SEEN);
        let refreshed = self.refresh(&mut seen, dir.as_fd(), wanted);
        if refreshed.is_err() {
            seen.as_of = None;
            seen.names.0.clear();
        }
        let answer = refreshed.map(|()| question(&seen.names));
        self.weigh(id, seen.names.0.len() + 1);
        answer
    }

    /// The caller is about to make `name` in the directory `id`, and says when it has.
    pub(super) fn expect<'a>(&'a self, id: FileId, name: &'a str) -> Expected<'a> {
        let seen = self.slot(id);
        // Where the change time is asked too, an event must explain why it moved: else the
        // directory would be read anew for each name of ours.
        let watch = {
            let seen = seen.lock().expect(SEEN);
            seen.watch.filter(|_| seen.complete)
        };
        let watched = watch.and_then(|id| Some((self.watch.as_ref()?, id)));
        if let Some((watch, id)) = watched {
            watch.expect(id, name);
        }
        Expected { watched, seen, name }
    }

    fn slot(&self, dir: FileId) -> Arc<Mutex<Seen>> {
        let mut table = self.table();
        table.uses += 1;
        let used = table.uses;
        let slot = table.slots.entry(dir).or_insert_with(|| Slot {
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
        seen: &mut Seen,
        dir: BorrowedFd<'_>,
        wanted: Wanted<'_>,
    ) -> Result<(), StoreError> {
        let Some((as_of, settled)) = seen.as_of else {
            return self.read(seen, dir);
        };
        let watched = self.watch.as_ref().zip(seen.watch);
        if let Some((watch, id)) = watched
            && seen.complete
        {
            return match watch.take(id, wanted) {
                Some(doubts) => look_again(seen, dir, doubts),
                None => self.read(seen, dir),
            };
        }
        let changed = Stat::of(dir)?.changed;
        let Some((watch, id)) = watched else {
            return if settled && as_of == changed { Ok(()) } else { self.read(seen, dir) };
        };
        let mut doubts = watch.take(id, Wanted::All);
        let mut tries = 0;
        while as_of != changed && doubts.as_ref().is_some_and(Vec::is_empty) && tries < EVENT_TRIES
        {
            // The change shows before its event does; whoever makes it is given time for that.
            std::thread::yield_now();
            doubts = watch.take(id, Wanted::All);
            tries += 1;
        }
        match doubts {
            Some(doubts) if doubts.is_empty() && as_of == changed => Ok(()),
            Some(doubts) if !doubts.is_empty() => {
                // Changes up to here are explained by what was in doubt; later ones bring events.
                let (changed, settled) = (Stat::of(dir)?.changed, false);
                look_again(seen, dir, doubts)?;
                seen.as_of = Some((changed, settled));
                Ok(())
            }
            _ => self.read(seen, dir),
        }
    }

    /// Reads the whole directory.
    fn read(&self, seen: &mut Seen, dir: BorrowedFd<'_>) -> Result<(), StoreError> {
        // In this order: what changes while it is read is then in doubt, or shows in the time.
        seen.watch = self.watch.as_ref().and_then(|watch| watch.watch(dir));
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
        let keyed = |entry: Listed| (Key::new(&entry.name), (entry.kind, entry.ino));
        seen.names.0 = entries.listed.into_iter().map(keyed).collect();
        seen.as_of = Some((changed, settled));
        if let Some((watch, id)) = self.watch.as_ref().zip(seen.watch) {
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
    fn make_room(&self, table: &mut Table) {
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
            if let Some((watch, id)) = self.watch.as_ref().zip(seen.watch) {
                watch.forget(id);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nothing panics while it holds the table of directories")
    }
}

/// A name that is being made. If it comes to nothing, the name is in doubt.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    watched: Option<(&'a DirWatch, WatchId)>,
    seen: Arc<Mutex<Seen>>,
    name: &'a str,
}

impl Expected<'_> {
    /// It was made, and is this.
    pub(super) fn made(mut self, stat: &Stat) {
        // Where it was not expected, the next who asks looks at it anyway.
        let Some((watch, id)) = self.watched.take() else { return };
        let mut seen = self.seen.lock().expect(SEEN);
        // Another may have removed it already, and somebody may have looked at it since.
        if watch.made(id, self.name) {
            seen.names.0.insert(Key::new(self.name), (stat.kind, stat.id.ino));
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

/// Looks at each name in doubt: is it there, and what is it?
fn look_again(
    seen: &mut Seen,
    dir: BorrowedFd<'_>,
    doubts: Vec<Box<str>>,
) -> Result<(), StoreError> {
    for name in doubts {
        match Stat::at(dir, &name) {
            Ok(stat) => {
                let entry = (stat.kind, stat.id.ino);
                seen.names.0.insert(Key::new(&name), entry);
            }
            Err(StoreError::NotFound) => {
                seen.names.0.remove(&Key::new(&name));
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
