//! Soft delete: a share moves away with its state and snapshots, and can come back.
//!
//! Three renames cannot be one, so each move is announced first and completed at the next open:
//!
//! - delete: `deleted/<share>@<version>` appears by one rename, with the moment in `when` and the
//!   mark `deleting`; then share, state and snapshots are moved into it, the share first, so that
//!   it is gone for clients at once; then the mark is removed.
//! - restore: the mark `restoring` is set; then snapshots, state and, last, the share are moved
//!   out; then what is left of the folder is removed.
//!
//! A marked folder at open means a crash: the parts still on the wrong side are moved. A folder
//! without a mark is complete, so a new share of the same name is never taken for its remains.
//! Folders being made or purged have hidden names, and are removed at open.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{
    DELETED, RootError, SHARES, SNAPSHOTS, ShareRoot, about, about_io, checked, lock, make_private,
    names, sync, tree,
};
use crate::disk::StoreError;
use crate::rules::{Timestamp, time};
use crate::sync::front_end;

const WHEN: &str = "when";
const DELETING: &str = "deleting";
const RESTORING: &str = "restoring";
const NEW: &str = ".new-";
const OLD: &str = ".old-";

/// A share that was deleted and can be restored.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeletedShare {
    pub name: String,
    /// Tells it from other deleted shares of that name; `<Version>` in List Shares.
    pub version: String,
    /// When it was deleted.
    pub when: Timestamp,
}

/// Name and version of a deleted share, both legal.
pub(super) struct DeletedKey<'a> {
    pub name: &'a str,
    version: &'a str,
}

impl<'a> DeletedKey<'a> {
    fn new(name: &'a str, version: &'a str) -> Result<Self, RootError> {
        checked(name)?;
        let plain = version.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !(1..=32).contains(&version.len()) || !plain {
            return Err(RootError::Version(version.to_owned()));
        }
        Ok(Self { name, version })
    }

    fn of_folder(folder: &'a str) -> Option<Self> {
        let (name, version) = folder.split_once('@')?;
        Self::new(name, version).ok()
    }

