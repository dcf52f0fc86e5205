//! Node ids: which name the kernel means by a number.
//!
//! One node per (file, spelling): a case-insensitive lookup makes one dentry a spelling, and the
//! kernel would take two dentries of one node for the same name. A node whose name was removed,
//! moved or given to another file is *dead*: it answers `ESTALE`, and the kernel looks the name up
//! again (DESIGN section 6). No descriptor is held for a node; its path is put together from its
//! parents.

use std::collections::HashMap;
use std::sync::RwLock;

use crate::core::name::fold;
use crate::core::{FileId, SharePath};

/// The root directory's node.
pub const ROOT: u64 = 1;

/// Numbers from here on are no file system's inode numbers.
const OWN_NUMBERS: u64 = 1 << 62;

/// A name the kernel knows, to be told when it is no longer true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The directory's node.
    pub parent: u64,
    /// The name as the kernel spelled it.
    pub name: String,
    /// The node it stood for.
    pub node: u64,
}

impl Stale {
    /// True if it is this very spelling of a name.
    pub fn is(&self, parent: u64, name: &str) -> bool {
        self.parent == parent && self.name == name
    }
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: Box<str>,
    file: FileId,
    /// How often the kernel was given it and has not forgotten it.
    lookups: u64,
    /// Raised to make the kernel drop every descriptor of the inode (force close).
    generation: u64,
    dead: bool,
}

/// All nodes the kernel knows.
#[derive(Debug)]
pub struct Nodes {
    inner: RwLock<Inner>,
    case_sensitive: bool,
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
    /// Only the root, which is `root`.
    pub fn new(root: FileId, case_sensitive: bool) -> Self {
        let node = Node {
            parent: ROOT,
            name: "".into(),
            file: root,
            lookups: 1,
            generation: 0,
            dead: false,
        };
        let inner =
            Inner { nodes: HashMap::from([(ROOT, node)]), last: OWN_NUMBERS, ..Inner::default() };
        Self { inner: RwLock::new(inner), case_sensitive }
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

    /// The path of the entry `name` of a directory.
    pub fn child(&self, parent: u64, name: &str) -> Option<SharePath> {
        self.path(parent)?.join(name).ok()
    }

    /// The node of a name that was looked up and stands for `file`, with its generation. Counts
    /// the lookup.
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
        let node = Node { parent, name: name.into(), file, lookups: 1, generation: 0, dead: false };
        inner.nodes.insert(id, node);
        inner.names.entry(key).or_default().push(id);
        inner.files.entry(file).or_default().push(id);
        (id, 0)
    }

