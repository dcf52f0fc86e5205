//! What one mount knows: its share, the kernel's nodes, its open files.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use fuser::{BackingId, FileAttr, FileHandle};

use super::MountOptions;
use super::attr::attr;
use super::backings::Backings;
use super::driver::Caller;
use super::nodes::{Nodes, Stale};
use super::notify::Notices;
use super::orphans::Orphans;
use super::park::Park;
use super::policy::Policy;
use super::unchecked::Unchecked;
use crate::core::{Access, Client, FileId, HandleId, Owner, ShareMode, SharePath};
use crate::engine::{Creation, Error, Handle, Listed, Share, Stat};

/// How bytes get from the disk to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataPath {
    /// The kernel reads and writes the backing file itself.
    Passthrough,
    /// Reads and writes come to us; nothing is cached.
    Direct,
}

/// An open file of the mount.
#[derive(Debug)]
pub struct OpenFile {
    /// The engine's handle.
    pub handle: Handle,
    /// What the kernel opened it by.
    pub node: u64,
    /// What it may do.
    pub access: Access,
    /// For calls that come to us: bytes without passthrough, and all under mandatory locks.
    pub fd: Option<OwnedFd>,
    /// Kept while the file is open: the kernel reads and writes through it.
    pub backing: Option<Arc<BackingId>>,
    /// The share mode it had before `flock` changed it.
    pub before_flock: Mutex<Option<ShareMode>>,
}

impl OpenFile {
    /// What the kernel calls it.
    pub fn number(&self) -> FileHandle {
        FileHandle(self.handle.id().0)
    }
}

/// An open directory of the mount.
#[derive(Debug)]
pub struct OpenDir {
    /// The engine's handle.
    pub handle: Handle,
    /// What the kernel opened it by.
    pub node: u64,
    /// What it held when it was read from the start.
    pub entries: Mutex<Arc<Vec<Listed>>>,
}

/// One mount.
pub struct State {
    pub share: Arc<Share>,
    pub options: MountOptions,
    pub client: Arc<Client>,
    pub nodes: Nodes,
    pub notices: Notices,
    pub park: Arc<Park>,
    pub policy: Policy,
    pub unchecked: Unchecked,
    pub orphans: Orphans,
    files: RwLock<HashMap<u64, Arc<OpenFile>>>,
    dirs: RwLock<HashMap<u64, Arc<OpenDir>>>,
    pub backings: Arc<Backings>,
    data_path: AtomicU8,
    ended: AtomicBool,
}

const POISON: &str = "tables of open files are only looked up and changed";

impl State {
    /// Before the kernel is asked what it can do.
    pub fn new(
        share: Arc<Share>,
        options: MountOptions,
        client: Arc<Client>,
        root: FileId,
    ) -> Self {
        let case_sensitive = share.options().case == crate::engine::Case::Sensitive;
        Self {
            policy: Policy::new(options.default_share, options.rules.clone()),
            share,
            options,
            client,
            nodes: Nodes::new(root, case_sensitive),
            notices: Notices::default(),
            park: Arc::default(),
            unchecked: Unchecked::default(),
            orphans: Orphans::default(),
            files: RwLock::default(),
            dirs: RwLock::default(),
            backings: Arc::default(),
            data_path: AtomicU8::new(1),
            ended: AtomicBool::new(false),
        }
    }

