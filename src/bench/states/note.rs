//! The note of a replacement of all data that is under way: a start that finds it completes the
//! replacement.
//!
//! Decides the form of the note, and that it is there as a whole or not at all. When it is written
//! and removed is decided in [`super::replace`].

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;

use super::saved::SavedStates;
use crate::disk::data_root::REPLACING;
use crate::disk::error::{StoreError, failing};
use crate::disk::folder::Durability;
use crate::disk::steps::step;

/// The note that is being written.
const NEW_NOTE: &str = "replacing.new";

/// The data that takes the place of all data of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// Nothing: the server is reset.
    Reset,
    /// The saved state of that name.
    Restore(String),
}

/// A replacement with the accounts whose data is replaced: the next start may serve others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// What takes the place of their data.
    pub by: Replacement,
    /// The accounts, at least one.
    pub accounts: Vec<String>,
}

const RESET: &str = "reset";
const RESTORE: &str = "restore ";
/// Between the replacement and its accounts. Neither names of states nor of accounts have spaces.
const OF: &str = " of ";

impl Note {
    fn text(&self) -> String {
        let by = match &self.by {
            Replacement::Reset => RESET.to_owned(),
            Replacement::Restore(name) => format!("{RESTORE}{name}"),
        };
        format!("{by}{OF}{}", self.accounts.join(" "))
    }

    fn read(text: &str) -> Option<Self> {
        let (by, accounts) = text.split_once(OF)?;
        let by = match by {
            RESET => Replacement::Reset,
            by => Replacement::Restore(by.strip_prefix(RESTORE)?.to_owned()),
        };
        Some(Self { by, accounts: accounts.split(' ').map(str::to_owned).collect() })
    }
}

impl SavedStates {
    /// From now on a start completes this replacement; after a power cut too, once
    /// [`SavedStates::settle`] has returned. After an error there is no new note.
    pub fn begin(&self, note: &Note) -> Result<(), StoreError> {
        let what = "noting a replacement of all data";
        let new = self.folder.join(NEW_NOTE);
        remove(&new).map_err(failing(what))?;
        symlink(note.text(), &new).map_err(failing(what))?;
        step();
        // Over the note of the replacement that a start completes: without it, the next start
        // would serve a mixture.
        fs::rename(new, self.folder.join(REPLACING)).map_err(failing(what))?;
        step();
        Ok(())
    }

    /// The replacement that was begun and not ended.
    pub fn begun(&self) -> Result<Option<Note>, StoreError> {
        let note = self.folder.join(REPLACING);
        let text = match fs::read_link(&note) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failing("looking for a replacement of all data"))?,
        };
        let found = text.to_str().and_then(Note::read);
        found.map(Some).ok_or_else(|| StoreError::Damaged {
            what: note.display().to_string(),
            why: format!("'{}' is no replacement", text.display()),
        })
    }

    /// The replacement is complete. With [`Durability::Synced`] all data is on the disk before.
    pub fn end(&self, durability: Durability) -> Result<(), StoreError> {
        if durability == Durability::Synced {
            self.sync()?;
        }
        remove(&self.folder.join(REPLACING))
            .map_err(failing("ending a replacement of all data"))?;
        step();
        self.settle(durability)
    }
}

fn remove(note: &std::path::Path) -> std::io::Result<()> {
    match fs::remove_file(note) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> [Note; 2] {
        let restore = Replacement::Restore("a.of-b".to_owned());
        let accounts = ["one".to_owned(), "two".to_owned()];
        [
            Note { by: Replacement::Reset, accounts: accounts[..1].to_vec() },
            Note { by: restore, accounts: accounts.to_vec() },
        ]
    }

    #[test]
    fn a_replacement_is_under_way_from_its_beginning_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let states = SavedStates::at(folder.path());
        assert_eq!(states.begun().unwrap(), None);
        for note in notes() {
            states.begin(&note).unwrap();
            let begun = SavedStates::at(folder.path()).begun().unwrap();
            assert_eq!(begun.as_ref(), Some(&note));
            states.settle(Durability::Synced).unwrap();
            states.end(Durability::Synced).unwrap();
            assert_eq!(states.begun().unwrap(), None);
            states.end(Durability::Cached).unwrap();
        }
    }

    #[test]
    fn a_note_that_cannot_be_written_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let states = SavedStates::at(folder.path());
        let [note, mut other] = notes();
        states.begin(&note).unwrap();
        // Longer than any link.
        other.accounts = vec!["one".to_owned(); 4_096];
        states.begin(&other).unwrap_err();
        assert_eq!(states.begun().unwrap(), Some(note));
    }

    #[test]
    fn a_note_without_accounts_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        symlink("reset", folder.path().join(REPLACING)).unwrap();
        let begun = SavedStates::at(folder.path()).begun();
        assert!(matches!(begun, Err(StoreError::Damaged { .. })), "{begun:?}");
    }
}
