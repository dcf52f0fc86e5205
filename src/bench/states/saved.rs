//! What is kept on disk beside the data: saved states, which replacement is under way, and what was
//! replaced and waits to be removed.
//!
//! ```text
//! <folder>/states/<name>/  a saved state: state.json, and a folder for each account with copies of
//!                          its databases, its shares, and links to its content files
//! <folder>/replacing       the replacement that is under way: a start that finds it completes it.
//!                          A link, which file systems write in one step and in order with renames
//! <folder>/trash/<n>/      what was replaced
//! ```
//!
//! Decides names and forms, and that a state is there as a whole or not at all: it is built under a
//! hidden name. What an account's folder holds is decided by the parts of its data; the form of the
//! note of a replacement in [`super::note`].

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::trash::Trash;
use crate::clock::Setting;
use crate::disk::error::{StoreError, doing, failing};
use crate::disk::folder::Durability;
use crate::disk::steps::step;
use crate::disk::tree;
use crate::rules::Timestamp;
use crate::sync::front_end::assert_may_block;

const STATES: &str = "states";
/// The file with the properties of a state as a whole.
const MANIFEST: &str = "state.json";
/// Begins the name of a state that is being saved, and of one that another takes the place of. No
/// state can be called so.
const NEW: &str = ".new-";
const OLD: &str = ".old-";
/// The form that is written here, and the newest that is understood.
const VERSION: u32 = 1;
/// The longest name of a state.
const NAME_MAX: usize = 64;

/// True for a name that a state may have: 1 to 64 letters, digits, dots, hyphens and underscores,
/// the first of them no dot.
pub(super) fn is_state_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(letter)
}

/// The properties of a saved state as a whole.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// When it was saved, by the system's clock.
    pub saved: Timestamp,
    /// How the clock of the server went.
    pub clock: Setting,
    /// The accounts that were served.
    pub accounts: Vec<String>,
    /// The paths in the folder of each account that a restore needs. States of earlier versions do
    /// not list them.
    #[serde(default)]
    pub parts: BTreeMap<String, Vec<String>>,
}

impl Manifest {
    /// The manifest of a state.
    pub(super) fn of(state: &Path) -> Result<Self, StoreError> {
        let path = state.join(MANIFEST);
        let damaged = |why: String| StoreError::damaged(&path, why);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoreError::missing(&path));
            }
            text => text.map_err(failing("reading a saved state"))?,
        };
        let read: Versioned<Value> =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if read.v > VERSION {
            let why = format!("it was saved by a newer latchfs, in form {}", read.v);
            return Err(damaged(why));
        }
        serde_json::from_value(read.value).map_err(|error| damaged(error.to_string()))
    }
}

/// A manifest with the version of its form.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u32,
    #[serde(flatten)]
    value: T,
}

pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(failing("making a folder for a state"))
}

/// The folder of an account in a saved state.
pub(super) fn account_folder(state: &Path, account: &str) -> PathBuf {
    state.join("accounts").join(account)
}

/// The folder of a data directory that holds all this.
#[derive(Debug)]
pub(super) struct SavedStates {
    pub(super) folder: PathBuf,
}

impl SavedStates {
    /// In the server's own folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Removes what a crash has left half saved, into `trash`. A state that another was about to
    /// replace is there again.
    pub fn sweep(&self, trash: &Trash) -> Result<(), StoreError> {
        for name in tree::names(&self.folder.join(STATES))? {
            self.tidy(&name, trash)?;
        }
        Ok(())
    }

    /// As [`SavedStates::sweep`], for one entry of the folder of states.
    fn tidy(&self, entry: &str, trash: &Trash) -> Result<(), StoreError> {
        let states = self.folder.join(STATES);
        let path = states.join(entry);
        let to = match entry.strip_prefix(OLD).map(|replaced| states.join(replaced)) {
            Some(place) if !place.exists() => fs::rename(path, place),
            None if !entry.starts_with(NEW) => return Ok(()),
            _ => {
                let scrap = trash.scrap()?;
                fs::rename(path, scrap.path().join("state"))
            }
        };
        to.map_err(failing("tidying saved states"))
    }