    /// The node of this very spelling of a name, if the kernel knows it.
    pub fn known(&self, parent: u64, name: &str) -> Option<u64> {
        self.inner.read().expect(POISON).find(&self.key(parent, name), name)
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

    /// The file a node stands for.
    pub fn file(&self, node: u64) -> Option<FileId> {
        self.inner.read().expect(POISON).nodes.get(&node).map(|node| node.file)
    }

    /// The name is gone: all its spellings are dead. Says which the kernel may still hold.
    pub fn removed(&self, parent: u64, name: &str) -> Vec<Stale> {
        let mut inner = self.inner.write().expect(POISON);
        let key = self.key(parent, name);
        let ids = inner.names.get(&key).cloned().unwrap_or_default();
        ids.into_iter().filter_map(|id| inner.bury(id, self.case_sensitive)).collect()
    }

    /// The kernel moved a name: its node goes on under the new one, the other spellings of both
    /// names are dead. Says which.
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

    /// Raises the generation of a file's nodes: the next lookup makes the kernel drop every
    /// descriptor of them. Says which names must be looked up again.
    pub fn cut_off(&self, file: FileId) -> Vec<Stale> {
        let mut inner = self.inner.write().expect(POISON);
        let live = inner.nodes.iter_mut().filter(|(_, node)| node.file == file && !node.dead);
        live.map(|(id, node)| {
            node.generation += 1;
            Stale { parent: node.parent, name: node.name.to_string(), node: *id }
        })
        .collect()
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
    /// the kernel still knows as another's, gets one that no file has.
    fn free_number(&mut self, file: FileId) -> u64 {
        let own = file.ino;
        if own > ROOT && own < OWN_NUMBERS && !self.nodes.contains_key(&own) {
            return own;
        }
        self.last += 1;
        self.last
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
mod tests {
    use super::*;

    fn file(ino: u64) -> FileId {
        FileId { ino, born: 0 }
    }

    fn nodes() -> Nodes {
        Nodes::new(file(1), false)
    }

    fn path(nodes: &Nodes, node: u64) -> Option<String> {
        nodes.path(node).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn each_spelling_has_a_node_of_its_own_and_keeps_it() {
        let nodes = nodes();
        let (lower, _) = nodes.enter(ROOT, "foo", file(7));
        let (upper, _) = nodes.enter(ROOT, "FOO", file(7));
        assert_ne!(lower, upper);
        assert_eq!(nodes.enter(ROOT, "foo", file(7)).0, lower);
        assert_eq!(path(&nodes, upper).as_deref(), Some("FOO"));
    }

    #[test]
    fn a_node_has_the_number_of_its_file_again_after_it_was_forgotten() {
        let nodes = nodes();
        let (first, _) = nodes.enter(ROOT, "f", file(7));
        let (second, _) = nodes.enter(ROOT, "other-name", file(7));
        assert_eq!(first, 7);
        assert!(second > OWN_NUMBERS);
        nodes.forget(first, 1);
        assert_eq!(nodes.enter(ROOT, "f", file(7)).0, 7);
        // An inode number that is used again while the kernel knows its former file.
        nodes.removed(ROOT, "f");
        let reused = FileId { ino: 7, born: 1 };
        assert!(nodes.enter(ROOT, "f", reused).0 > OWN_NUMBERS);
        assert!(nodes.enter(ROOT, "one", file(ROOT)).0 > OWN_NUMBERS);
    }

    #[test]
    fn a_name_that_stands_for_another_file_gets_another_node() {
        let nodes = nodes();
        let (old, _) = nodes.enter(ROOT, "f", file(7));
        let (new, _) = nodes.enter(ROOT, "f", file(8));
        assert_ne!(old, new);
        assert_eq!(path(&nodes, old), None);
        assert_eq!(path(&nodes, new).as_deref(), Some("f"));
    }

    #[test]
    fn a_removed_name_takes_its_other_spellings_along() {
        let nodes = nodes();
        let (lower, _) = nodes.enter(ROOT, "foo", file(7));
        let (upper, _) = nodes.enter(ROOT, "FOO", file(7));
        let mut stale: Vec<_> =
            nodes.removed(ROOT, "Foo").into_iter().map(|stale| stale.node).collect();
        stale.sort_unstable();
        assert_eq!(stale, [lower, upper]);
        assert_eq!(path(&nodes, lower), None);
        assert!(nodes.removed(ROOT, "foo").is_empty());
    }

    #[test]
    fn a_moved_directory_moves_what_is_below_it() {
        let nodes = nodes();
        let (dir, _) = nodes.enter(ROOT, "d", file(7));
        let (below, _) = nodes.enter(dir, "x", file(8));
        nodes.moved((ROOT, "d"), (ROOT, "e"));
        assert_eq!(path(&nodes, below).as_deref(), Some("e/x"));
        assert_eq!(nodes.enter(ROOT, "e", file(7)).0, dir);
    }

    #[test]
    fn a_case_only_rename_keeps_the_node_that_moved() {
        let nodes = nodes();
        let (node, _) = nodes.enter(ROOT, "foo", file(7));
        assert!(nodes.moved((ROOT, "foo"), (ROOT, "Foo")).is_empty());
        assert_eq!(path(&nodes, node).as_deref(), Some("Foo"));
    }

    #[test]
    fn what_a_rename_replaces_is_dead() {
        let nodes = nodes();
        let (a, _) = nodes.enter(ROOT, "a", file(7));
        let (b, _) = nodes.enter(ROOT, "b", file(8));
        let stale = nodes.moved((ROOT, "b"), (ROOT, "a"));
        assert_eq!(stale.len(), 1);
        assert_eq!((path(&nodes, a), path(&nodes, b).as_deref()), (None, Some("a")));
    }

    #[test]
    fn an_exchange_swaps_two_names() {
        let nodes = nodes();
        let (a, _) = nodes.enter(ROOT, "a", file(7));
        let (b, _) = nodes.enter(ROOT, "b", file(8));
        nodes.exchanged((ROOT, "a"), (ROOT, "b"));
        assert_eq!(path(&nodes, a).as_deref(), Some("b"));
        assert_eq!(path(&nodes, b).as_deref(), Some("a"));
        assert_eq!(nodes.enter(ROOT, "a", file(8)).0, b);
    }

    #[test]
    fn the_spellings_and_names_of_a_file_are_siblings_while_they_live() {
        let nodes = nodes();
        let (lower, _) = nodes.enter(ROOT, "foo", file(7));
        let (upper, _) = nodes.enter(ROOT, "FOO", file(7));
        let (link, _) = nodes.enter(ROOT, "link", file(7));
        nodes.enter(ROOT, "other", file(8));
        assert_eq!(nodes.siblings(lower), [upper, link]);
        nodes.forget(upper, 1);
        assert_eq!(nodes.siblings(lower), [link]);
        nodes.removed(ROOT, "link");
        assert!(nodes.siblings(lower).is_empty());
        assert_eq!(nodes.siblings(link), [lower]);
    }

    #[test]
    fn a_node_is_forgotten_with_its_last_lookup() {
        let nodes = nodes();
        let (node, _) = nodes.enter(ROOT, "f", file(7));
        nodes.enter(ROOT, "f", file(7));
        nodes.forget(node, 1);
        assert!(nodes.path(node).is_some());
        nodes.forget(node, 1);
        assert!(nodes.path(node).is_none());
        assert!(nodes.inner.read().unwrap().names.is_empty());
        assert!(nodes.inner.read().unwrap().files.is_empty());
        nodes.forget(ROOT, 9);
        assert!(nodes.path(ROOT).is_some());
    }

    #[test]
    fn cutting_a_file_off_raises_the_generation_of_every_spelling() {
        let nodes = nodes();
        nodes.enter(ROOT, "f", file(7));
        nodes.enter(ROOT, "F", file(7));
        assert_eq!(nodes.cut_off(file(7)).len(), 2);
        assert_eq!(nodes.enter(ROOT, "f", file(7)).1, 1);
        assert_eq!(nodes.spellings(&SharePath::new("f").unwrap()).len(), 2);
    }
}