    fn folder(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

impl ShareRoot {
    /// Deletes a share so that it can be restored as (`name`, `version`).
    pub fn delete_share(&self, name: &str, version: &str, now: Timestamp) -> Result<(), RootError> {
        let key = DeletedKey::new(name, version)?;
        let _changing = lock(&self.changing);
        let share = self.share_path(name)?;
        let entry = self.entry(&key);
        self.finish_moves(|other| other.name == name)?;
        if !share.is_dir() {
            return Err(about(&share)(StoreError::NotFound));
        }
        if entry.exists() {
            return Err(about(&entry)(StoreError::AlreadyExists));
        }
        self.announce(&key, now)?;
        if let Err(error) = move_if_there(&share, &entry.join("share")) {
            // Nothing has moved: take the announcement back, or the next open would carry it out.
            self.remove_entry(&key.folder())?;
            return Err(error);
        }
        self.finish_delete(&key)
    }

    /// All deleted shares, by name, then version; and one error for each whose moment of deletion
    /// cannot be read. Such a share stays where it is.
    pub fn deleted(&self) -> Result<(Vec<DeletedShare>, Vec<StoreError>), RootError> {
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for folder in names(&self.hidden(DELETED))? {
            let Some(key) = DeletedKey::of_folder(&folder) else {
                continue;
            };
            let (name, version) = (key.name.to_owned(), key.version.to_owned());
            match deleted_at(&self.entry(&key)) {
                Ok(when) => found.push(DeletedShare { name, version, when }),
                Err(error) => damaged.push(error),
            }
        }
        found.sort();
        Ok((found, damaged))
    }

    /// Brings a deleted share back under its name, which must be free.
    pub fn restore_share(&self, name: &str, version: &str) -> Result<(), RootError> {
        let key = DeletedKey::new(name, version)?;
        let _changing = lock(&self.changing);
        self.finish_moves(|other| other.name == name)?;
        let entry = self.entry(&key);
        if !entry.is_dir() {
            return Err(about(&entry)(StoreError::NotFound));
        }
        for (_, place) in self.parts(&key) {
            if place.exists() {
                return Err(about(&place)(StoreError::AlreadyExists));
            }
        }
        write_synced(&entry.join(RESTORING), "")?;
        sync(&entry)?;
        self.finish_restore(&key)
    }

    /// Removes a deleted share for good.
    pub fn purge(&self, name: &str, version: &str) -> Result<(), RootError> {
        let key = DeletedKey::new(name, version)?;
        let _changing = lock(&self.changing);
        self.finish_moves(|other| other.name == name)?;
        self.remove_entry(&key.folder())
    }

    /// Removes what was being made or purged when the last server died.
    pub(super) fn sweep_deleted(&self) -> Result<(), RootError> {
        let folder = self.hidden(DELETED);
        let dir = tree::open_root(&folder).map_err(about(&folder))?;
        for name in names(&folder)? {
            if name.starts_with(NEW) || name.starts_with(OLD) {
                tree::remove(&dir, &name).map_err(about(&folder.join(&name)))?;
            }
        }
        Ok(())
    }

    /// Completes the interrupted moves of the deleted shares that `wanted` picks.
    pub(super) fn finish_moves(
        &self,
        wanted: impl Fn(&DeletedKey<'_>) -> bool,
    ) -> Result<(), RootError> {
        for folder in names(&self.hidden(DELETED))? {
            let Some(key) = DeletedKey::of_folder(&folder).filter(&wanted) else {
                continue;
            };
            let entry = self.entry(&key);
            if entry.join(RESTORING).exists() {
                log::info!("{}: completing an interrupted restore", entry.display());
                self.finish_restore(&key)?;
            } else if entry.join(DELETING).exists() {
                log::info!("{}: completing an interrupted deletion", entry.display());
                self.finish_delete(&key)?;
            }
        }
        Ok(())
    }

    /// Makes the marked folder of a deletion appear.
    fn announce(&self, key: &DeletedKey<'_>, now: Timestamp) -> Result<(), RootError> {
        let folder = self.hidden(DELETED);
        let new = folder.join(format!("{NEW}{}", key.folder()));
        make_private(&new)?;
        write_synced(&new.join(WHEN), &time::iso(now))?;
        write_synced(&new.join(DELETING), "")?;
        sync(&new)?;
        let entry = self.entry(key);
        fs::rename(&new, &entry).map_err(about_io("deleting a share", &entry))?;
        sync(&folder)
    }

    fn finish_delete(&self, key: &DeletedKey<'_>) -> Result<(), RootError> {
        let entry = self.entry(key);
        for (part, place) in self.parts(key) {
            let inside = entry.join(part);
            // What has arrived stays; anything at its old place since then is not ours.
            if !inside.exists() {
                move_if_there(&place, &inside)?;
            }
        }
        self.sync_places(&entry)?;
        let mark = entry.join(DELETING);
        fs::remove_file(&mark).map_err(about_io("deleting a share", &mark))?;
        sync(&entry)
    }

    fn finish_restore(&self, key: &DeletedKey<'_>) -> Result<(), RootError> {
        let entry = self.entry(key);
        for (part, place) in self.parts(key).into_iter().rev() {
            move_if_there(&entry.join(part), &place)?;
        }
        self.sync_places(&entry)?;
        self.remove_entry(&key.folder())
    }

    /// The parts of a share as they are called in a deleted share's folder, and their places; in
    /// the order in which they are moved away.
    fn parts(&self, key: &DeletedKey<'_>) -> [(&'static str, PathBuf); 3] {
        [
            ("share", self.root.join(key.name)),
            ("state", self.hidden(SHARES).join(key.name)),
            ("snapshots", self.hidden(SNAPSHOTS).join(key.name)),
        ]
    }

    fn entry(&self, key: &DeletedKey<'_>) -> PathBuf {
        self.hidden(DELETED).join(key.folder())
    }

    fn sync_places(&self, entry: &Path) -> Result<(), RootError> {
        for folder in [&*self.root, entry, &self.hidden(SHARES), &self.hidden(SNAPSHOTS)] {
            sync(folder)?;
        }
        Ok(())
    }

    /// Hides a deleted share's folder, then removes it.
    fn remove_entry(&self, name: &str) -> Result<(), RootError> {
        let folder = self.hidden(DELETED);
        let dir = tree::open_root(&folder).map_err(about(&folder))?;
        let (entry, aside) = (folder.join(name), format!("{OLD}{name}"));
        tree::remove(&dir, &aside).map_err(about(&entry))?;
        fs::rename(&entry, folder.join(&aside)).map_err(about_io("purging a share", &entry))?;
        tree::remove(&dir, &aside).map_err(about(&entry))
    }
}

/// A share that has no state or no snapshots yet has nothing to move.
fn move_if_there(from: &Path, to: &Path) -> Result<(), RootError> {
    match fs::rename(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(about_io("moving a share", from)(error)),
    }
}

fn write_synced(path: &Path, text: &str) -> Result<(), RootError> {
    front_end::assert_may_block("the flush of a mark");
    File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .map_err(about_io("writing a mark", path))
}

/// When the share in the folder `entry` was deleted.
pub(super) fn deleted_at(entry: &Path) -> Result<Timestamp, StoreError> {
    let path = entry.join(WHEN);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(StoreError::missing(&path));
        }
        text => text.map_err(|error| StoreError::damaged(&path, error.to_string()))?,
    };
    time::parse_iso(&text).ok_or_else(|| {
        StoreError::damaged(&path, format!("'{}' is not a timestamp", text.escape_default()))
    })
}
