//! Keeps the records of files: in the file's extended attribute, or in a sidecar file.
//!
//! The attribute is the rule: it follows the file through renames and backups, and changes with
//! it at once. The sidecar, a file in the state folder under the file's identity, is for records
//! too large for the file system and for files that cannot have attributes.
//!
//! There is one truth at any moment, also after a crash between any two steps:
//!
//! | attribute | sidecar | the record is |
//! |---|---|---|
//! | a record | whatever | in the attribute |
//! | "see the sidecar" | there | in the sidecar |
//! | "see the sidecar" | missing | damaged: a loss is not passed over |
//! | none | there | in the sidecar |
//! | none | missing | the default one |
//!
//! So each save has one step that switches, and those before and after it are invisible. To the
//! sidecar: replace it by a rename, then let the attribute point to it; the rename switches,
//! unless the attribute held a record, then its change does. To the attribute: set it, which
//! switches, then remove the sidecar. Steps on two files are flushed in that order, for they may
//! be on two disks.
//!
//! Only one call at a time for one file: the engine holds its lock. A sidecar is found by the
//! identity, so a copy of a file that took the attribute along points to nothing and is reported
//! as damaged until its record is saved anew.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dashmap::DashSet;

use super::xattr::{self, Fit};
use super::{Record, decode, encode};
use crate::disk::error::StoreError;
use crate::disk::folder::{Durability, Folder};
use crate::disk::state::StateDir;
use crate::file::store::share::Stat;
use crate::rules::{FileId, Timestamp};

/// The records of one share's files.
#[derive(Debug)]
pub struct Records {
    folder: Folder,
    /// Whose sidecars exist, so that an ordinary file costs no look into the folder.
    sidecars: DashSet<FileId>,
    without: Without,
}

impl Records {
    /// Name of the extended attribute; not to be shown on the mount.
    pub const XATTR: &str = "user.latchfs";

    /// With sidecars in the folder `records` of the state folder `state`, which this process
    /// must have to itself.
    pub fn new(state: &Path) -> Result<Self, StoreError> {
        Self::open(Folder::new(state.join("records")))
    }

    /// As [`Records::new`], for a state folder that is open: the records are usable as long as the
    /// state folder is.
    pub fn beside(state: &StateDir) -> Result<Self, StoreError> {
        Self::open(Folder::within(state.path().join("records"), state.tenure().clone()))
    }

    fn open(folder: Folder) -> Result<Self, StoreError> {
        folder.sweep()?;
        let sidecars = folder.names()?.iter().filter_map(|name| owner(name)).collect();
        Ok(Self { folder, sidecars, without: Without::default() })
    }

    /// The record of the file `id`, open as `fd` (an `O_PATH` descriptor will do). A file without
    /// one costs a single system call.
    pub fn load(&self, fd: impl AsFd, id: FileId) -> Result<Record, StoreError> {
        self.decode(xattr::get(fd.as_fd())?, id)
    }

    /// The record of the file `id`, which is named by a path as of `ShareDir::at_place`.
    pub fn load_named(&self, path: &str, id: FileId) -> Result<Record, StoreError> {
        self.decode(xattr::get_named(path)?, id)
    }

    /// The record that an attribute stands for.
    fn decode(&self, attribute: Option<Vec<u8>>, id: FileId) -> Result<Record, StoreError> {
        let Some(bytes) = attribute else {
            return Ok(self.sidecar(id)?.unwrap_or_default());
        };
        let what = || format!("the record of inode {}", id.ino);
        let (head, record) = decode(&bytes, what)?;
        if head.sidecar.is_none() {
            return Ok(record);
        }
        self.sidecar(id)?.ok_or_else(|| StoreError::Damaged {
            what: what(),
            why: format!("its sidecar {} is missing", self.place(id)),
        })
    }

    /// Keeps `record` for the file `id`, open as `fd`; the default record is kept by keeping
    /// none. Raises [`Record::changes`] if the record goes to a sidecar, since the inode's
    /// change time may not move then. After an error, either the old or the new record is there.
    pub fn save(&self, fd: impl AsFd, id: FileId, record: &mut Record) -> Result<(), StoreError> {
        let fd = fd.as_fd();
        self.without.forget(id);
        if record.is_default() {
            return self.clear(fd, id);
        }
        match xattr::set(fd, &encode(None, record))? {
            Fit::Stored if self.sidecars.contains(&id) => {
                xattr::flush(fd)?;
                self.drop_sidecar(id, Durability::Synced)
            }
            Fit::Stored => Ok(()),
            Fit::NoRoom | Fit::Unsupported => {
                record.changes = record.changes.wrapping_add(1);
                self.write_sidecar(id, record)?;
                point_to_sidecar(fd, record.changes)
            }
        }
    }

    /// A file that was made just now has no record: until it changes it is known to have none.
    pub fn note_without(&self, made: &Stat) {
        self.without.note(made.id, made.changed);
    }

    /// True if the file is known to have no record. `stat` shows it as it is now.
    pub fn is_without(&self, stat: &Stat) -> bool {
        self.without.holds(stat.id, stat.changed)
    }

