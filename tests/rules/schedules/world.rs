//! One share with real files, the threads that act on it, and what must hold whatever they do.
//!
//! A grant is noted after the engine gave it and struck out before the engine is asked to end
//! it: what the ledger shows as live is live, so two conflicting entries are two conflicting
//! grants. Knows nothing of schedules; those are made in `main.rs`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use latchfs::file::rules::create::{Disposition, OpenRequest, Options};
use latchfs::file::rules::ranges::{ByteRange, LockKind, RangeLock};
use latchfs::file::rules::{Access, Attributes, Denial, Rights, ShareMode};
use latchfs::file::service::{Case, FileError, Handle, Share, Unlinked};
use latchfs::journal::AccountJournal;
use latchfs::rules::{FileId, HandleId};

use crate::common::asking::{caller, entries, open_share, path};
use crate::common::names::ShareNames as _;

const NOTING: &str = "nobody panics while it notes something";

/// A live open as its holder knows it.
#[derive(Clone, Copy, Debug)]
struct Live {
    handle: HandleId,
    file: FileId,
    access: Access,
    share: ShareMode,
}

/// What was done in one exploration, so that a scenario that tests nothing shows.
#[derive(Debug, Default)]
pub struct Tally {
    pub granted: AtomicU64,
    pub refused: AtomicU64,
    pub removed: AtomicU64,
    pub renamed: AtomicU64,
}

/// A share in a folder of its own.
#[derive(Clone)]
pub struct World {
    pub share: Arc<Share>,
    root: Arc<Path>,
    state: Arc<Path>,
    // The standard library's: no schedule may turn while it is held, and none does.
    ledger: Arc<Mutex<Vec<Live>>>,
    /// Those that somebody set out to force-close.
    forced: Arc<Mutex<Vec<HandleId>>>,
    tally: Arc<Tally>,
}

/// An open in the ledger.
pub struct Held {
    pub handle: Handle,
    live: Live,
}

/// An open of a file by the usual letters: `ask("rw", "none", Disposition::OpenIf)`.
pub fn ask(access: &str, share: &str, disposition: Disposition) -> OpenRequest {
    let access = Access::parse(access).expect("letters");
    let share = ShareMode::parse(share).expect("letters");
    OpenRequest { disposition, ..OpenRequest::plain(access, share) }
}

/// The same, to be deleted when it closes.
pub fn ask_delete_on_close(access: &str, share: &str, disposition: Disposition) -> OpenRequest {
    let request = ask(access, share, disposition);
    let options = Options { delete_on_close: true, ..Options::default() };
    OpenRequest { rights: request.rights | Rights::DELETE, options, ..request }
}

/// A new directory, or an existing one.
pub fn ask_directory(disposition: Disposition) -> OpenRequest {
    let options = Options { directory: true, ..Options::default() };
    OpenRequest { options, attributes: Attributes::default(), ..ask("r", "rwd", disposition) }
}

impl World {
    /// An empty share below `folder`, which is emptied first.
    pub fn new(folder: &Path, tally: &Arc<Tally>) -> Self {
        let _ = fs::remove_dir_all(folder);
        let (root, state) = (folder.join("share"), folder.join("state"));
        fs::create_dir_all(&root).expect("a folder for the share");
        let share = open(&root, &state);
        Self {
            share: Arc::new(share),
            root: root.into(),
            state: state.into(),
            ledger: Arc::default(),
            forced: Arc::default(),
            tally: Arc::clone(tally),
        }
    }

    /// A file that is there before anybody acts.
    pub fn file(&self, name: &str) {
        fs::write(self.root.join(name), name).expect("a file to start with");
    }

    /// The same for a directory.
    pub fn directory(&self, name: &str) {
        fs::create_dir(self.root.join(name)).expect("a directory to start with");
    }

    /// Is the name there, on disk?
    pub fn exists(&self, name: &str) -> bool {
        self.root.join(name).exists()
    }

