//! A disk that loses what was not synced: a FUSE file system in memory that knows, for each file
//! and each directory, what a power cut leaves. Bytes and length of a file are on the disk when the
//! file is synced, names (made, renamed, removed) when their directory is synced.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use crate::common::random::Random;

/// The kernel may keep names and lengths: nobody else changes them.
const TTL: Duration = Duration::from_hours(1);
const PAGE: usize = 4096;

/// What a power cut leaves of what was not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Nothing.
    Synced,
    /// Any pages and any names: for each file and each directory all, none, or some of them.
    Any,
}

/// A mounted disk. Unmounted when dropped.
pub struct Disk {
    nodes: Arc<Mutex<Nodes>>,
    _session: BackgroundSession,
}

type OnSync = Box<dyn Fn(&str) + Send>;

struct Nodes {
    all: HashMap<u64, Node>,
    next: u64,
    on_sync: OnSync,
}

struct Node {
    name: String,
    mode: u16,
    opens: usize,
    kind: Kind,
}

enum Kind {
    File { data: Vec<u8>, synced: Vec<u8>, dirty: BTreeSet<usize> },
    Directory { names: Names, synced: Names, changes: Vec<Change> },
}

type Names = BTreeMap<OsString, u64>;

/// One change of a directory's names, which a cut leaves whole or not at all.
#[derive(Default)]
struct Change {
    removed: Option<OsString>,
    set: Option<(OsString, u64)>,
}

impl Change {
    fn apply(&self, names: &mut Names) {
        if let Some(name) = &self.removed {
            names.remove(name);
        }
        if let Some((name, node)) = &self.set {
            names.insert(name.clone(), *node);
        }
    }
}

impl Disk {
    /// Mounts an empty disk. `on_sync` is called with the name of each file that has been synced
    /// and that a cut would leave, before the sync returns.
    pub fn mount(at: &Path, on_sync: impl Fn(&str) + Send + 'static) -> Self {
        let root = Node::directory("", 0o700);
        let nodes = Nodes { all: HashMap::from([(1, root)]), next: 2, on_sync: Box::new(on_sync) };
        let nodes = Arc::new(Mutex::new(nodes));
        let session = fuser::spawn_mount(Volatile(Arc::clone(&nodes)), at, &Config::default());
        Self { nodes, _session: session.unwrap() }
    }

    /// Cuts the power: writes what is left to the directory `to`. Meanwhile the disk stands still,
    /// and `before` is called when it does. Afterwards it goes on.
    pub fn cut<T>(&self, before: impl FnOnce() -> T, cuts: &mut [(Cut, &Path, Random)]) -> T {
        let nodes = lock(&self.nodes);
        let found = before();
        for (cut, to, random) in cuts {
            nodes.write(1, *cut, random, to);
        }
        found
    }
}

fn lock(nodes: &Mutex<Nodes>) -> MutexGuard<'_, Nodes> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    fn new(name: &str, mode: u32, kind: Kind) -> Self {
        Self { name: name.to_owned(), mode: u16::try_from(mode & 0o777).unwrap(), opens: 0, kind }
    }

    fn file(name: &str, mode: u32) -> Self {
        let (data, synced, dirty) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self::new(name, mode, Kind::File { data, synced, dirty })
    }

    fn directory(name: &str, mode: u32) -> Self {
        let (names, synced, changes) = (Names::new(), Names::new(), Vec::new());
        Self::new(name, mode, Kind::Directory { names, synced, changes })
    }

    fn data(&mut self) -> Result<(&mut Vec<u8>, &mut BTreeSet<usize>), Errno> {
        match &mut self.kind {
            Kind::File { data, dirty, .. } => Ok((data, dirty)),
            Kind::Directory { .. } => Err(Errno::EISDIR),
        }
    }

    fn names(&self) -> Result<&Names, Errno> {
        match &self.kind {
            Kind::Directory { names, .. } => Ok(names),
            Kind::File { .. } => Err(Errno::ENOTDIR),
        }
    }

    fn change(&mut self, change: Change) -> Result<(), Errno> {
        let Kind::Directory { names, changes, .. } = &mut self.kind else {
            return Err(Errno::ENOTDIR);
        };
        change.apply(names);
        changes.push(change);
        Ok(())
    }

    fn sync(&mut self) {
        match &mut self.kind {
            Kind::File { data, synced, dirty } => {
                synced.resize(data.len(), 0);
                for page in std::mem::take(dirty) {
                    copy_page(data, synced, page);
                }
            }
            Kind::Directory { names, synced, changes } => {
                synced.clone_from(names);
                changes.clear();
            }
        }
    }

    /// Sets the length, as `ftruncate` does.
    fn resize(&mut self, length: usize) -> Result<(), Errno> {
        let (data, dirty) = self.data()?;
        let from = data.len().min(length);
        data.resize(length, 0);
        // The page of the end, and those behind it, if it grew.
        dirty.extend(from / PAGE..=length.saturating_sub(1).max(from) / PAGE);
        Ok(())
    }
}

