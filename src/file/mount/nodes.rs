//! Node ids: which name and file the kernel means by a number.
//!
//! One node per (file, spelling): a case-insensitive lookup makes one dentry a spelling, and the
//! kernel would take two dentries of one node for the same name. A node whose name was removed,
//! moved or given to another file is *dead*: it answers `ESTALE`, and the kernel looks the name up
//! again. No descriptor is held for a node; its path is put together from its
//! parents.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use fuser::Errno;

use crate::file::rules::name::fold;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::{FileError, StoreError};
use crate::rules::FileId;

/// The root directory's node.
pub const ROOT: u64 = 1;

/// Numbers from here on are used by no file system for its inodes.
const OWN_NUMBERS: u64 = 1 << 62;

/// A name that the kernel knows and that has to be invalidated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    pub parent: u64,
    /// The name as the kernel spelled it.
    pub name: String,
    /// The node that the name led to.
    pub node: u64,
}

impl Stale {
    /// True if this is the entry of exactly this spelling.
    pub fn is(&self, parent: u64, name: &str) -> bool {
        self.parent == parent && self.name == name
    }
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: Box<str>,
    file: FileId,
    /// The kernel's count of lookups of this node.
    lookups: u64,
    /// Raised to make the kernel drop every descriptor of the inode (force close).
    generation: u64,
    dead: bool,
    /// A directory that the kernel itself removed: it looks no name up that leads here.
    gone: bool,
    /// The file had several names when the kernel was given this one.
    linked: bool,
}

/// All nodes the kernel knows.
#[derive(Debug)]
pub struct Nodes {
    inner: RwLock<Inner>,
    case_sensitive: bool,
    pub moves: Arc<Moves>,
}

/// How often a request is repeated because names moved meanwhile.
const MOVES_MAX: u32 = 16;

/// Counts the names that were moved in the table of nodes.
///
/// A request puts its path together before it looks at the disk. If a directory above is renamed in
/// between, the path leads nowhere, though the file is there: such a request is repeated with the
/// new path. The rename of a directory moves names on the disk and in the table while it has the
/// name lock of the share alone, which lookups share: a request that misses a name on the disk
/// finds the move counted. The rename of a file holds the lock shared: a request for the file can
/// miss the name on the disk before the move is counted, and is then answered as if the name were
/// gone.
#[derive(Debug, Default)]
pub struct Moves(AtomicU64);

impl Moves {
    /// Runs `attempt`, again while it misses a name and names were moved meanwhile.
    pub fn follow<T: MissingAnswer>(&self, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 1..MOVES_MAX {
            let before = self.0.load(Ordering::SeqCst);
            let answer = attempt();
            let is_missing = answer.as_ref().is_some_and(MissingAnswer::is_missing);
            if !is_missing || self.0.load(Ordering::SeqCst) == before {
                return answer;
            }
        }
        attempt()
    }
}

/// An answer that may say that a name is missing.
pub trait MissingAnswer {
    fn is_missing(&self) -> bool;
}

impl MissingAnswer for FileError {
    fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Denied(Denial::NotFound | Denial::PathNotFound)
                | Self::Store(StoreError::Replaced)
        )
    }
}

impl MissingAnswer for Errno {
    fn is_missing(&self) -> bool {
        matches!(self.code(), libc::ENOENT | libc::ESTALE)
    }
}

impl<T, E: MissingAnswer> MissingAnswer for Result<T, E> {
    fn is_missing(&self) -> bool {
        self.as_ref().is_err_and(E::is_missing)
    }
}

#[derive(Debug, Default)]
struct Inner {
    nodes: HashMap<u64, Node>,
    /// (directory, folded name) to the nodes of its spellings.
    names: HashMap<(u64, Box<str>), Vec<u64>>,
    /// File to its living nodes: the kernel caches the attributes of each by itself.
    files: HashMap<FileId, Vec<u64>>,
    /// The last of our own numbers.
    last: u64,
}

const POISON: &str = "nothing panics while nodes are changed";

