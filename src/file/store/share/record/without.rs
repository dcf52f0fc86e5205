//! Files that are known to have no record, so that a question about one costs no system call.
//!
//! A file that this process made has no record at first. A record is written to the inode, which
//! moves the change time: a file whose change time is still that of its creation has none. Files
//! that are made, stay empty and are removed, such as lock files, are known here; a file that was
//! written is not.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::rules::{FileId, Timestamp};

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
