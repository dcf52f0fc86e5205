//! Cuts descriptors off: has the kernel drop an inode, with everything that is open through it.
//!
//! The kernel drops an inode when a lookup, of any name, is answered with the inode's node and
//! another generation. The names that are looked up here say the node by its number and are in a
//! directory of their own, which no listing shows: what has become of the file's own name does not
//! matter, nor does a request that holds the directory of that name. Which files are cut off is
//! decided in [`super::watch`].

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fuser::{Errno, FileAttr, Generation, ReplyEntry};
use rustix::fs::{Mode, OFlags};

use super::attr::{NO_TTL, attr};
use super::nodes::{ROOT, Stale};
use super::state::State;
use crate::file::service::{FileKind, ListedName, Stat};
use crate::sync::random::new_guid;

/// The node of the directory. No file has such a number, and no count of ours gets there.
const DIR: u64 = 1 << 63;

/// How long the kernel may remember the directory: while the mount lives, so that it is found
/// without a request, and without the lock of the root directory that a request may hold.
const DIR_TTL: Duration = Duration::from_hours(24 * 365);

/// The nodes that are to be cut off, by the names that lead to them.
#[derive(Debug)]
pub struct Cuts {
    /// The name of the directory, which programs cannot guess.
    dir: String,
    wanted: Mutex<HashMap<String, Wanted>>,
    last: AtomicUsize,
}

/// A node that is to be cut off.
#[derive(Clone, Debug)]
struct Wanted {
    node: u64,
    /// The kernel had forgotten the node when the name was looked up: it had no descriptor left.
    /// The number may have become another node's since.
    forgotten: Arc<AtomicBool>,
}

const POISON: &str = "names are only added and removed";

impl Default for Cuts {
    fn default() -> Self {
        let dir = format!(".latchfs-{}", new_guid());
        Self { dir, wanted: Mutex::default(), last: AtomicUsize::new(0) }
    }
}

impl Cuts {
    /// True if the entry `name` of a directory is one of ours.
    pub fn is_ours(&self, parent: u64, name: &str) -> bool {
        parent == DIR || parent == ROOT && name == self.dir
    }

    /// A name for each node, never used before: what the kernel remembers of an earlier one would
    /// be looked up twice.
    fn name(&self, nodes: BTreeSet<u64>) -> (Vec<Stale>, Vec<Wanted>) {
        let name = |node| {
            let number = self.last.fetch_add(1, Ordering::Relaxed);
            let stale = Stale { parent: DIR, name: format!("{node}-{number}"), node };
            (stale, Wanted { node, forgotten: Arc::default() })
        };
        let (names, nodes): (Vec<Stale>, Vec<Wanted>) = nodes.into_iter().map(name).unzip();
        let keys = names.iter().map(|name| name.name.clone());
        self.wanted.lock().expect(POISON).extend(keys.zip(nodes.iter().cloned()));
        (names, nodes)
    }

    fn forget(&self, names: &[Stale]) {
        let mut wanted = self.wanted.lock().expect(POISON);
        for name in names {
            wanted.remove(&name.name);
        }
    }
}

/// Answers the lookup of a name that is ours: raises the generation of the node that it says.
pub fn lookup(state: &State, parent: u64, name: &str, reply: ReplyEntry) {
    if parent == ROOT {
        return reply.entry(&DIR_TTL, &shown(DIR, FileKind::Directory), Generation(0));
    }
    let wanted = state.to_cut.wanted.lock().expect(POISON).remove(name);
    match wanted.and_then(|wanted| Some((wanted.node, raise(state, &wanted)?))) {
        // Whoever looks the file up by its name next gets its attributes.
        Some((node, generation)) => {
            reply.entry(&NO_TTL, &shown(node, FileKind::File), Generation(generation));
        }
        None => reply.error(Errno::ENOENT),
    }
}

/// Raises the generation of a node; none if the kernel has forgotten the node.
fn raise(state: &State, wanted: &Wanted) -> Option<u64> {
    let generation = state.nodes.cut_off(wanted.node);
    wanted.forgotten.store(generation.is_none(), Ordering::Release);
    generation
}