impl Nodes {
    /// A table with the root directory alone, whose file is `root`.
    pub fn new(root: FileId, case_sensitive: bool) -> Self {
        let node = Node {
            parent: ROOT,
            name: "".into(),
            file: root,
            lookups: 1,
            generation: 0,
            dead: false,
            gone: false,
            linked: false,
        };
        let inner =
            Inner { nodes: HashMap::from([(ROOT, node)]), last: OWN_NUMBERS, ..Inner::default() };
        Self { inner: RwLock::new(inner), case_sensitive, moves: Arc::default() }
    }

    /// The path of a node, as the kernel spells it; none if it is dead or unknown.
    pub fn path(&self, node: u64) -> Option<SharePath> {
        let inner = self.inner.read().expect(POISON);
        let mut parts: Vec<&str> = Vec::new();
        let mut at = node;
        while at != ROOT {
            let node = inner.nodes.get(&at).filter(|node| !node.dead)?;
            parts.push(&node.name);
            at = node.parent;
        }
        parts.reverse();
        SharePath::new(&parts.join("/")).ok()
    }

    /// True if a node is known and its name is not gone.
    pub fn is_alive(&self, node: u64) -> bool {
        self.inner.read().expect(POISON).nodes.get(&node).is_some_and(|node| !node.dead)
    }

    /// The path of the entry `name` of a directory.
    pub fn child(&self, parent: u64, name: &str) -> Option<SharePath> {
        self.path(parent)?.join(name).ok()
    }

    /// The node of a name that was looked up and leads to `file`, with its generation. Counts the
    /// lookup.
    pub fn enter(&self, parent: u64, name: &str, file: FileId) -> (u64, u64) {
        let mut inner = self.inner.write().expect(POISON);
        let key = self.key(parent, name);
        if let Some(id) = inner.find(&key, name) {
            let node = inner.node(id);
            if node.file == file {
                node.lookups += 1;
                return (id, node.generation);
            }
            inner.bury(id, self.case_sensitive); // Another file has the name now.
        }
        let id = inner.free_number(file);
        let node = Node {
            parent,
            name: name.into(),
            file,
            lookups: 1,
            generation: 0,
            dead: false,
            gone: false,
            linked: false,
        };
        inner.nodes.insert(id, node);
        inner.names.entry(key).or_default().push(id);
        inner.files.entry(file).or_default().push(id);
        (id, 0)
    }

    /// The file of a node has several names. From then on programs see the file's own number by
    /// each of them, as on any file system.
    pub fn set_linked(&self, node: u64) {
        if let Some(node) = self.inner.write().expect(POISON).nodes.get_mut(&node) {
            node.linked = true;
        }
    }

    /// The inode number that programs see for a node of `file`.
    pub fn number(&self, node: u64, file: FileId) -> u64 {
        if node <= OWN_NUMBERS {
            return node;
        }
        self.inner.read().expect(POISON).number(node, file.ino)
    }

    /// The inode number that a listing shows for a name, of a file with the number `ino`.
    pub fn listed(&self, parent: u64, name: &str, ino: u64) -> u64 {
        let inner = self.inner.read().expect(POISON);
        inner.find(&self.key(parent, name), name).map_or(ino, |node| inner.number(node, ino))
    }

    /// The name that a dead node had last, as a path.
    pub fn last_path(&self, node: u64) -> Option<SharePath> {
        let Stale { parent, name, .. } = self.last_name(node)?;
        self.child(parent, &name)
    }

    /// The kernel opens a node whose name has been given to `file` meanwhile: the node is that
    /// file's, without a name. Says which name the kernel must look up again.
    pub fn adopt(&self, node: u64, file: FileId) -> Option<Stale> {
        let mut inner = self.inner.write().expect(POISON);
        let stale = inner.bury(node, self.case_sensitive);
        if let Some(node) = inner.nodes.get_mut(&node) {
            node.file = file;
        }
        stale
    }

    /// The other nodes of a node's file: its other spellings and names.
    pub fn siblings(&self, node: u64) -> Vec<u64> {
        let inner = self.inner.read().expect(POISON);
        let Some(file) = inner.nodes.get(&node).map(|node| node.file) else { return Vec::new() };
        let ids = inner.files.get(&file).into_iter().flatten();
        ids.copied().filter(|id| *id != node).collect()
    }

