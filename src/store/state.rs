//! The state folder of one share, or of the account: what must outlive the process and is no
//! file's own.
//!
//! Decides how entries are laid out (a folder a drawer, a file an entry), that one process alone
//! uses them, and that handle ids never come back. What the entries say, and what is done about
//! a damaged one, is the caller's affair.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{StoreError, doing, failing};
use super::folder::{Durability, Folder};

/// The form written here, and the newest that is understood.
const VERSION: u32 = 1;

/// A handle id is an epoch and a number of 40 bits, so an epoch has 24.
const EPOCH_MAX: u32 = (1 << 24) - 1;

const EPOCH: &str = "epoch";
const LOCK: &str = "lock";

/// Kinds of entries, each in a folder of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drawer {
    /// Leases on files, by file.
    Leases,
    /// Deletions that were acknowledged and wait for handles to close, by link.
    Pending,
    /// The share's own properties: quota, metadata, access policies, lease.
    Share,
    /// Permissions, by key.
    Permissions,
    /// Copies under way, by copy id.
    Copies,
    /// What the service as a whole was told. Of the account's own state folder, no share's.
    Service,
}

impl Drawer {
    const ALL: [Self; 6] =
        [Self::Leases, Self::Pending, Self::Share, Self::Permissions, Self::Copies, Self::Service];

    fn folder_name(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::Pending => "pending",
            Self::Share => "share",
            Self::Permissions => "permissions",
            Self::Copies => "copies",
            Self::Service => "service",
        }
    }
}

/// The state folder, held by this process until the value is dropped.
#[derive(Debug)]
pub struct StateDir {
    root: Folder,
    drawers: [Folder; Drawer::ALL.len()],
    /// Locked as long as it is open.
    _lock: File,
}

/// What a drawer holds.
#[derive(Debug)]
pub struct Entries<T> {
    /// Keys and values, by file name.
    pub good: Vec<(String, T)>,
    /// One error for each entry that cannot be read or understood; it stays where it is.
    pub damaged: Vec<StoreError>,
}

