//! The reference of a share: a tree of names, the files behind them, who has them open.
//!
//! Names are looked up by walking all of them, in any case. What an open may do is asked of
//! [`super::rules`]' pairwise rule; the order of answers is that of
//! docs/semantics.md.

use std::collections::BTreeMap;

use super::rules::{
    Answer, Asked, D, Facts, R, W, Why, check_existing, check_options, exclude, no,
};
use latchfs::file::rules::create::Disposition;

/// A file or directory, known by its number.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub directory: bool,
    pub content: Vec<u8>,
}

/// An open: on which file, by which name.
#[derive(Clone, Debug)]
pub struct Held {
    pub id: u64,
    pub asked: Asked,
    pub node: usize,
    /// The name it was opened by, as on disk.
    pub name: String,
}

#[derive(Debug, Default)]
pub struct Tree {
    /// Paths as on disk.
    pub names: BTreeMap<String, usize>,
    pub nodes: Vec<Node>,
    pub opens: Vec<Held>,
    pub pending: Vec<String>,
}

/// Where a path leads.
enum Place {
    /// The path as on disk, and the file.
    There(String, usize),
    /// Nothing of that name; the path it would get.
    Free(String),
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

impl Tree {
    /// The path as on disk, in whatever case it was asked for.
    pub fn spelled(&self, path: &str) -> Option<&str> {
        let exact = self.names.get_key_value(path).map(|(name, _)| name.as_str());
        let same = |name: &&String| name.eq_ignore_ascii_case(path);
        exact.or_else(|| self.names.keys().find(same).map(String::as_str))
    }

    fn place(&self, path: &str) -> Answer<Place> {
        let (parent, name) = split(path);
        let parent = if parent.is_empty() {
            ""
        } else {
            match self.spelled(parent) {
                Some(parent) if self.nodes[self.names[parent]].directory => parent,
                _ => return no("PathNotFound"),
            }
        };
        let path = join(parent, name);
        Ok(match self.spelled(&path) {
            Some(name) => Place::There(name.to_owned(), self.names[name]),
            None => Place::Free(path),
        })
    }

    fn find(&self, path: &str) -> Answer<(String, usize)> {
        match self.place(path)? {
            Place::There(name, node) => Ok((name, node)),
            Place::Free(_) => no("NotFound"),
        }
    }

    pub fn is_empty(&self, directory: &str) -> bool {
        self.names.keys().all(|name| split(name).0 != directory)
    }

    /// What `list` shows.
    pub fn entries(&self, directory: &str) -> Vec<String> {
        let inside = self.names.keys().filter(|name| split(name).0 == directory);
        let mut names: Vec<_> = inside.map(|name| split(name).1.to_owned()).collect();
        names.sort_by_key(|name| (name.to_ascii_lowercase(), name.clone()));
        names
    }

    pub fn get(&self, id: u64) -> Answer<&Held> {
        self.opens.iter().find(|open| open.id == id).map_or(no("HandleClosed"), Ok)
    }

    fn ids(&self, which: impl Fn(&Held) -> bool) -> Vec<u64> {
        self.opens.iter().filter(|open| which(open)).map(|open| open.id).collect()
    }

    fn check_pending(&self, name: &str, variant: &'static str) -> Answer<()> {
        if !self.pending.iter().any(|pending| pending == name) {
            return Ok(());
        }
        Err(Why { variant, culprits: self.ids(|open| open.name == name) })
    }

    fn check_share(&self, node: usize, access: u8, share: u8) -> Answer<()> {
        self.check_share_as("SharingViolation", node, (access, share))
    }

    fn check_share_as(&self, variant: &'static str, node: usize, new: (u8, u8)) -> Answer<()> {
        let culprits = self
            .ids(|open| open.node == node && exclude(new, (open.asked.access, open.asked.share)));
        if culprits.is_empty() { Ok(()) } else { Err(Why { variant, culprits }) }
    }