    /// The kernel has forgotten `times` lookups of a node.
    pub fn forget(&self, node: u64, times: u64) {
        if node == ROOT {
            return;
        }
        let mut inner = self.inner.write().expect(POISON);
        let Some(entry) = inner.nodes.get_mut(&node) else { return };
        entry.lookups = entry.lookups.saturating_sub(times);
        if entry.lookups == 0 {
            if !entry.dead {
                inner.unname(node, self.case_sensitive);
                inner.unfile(node);
            }
            inner.nodes.remove(&node);
        }
    }

    /// The file of a node.
    pub fn file(&self, node: u64) -> Option<FileId> {
        self.inner.read().expect(POISON).nodes.get(&node).map(|node| node.file)
    }

    /// A name was removed: all its spellings are dead. Returns those that the kernel may still
    /// hold.
    pub fn removed(&self, parent: u64, name: &str) -> Vec<Stale> {
        let mut inner = self.inner.write().expect(POISON);
        let key = self.key(parent, name);
        let ids = inner.names.get(&key).cloned().unwrap_or_default();
        ids.into_iter().filter_map(|id| inner.bury(id, self.case_sensitive)).collect()
    }

    /// These names were directories, and the kernel itself removed them.
    pub fn set_gone(&self, removed: &[Stale]) {
        let mut inner = self.inner.write().expect(POISON);
        for stale in removed {
            if let Some(node) = inner.nodes.get_mut(&stale.node) {
                node.gone = node.dead;
            }
        }
    }

    /// True if the node was a directory that the kernel removed.
    pub fn is_gone(&self, node: u64) -> bool {
        self.inner.read().expect(POISON).nodes.get(&node).is_some_and(|node| node.gone)
    }

    /// The kernel moved a name: its node has the new name, and the other spellings of both names
    /// are dead. Returns the dead ones.
    pub fn moved(&self, from: (u64, &str), to: (u64, &str)) -> Vec<Stale> {
        let mut inner = self.inner.write().expect(POISON);
        let mover = inner.find(&self.key(from.0, from.1), from.1);
        let mut others = inner.names.get(&self.key(from.0, from.1)).cloned().unwrap_or_default();
        others.extend(inner.names.get(&self.key(to.0, to.1)).into_iter().flatten());
        others.sort_unstable();
        others.dedup();
        let stale = others
            .into_iter()
            .filter(|id| Some(*id) != mover)
            .filter_map(|id| inner.bury(id, self.case_sensitive))
            .collect();
        if let Some(id) = mover {
            inner.rename(id, to, self.key(to.0, to.1), self.case_sensitive);
        }
        self.moves.0.fetch_add(1, Ordering::SeqCst);
        stale
    }

