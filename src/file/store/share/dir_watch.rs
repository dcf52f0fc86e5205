//! Tracks with inotify which cached names of a directory are in doubt.
//!
//! The kernel queues an event before the call that made the change returns, so a reader that first
//! drains the queue and then looks at the disk misses no completed change. An event only marks a
//! name as one to look at again; the file that a name leads to is never taken from an event, so
//! that events of renames and exchanges need no interpretation. Events of names that this process
//! made itself are expected and ignored ([`DirWatch::expect`]). Changes by other hosts of a cluster
//! file system bring no event; [`super::name_cache`] finds them by the directory's change time.

use std::collections::{BTreeMap, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::proc_path;
use crate::file::rules::fold;

/// Most names in doubt of one directory, unless it has more names itself; past that, reading the
/// directory again is cheaper. As many may be expected.
const DOUBTS_MAX: usize = 4096;

/// The most names in doubt that a lookup of another name leaves alone: looking at a few from time
/// to time is better than at thousands in the end.
const LEFT_MAX: usize = 64;

/// Room for some hundred events a read.
const BUFFER_BYTES: usize = 16 * 1024;

/// The head of an event; the kernel pads names to a multiple of it.
const HEAD_BYTES: usize = 16;

/// Changes of entries: made, removed, moved in or out, by whatever call.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

/// A directory that one share watches. The kernel has one watch for an inode: two shares that
/// see the same directory have an account each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WatchId {
    wd: i32,
    share: u64,
}

type WatchedDirs = BTreeMap<WatchId, DirChanges>;

/// The instance of all shares of this process: a user has 128 instances by default, for all
/// programs together. Closed with the last share.
static SHARED: Mutex<Weak<DirWatch>> = Mutex::new(Weak::new());

/// The known changes of one directory.
#[derive(Debug)]
struct DirChanges {
    /// Names in doubt, by what they fold to.
    doubts: HashMap<Box<str>, Vec<Box<str>>>,
    count: usize,
    /// How many there may be.
    max: usize,
    /// Events were lost: every name is in doubt.
    gap: bool,
    /// Names that we make.
    expected: HashMap<Box<str>, Making>,
}

/// Progress of a name that this process creates: its inotify event and the creator's notice can
/// arrive in either order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Making {
    Begun,
    /// The event has arrived.
    Told,
    /// The creator's notice has arrived.
    Made,
}

/// The names in doubt that a caller asked for.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Doubts {
    /// These, which the caller looks at now.
    Names(Vec<Box<str>>),
    /// More than the caller can look at: they stay in doubt.
    TooMany,
    /// Events were lost: every name is in doubt.
    Unknown,
}

/// Which names to look at again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NamesInDoubt<'a> {
    /// All that are in doubt.
    All,
    /// Those that are spellings of this one.
    Spellings(&'a str),
}

impl Default for DirChanges {
    fn default() -> Self {
        let (doubts, expected) = (HashMap::new(), HashMap::new());
        Self { doubts, count: 0, max: DOUBTS_MAX, gap: false, expected }
    }
}

impl DirChanges {
    fn doubt(&mut self, name: &str) {
        if self.gap {
            return;
        }
        let folded = fold(name);
        let spellings = match self.doubts.get_mut(&*folded) {
            Some(spellings) => spellings,
            None => self.doubts.entry((*folded).into()).or_default(),
        };
        if spellings.iter().any(|known| **known == *name) {
            return;
        }
        spellings.push(name.into());
        self.count += 1;
        if self.count > self.max {
            self.lose();
        }
    }

    fn lose(&mut self) {
        self.start_afresh();
        self.gap = true;
    }

    fn start_afresh(&mut self) {
        *self = Self { max: self.max, ..Self::default() };
    }