    /// Drops what is kept in the state folder of a file that is gone. Not flushed: neither is the
    /// removal of the file itself, and after a power failure both may be back.
    pub fn forget(&self, id: FileId) -> Result<(), StoreError> {
        self.drop_sidecar(id, Durability::Cached)
    }

    fn drop_sidecar(&self, id: FileId, durability: Durability) -> Result<(), StoreError> {
        if self.sidecars.contains(&id) {
            self.folder.remove(&name(id), durability)?;
            self.sidecars.remove(&id);
        }
        Ok(())
    }

    fn clear(&self, fd: BorrowedFd<'_>, id: FileId) -> Result<(), StoreError> {
        if self.sidecars.contains(&id) {
            // An empty record first: without it, a crash between the two removals would leave a
            // pointer to nothing, or bring a sidecar back that the attribute had outdated.
            match xattr::set(fd, &encode(None, &Record::default()))? {
                Fit::Stored => xattr::flush(fd)?,
                Fit::NoRoom if xattr::get(fd)?.is_some() => return Err(StoreError::NoSpace),
                Fit::NoRoom | Fit::Unsupported => {}
            }
            self.drop_sidecar(id, Durability::Synced)?;
        }
        xattr::remove(fd)
    }

    fn write_sidecar(&self, id: FileId, record: &Record) -> Result<(), StoreError> {
        // Noted first: an entry without a file costs a look, a file without an entry is lost.
        let first = self.sidecars.insert(id);
        let written = self.folder.write(&name(id), &encode(None, record), Durability::Synced);
        if written.is_err() && first && !self.folder.path().join(name(id)).exists() {
            self.sidecars.remove(&id);
        }
        written
    }

    fn sidecar(&self, id: FileId) -> Result<Option<Record>, StoreError> {
        if !self.sidecars.contains(&id) {
            return Ok(None);
        }
        match self.folder.read(&name(id))? {
            Some(bytes) => decode(&bytes, || self.place(id)).map(|(_, record)| Some(record)),
            None => Ok(None),
        }
    }

    fn place(&self, id: FileId) -> String {
        self.folder.path().join(name(id)).display().to_string()
    }
}

/// Also moves the inode's change time, each time: the number of changes differs.
fn point_to_sidecar(fd: BorrowedFd<'_>, changes: u64) -> Result<(), StoreError> {
    match xattr::set(fd, &encode(Some(changes), &Record::default()))? {
        Fit::Stored => Ok(()),
        // A file without the attribute is looked up too; an older record in it must go.
        Fit::NoRoom | Fit::Unsupported => xattr::remove(fd),
    }
}

fn name(id: FileId) -> String {
    format!("{id}.json")
}

fn owner(name: &str) -> Option<FileId> {
    FileId::parse(name.strip_suffix(".json")?)
}

/// How many files are remembered. Two whose inode numbers differ by a multiple of it share a
/// place, and the later one has it.
const PLACES: usize = 4096;

/// The files of one share.
#[derive(Debug, Default)]
pub(super) struct Without {
    /// Empty until the first file is noted.
    places: Mutex<Vec<(FileId, Timestamp)>>,
}

impl Without {
    /// The file has no record and this change time.
    pub(super) fn note(&self, id: FileId, changed: Timestamp) {
        let mut places = self.lock();
        if places.is_empty() {
            places.resize(PLACES, (FileId { ino: 0, born: 0 }, Timestamp(0)));
        }
        places[place(id)] = (id, changed);
    }

    /// True if the file, which has this change time now, has no record.
    pub(super) fn holds(&self, id: FileId, changed: Timestamp) -> bool {
        self.lock().get(place(id)) == Some(&(id, changed))
    }

    /// The file is about to get a record.
    pub(super) fn forget(&self, id: FileId) {
        if let Some(known) = self.lock().get_mut(place(id)).filter(|known| known.0 == id) {
            *known = (FileId { ino: 0, born: 0 }, Timestamp(0));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(FileId, Timestamp)>> {
        // No step in here panics half done.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(id: FileId) -> usize {
    usize::try_from(id.ino % PLACES as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(ino: u64) -> FileId {
        FileId { ino, born: 7 }
    }

    #[test]
    fn a_file_is_known_until_it_changes_or_gets_a_record() {
        let without = Without::default();
        assert!(!without.holds(file(1), Timestamp(5)));
        without.note(file(1), Timestamp(5));
        assert!(without.holds(file(1), Timestamp(5)));
        assert!(!without.holds(file(1), Timestamp(6)), "it was changed");
        assert!(!without.holds(FileId { born: 8, ..file(1) }, Timestamp(5)), "it is another file");
        without.forget(file(2));
        assert!(without.holds(file(1), Timestamp(5)));
        without.forget(file(1));
        assert!(!without.holds(file(1), Timestamp(5)));
    }

    #[test]
    fn there_are_only_so_many_and_the_later_one_has_the_place() {
        let without = Without::default();
        let later = file(1 + PLACES as u64);
        without.note(file(1), Timestamp(5));
        without.note(later, Timestamp(5));
        without.forget(file(1));
        assert!(!without.holds(file(1), Timestamp(5)) && without.holds(later, Timestamp(5)));
        assert_eq!(without.lock().len(), PLACES);
    }
}