    /// A rename opens the directory of the new name for W, sharing R and W. Nobody opens the root
    /// here.
    fn check_renamed_into(&self, path: &str) -> Answer<()> {
        match self.names.get(split(path).0) {
            Some(directory) => self.check_share_as("ParentShared", *directory, (W, R | W)),
            None => Ok(()),
        }
    }

    fn check_parent(&self, path: &str) -> Answer<()> {
        self.check_pending(split(path).0, "ParentDeletePending")
    }

    /// Says which name was opened.
    pub fn open(&mut self, id: u64, asked: Asked, path: &str) -> Answer<String> {
        check_options(&asked)?;
        let (name, node) = match self.place(path)? {
            Place::There(name, node) => {
                let facts = Facts { directory: self.nodes[node].directory, ..Facts::default() };
                check_existing(&asked, facts)?;
                self.check_pending(&name, "DeletePending")?;
                let (implied, empties) = match asked.disposition {
                    Disposition::Overwrite | Disposition::OverwriteIf => (W, true),
                    Disposition::Supersede => (W | D, true),
                    _ => (0, false),
                };
                self.check_share(node, asked.access | implied, asked.share)?;
                if empties {
                    self.nodes[node].content.clear();
                }
                (name, node)
            }
            Place::Free(name) => {
                if matches!(asked.disposition, Disposition::Open | Disposition::Overwrite) {
                    return no("NotFound");
                }
                self.check_parent(&name)?;
                self.nodes.push(Node { directory: asked.directory, content: Vec::new() });
                self.names.insert(name.clone(), self.nodes.len() - 1);
                (name, self.nodes.len() - 1)
            }
        };
        self.opens.push(Held { id, asked, node, name: name.clone() });
        Ok(name)
    }

    pub fn close(&mut self, id: u64, forced: bool) -> Answer<()> {
        let Held { name, asked, .. } = self.get(id)?.clone();
        self.opens.retain(|open| open.id != id);
        if asked.delete_on_close && !forced && self.is_empty(&name) {
            self.set_pending(&name, true);
        }
        let last = self.opens.iter().all(|open| open.name != name);
        if last && self.pending.contains(&name) {
            self.set_pending(&name, false);
            self.names.remove(&name);
        }
        Ok(())
    }

    fn set_pending(&mut self, name: &str, pending: bool) {
        self.pending.retain(|other| other != name);
        if pending {
            self.pending.push(name.to_owned());
        }
    }

    pub fn dispose(&mut self, id: u64, delete: bool) -> Answer<()> {
        let Held { name, asked, .. } = self.get(id)?.clone();
        // The disk is asked first: whether a directory has entries is seen before the rights are.
        if !asked.may_delete {
            return no("AccessDenied");
        }
        if delete && !self.pending.contains(&name) && !self.is_empty(&name) {
            return no("DirectoryNotEmpty");
        }
        self.set_pending(&name, delete);
        Ok(())
    }

    /// Removes a name, or marks it: says whether it is gone.
    pub fn delete(&mut self, path: &str, directory: bool) -> Answer<bool> {
        let (name, node) = self.find(path)?;
        match (directory, self.nodes[node].directory) {
            (true, false) => return no("NotDirectory"),
            (false, true) => return no("IsDirectory"),
            _ => {}
        }
        self.check_pending(&name, "DeletePending")?;
        self.check_share(node, D, R | W | D)?;
        if !self.is_empty(&name) {
            return no("DirectoryNotEmpty");
        }
        let gone = self.opens.iter().all(|open| open.name != name);
        if gone {
            self.names.remove(&name);
        } else {
            self.set_pending(&name, true);
        }
        Ok(gone)
    }

    pub fn undelete(&mut self, path: &str) -> Answer<bool> {
        let (name, _) = self.find(path)?;
        let was = self.pending.contains(&name);
        self.set_pending(&name, false);
        Ok(was)
    }