    fn take(&mut self, wanted: NamesInDoubt<'_>, most: usize) -> Doubts {
        if self.gap {
            self.start_afresh();
            return Doubts::Unknown;
        }
        let taken = match wanted {
            NamesInDoubt::Spellings(name) if self.count <= LEFT_MAX => {
                self.doubts.remove(&*fold(name)).unwrap_or_default()
            }
            _ if self.count > most => return Doubts::TooMany,
            _ => self.doubts.drain().flat_map(|(_, spellings)| spellings).collect(),
        };
        self.count -= taken.len();
        Doubts::Names(taken)
    }

    fn note(&mut self, events: ReadFlags, name: &str) {
        let created = events.contains(ReadFlags::CREATE);
        match self.expected.get_mut(name) {
            Some(making @ Making::Begun) if created => *making = Making::Told,
            making => {
                let as_expected = created && making == Some(&mut Making::Made);
                self.expected.remove(name);
                if !as_expected {
                    self.doubt(name);
                }
            }
        }
    }

    fn made(&mut self, name: &str) -> bool {
        match self.expected.get_mut(name) {
            Some(making @ Making::Begun) => *making = Making::Made,
            Some(_) => drop(self.expected.remove(name)),
            None => return false,
        }
        true
    }
}

#[derive(Debug)]
pub(crate) struct DirWatch {
    queue: OwnedFd,
    accounts: Mutex<WatchedDirs>,
}