    /// The names of all states, in order.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = tree::names(&self.folder.join(STATES))?;
        names.retain(|name| is_state_name(name));
        names.sort();
        Ok(names)
    }

    /// Where the state of that name is, if there is one.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.folder.join(STATES).join(name);
        (is_state_name(name) && path.is_dir()).then_some(path)
    }

    /// A folder to save a state in, which is none until [`SavedStates::publish`]. What an earlier
    /// save of that name has left goes to `trash`.
    pub fn prepare(&self, name: &str, trash: &Trash) -> Result<PathBuf, StoreError> {
        let states = self.folder.join(STATES);
        for entry in [format!("{OLD}{name}"), format!("{NEW}{name}")] {
            if states.join(&entry).exists() {
                self.tidy(&entry, trash)?;
            }
        }
        let path = states.join(format!("{NEW}{name}"));
        make_folder(&path)?;
        Ok(path)
    }

    /// Gives up what was prepared.
    pub fn give_up(&self, name: &str) -> Result<(), StoreError> {
        tree::remove(tree::open_root(&self.folder.join(STATES))?, &format!("{NEW}{name}"))
    }

    /// Makes what was prepared the state of that name, in place of any other, which goes to
    /// `trash`. All of it is on the disk before.
    pub fn publish(
        &self,
        name: &str,
        manifest: &Manifest,
        trash: &Trash,
    ) -> Result<(), StoreError> {
        let what = "naming a saved state";
        let states = self.folder.join(STATES);
        let (new, place) = (states.join(format!("{NEW}{name}")), states.join(name));
        let value = serde_json::to_vec(&Versioned { v: VERSION, value: manifest });
        let value = value.map_err(|error| failing(what)(error.into()))?;
        fs::write(new.join(MANIFEST), value).map_err(failing(what))?;
        self.sync()?;
        step();
        let old = states.join(format!("{OLD}{name}"));
        // Before the first rename: on a full disk the state before stays.
        let scrap = place.exists().then(|| trash.scrap()).transpose()?;
        if scrap.is_some() {
            fs::rename(&place, &old).map_err(failing(what))?;
            step();
        }
        if let Err(error) = fs::rename(&new, &place) {
            // If this fails too, the next save of that name or the next start puts it back.
            let _ = fs::rename(&old, &place);
            return Err(failing(what)(error));
        }
        step();
        // The state is saved: the one before goes at the latest with the next save or start.
        if let Some(scrap) = scrap
            && let Err(error) = fs::rename(&old, scrap.path().join("state"))
        {
            log::warn!("{}: a state that was replaced stays: {error}", old.display());
        }
        let folder = File::open(&states).and_then(|folder| folder.sync_all());
        folder.map_err(failing(what))
    }

    /// Removes the state of that name; false if there is none.
    pub fn remove(&self, name: &str, trash: &Trash) -> Result<bool, StoreError> {
        let Some(path) = self.path(name) else { return Ok(false) };
        let scrap = trash.scrap()?;
        let aside = scrap.path().join("state");
        fs::rename(path, aside).map_err(failing("removing a saved state"))?;
        Ok(true)
    }

    /// Bytes that are free on the disk; `None` if the file system does not tell.
    pub fn free(&self) -> Option<u64> {
        let seen = rustix::fs::statvfs(&self.folder).ok()?;
        (seen.f_blocks > 0).then(|| seen.f_bavail.saturating_mul(seen.f_frsize))
    }

    /// Where replaced data waits to be removed.
    pub fn trash(&self) -> PathBuf {
        self.folder.join("trash")
    }

    /// Puts all data on the disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        assert_may_block("a flush of all data");
        let folder = File::open(&self.folder).map_err(failing("flushing all data"))?;
        rustix::fs::syncfs(folder).map_err(doing("flushing all data"))
    }

    /// Makes the note last, or its end.
    pub fn settle(&self, durability: Durability) -> Result<(), StoreError> {
        match durability {
            Durability::Cached => Ok(()),
            Durability::Synced => {
                assert_may_block("a flush of a folder");
                let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
                folder.map_err(failing("flushing a folder"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(account: &str) -> Manifest {
        let (saved, clock, parts) = (Timestamp(1), Setting::default(), BTreeMap::new());
        Manifest { saved, clock, accounts: vec![account.to_owned()], parts }
    }

    #[test]
    fn a_state_is_there_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let states = SavedStates::at(folder.path());
        let trash = Trash::open(&states.trash()).unwrap();
        for text in ["first", "second"] {
            let prepared = states.prepare("a", &trash).unwrap();
            fs::write(prepared.join("file"), text).unwrap();
            assert!(!states.names().unwrap().contains(&".new-a".to_owned()));
            states.publish("a", &manifest(text), &trash).unwrap();
            let path = states.path("a").unwrap();
            assert_eq!(fs::read_to_string(path.join("file")).unwrap(), text);
            assert_eq!(Manifest::of(&path).unwrap().accounts, [text]);
        }
        states.prepare("b", &trash).unwrap();
        states.give_up("b").unwrap();
        states.prepare("c", &trash).unwrap();
        let at = folder.path().join("states");
        fs::rename(at.join("a"), at.join(".old-a")).unwrap();
        assert!(states.names().unwrap().is_empty());
        states.sweep(&trash).unwrap();
        assert_eq!(states.names().unwrap(), ["a"]);
        assert_eq!(tree::names(&at).unwrap(), ["a"]);
        assert!(states.remove("a", &trash).unwrap() && !states.remove("a", &trash).unwrap());
        assert!(!states.remove("../x", &trash).unwrap());
    }

    /// Saves a state that holds one file.
    fn save(states: &SavedStates, text: &str, trash: &Trash) -> Result<(), StoreError> {
        let prepared = states.prepare("a", trash)?;
        fs::create_dir(prepared.join("folder")).unwrap();
        fs::write(prepared.join("folder/file"), text).unwrap();
        states.publish("a", &manifest(text), trash)
    }

    fn saved(states: &SavedStates) -> String {
        fs::read_to_string(states.path("a").unwrap().join("folder/file")).unwrap()
    }

    #[test]
    fn what_a_save_that_failed_has_left_does_not_stop_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let states = SavedStates::at(folder.path());
        let trash = Trash::open(&states.trash()).unwrap();
        save(&states, "first", &trash).unwrap();
        let at = folder.path().join("states");
        for left in [".new-a", ".old-a"] {
            fs::create_dir_all(at.join(left).join("folder")).unwrap();
            fs::write(at.join(left).join("folder/file"), "left").unwrap();
        }
        save(&states, "second", &trash).unwrap();
        assert_eq!(
            (saved(&states).as_str(), tree::names(&at).unwrap()),
            ("second", vec!["a".into()])
        );
        // The state was moved away, and the new one did not get its place.
        fs::rename(at.join("a"), at.join(".old-a")).unwrap();
        states.prepare("a", &trash).unwrap();
        assert_eq!(saved(&states), "second");
    }

    #[test]
    fn a_save_that_fails_leaves_the_state_before() {
        let folder = tempfile::tempdir().unwrap();
        let states = SavedStates::at(folder.path());
        let trash = Trash::open(&states.trash()).unwrap();
        save(&states, "first", &trash).unwrap();
        // There is no folder for what is replaced.
        fs::create_dir_all(states.trash()).unwrap();
        fs::write(states.trash().join("1"), "").unwrap();
        save(&states, "second", &trash).unwrap_err();
        assert_eq!(saved(&states), "first");
        save(&states, "third", &trash).unwrap();
        assert_eq!(saved(&states), "third");
    }

    #[test]
    fn names_of_states_are_letters_digits_dots_hyphens_and_underscores() {
        let longest = "a".repeat(64);
        for name in ["a", "A.b-c_9", "-", &longest] {
            assert!(is_state_name(name), "{name}");
        }
        for name in ["", ".a", "..", "a/b", "a b", "\u{e4}", &"a".repeat(65)] {
            assert!(!is_state_name(name), "{name}");
        }
    }
}