    /// Opens; nothing if a rule refused.
    pub fn open(&self, who: &str, name: &str, request: &OpenRequest) -> Option<Held> {
        match self.share.open(&caller(who), &path(name), request) {
            Ok(opened) => {
                let live = Live {
                    handle: opened.handle.id(),
                    file: opened.handle.file(),
                    access: request.rights.access(),
                    share: request.share,
                };
                self.enter(live);
                self.tally.granted.fetch_add(1, Ordering::Relaxed);
                Some(Held { handle: opened.handle, live })
            }
            Err(FileError::Denied(_)) => {
                self.tally.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
            Err(FileError::Store(error)) => panic!("{who} opens {name}: {error}"),
        }
    }

    /// No two opens that exclude each other are live at once.
    fn enter(&self, new: Live) {
        let mut ledger = self.ledger.lock().expect(NOTING);
        for old in ledger.iter().filter(|old| old.file == new.file) {
            let counted = !old.access.is_empty() && !new.access.is_empty();
            let within = |access: Access, share: ShareMode| access.bits() & !share.bits() == 0;
            let clash =
                counted && !(within(old.access, new.share) && within(new.access, old.share));
            assert!(!clash, "granted beside each other: {old:?} and {new:?}");
        }
        ledger.push(new);
    }

    fn strike(&self, live: Live) {
        self.ledger.lock().expect(NOTING).retain(|other| other.handle != live.handle);
    }

    /// Closes. While the open lived, an open that did not share D kept the file's name.
    pub fn close(&self, held: Held) {
        self.check_alive(&held);
        let Held { handle, live } = held;
        self.strike(live);
        match self.share.close(&handle) {
            Ok(()) => {}
            Err(FileError::Denied(Denial::HandleClosed)) if self.was_forced(live) => {}
            Err(error) => panic!("closing {live:?}: {error}"),
        }
    }

    /// A file with a live open has a name that leads to it, pending or not.
    pub fn check_alive(&self, held: &Held) {
        match self.share.stat_handle(&held.handle) {
            Ok(stat) => assert_eq!(stat.id, held.live.file, "the name leads elsewhere"),
            Err(FileError::Denied(Denial::HandleClosed)) if self.was_forced(held.live) => {}
            Err(error) => panic!("{:?} lost its file: {error}", held.live),
        }
    }

    fn was_forced(&self, live: Live) -> bool {
        self.forced.lock().expect(NOTING).contains(&live.handle)
    }

    pub fn force_close(&self, id: HandleId) -> bool {
        self.forced.lock().expect(NOTING).push(id);
        self.ledger.lock().expect(NOTING).retain(|other| other.handle != id);
        self.share.force_close(&caller("admin"), id).expect("the disk can") > 0
    }

    /// Deletes a file by name; a refusal is fine.
    pub fn unlink(&self, who: &str, name: &str) {
        self.deleted(&self.share.unlink(&caller(who), &path(name)));
    }

    /// The same for a directory.
    pub fn rmdir(&self, who: &str, name: &str) {
        self.deleted(&self.share.rmdir(&caller(who), &path(name)));
    }

    fn deleted(&self, answer: &Result<Unlinked, FileError>) {
        match answer {
            Ok(_) => {
                self.tally.removed.fetch_add(1, Ordering::Relaxed);
            }
            Err(FileError::Denied(_)) => {}
            Err(error) => panic!("deleting: {error}"),
        }
    }

    /// Renames, replacing; says whether a rule let it.
    pub fn rename(&self, who: &str, from: &str, to: &str) -> Result<(), Denial> {
        match self.share.rename(&caller(who), &path(from), &path(to), true) {
            Ok(()) => {
                self.tally.renamed.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(FileError::Denied(denial)) => Err(denial),
            Err(error) => panic!("renaming {from} to {to}: {error}"),
        }
    }

    /// Marks or unmarks; a refusal is fine.
    pub fn dispose(&self, held: &Held, delete: bool) {
        match self.share.set_disposition(&held.handle, delete) {
            Ok(()) | Err(FileError::Denied(_)) => {}
            Err(error) => panic!("marking: {error}"),
        }
    }

    /// Asks for a lock on the first bytes and counts the answers in `answers`.
    pub fn lock_later(&self, held: &Held, answers: &Arc<AtomicU64>) -> bool {
        let range = ByteRange::new(0, 10).expect("a range");
        let lock = RangeLock::smb(held.handle.id(), LockKind::Exclusive, range, 0);
        let counted = Arc::clone(answers);
        let completion = Box::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        match self.share.lock_later(&held.handle, lock, completion) {
            Ok(ticket) => ticket.is_some(),
            Err(FileError::Denied(_)) => false,
            Err(error) => panic!("locking: {error}"),
        }
    }

    /// All opens are closed: nothing is left in the table nor in the state folder, and a new
    /// start finds nothing to do.
    pub fn check_clean(self) {
        assert!(self.ledger.lock().expect(NOTING).is_empty(), "the scenario closes what it opens");
        assert_eq!(self.share.files_in_use(), 0, "the table still knows a file");
        let Self { share, root, state, .. } = self;
        let pending = || entries(&state.join("pending"));
        assert!(pending().is_empty(), "pending without an open: {:?}", pending());
        let before = entries(&root);
        drop(Arc::into_inner(share).expect("the threads are gone"));
        drop(open(&root, &state));
        assert_eq!(entries(&root), before, "a new start removed something");
    }
}

/// Case apart, since closing the kernel's account of names costs milliseconds.
fn open(root: &Path, state: &Path) -> Share {
    open_share(root, state, Case::Sensitive, AccountJournal::default())
}