impl DirWatch {
    /// The instance of this process. `None` if the system has no instance left: that is logged
    /// once, and the next caller tries again.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = shared.upgrade() {
            return Some(watch);
        }
        match Self::new() {
            Ok(watch) => {
                let watch = Arc::new(watch);
                *shared = Arc::downgrade(&watch);
                Some(watch)
            }
            Err(error) => {
                if !WARNED.swap(true, Ordering::Relaxed) {
                    log::warn!(
                        "no inotify instance ({error}): large directories are read more often. \
                         Raise fs.inotify.max_user_instances"
                    );
                }
                None
            }
        }
    }

    fn new() -> Result<Self, Errno> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { queue, accounts: Mutex::default() })
    }

    /// Starts to watch a directory for a share, or starts its account afresh.
    pub(crate) fn watch(&self, share: u64, dir: impl AsFd) -> Option<WatchId> {
        // `dir` stays open until the watch is made.
        let path = proc_path(&dir);
        let mut accounts = self.lock();
        match inotify::add_watch(&self.queue, path, ENTRIES) {
            Ok(wd) => {
                let id = WatchId { wd, share };
                accounts.entry(id).or_default().start_afresh();
                Some(id)
            }
            Err(error) => {
                log::debug!("directory not watched: {error}");
                None
            }
        }
    }

    /// Says how many names a directory has: so many may be in doubt. Else a directory that takes
    /// long to read would be read for ever while others change it.
    pub(crate) fn sized(&self, id: WatchId, names: usize) {
        if let Some(account) = self.lock().get_mut(&id) {
            account.max = names.max(DOUBTS_MAX);
        }
    }

    pub(crate) fn forget(&self, id: WatchId) {
        let mut accounts = self.lock();
        accounts.remove(&id);
        if accounts.range(all_of(id.wd)).next().is_none()
            && let Err(error) = inotify::remove_watch(&self.queue, id.wd)
        {
            // The directory itself is gone, and the watch with it.
            log::trace!("watch {} not removed: {error}", id.wd);
        }
    }

    /// The names of `id` in doubt, for a caller that looks at up to `most` of them now.
    pub(crate) fn take(&self, id: WatchId, wanted: NamesInDoubt<'_>, most: usize) -> Doubts {
        let mut accounts = self.lock();
        self.drain(&mut accounts);
        accounts.get_mut(&id).map_or(Doubts::Unknown, |account| account.take(wanted, most))
    }

    /// We are about to make `name`, and will know what it stands for: the event that tells of it
    /// puts it in no doubt. Whatever else happens to the name does.
    pub(crate) fn expect(&self, id: WatchId, name: &str) {
        if let Some(account) = self.lock().get_mut(&id)
            && account.expected.len() < DOUBTS_MAX
        {
            account.expected.insert(name.into(), Making::Begun);
        }
    }

    /// We have made it. False if something else is known to have happened to the name since it was
    /// expected, or may have: what it stands for is then not ours to say.
    pub(crate) fn made(&self, id: WatchId, name: &str) -> bool {
        self.lock().get_mut(&id).is_some_and(|account| account.made(name))
    }

    /// It was not made by us after all: its event, if it came, was another's.
    pub(crate) fn expect_no_more(&self, id: WatchId, name: &str) {
        if let Some(account) = self.lock().get_mut(&id) {
            account.expected.remove(name);
            account.doubt(name);
        }
    }

    fn drain(&self, accounts: &mut WatchedDirs) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut bytes_read = 0;
        loop {
            if bytes_read > 0 && reader.is_buffer_empty() {
                if bytes_read < BUFFER_BYTES / 2 {
                    return; // There was room for more, so there was no more.
                }
                bytes_read = 0;
            }
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    log::warn!("reading inotify events: {error}");
                    return accounts.values_mut().for_each(DirChanges::lose);
                }
            };
            let wd = event.wd();
            let name = event.file_name();
            let name_bytes = name.map_or(0, |name| name.count_bytes() + 1);
            bytes_read += HEAD_BYTES + name_bytes.next_multiple_of(HEAD_BYTES);
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                accounts.values_mut().for_each(DirChanges::lose);
            } else if event.events().contains(ReadFlags::IGNORED) {
                accounts.retain(|id, _| id.wd != wd);
            } else if let Some(name) = name.and_then(|name| name.to_str().ok()) {
                // A name that is no UTF-8 is in no listing and no lookup.
                for (_, account) in accounts.range_mut(all_of(wd)) {
                    account.note(event.events(), name);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchedDirs> {
        self.accounts.lock().expect("nothing panics while it holds the accounts")
    }
}

/// The accounts of one watch.
fn all_of(wd: i32) -> std::ops::RangeInclusive<WatchId> {
    WatchId { wd, share: 0 }..=WatchId { wd, share: u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Watched {
        temp: tempfile::TempDir,
        watch: DirWatch,
        id: WatchId,
    }

    impl Watched {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let dir = std::fs::File::open(temp.path()).unwrap();
            let watch = DirWatch::new().expect("inotify");
            let id = watch.watch(0, &dir).expect("watched");
            Self { temp, watch, id }
        }

        fn make(&self, name: &str) {
            std::fs::write(self.temp.path().join(name), "").unwrap();
        }

        fn remove(&self, name: &str) {
            std::fs::remove_file(self.temp.path().join(name)).unwrap();
        }

        fn take(&self, wanted: NamesInDoubt<'_>) -> Option<Vec<String>> {
            self.take_as(self.id, wanted)
        }

        fn take_as(&self, id: WatchId, wanted: NamesInDoubt<'_>) -> Option<Vec<String>> {
            let Doubts::Names(taken) = self.watch.take(id, wanted, usize::MAX) else {
                return None;
            };
            let mut taken: Vec<_> = taken.into_iter().map(String::from).collect();
            taken.sort_unstable();
            Some(taken)
        }
    }

    #[test]
    fn past_the_bound_of_doubts_which_a_large_directory_raises_the_account_has_a_gap_once() {
        let dir = Watched::new();
        let make = |name: usize| dir.make(&name.to_string());
        (0..DOUBTS_MAX).for_each(make);
        assert_eq!(dir.take(NamesInDoubt::All).map(|doubts| doubts.len()), Some(DOUBTS_MAX));
        (DOUBTS_MAX..=2 * DOUBTS_MAX).for_each(make);
        assert_eq!(dir.take(NamesInDoubt::All), None);
        assert_eq!(dir.take(NamesInDoubt::All), Some(Vec::new()));
        dir.watch.sized(dir.id, DOUBTS_MAX + 1);
        for name in 0..=DOUBTS_MAX {
            dir.remove(&name.to_string());
            make(name);
        }
        assert_eq!(dir.take(NamesInDoubt::All).map(|doubts| doubts.len()), Some(DOUBTS_MAX + 1));
        dir.watch.forget(dir.id);
        assert_eq!(dir.take(NamesInDoubt::All), None);
    }

    #[test]
    fn whoever_asks_about_one_name_leaves_the_others_in_doubt_while_they_are_few() {
        let dir = Watched::new();
        for name in ["a", "B", "b", "c"] {
            dir.make(name);
        }
        assert_eq!(dir.take(NamesInDoubt::Spellings("B")), Some(vec!["B".into(), "b".into()]));
        assert_eq!(dir.take(NamesInDoubt::Spellings("b")), Some(Vec::new()));
        assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["a".into(), "c".into()]));
        (0..=LEFT_MAX).for_each(|name| dir.make(&name.to_string()));
        assert_eq!(
            dir.take(NamesInDoubt::Spellings("z")).map(|doubts| doubts.len()),
            Some(LEFT_MAX + 1)
        );
    }

    #[test]
    fn names_that_are_too_many_for_a_caller_stay_in_doubt() {
        let dir = Watched::new();
        (0..=LEFT_MAX).for_each(|name| dir.make(&name.to_string()));
        for wanted in [NamesInDoubt::All, NamesInDoubt::Spellings("z")] {
            assert_eq!(dir.watch.take(dir.id, wanted, LEFT_MAX), Doubts::TooMany);
        }
        assert_eq!(dir.take(NamesInDoubt::All).map(|doubts| doubts.len()), Some(LEFT_MAX + 1));
    }

    #[test]
    fn a_name_that_we_made_is_not_in_doubt_until_something_else_happens_to_it() {
        let dir = Watched::new();
        for told_first in [true, false] {
            dir.watch.expect(dir.id, "own");
            dir.make("own");
            if told_first {
                assert_eq!(dir.take(NamesInDoubt::All), Some(Vec::new()));
            }
            assert!(dir.watch.made(dir.id, "own"));
            assert_eq!(dir.take(NamesInDoubt::All), Some(Vec::new()));
            dir.remove("own");
            dir.make("own");
            assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["own".into()]));
            dir.remove("own");
            assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["own".into()]));
        }

        // Another made and removed it before we did: nothing of that may be taken for ours.
        dir.watch.expect(dir.id, "raced");
        dir.make("raced");
        dir.remove("raced");
        dir.make("raced");
        assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["raced".into()]));
        assert!(!dir.watch.made(dir.id, "raced"));
    }

    #[test]
    fn two_shares_that_watch_one_directory_are_both_told() {
        let dir = Watched::new();
        let opened = std::fs::File::open(dir.temp.path()).unwrap();
        let other = dir.watch.watch(1, opened).unwrap();
        dir.make("a");
        assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["a".into()]));
        assert_eq!(dir.take_as(other, NamesInDoubt::All), Some(vec!["a".into()]));
        dir.watch.forget(other);
        dir.make("b");
        assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["b".into()]));
    }

    #[test]
    fn all_shares_of_a_process_have_one_instance() {
        let (one, other) = (DirWatch::shared().unwrap(), DirWatch::shared().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn a_name_that_another_made_first_is_in_doubt() {
        let dir = Watched::new();
        dir.watch.expect(dir.id, "theirs");
        dir.make("theirs");
        assert_eq!(dir.take(NamesInDoubt::All), Some(Vec::new()));
        dir.watch.expect_no_more(dir.id, "theirs");
        assert_eq!(dir.take(NamesInDoubt::All), Some(vec!["theirs".into()]));
    }

    #[test]
    fn events_that_fill_several_reads_are_all_seen() {
        let dir = Watched::new();
        let names: Vec<_> = (0..200).map(|n| format!("{n:0200}")).collect();
        for name in &names {
            dir.make(name);
        }
        assert_eq!(dir.take(NamesInDoubt::All), Some(names));
    }
}
