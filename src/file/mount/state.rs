//! The state of one mount: its share, the kernel's nodes, its open files.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use fuser::{BackingId, Errno, FileAttr};

use super::aside::Aside;
use super::attr::attr;
use super::backings::Backings;
use super::cut::Cuts;
use super::driver::Requester;
use super::nodes::{Nodes, Stale};
use super::notify::Notices;
use super::open_files::{OpenDescriptor, OpenDir, OpenFile, Opens};
use super::opens::has_other_names;
use super::park::Park;
use super::policy::Policy;
use super::pool::Pool;
use super::retries::Retries;
use super::{MountOptions, UnlinkMode};
use crate::file::rules::SharePath;
use crate::file::service::shares::{Followed, Follower};
use crate::file::service::{Creation, FileError, Share, Stat};
use crate::rules::{Client, Context, FileId, Owner};

/// The number of locks for the data paths of opens.
const WAYS: usize = 16;

pub struct State {
    /// The mounted share, also after another has taken its place.
    followed: Arc<Followed>,
    pub options: MountOptions,
    pub client: Arc<Client>,
    pub nodes: Nodes,
    pub notices: Notices,
    pub park: Arc<Park>,
    /// For calls that take long by their kind.
    pub pool: Pool,
    /// Started with the workers.
    pub aside: OnceLock<Aside>,
    /// Follows the share while the mount lives.
    pub watch: OnceLock<Arc<dyn Follower>>,
    pub policy: Policy,
    pub retries: Retries,
    pub files: Opens<OpenFile>,
    pub dirs: Opens<OpenDir>,
    pub backings: Arc<Backings>,
    pub to_cut: Cuts,
    /// The kernel reads and writes backing files itself; otherwise reads and writes are sent to
    /// latchfs, and nothing is cached.
    pub passes: AtomicBool,
    ways: [Mutex<()>; WAYS],
    cuts: AtomicU64,
    ending: AtomicBool,
    adopts: AtomicBool,
    ended: AtomicBool,
}

impl State {
    /// Before the kernel is asked what it can do.
    pub fn new(
        followed: Arc<Followed>,
        options: MountOptions,
        client: Arc<Client>,
        root: FileId,
    ) -> std::io::Result<Self> {
        let case_sensitive =
            followed.share().options().case == crate::file::service::Case::Sensitive;
        let nodes = Nodes::new(root, case_sensitive);
        Ok(Self {
            policy: Policy::new(options.default_share, options.rules.clone()),
            followed,
            options,
            client,
            park: Arc::new(Park::new(Arc::clone(&nodes.moves))),
            pool: Pool::start()?,
            nodes,
            notices: Notices::default(),
            aside: OnceLock::new(),
            watch: OnceLock::new(),
            retries: Retries::default(),
            files: Opens::default(),
            dirs: Opens::default(),
            backings: Arc::default(),
            to_cut: Cuts::default(),
            passes: AtomicBool::new(false),
            ways: Default::default(),
            cuts: AtomicU64::new(0),
            ending: AtomicBool::new(false),
            adopts: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        })
    }

    /// The share that is mounted now.
    pub fn share(&self) -> Arc<Share> {
        self.followed.share()
    }

    /// The mounted share, whichever that is.
    pub fn followed(&self) -> &Arc<Followed> {
        &self.followed
    }