#[derive(Serialize, Deserialize)]
struct Entry<T> {
    v: u32,
    value: T,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl StateDir {
    /// Opens the folder, making it if need be (for its owner alone), and removes what a crash
    /// left half written. [`StoreError::InUse`] if another process, or another value in this
    /// one, holds it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(failing("finding the state folder"))?;
        let root = Folder::new(path);
        root.create()?;
        let lock = take(root.path())?;
        let drawers = Drawer::ALL.map(|drawer| Folder::new(root.path().join(drawer.folder_name())));
        root.sweep()?;
        drawers.iter().try_for_each(Folder::sweep)?;
        Ok(Self { root, drawers, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Keeps `value` under `key`, in place of any other.
    pub fn put<T: Serialize>(
        &self,
        drawer: Drawer,
        key: &str,
        value: &T,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let name = file_name(key)?;
        let bytes = serde_json::to_vec(&Entry { v: VERSION, value })
            .map_err(|error| self.damaged(drawer, &name, error.to_string()))?;
        self.folder(drawer).write(&name, &bytes, durability)
    }

    /// The value under `key`, if there is one.
    pub fn get<T: DeserializeOwned>(
        &self,
        drawer: Drawer,
        key: &str,
    ) -> Result<Option<T>, StoreError> {
        self.read(drawer, &file_name(key)?)
    }

    /// Drops the value under `key`; false if there was none.
    pub fn remove(
        &self,
        drawer: Drawer,
        key: &str,
        durability: Durability,
    ) -> Result<bool, StoreError> {
        self.folder(drawer).remove(&file_name(key)?, durability)
    }

    /// All of a drawer. An entry that is damaged is named and does not hide the others.
    pub fn all<T: DeserializeOwned>(&self, drawer: Drawer) -> Result<Entries<T>, StoreError> {
        let mut entries = Entries { good: Vec::new(), damaged: Vec::new() };
        for name in self.folder(drawer).names()? {
            let Some(key) = key_of(&name) else {
                let why = "its name is none that an entry can have".to_owned();
                entries.damaged.push(self.damaged(drawer, &name, why));
                continue;
            };
            match self.read(drawer, &name) {
                Ok(Some(value)) => entries.good.push((key, value)),
                // Removed since it was listed.
                Ok(None) => {}
                Err(error @ StoreError::Damaged { .. }) => entries.damaged.push(error),
                Err(error) => {
                    let error = self.damaged(drawer, &name, error.to_string());
                    entries.damaged.push(error);
                }
            }
        }
        Ok(entries)
    }

    /// A number that no earlier call returned, on the disk before it is returned: the upper part
    /// of this run's handle ids. To be called once at each start.
    pub fn next_epoch(&self) -> Result<u32, StoreError> {
        let damaged = |why: String| StoreError::Damaged {
            what: self.path().join(EPOCH).display().to_string(),
            why,
        };
        let last: u32 = match self.root.read(EPOCH)? {
            Some(bytes) => str::from_utf8(&bytes)
                .ok()
                .and_then(|text| text.trim_end().parse().ok())
                .ok_or_else(|| damaged("it holds no number".to_owned()))?,
            None => 0,
        };
        if last >= EPOCH_MAX {
            return Err(damaged(format!("{last} is past the last number, {EPOCH_MAX}")));
        }
        let next = last + 1;
        let text = format!("{next}\n");
        self.root.write(EPOCH, text.as_bytes(), Durability::Synced)?;
        Ok(next)
    }

    fn read<T: DeserializeOwned>(
        &self,
        drawer: Drawer,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.folder(drawer).read(name)? else {
            return Ok(None);
        };
        let damaged = |error: serde_json::Error| self.damaged(drawer, name, error.to_string());
        let Version { v } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if v > VERSION {
            let why = format!(
                "it is of version {v}, written by a newer latchfs; this one reads up to {VERSION}"
            );
            return Err(self.damaged(drawer, name, why));
        }
        let entry: Entry<T> = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(Some(entry.value))
    }

    fn folder(&self, drawer: Drawer) -> &Folder {
        &self.drawers[drawer as usize]
    }

    fn damaged(&self, drawer: Drawer, name: &str, why: String) -> StoreError {
        let path: PathBuf = self.folder(drawer).path().join(name);
        StoreError::Damaged { what: path.display().to_string(), why }
    }
}

fn take(folder: &Path) -> Result<File, StoreError> {
    let what = "locking the state folder";
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(folder.join(LOCK)).map_err(failing(what))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(StoreError::InUse { path: folder.to_owned() }),
        Err(errno) => Err(doing(what)(errno)),
    }
}

const SUFFIX: &str = ".json";

/// The longest name of a Linux file system.
const NAME_MAX: usize = 255;

/// A key as a file name: letters, digits, `-` and `_` as they are, each other byte as `%XX`. No
/// key can leave its folder, nor look like a temporary file.
fn file_name(key: &str) -> Result<String, StoreError> {
    let mut name = String::with_capacity(key.len() + SUFFIX.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(byte.into());
        } else {
            name.extend(['%', digit(byte >> 4), digit(byte & 0xF)]);
        }
    }
    name.push_str(SUFFIX);
    if name.len() > NAME_MAX {
        return Err(StoreError::NameTooLong);
    }
    Ok(name)
}

fn digit(nibble: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(nibble)])
}

/// The key behind a file name, if [`file_name`] made it.
fn key_of(name: &str) -> Option<String> {
    let mut rest = name.strip_suffix(SUFFIX)?.bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            plain => plain,
        });
    }
    let key = String::from_utf8(bytes).ok()?;
    (file_name(&key).ok()? == name).then_some(key)
}

#[cfg(test)]
mod tests;
