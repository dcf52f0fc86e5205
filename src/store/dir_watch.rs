//! Which names of a watched directory are in doubt: the kernel's own account (inotify).
//!
//! An event is queued before the call that made the change returns, so whoever drains the queue
//! first and looks afterwards has missed nothing that was finished. What a name stands for now is
//! never taken from an event, only that it must be looked at again: events of renames and
//! exchanges then need no interpretation. Changes by other hosts of a cluster file system bring no
//! event; [`super::name_cache`] sees them by the directory's change time.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::proc_path;

/// Most names in doubt of one directory; past it, reading the directory again is cheaper.
const DOUBTS_MAX: usize = 4096;

/// Room for some hundred events a read.
const BUFFER_BYTES: usize = 16 * 1024;

/// Changes of entries: made, removed, moved in or out, by whatever call.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

/// A watched directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct WatchId(i32);

/// Names in doubt; `None` if the account has a gap.
type Doubts = Option<HashSet<String>>;

/// The watched directories of one share.
#[derive(Debug)]
pub(super) struct DirWatch {
    queue: OwnedFd,
    doubts: Mutex<HashMap<WatchId, Doubts>>,
}

impl DirWatch {
    /// Nothing, where the system has no watches left to give.
    pub(super) fn new() -> Option<Self> {
        match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(queue) => Some(Self { queue, doubts: Mutex::default() }),
            Err(error) => {
                log::warn!("no inotify ({error}): large directories will be read more often");
                None
            }
        }
    }

    /// Starts to watch a directory, or starts its account afresh.
    pub(super) fn watch(&self, dir: impl AsFd) -> Option<WatchId> {
        let path = proc_path(dir);
        let mut doubts = self.lock();
        match inotify::add_watch(&self.queue, path, ENTRIES) {
            Ok(wd) => {
                doubts.insert(WatchId(wd), Some(HashSet::new()));
                Some(WatchId(wd))
            }
            Err(error) => {
                log::debug!("directory not watched: {error}");
                None
            }
        }
    }

    /// Ends a watch.
    pub(super) fn forget(&self, id: WatchId) {
        self.lock().remove(&id);
        if let Err(error) = inotify::remove_watch(&self.queue, id.0) {
            // The directory itself is gone, and the watch with it.
            log::trace!("watch {} not removed: {error}", id.0);
        }
    }

    /// The names of `id` in doubt since the last call; none if that is not known.
    pub(super) fn take(&self, id: WatchId) -> Option<HashSet<String>> {
        let mut doubts = self.lock();
        self.drain(&mut doubts);
        doubts.get_mut(&id)?.replace(HashSet::new())
    }

    fn drain(&self, doubts: &mut HashMap<WatchId, Doubts>) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => return,
                Err(error) => {
                    log::warn!("reading inotify events: {error}");
                    return lose_all(doubts);
                }
            };
            let id = WatchId(event.wd());
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                lose_all(doubts);
            } else if event.events().contains(ReadFlags::IGNORED) {
                doubts.remove(&id);
            } else if let Some(entry) = doubts.get_mut(&id) {
                // A name that is no UTF-8 is in no listing and no lookup.
                let name = event.file_name().and_then(|name| name.to_str().ok());
                doubt(entry, name);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WatchId, Doubts>> {
        self.doubts.lock().expect("nothing panics while it holds the doubts")
    }
}

fn doubt(entry: &mut Doubts, name: Option<&str>) {
    let (Some(names), Some(name)) = (entry.as_mut(), name) else {
        return;
    };
    if names.len() >= DOUBTS_MAX {
        *entry = None;
    } else if !names.contains(name) {
        names.insert(name.to_owned());
    }
}

fn lose_all(doubts: &mut HashMap<WatchId, Doubts>) {
    for entry in doubts.values_mut() {
        *entry = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_the_bound_of_doubts_the_account_has_a_gap_once() {
        let temp = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        let watch = DirWatch::new().expect("inotify");
        let id = watch.watch(&dir).expect("watched");
        let make = |name: usize| std::fs::write(temp.path().join(name.to_string()), "").unwrap();
        (0..DOUBTS_MAX).for_each(make);
        assert_eq!(watch.take(id).map(|doubts| doubts.len()), Some(DOUBTS_MAX));
        (DOUBTS_MAX..=2 * DOUBTS_MAX).for_each(make);
        assert_eq!(watch.take(id), None);
        assert_eq!(watch.take(id), Some(HashSet::new()));
        watch.forget(id);
        assert_eq!(watch.take(id), None);
    }
}
