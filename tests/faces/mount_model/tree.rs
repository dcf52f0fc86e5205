//! What a directory holds: every name below it with its kind, permission bits, bytes, link target
//! and user attributes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::calls::runs;

/// Paths, and what is there.
pub type Tree = BTreeMap<String, String>;

/// The tree below a directory.
pub fn of(top: &Path) -> Tree {
    let mut tree = Tree::new();
    add(top, "", &mut tree);
    tree
}

fn add(dir: &Path, prefix: &str, tree: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        let meta = entry.metadata().unwrap();
        let mode = meta.mode() & 0o7777;
        if meta.is_dir() {
            add(&path, &format!("{name}/"), tree);
            tree.insert(name, format!("directory {mode:o} {}", xattrs(&path)));
        } else if meta.is_symlink() {
            tree.insert(name, format!("link to {}", fs::read_link(&path).unwrap().display()));
        } else {
            let (links, bytes) = (meta.nlink(), fs::read(&path).unwrap());
            let text = format!("{mode:o} {} links {links}: {}", xattrs(&path), runs(&bytes));
            tree.insert(name, text);
        }
    }
}

fn xattrs(path: &Path) -> String {
    let mut names = vec![0_u8; 256];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap();
    let names = std::str::from_utf8(&names[..length]).unwrap();
    let mut found = Vec::new();
    for name in names.split_terminator('\0').filter(|name| !name.contains("latchfs")) {
        let mut value = vec![0; 256];
        let length = rustix::fs::getxattr(path, name, &mut value[..]).unwrap();
        found.push(format!("{name}={}", runs(&value[..length])));
    }
    found.sort_unstable();
    found.join(" ")
}

/// The first name that is not the same in both.
pub fn compare(got: &Tree, wanted: &Tree) -> Result<(), String> {
    let mut names: Vec<&String> = got.keys().chain(wanted.keys()).collect();
    names.sort_unstable();
    match names.into_iter().find(|name| got.get(*name) != wanted.get(*name)) {
        None => Ok(()),
        Some(name) => {
            Err(format!("{name}: mount {:?}, plain {:?}", got.get(name), wanted.get(name)))
        }
    }
}