/// Copies a page, as far as both have it.
fn copy_page(from: &[u8], to: &mut [u8], page: usize) {
    let end = from.len().min(to.len()).min((page + 1) * PAGE);
    if let Some(bytes) = from.get(page * PAGE..end) {
        to[page * PAGE..end].copy_from_slice(bytes);
    }
}

/// For what share of its changes a file or directory is left in [`Cut::Any`].
fn survives(cut: Cut, random: &mut Random) -> impl FnMut() -> bool + use<> {
    let (share, mut random) = (random.below(3), Random::new(random.next()));
    move || cut == Cut::Any && (share == 2 || share == 1 && random.once_in(2))
}

impl Nodes {
    fn get(&mut self, node: INodeNo) -> Result<&mut Node, Errno> {
        self.all.get_mut(&node.0).ok_or(Errno::ENOENT)
    }

    fn find(&mut self, parent: INodeNo, name: &OsStr) -> Result<u64, Errno> {
        self.get(parent)?.names()?.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn attr(&mut self, node: u64) -> Result<FileAttr, Errno> {
        let found = self.get(INodeNo(node))?;
        let (kind, size) = match &found.kind {
            Kind::File { data, .. } => (FileType::RegularFile, data.len() as u64),
            Kind::Directory { .. } => (FileType::Directory, 0),
        };
        Ok(FileAttr {
            ino: INodeNo(node),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: found.mode,
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: u32::try_from(PAGE).unwrap(),
            flags: 0,
        })
    }

    fn add(&mut self, parent: INodeNo, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        let number = self.next;
        self.next += 1;
        let set = Some((name.to_owned(), number));
        self.get(parent)?.change(Change { set, ..Change::default() })?;
        self.all.insert(number, node);
        self.attr(number)
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let node = self.find(parent, name)?;
        if self.get(INodeNo(node))?.names().is_ok_and(|names| !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        let removed = Some(name.to_owned());
        self.get(parent)?.change(Change { removed, ..Change::default() })
    }

    fn rename(
        &mut self,
        (from, name): (INodeNo, &OsStr),
        (to, new): (INodeNo, &OsStr),
    ) -> Result<(), Errno> {
        let set = Some((new.to_owned(), self.find(from, name)?));
        let removed = Some(name.to_owned());
        if from == to {
            return self.get(from)?.change(Change { removed, set });
        }
        self.get(to)?.change(Change { set, ..Change::default() })?;
        self.get(from)?.change(Change { removed, ..Change::default() })
    }

    fn sync(&mut self, node: INodeNo) -> Result<(), Errno> {
        let found = self.get(node)?;
        found.sync();
        let name = found.name.clone();
        if self.is_left(1, node.0) {
            (self.on_sync)(&name);
        }
        self.forget_removed();
        Ok(())
    }

    /// Whether a cut leaves the node below this directory.
    fn is_left(&self, below: u64, node: u64) -> bool {
        let Some(Node { kind: Kind::Directory { synced, .. }, .. }) = self.all.get(&below) else {
            return false;
        };
        synced.values().any(|child| *child == node || self.is_left(*child, node))
    }

    /// Frees the memory of what has no name, on the disk or off it.
    fn forget_removed(&mut self) {
        let mut named = BTreeSet::from([1]);
        for node in self.all.values() {
            if let Kind::Directory { names, synced, changes } = &node.kind {
                named.extend(names.values().chain(synced.values()));
                named.extend(changes.iter().filter_map(|change| Some(change.set.as_ref()?.1)));
            }
        }
        self.all.retain(|number, node| node.opens > 0 || named.contains(number));
    }

    /// Writes what a cut leaves of this directory.
    fn write(&self, directory: u64, cut: Cut, random: &mut Random, to: &Path) {
        let Kind::Directory { synced, changes, .. } = &self.all[&directory].kind else { return };
        let (mut names, mut left) = (synced.clone(), survives(cut, random));
        for change in changes.iter().filter(|_| left()) {
            change.apply(&mut names);
        }
        for (name, number) in names {
            let path = to.join(name);
            match &self.all[&number].kind {
                Kind::Directory { .. } => {
                    fs::create_dir(&path).unwrap();
                    self.write(number, cut, random, &path);
                }
                Kind::File { data, synced, dirty } => {
                    let (mut bytes, mut left) = (synced.clone(), survives(cut, random));
                    for page in dirty.iter().copied().filter(|_| left()) {
                        let end = data.len().min((page + 1) * PAGE);
                        bytes.resize(bytes.len().max(end), 0);
                        copy_page(data, &mut bytes, page);
                    }
                    fs::write(path, bytes).unwrap();
                }
            }
        }
    }
}

/// The file system as the kernel sees it.
struct Volatile(Arc<Mutex<Nodes>>);

impl Volatile {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.0)
    }
}