/// Has the kernel learn of the directory, while no request holds the root directory.
pub fn prepare(state: &State, mounted_on: &Path, patience: Duration) {
    let dir = mounted_on.join(&state.to_cut.dir);
    // If it is not learnt now, it is when it is needed.
    state.aside.get().and_then(|aside| aside.ask(patience, move || is_found(&dir)));
}

/// Has the kernel drop every descriptor of these nodes. Returns how many nodes it was not seen to
/// drop in time, for instance because no path leads to the mount any more.
pub fn cut_off(
    state: &State,
    nodes: BTreeSet<u64>,
    mounted_on: &Path,
    patience: Duration,
) -> usize {
    let (names, wanted) = state.to_cut.name(nodes);
    let dir = mounted_on.join(&state.to_cut.dir);
    let paths: Vec<_> = names.iter().map(|name| dir.join(&name.name)).collect();
    let end = Instant::now() + patience;
    let found: Arc<[AtomicBool]> = names.iter().map(|_| AtomicBool::new(false)).collect();
    let finds = Arc::clone(&found);
    let look_up = move || {
        let in_time = paths.iter().zip(&*finds).take_while(|_| Instant::now() < end);
        // A name that nobody else knows is found only if it was answered here.
        in_time.for_each(|(path, found)| found.store(is_found(path), Ordering::Release));
    };
    state.aside.get().and_then(|aside| aside.ask(patience, look_up));
    state.to_cut.forget(&names);
    let is_left = |(wanted, found): &(&Wanted, &AtomicBool)| {
        !found.load(Ordering::Acquire) && !wanted.forgotten.load(Ordering::Acquire)
    };
    let left = wanted.iter().zip(&*found).filter(is_left).count();
    // The kernel keeps the new inode for the sake of this name.
    state.notices.names(names);
    left
}

/// Has the kernel look a path up, and ask for nothing else.
fn is_found(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).is_ok()
}

fn shown(node: u64, kind: FileKind) -> FileAttr {
    let bare = Stat::unknown(&ListedName { name: String::new(), kind, ino: node });
    let mode = bare.mode | if kind == FileKind::Directory { 0o700 } else { 0 };
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    attr(node, &Stat { mode, uid, gid, ..bare })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::file::mount::MountOptions;
    use crate::file::rules::SharePath;
    use crate::file::service::shares::Followed;
    use crate::file::service::{Share, ShareOptions};
    use crate::journal::AccountJournal;
    use crate::rules::Client;

    /// The state of a mount that the kernel asks nothing of.
    fn unasked() -> (State, tempfile::TempDir) {
        let tmp = tempfile::tempdir().unwrap();
        let [root, state] = ["root", "state"].map(|name| tmp.path().join(name));
        std::fs::create_dir(&root).unwrap();
        let (clock, events) = (Arc::new(SystemClock), AccountJournal::default());
        let options = ShareOptions::default();
        let share = Share::open_directory("test", &root, &state, options, clock, events).unwrap();
        let root = share.stat(&SharePath::root()).unwrap().id;
        let client = Arc::new(Client { session: 1, name: "test".to_owned() });
        let followed = Followed::alone(Arc::new(share));
        (State::new(followed, MountOptions::default(), client, root).unwrap(), tmp)
    }

    #[test]
    fn a_node_that_the_kernel_has_forgotten_has_nothing_to_cut_off() {
        let (state, tmp) = unasked();
        let file = state.nodes.file(ROOT).unwrap();
        let (node, _) = state.nodes.enter(ROOT, "f", file);
        let raised = || {
            let wanted = Wanted { node, forgotten: Arc::default() };
            (raise(&state, &wanted), wanted.forgotten.load(Ordering::Acquire))
        };
        assert_eq!(raised(), (Some(1), false));
        state.nodes.forget(node, 2);
        assert_eq!(raised(), (None, true));
        // A name that nobody looks up says nothing.
        assert_eq!(cut_off(&state, BTreeSet::from([node]), tmp.path(), Duration::ZERO), 1);
    }
}