    /// The two names have changed places.
    pub fn exchanged(&self, one: (u64, &str), other: (u64, &str)) {
        let mut inner = self.inner.write().expect(POISON);
        let (key1, key2) = (self.key(one.0, one.1), self.key(other.0, other.1));
        let (id1, id2) = (inner.find(&key1, one.1), inner.find(&key2, other.1));
        if let Some(id) = id1 {
            inner.rename(id, other, key2, self.case_sensitive);
        }
        if let Some(id) = id2 {
            inner.rename(id, one, key1, self.case_sensitive);
        }
        self.moves.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The node ids of a path, in every spelling the kernel knows, and their directory's.
    pub fn spellings(&self, path: &SharePath) -> Vec<Stale> {
        let inner = self.inner.read().expect(POISON);
        let mut dirs = vec![ROOT];
        let mut found = Vec::new();
        let parts: Vec<&str> = path.components().collect();
        for (depth, part) in parts.iter().enumerate() {
            let mut next = Vec::new();
            for dir in dirs {
                let ids = inner.names.get(&self.key(dir, part));
                for id in ids.into_iter().flatten() {
                    let Some(node) = inner.nodes.get(id).filter(|node| !node.dead) else {
                        continue;
                    };
                    next.push(*id);
                    if depth + 1 == parts.len() {
                        found.push(Stale { parent: dir, name: node.name.to_string(), node: *id });
                    }
                }
            }
            dirs = next;
        }
        found
    }

    /// Another share has the place of this one, and `root` is its root: all other nodes are dead.
    /// Says which names of the root the kernel may still hold; it drops what is below by itself.
    pub fn replaced(&self, root: FileId) -> Vec<Stale> {
        let mut inner = self.inner.write().expect(POISON);
        inner.names.clear();
        inner.files.clear();
        let mut stale = Vec::new();
        for (id, node) in &mut inner.nodes {
            if *id == ROOT {
                node.file = root;
                continue;
            }
            if node.parent == ROOT && !node.dead {
                stale.push(Stale { parent: ROOT, name: node.name.to_string(), node: *id });
            }
            node.dead = true;
        }
        stale
    }

    /// Raises the generation of a node, dead or not, and counts a lookup: answered with this
    /// generation, the kernel drops every descriptor of the node. None if it does not know the
    /// node any more.
    pub fn cut_off(&self, node: u64) -> Option<u64> {
        let mut inner = self.inner.write().expect(POISON);
        let node = inner.nodes.get_mut(&node)?;
        node.generation += 1;
        node.lookups += 1;
        Some(node.generation)
    }

    /// The name that a node has, or had last if it is dead.
    pub fn last_name(&self, node: u64) -> Option<Stale> {
        let inner = self.inner.read().expect(POISON);
        let entry = inner.nodes.get(&node)?;
        Some(Stale { parent: entry.parent, name: entry.name.to_string(), node })
    }

    fn key(&self, parent: u64, name: &str) -> (u64, Box<str>) {
        key(parent, name, self.case_sensitive)
    }
}

fn key(parent: u64, name: &str, case_sensitive: bool) -> (u64, Box<str>) {
    if case_sensitive { (parent, name.into()) } else { (parent, fold(name).into()) }
}

impl Inner {
    fn find(&self, key: &(u64, Box<str>), name: &str) -> Option<u64> {
        let ids = self.names.get(key)?;
        ids.iter().copied().find(|id| self.nodes.get(id).is_some_and(|node| &*node.name == name))
    }

    /// A number for a new node, which programs see as the inode number: the file's own, so that
    /// it is the same after the kernel has forgotten the node (git takes a file whose number
    /// changed for a changed file). Another name or spelling of a file, and a file whose number
    /// the kernel still knows as another's, gets one that no file has; of another name programs
    /// see the file's own all the same ([`Nodes::number`]).
    fn free_number(&mut self, file: FileId) -> u64 {
        let own = file.ino;
        if own > ROOT && own < OWN_NUMBERS && !self.nodes.contains_key(&own) {
            return own;
        }
        self.last += 1;
        self.last
    }

    fn number(&self, node: u64, ino: u64) -> u64 {
        let linked = node > OWN_NUMBERS && self.nodes.get(&node).is_some_and(|node| node.linked);
        if linked && ino > ROOT && ino < OWN_NUMBERS { ino } else { node }
    }

    fn node(&mut self, id: u64) -> &mut Node {
        self.nodes.get_mut(&id).expect("a named node exists")
    }

    /// Dead, and no longer found by its name; the kernel may still ask about it.
    fn bury(&mut self, id: u64, case_sensitive: bool) -> Option<Stale> {
        let node = self.nodes.get_mut(&id).filter(|node| !node.dead)?;
        node.dead = true;
        let stale = Stale { parent: node.parent, name: node.name.to_string(), node: id };
        self.unname(id, case_sensitive);
        self.unfile(id);
        Some(stale)
    }

    fn unfile(&mut self, id: u64) {
        let Some(file) = self.nodes.get(&id).map(|node| node.file) else { return };
        if let Some(ids) = self.files.get_mut(&file) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.files.remove(&file);
            }
        }
    }

    fn unname(&mut self, id: u64, case_sensitive: bool) {
        let Some(node) = self.nodes.get(&id) else { return };
        let key = key(node.parent, &node.name, case_sensitive);
        if let Some(ids) = self.names.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.names.remove(&key);
            }
        }
    }

    fn rename(
        &mut self,
        id: u64,
        (parent, name): (u64, &str),
        key: (u64, Box<str>),
        case_sensitive: bool,
    ) {
        self.unname(id, case_sensitive);
        let node = self.node(id);
        node.parent = parent;
        node.name = name.into();
        self.names.entry(key).or_default().push(id);
    }
}

#[cfg(test)]
mod tests;
