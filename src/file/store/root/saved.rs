//! The shares of an account in a saved state: copied there and back, with all that is kept of them.
//!
//! Decides what a copy holds: files with bytes, metadata, times and hard links, the state of
//! shares, their snapshots and deleted shares; not what is delete pending. What is kept under the
//! identity of a file (leases, large records) is given to the copy of that file. Decides also
//! whether a copy is sound. How one tree is copied is decided in
//! [`crate::file::store::share::snapshot`].

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::aside::{FILES, STATE_PARTS};
use super::deleted::deleted_at;
use super::{DELETED, SERVICES, SHARES, SNAPSHOTS, ShareRoot};
use crate::disk::error::{StoreError, failing};
use crate::disk::folder::{Durability, Folder};
use crate::disk::state::check_state_in;
use crate::disk::tree;
use crate::file::rules::name::is_share_name;
use crate::file::store::share::clone::{Control, CopiedFileIds, Meter};
use crate::file::store::share::snapshot::build::{Trees, copy_tree};
use crate::file::store::share::snapshot::origin;
use crate::file::store::share::{SnapshotError, Snapshots, Stat};
use crate::rules::FileId;

/// Names of hard-linked files, while a tree is copied.
const LINKS: &str = ".links";

impl ShareRoot {
    /// Copies all shares to `folder`, that of their account in a state. Returns the paths in it
    /// that a restore needs. Nothing is synced. After an error there may be a part of a copy.
    pub fn save(&self, folder: &Path) -> Result<Vec<String>, SnapshotError> {
        copy_shares(&self.root, &self.state, folder)?;
        let mut parts = Vec::new();
        for part in STATE_PARTS.into_iter().chain([FILES]) {
            let names = tree::names(&folder.join(part))?;
            parts.extend(names.into_iter().map(|name| format!("{part}/{name}")));
        }
        Ok(parts)
    }
}

/// Copies the shares that [`ShareRoot::save`] saved in `folder` to the folder `to`, as
/// [`ShareRoot::put_in_place`] takes them.
pub(crate) fn copy_saved(folder: &Path, to: &Path) -> Result<(), SnapshotError> {
    copy_shares(&folder.join(FILES), folder, to)
}

/// Refuses the shares in `folder` if a small file of theirs is damaged. The error names the file.
pub(crate) fn check_saved(folder: &Path) -> Result<(), StoreError> {
    for share in below(&folder.join(SHARES))? {
        check_state_in(&share)?;
    }
    for deleted in below(&folder.join(DELETED))? {
        deleted_at(&deleted)?;
        check_state_in(&deleted.join("state"))?;
    }
    check_state_in(&folder.join(SERVICES))
}

fn below(folder: &Path) -> Result<impl Iterator<Item = PathBuf>, StoreError> {
    Ok(tree::names(folder)?.into_iter().map(move |name| folder.join(name)))
}

/// Copies the shares in `files`, whose state is in `state`, to the folder `to`, made if missing.
fn copy_shares(files: &Path, state: &Path, to: &Path) -> Result<(), SnapshotError> {
    let mut copies = CopiedFileIds::new();
    make(&to.join(FILES))?;
    for share in tree::names(files)? {
        let source = files.join(&share);
        if is_share_name(&share) && source.is_dir() {
            copy(&source, &to.join(FILES).join(&share), to, &mut copies)?;
        }
    }
    for part in STATE_PARTS {
        let source = state.join(part);
        if source.is_dir() {
            copy(&source, &to.join(part), to, &mut copies)?;
        }
    }
    Ok(follow(to, &copies)?)
}

fn copy(
    source: &Path,
    target: &Path,
    to: &Path,
    copies: &mut CopiedFileIds,
) -> Result<(), SnapshotError> {
    make(target)?;
    let links = to.join(LINKS);
    make(&links)?;
    let trees = Trees {
        source: tree::open_root(source)?,
        target: tree::open_root(target)?,
        links: tree::open_root(&links)?,
        origins: false,
    };
    copy_tree(&trees, &mut Meter::noting(&mut |_| Control::Continue, copies))?;
    tree::remove(tree::open_root(to)?, LINKS)?;
    Ok(())
}

fn make(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(failing("making a folder"))
}

/// Gives what is kept under the identities of files to their copies.
fn follow(to: &Path, copies: &CopiedFileIds) -> Result<(), StoreError> {
    for share in tree::names(&to.join(SHARES))? {
        let files = to.join(FILES).join(&share);
        follow_state(&to.join(SHARES).join(&share), &files, copies)?;
    }
    for share in tree::names(&to.join(SNAPSHOTS))? {
        follow_snapshots(&to.join(SNAPSHOTS).join(share), copies)?;
    }
    for share in tree::names(&to.join(DELETED))? {
        let deleted = to.join(DELETED).join(share);
        follow_state(&deleted.join("state"), &deleted.join("share"), copies)?;
        follow_snapshots(&deleted.join("snapshots"), copies)?;
    }
    Ok(())
}