    /// By name, or by a handle and its rights.
    pub fn rename(&mut self, from: Result<&str, u64>, to: &str, replace: bool) -> Answer<()> {
        let (name, node) = match from {
            Ok(path) => self.find(path)?,
            Err(id) => self.get(id).map(|open| (open.name.clone(), open.node))?,
        };
        let asked = split(to).1;
        let (to, target) = match self.place(to)? {
            // Only the spelling of its own name changes (di28).
            Place::There(itself, _) if itself == name => {
                (join(split(&itself).0, split(to).1), None)
            }
            Place::There(to, target) => (to, Some(target)),
            Place::Free(to) => (to, None),
        };
        if to.starts_with(&format!("{name}/")) {
            return no("InvalidParameter");
        }
        let below = self.ids(|open| open.name.starts_with(&format!("{name}/")));
        if !below.is_empty() {
            return Err(Why { variant: "OpenBelow", culprits: below });
        }
        self.check_parent(&to)?;
        self.check_renamed_into(&to)?;
        match target {
            Some(_) if !replace => return no("NameTaken"),
            Some(target) if target == node => return Ok(()),
            Some(target) => self.check_replaced(node, &to, target)?,
            None => {}
        }
        self.check_source(from, &name, node)?;
        if target.is_some() {
            self.names.remove(&to);
        }
        // A name that was replaced is spelled as it was asked for.
        self.move_name(&name, &join(split(&to).0, asked));
        Ok(())
    }

    fn check_replaced(&self, node: usize, to: &str, target: usize) -> Answer<()> {
        if self.nodes[node].directory != self.nodes[target].directory {
            return no("NameTaken");
        }
        let holders = self.ids(|open| open.node == target);
        if !holders.is_empty() {
            return Err(Why { variant: "Open", culprits: holders });
        }
        if self.is_empty(to) { Ok(()) } else { no("DirectoryNotEmpty") }
    }

    fn check_source(&self, from: Result<&str, u64>, name: &str, node: usize) -> Answer<()> {
        match from {
            Ok(_) => {
                self.check_pending(name, "DeletePending")?;
                self.check_share(node, D, R | W | D)
            }
            Err(id) if !self.get(id)?.asked.may_delete => no("AccessDenied"),
            Err(_) => self.check_pending(name, "DeletePending"),
        }
    }

    fn move_name(&mut self, from: &str, to: &str) {
        if from == to {
            return;
        }
        let below = format!("{from}/");
        for old in self.names.keys().cloned().collect::<Vec<_>>() {
            let new = if old == from {
                to.to_owned()
            } else if let Some(rest) = old.strip_prefix(&below) {
                format!("{to}/{rest}")
            } else {
                continue;
            };
            let node = self.names.remove(&old).expect("it was listed");
            self.names.insert(new, node);
        }
        for open in self.opens.iter_mut().filter(|open| open.name == from) {
            to.clone_into(&mut open.name);
        }
    }

    pub fn link(&mut self, from: &str, to: &str) -> Answer<()> {
        let (name, node) = self.find(from)?;
        if self.nodes[node].directory {
            return no("IsDirectory");
        }
        self.check_pending(&name, "DeletePending")?;
        match self.place(to)? {
            Place::There(..) => no("NameTaken"),
            Place::Free(to) => {
                self.check_parent(&to)?;
                self.names.insert(to, node);
                Ok(())
            }
        }
    }

    fn data(&self, id: u64, access: u8) -> Answer<usize> {
        let open = self.get(id)?;
        if self.nodes[open.node].directory {
            return no("NotOnDirectory");
        }
        if open.asked.access & access == 0 { no("AccessDenied") } else { Ok(open.node) }
    }

    pub fn write(&mut self, id: u64, offset: usize, bytes: &[u8]) -> Answer<()> {
        let node = self.data(id, W)?;
        let content = &mut self.nodes[node].content;
        if content.len() < offset + bytes.len() {
            content.resize(offset + bytes.len(), 0);
        }
        content[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    pub fn read(&self, id: u64, offset: usize, length: usize) -> Answer<Vec<u8>> {
        let content = &self.nodes[self.data(id, R)?].content;
        if offset >= content.len() {
            return no("EndOfFile");
        }
        Ok(content[offset..content.len().min(offset + length)].to_vec())
    }
}
