//! The state folder of a share or of an account: state that outlives the process and belongs to no
//! single file.
//!
//! Decides the layout (one folder per drawer, one file per entry), that only one process uses the
//! folder, and that handle ids are never reused. The content of the entries, and what happens to a
//! damaged one, are decided by the callers.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{StoreError, failing};
use super::folder::{Durability, Folder, Tenure};
use crate::rules::named::named;

/// The form written here, and the newest that is understood.
const VERSION: u32 = 1;

/// A handle id is an epoch and a number of 40 bits, so an epoch has 24.
const EPOCH_MAX: u32 = (1 << 24) - 1;

const EPOCH: &str = "epoch";

named! {
    /// Kinds of entries, each in a folder of its own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Drawer, folder_name: &'static str {
        /// Leases on files, by file.
        Leases = "leases",
        /// Deletions that were acknowledged and wait for handles to close, by link.
        Pending = "pending",
        /// The share's own properties: quota, metadata, access policies, lease.
        Share = "share",
        Permissions = "permissions",
        /// Properties of the service as a whole. In the account's own state folder, not in a
        /// share's.
        Service = "service",
    }
}

/// The state folder, held by this process until the value is dropped.
#[derive(Debug)]
pub struct StateDir {
    root: Folder,
    drawers: [Folder; Drawer::ALL.len()],
    tenure: Tenure,
    _held: HeldFolder,
}

/// The state folders that this process holds. Other processes are kept away by the lock of the
/// data root, or of the folder that a single directory's state is in: a lock file here would cost
/// each share a descriptor.
static HELD: Mutex<Option<HashSet<FolderId>>> = Mutex::new(None);

/// Tells a folder from all others, whatever its name: device, inode, and when it was made. A
/// folder may be removed while it is held, and its inode given to the next one at once.
type FolderId = (u64, u64, Option<SystemTime>);

/// A state folder is held by this process as long as the value lives.
#[derive(Debug)]
struct HeldFolder(FolderId);

impl HeldFolder {
    fn take(folder: &Path) -> Result<Self, StoreError> {
        let meta = std::fs::metadata(folder).map_err(failing("locking the state folder"))?;
        let key = (meta.dev(), meta.ino(), meta.created().ok());
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.get_or_insert_default().insert(key) {
            return Err(StoreError::InUse { path: folder.to_owned() });
        }
        Ok(Self(key))
    }
}

impl Drop for HeldFolder {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default().remove(&self.0);
    }
}

/// The entries of a drawer.
#[derive(Debug)]
pub struct Entries<T> {
    /// Keys and values, by file name.
    pub good: Vec<(String, T)>,
    /// One error for each entry that cannot be read or understood; it stays where it is.
    pub damaged: Vec<StoreError>,
}

#[derive(Serialize, Deserialize)]
struct VersionedValue<T> {
    v: u32,
    value: T,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl StateDir {
    /// Opens the folder, making it if need be (for its owner alone), and removes what a crash
    /// left half written. [`StoreError::InUse`] if another value in this process holds it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_for(path, Tenure::default())
    }

    /// As [`StateDir::open`], for a folder of a replacement of all data, which is synced as a
    /// whole: nothing is synced here until [`StateDir::begin`].
    pub fn open_coming(path: &Path) -> Result<Self, StoreError> {
        Self::open_for(path, Tenure::coming())
    }

    fn open_for(path: &Path, tenure: Tenure) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(failing("finding the state folder"))?;
        let root = Folder::within(path, tenure.clone());
        root.create(Durability::Synced)?;
        let held = HeldFolder::take(root.path())?;
        let drawers = Drawer::ALL
            .map(|drawer| Folder::within(root.path().join(drawer.folder_name()), tenure.clone()));
        root.sweep()?;
        drawers.iter().try_for_each(Folder::sweep)?;
        Ok(Self { root, drawers, tenure, _held: held })
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The replacement is complete: from now on writes are synced as they ask for.
    pub fn begin(&self) {
        self.tenure.begin();
    }

    /// Waits for writes under way and ends the use of the folder: its path is about to be another
    /// one's. Later writes are refused.
    pub fn end(&self) {
        self.tenure.end();
    }

    /// When the use of the folder ends; for other folders in it.
    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
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
        let bytes = serde_json::to_vec(&VersionedValue { v: VERSION, value })
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
        let name = file_name(key)?;
        self.folder(drawer).remove(&name, durability)
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
        let damaged = |why: String| StoreError::damaged(&self.path().join(EPOCH), why);
        let last = last_epoch(&self.root)?;
        if last >= EPOCH_MAX {
            return Err(damaged(format!("{last} is past the last number, {EPOCH_MAX}")));
        }
        let next = last + 1;
        let text = epoch_text(next);
        match self.root.write(EPOCH, text.as_bytes(), Durability::Synced) {
            // A full disk must not keep a server from starting: who else would delete anything?
            Err(StoreError::NoSpace) => self.root.overwrite(EPOCH, text.as_bytes())?,
            written => written?,
        }
        Ok(next)
    }

    fn read<T: DeserializeOwned>(
        &self,
        drawer: Drawer,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        read_entry(self.folder(drawer), name)
    }

    fn folder(&self, drawer: Drawer) -> &Folder {
        &self.drawers[drawer as usize]
    }

    fn damaged(&self, drawer: Drawer, name: &str, why: String) -> StoreError {
        StoreError::damaged(&self.folder(drawer).path().join(name), why)
    }
}

fn read_entry<T: DeserializeOwned>(folder: &Folder, name: &str) -> Result<Option<T>, StoreError> {
    let Some(bytes) = folder.read(name)? else {
        return Ok(None);
    };
    let damaged = |why: String| StoreError::damaged(&folder.path().join(name), why);
    let unreadable = |error: serde_json::Error| damaged(error.to_string());
    let Version { v } = serde_json::from_slice(&bytes).map_err(unreadable)?;
    if v > VERSION {
        return Err(damaged(format!(
            "it is of version {v}, written by a newer latchfs; this one reads up to {VERSION}"
        )));
    }
    let entry: VersionedValue<T> = serde_json::from_slice(&bytes).map_err(unreadable)?;
    Ok(Some(entry.value))
}

/// Refuses the state folder at `path` if its epoch or an entry cannot be understood. The folder may
/// be missing.
pub(crate) fn check_state_in(path: &Path) -> Result<(), StoreError> {
    last_epoch_in(path)?;
    for drawer in Drawer::ALL {
        let folder = Folder::new(path.join(drawer.folder_name()));
        for name in folder.names()? {
            read_entry::<serde_json::Value>(&folder, &name)?;
        }
    }
    Ok(())
}

/// The last number that [`StateDir::next_epoch`] returned in the state folder at `path`; 0 if
/// there is none.
pub fn last_epoch_in(path: &Path) -> Result<u32, StoreError> {
    last_epoch(&Folder::new(path.to_owned()))
}

/// Has the numbers in the state folder at `path` go on above `epoch`.
pub fn keep_epoch_in(path: &Path, epoch: u32, durability: Durability) -> Result<(), StoreError> {
    Folder::new(path.to_owned()).write(EPOCH, epoch_text(epoch).as_bytes(), durability)
}

fn last_epoch(folder: &Folder) -> Result<u32, StoreError> {
    let Some(bytes) = folder.read(EPOCH)? else { return Ok(0) };
    let number = str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().parse().ok());
    number.ok_or_else(|| StoreError::damaged(&folder.path().join(EPOCH), "it holds no number"))
}

/// Eight digits, so that each number fits where the last one is.
fn epoch_text(epoch: u32) -> String {
    format!("{epoch:08}\n")
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