/// The state folder of one share, whose directory is `files`.
fn follow_state(state: &Path, files: &Path, copies: &CopiedFileIds) -> Result<(), StoreError> {
    remove_pending(&state.join("pending"), files, copies)?;
    rename_entries(&state.join("leases"), copies, true)?;
    rename_entries(&state.join("records"), copies, false)?;
    for snapshot in tree::names(&state.join("snapshots"))? {
        rename_entries(&state.join("snapshots").join(snapshot).join("records"), copies, false)?;
    }
    Ok(())
}

/// Removes the copies of names that were delete pending, and their marks.
fn remove_pending(marks: &Path, files: &Path, copies: &CopiedFileIds) -> Result<(), StoreError> {
    let folder = Folder::new(marks.to_owned());
    folder.sweep()?;
    for name in folder.names()? {
        let entry = entry(&folder, &name)?;
        let (id, path) = (id_of(&entry), entry["value"]["path"].as_str());
        if let (Some(copy), Some(path)) = (id.and_then(|id| copies.get(&id)), path) {
            let path = files.join(path.trim_start_matches('/'));
            if Stat::at(rustix::fs::CWD, &path).is_ok_and(|stat| stat.id == *copy) {
                let removed = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
                removed.map_err(failing("leaving a pending file out"))?;
            }
        }
        folder.remove(&name, Durability::Cached)?;
    }
    Ok(())
}

/// Renames entries that are called after files to the names of their copies; those of other files
/// are dropped. With `inside` the identity stands in the entry too.
fn rename_entries(entries: &Path, copies: &CopiedFileIds, inside: bool) -> Result<(), StoreError> {
    let folder = Folder::new(entries.to_owned());
    folder.sweep()?;
    let mut renamed = Vec::new();
    for name in folder.names()? {
        let copy =
            name.strip_suffix(".json").and_then(FileId::parse).and_then(|id| copies.get(&id));
        if let Some(copy) = copy {
            let bytes = if inside {
                let mut entry = entry(&folder, &name)?;
                entry["value"]["id"] = serde_json::json!(copy);
                entry.to_string().into_bytes()
            } else {
                folder.read(&name)?.unwrap_or_default()
            };
            renamed.push((format!("{copy}.json"), bytes));
        }
        folder.remove(&name, Durability::Cached)?;
    }
    for (name, bytes) in renamed {
        folder.write(&name, &bytes, Durability::Cached)?;
    }
    Ok(())
}

fn entry(folder: &Folder, name: &str) -> Result<Value, StoreError> {
    let bytes = folder.read(name)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| StoreError::Damaged {
        what: folder.path().join(name).display().to_string(),
        why: error.to_string(),
    })
}

fn id_of(entry: &Value) -> Option<FileId> {
    serde_json::from_value(entry["value"]["id"].clone()).ok()
}

/// The snapshots of one share: their files note which file of the share they are copies of.
fn follow_snapshots(snapshots: &Path, copies: &CopiedFileIds) -> Result<(), StoreError> {
    if !snapshots.is_dir() {
        return Ok(());
    }
    Snapshots::at(snapshots).sweep()?;
    let mut folders = vec![snapshots.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(failing("listing a snapshot"))?;
        for entry in entries {
            let entry = entry.map_err(failing("listing a snapshot"))?;
            let kind = entry.file_type().map_err(failing("looking at a file"))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                follow_origin(&entry.path(), copies)?;
            }
        }
    }
    Ok(())
}

fn follow_origin(path: &Path, copies: &CopiedFileIds) -> Result<(), StoreError> {
    let file = match File::open(path) {
        // A file that even its owner may not read keeps the origin that it had.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        file => file.map_err(failing("opening a file"))?,
    };
    if let Some(copy) = origin::of(&file).and_then(|original| copies.get(&original)) {
        origin::set(&file, *copy);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_small_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for made in ["files/docs", "shares/docs/share", "deleted/old@1/state", "services/service"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        for small in ["shares/docs/share/properties.json", "services/service/blob.json"] {
            fs::write(at(small), r#"{"v":1,"value":{}}"#).unwrap();
        }
        for epoch in ["shares/docs/epoch", "deleted/old@1/state/epoch"] {
            fs::write(at(epoch), "00000007\n").unwrap();
        }
        fs::write(at("deleted/old@1/when"), "2026-11-17T09:00:00.0000000Z").unwrap();
        let check = || check_saved(folder.path());
        check().unwrap();
        let small = [
            "shares/docs/epoch",
            "shares/docs/share/properties.json",
            "deleted/old@1/state/epoch",
            "deleted/old@1/when",
            "services/service/blob.json",
        ];
        for path in small {
            let good = fs::read(at(path)).unwrap();
            for bad in [&b""[..], b"\xFF\xFE", b"{}"] {
                fs::write(at(path), bad).unwrap();
                let said = check().unwrap_err().to_string();
                assert!(
                    said.starts_with(&format!("{} is damaged: ", at(path).display())),
                    "{said}"
                );
            }
            fs::write(at(path), good).unwrap();
        }
        check().unwrap();
    }
}