    /// The kernel has ended the mount.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        if let Some(on_end) = &self.options.on_end {
            on_end();
        }
    }

    /// True once it has.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The mount is about to be taken from the programs that use it. To be set before the open
    /// files are looked at: an open that is not among them sees it.
    pub fn set_ending(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// True once it is.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// A lock to hold from the choice of an open's data path until the open is kept: the kernel
    /// takes either passthrough opens of a node or others, and fails the second kind with `EIO`.
    pub fn lock_way(&self, node: u64) -> MutexGuard<'_, ()> {
        let which = usize::try_from(node % WAYS as u64).unwrap_or_default();
        // It guards no data, so a panic elsewhere left nothing half done.
        self.ways[which].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of the entry `name` of a directory; `ESTALE` if the directory's name is gone.
    pub fn child(&self, parent: u64, name: &str) -> Result<SharePath, Errno> {
        self.nodes.child(parent, name).ok_or(Errno::ESTALE)
    }

    /// How many handles were closed by force so far.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    /// A handle was closed by force. Counted before the open files are looked at.
    pub fn count_cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// A file's attributes as the mount shows them.
    pub fn attr(&self, node: u64, stat: &Stat) -> FileAttr {
        let mut attr = attr(node, stat);
        attr.uid = self.options.uid.unwrap_or(attr.uid);
        attr.gid = self.options.gid.unwrap_or(attr.gid);
        if let Some(umask) = self.options.umask {
            attr.perm = u16::try_from(0o777 & !umask).expect("nine bits");
        }
        attr
    }

    /// Permission bits and owner of what a caller makes. Where every file is shown as one user's,
    /// it stays this process's.
    pub fn creation(&self, caller: Requester, mode: u32) -> Creation {
        let (mut uid, mut gid) = (caller.uid, caller.gid);
        if self.options.uid.is_some() {
            uid = rustix::process::geteuid().as_raw();
        }
        if self.options.gid.is_some() {
            gid = rustix::process::getegid().as_raw();
        }
        Creation { mode: mode & 0o7777, uid, gid }
    }

    /// The node of a name of this file, with its generation. Counts the lookup.
    pub fn enter(&self, parent: u64, name: &str, stat: &Stat) -> (u64, u64) {
        let entered = self.nodes.enter(parent, name, stat.id);
        if has_other_names(stat) {
            self.nodes.set_linked(entered.0);
        }
        entered
    }

    /// True if files may be open here through names that are gone.
    pub fn opens_by_lost_names(&self) -> bool {
        self.options.unlink == UnlinkMode::Posix || self.adopts.load(Ordering::Relaxed)
    }

    /// A file is being opened through a name that was another's.
    pub fn set_adopts(&self) {
        self.adopts.store(true, Ordering::Relaxed);
    }

    /// The context of a request of thread `tid`.
    pub fn context(&self, tid: u32, operation: &'static str) -> Context {
        let owner = Owner { client: Arc::clone(&self.client), pid: tid, program: None };
        Context::local(self.share().now(), owner, operation)
    }

    /// True if the file of a node is open on this mount.
    pub fn is_open(&self, node: u64) -> bool {
        let of = |file| {
            self.files.find(file, |_| true).is_some() || self.dirs.find(file, |_| true).is_some()
        };
        self.nodes.file(node).is_some_and(of)
    }

    /// A descriptor of a node's file, if the file is open and there is one.
    pub fn open_descriptor(&self, node: u64) -> Option<OpenDescriptor> {
        self.open_descriptor_of(self.nodes.file(node)?)
    }

    /// An open descriptor of the file.
    pub fn open_descriptor_of(&self, file: FileId) -> Option<OpenDescriptor> {
        if let Some(open) = self.files.find(file, |open| open.fd.is_some()) {
            return Some(OpenDescriptor::File(open));
        }
        if let Some(dir) = self.dirs.find(file, |_| true) {
            return Some(OpenDescriptor::Dir(dir));
        }
        self.share().nameless(file).map(OpenDescriptor::Kept)
    }

    /// The attributes of the file that is open through a node; `None` if no file is. For a node
    /// whose name is gone: its descriptors are still valid.
    pub fn stat_open(&self, node: u64) -> Option<Result<Stat, FileError>> {
        if let Some(held) = self.open_descriptor(node) {
            return Some(Stat::of(&held).map_err(FileError::Store));
        }
        let file = self.files.find(self.nodes.file(node)?, |_| true)?;
        Some(self.share().stat_handle(&file.handle))
    }

    /// Where the file that is open through a node is now; none if nothing is.
    pub fn path_open(&self, node: u64) -> Option<SharePath> {
        let id = self.nodes.file(node)?;
        if let Some(file) = self.files.find(id, |_| true) {
            return self.share().path_of(&file.handle).ok();
        }
        self.share().path_of(&self.dirs.find(id, |_| true)?.handle).ok()
    }

    /// The registered backing file of an inode that is being opened; kept for the next if it may.
    pub fn backing(
        &self,
        file: FileId,
        keep: bool,
        register: impl FnOnce() -> std::io::Result<BackingId>,
    ) -> std::io::Result<Arc<BackingId>> {
        let (backing, first_kept) = self.backings.get(file, keep.then(Instant::now), register)?;
        if first_kept {
            self.notices.sweep_later();
        }
        Ok(backing)
    }

    /// These names are gone: nothing is held of their files that no open needs.
    pub fn let_go(&self, gone: &[Stale]) {
        for file in gone.iter().filter_map(|gone| self.nodes.file(gone.node)) {
            self.backings.let_go(file);
        }
    }
}