    /// The kernel has let go of the mount.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        if let Some(on_end) = &self.options.on_end {
            on_end.tell();
        }
    }

    /// True once it has.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Which way bytes go.
    pub fn data_path(&self) -> DataPath {
        match self.data_path.load(Ordering::Relaxed) {
            0 => DataPath::Passthrough,
            _ => DataPath::Direct,
        }
    }

    /// Decides it.
    pub fn set_data_path(&self, path: DataPath) {
        self.data_path.store(u8::from(path == DataPath::Direct), Ordering::Relaxed);
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
    pub fn creation(&self, caller: Caller, mode: u32) -> Creation {
        let (mut uid, mut gid) = (caller.uid, caller.gid);
        if self.options.uid.is_some() {
            uid = rustix::process::geteuid().as_raw();
        }
        if self.options.gid.is_some() {
            gid = rustix::process::getegid().as_raw();
        }
        Creation { mode: mode & 0o7777, uid, gid }
    }

    /// Who a request of thread `tid` is from.
    pub fn owner(&self, tid: u32) -> Owner {
        Owner { client: Arc::clone(&self.client), pid: tid, program: None }
    }

    /// Keeps an open file under its handle's number, which is never used again.
    pub fn keep_file(&self, file: OpenFile) -> Arc<OpenFile> {
        let file = Arc::new(file);
        self.files.write().expect(POISON).insert(file.number().0, Arc::clone(&file));
        file
    }

    /// The open file of a number.
    pub fn file(&self, fh: u64) -> Option<Arc<OpenFile>> {
        self.files.read().expect(POISON).get(&fh).cloned()
    }

    /// Takes it out.
    pub fn drop_file(&self, fh: u64) -> Option<Arc<OpenFile>> {
        self.files.write().expect(POISON).remove(&fh)
    }

    /// Takes all open files and directories out.
    pub fn take_all(&self) -> (Vec<Arc<OpenFile>>, Vec<Arc<OpenDir>>) {
        let files = std::mem::take(&mut *self.files.write().expect(POISON));
        let dirs = std::mem::take(&mut *self.dirs.write().expect(POISON));
        (files.into_values().collect(), dirs.into_values().collect())
    }

    /// The handles of a file that are open through this mount.
    pub fn handles_of(&self, file: FileId) -> Vec<HandleId> {
        let files = self.files.read().expect(POISON);
        let of_file = files.values().filter(|open| open.handle.file() == file);
        of_file.map(|open| open.handle.id()).collect()
    }

    /// True if a file or directory is open through this mount.
    pub fn has_open(&self, file: FileId) -> bool {
        self.files.read().expect(POISON).values().any(|open| open.handle.file() == file)
            || self.dirs.read().expect(POISON).values().any(|open| open.handle.file() == file)
    }

    /// What is open through a node, as the disk shows it now; none if nothing is. For a node
    /// whose name is gone: its descriptors are still good.
    pub fn stat_open(&self, node: u64) -> Option<Result<Stat, Error>> {
        if let Some(fd) = self.orphan(node) {
            return Some(Stat::of(&fd).map_err(Error::Store));
        }
        let file = self.files.read().expect(POISON).values().find(|f| f.node == node).cloned();
        if let Some(file) = file {
            return Some(self.share.stat_handle(&file.handle));
        }
        let dir = self.dirs.read().expect(POISON).values().find(|d| d.node == node).cloned();
        dir.map(|dir| self.share.stat_handle(&dir.handle))
    }

    /// Where the file that is open through a node is now; none if nothing is.
    pub fn path_open(&self, node: u64) -> Option<SharePath> {
        let file = self.files.read().expect(POISON).values().find(|f| f.node == node).cloned();
        if let Some(file) = file {
            return self.share.path_of(&file.handle).ok();
        }
        let dir = self.dirs.read().expect(POISON).values().find(|d| d.node == node).cloned();
        self.share.path_of(&dir?.handle).ok()
    }

    /// Keeps an open directory.
    pub fn keep_dir(&self, dir: OpenDir) -> u64 {
        let fh = dir.handle.id().0;
        self.dirs.write().expect(POISON).insert(fh, Arc::new(dir));
        fh
    }

    /// The open directory of a number.
    pub fn dir(&self, fh: u64) -> Option<Arc<OpenDir>> {
        self.dirs.read().expect(POISON).get(&fh).cloned()
    }

    /// Takes it out.
    pub fn drop_dir(&self, fh: u64) -> Option<Arc<OpenDir>> {
        self.dirs.write().expect(POISON).remove(&fh)
    }

    /// The registered backing file of an inode that is being opened; kept for the next if it may.
    pub fn backing(
        &self,
        file: FileId,
        keep: bool,
        register: impl FnOnce() -> std::io::Result<BackingId>,
    ) -> std::io::Result<Arc<BackingId>> {
        let (backing, first_kept) = self.backings.get(file, keep, register)?;
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