fn done(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn entry(reply: ReplyEntry, attr: Result<FileAttr, Errno>) {
    match attr {
        Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl Filesystem for Volatile {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut nodes = self.nodes();
        let found = nodes.find(parent, name);
        entry(reply, found.and_then(|node| nodes.attr(node)));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.nodes().attr(node.0) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut nodes = self.nodes();
        let set = nodes.get(node).and_then(|found| {
            if let Some(mode) = mode {
                found.mode = u16::try_from(mode & 0o777).unwrap();
            }
            size.map_or(Ok(()), |size| found.resize(place(size)))
        });
        match set.and_then(|()| nodes.attr(node.0)) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let node = Node::directory(&name.to_string_lossy(), mode & !umask);
        entry(reply, self.nodes().add(parent, name, node));
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mut node = Node::file(&name.to_string_lossy(), mode & !umask);
        node.opens = 1;
        match self.nodes().add(parent, name, node) {
            Ok(attr) => {
                let (handle, flags) = (FileHandle(0), FopenFlags::empty());
                reply.created(&TTL, &attr, Generation(0), handle, flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn link(&self, _: &Request, node: INodeNo, to: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut nodes = self.nodes();
        let set = Some((name.to_owned(), node.0));
        let linked = nodes.get(to).and_then(|to| to.change(Change { set, ..Change::default() }));
        entry(reply, linked.and_then(|()| nodes.attr(node.0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.nodes().remove(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.nodes().remove(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        from: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        done(reply, self.nodes().rename((from, name), (to, new)));
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.nodes().get(node) {
            Ok(found) => {
                found.opens += 1;
                reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn release(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.nodes().get(node).map(|found| found.opens -= 1));
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.nodes().get(node).and_then(Node::data) {
            Ok((data, _)) => {
                let start = place(offset).min(data.len());
                reply.data(&data[start..data.len().min(start + size as usize)]);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (start, end) = (place(offset), place(offset) + bytes.len());
        let mut nodes = self.nodes();
        let written = nodes.get(node).and_then(|found| {
            if found.data()?.0.len() < end {
                found.resize(end)?;
            }
            let (data, dirty) = found.data()?;
            data[start..end].copy_from_slice(bytes);
            dirty.extend(start / PAGE..end.div_ceil(PAGE));
            Ok(())
        });
        match written {
            Ok(()) => reply.written(u32::try_from(bytes.len()).unwrap()),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.nodes().sync(node));
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.nodes().sync(node));
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut nodes = self.nodes();
        let names = match nodes.get(node).and_then(|found| found.names()) {
            Ok(names) => names.clone(),
            Err(errno) => return reply.error(errno),
        };
        // Numbers only rise and names sort by them here: an offset is the number of a node.
        let mut entries: Vec<_> = names.into_iter().map(|(name, number)| (number, name)).collect();
        entries.sort();
        for (number, name) in entries.into_iter().filter(|(number, _)| *number > offset) {
            let Ok(attr) = nodes.attr(number) else { continue };
            if reply.add(INodeNo(number), number, attr.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // How much there is, it does not tell.
        reply.statfs(0, 0, 0, 0, 0, 512, 255, 512);
    }
}
