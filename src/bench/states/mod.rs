//! The state of a server as a whole: saved, restored, and reset.
//!
//! ```text
//!   States       what front ends ask for
//!   databases    the Blob, Queue and Table services of an account, held
//!   save         what a saved state holds
//!   replace      all data of all accounts replaced, while clients are connected
//! ```
//!
//! Requests that are under way take effect before the replacement, or are carried out after it, on
//! the new data; those of the File service are then refused with "try again". Handles are closed by
//! force and holds end. A request that waits at a gate goes on against the new data. The counters
//! behind `ETag`s, receipts, snapshots and handles go on: no value comes a second time. If a
//! replacement fails half way, no request is acknowledged until a start has completed it.

mod databases;
mod error;
mod replace;
mod save;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use error::{DamagedState, StateError};

use crate::bench::saved::{Note, Replacement, SavedStates, Trash, is_state_name};
use crate::rules::{Client, Owner, Timestamp};
use crate::server::Accounts;
use save::Manifest;

/// The session number of the one who replaces the state, in the log of events.
const SESSION: u64 = 1 << 41;

/// States that a server keeps.
pub const STATES_MAX: usize = 256;

/// A state that was saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedState {
    pub name: String,
    /// When it was saved, by the system's clock.
    pub saved: Timestamp,
}

/// The state of a server: all services of all accounts.
pub struct States {
    accounts: Arc<Accounts>,
    /// Shares by account that exist after a reset.
    shares: BTreeMap<String, BTreeSet<String>>,
    saved: SavedStates,
    trash: Trash,
    /// Held while the state is saved or replaced.
    replacing: Mutex<()>,
}

impl States {
    /// Of the server whose own folder is `folder`. After a reset it has these shares, empty, and
    /// those that are mounted.
    pub fn open(
        folder: &Path,
        accounts: Arc<Accounts>,
        shares: BTreeMap<String, BTreeSet<String>>,
    ) -> Result<Self, StateError> {
        let saved = SavedStates::at(folder);
        let trash = Trash::open(&saved.trash())?;
        saved.sweep(&trash)?;
        Ok(Self { accounts, shares, saved, trash, replacing: Mutex::default() })
    }

    /// True if the end of an earlier process cut a replacement off: [`States::complete`] first.
    pub fn is_interrupted(folder: &Path) -> Result<bool, StateError> {
        Ok(SavedStates::at(folder).begun()?.is_some())
    }

    /// Completes the replacement that the end of an earlier process cut off. To be called before
    /// anybody is served.
    pub fn complete(&self) -> Result<(), StateError> {
        let Some(note) = self.saved.begun()? else { return Ok(()) };
        log::info!("completing an interrupted replacement of all data: {note:?}");
        if let Some(account) = note.accounts.iter().find(|name| self.accounts.get(name).is_none()) {
            return Err(StateError::CutOff { account: account.clone() });
        }
        self.replace(&note)
    }

    /// Removes everything: the server is as after a start with no data. Gates and faults are
    /// removed, and the clock shows the system's time. May wait.
    pub fn reset(&self) -> Result<(), StateError> {
        self.replace(&self.note(Replacement::Reset)).map_err(StateError::of_reset)?;
        let controls = self.accounts.controls();
        controls.faults.remove(None);
        controls.gates.remove(None);
        Ok(())
    }

    /// Saves all data under a name, in place of a state that has it. May wait; clients are served
    /// meanwhile.
    pub fn save(&self, name: &str) -> Result<SavedState, StateError> {
        check_name(name)?;
        let _replacing = self.alone()?;
        self.save_all(name)
    }

    /// Replaces all data by the state of that name, and sets the clock as it was. Requests that
    /// wait at gates go on against the new data; gates and faults stay. May wait.
    pub fn restore(&self, name: &str) -> Result<(), StateError> {
        check_name(name)?;
        self.replace(&self.note(Replacement::Restore(name.to_owned())))?;
        self.accounts.controls().gates.release(None, None, None);
        Ok(())
    }

    /// The states that were saved, by name; for each one whose properties cannot be read, why not.
    pub fn list(&self) -> Result<Vec<Result<SavedState, DamagedState>>, StateError> {
        let mut states = Vec::new();
        for name in self.saved.names()? {
            // One that was deleted meanwhile is none.
            let Some(path) = self.saved.path(&name) else { continue };
            states.push(match self.saved.manifest::<Manifest>(&path) {
                Ok(manifest) => Ok(SavedState { name, saved: manifest.saved }),
                Err(error) => Err(DamagedState { name, why: error.to_string() }),
            });
        }
        Ok(states)
    }

    /// Deletes the state of that name.
    pub fn delete(&self, name: &str) -> Result<(), StateError> {
        check_name(name)?;
        let _replacing = self.alone()?;
        if self.saved.remove(name, &self.trash)? {
            Ok(())
        } else {
            Err(StateError::NotFound(name.to_owned()))
        }
    }

    /// Waits until no other state is saved, deleted or put in place. After a replacement that
    /// failed half way all that is refused: the next start needs the states as they are.
    fn alone(&self) -> Result<MutexGuard<'_, ()>, StateError> {
        let alone = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.accounts.halted() {
            Some(why) => Err(StateError::HalfDone(why.to_owned())),
            None => Ok(alone),
        }
    }

    /// A replacement of the data of all accounts.
    fn note(&self, by: Replacement) -> Note {
        Note { by, accounts: self.accounts.names() }
    }

    fn replace(&self, note: &Note) -> Result<(), StateError> {
        let _replacing = self.alone()?;
        let untold = self.replace_all(note)?;
        // With no lock held: a mount has the kernel look names up.
        for untold in untold {
            untold.tell();
        }
        Ok(())
    }

    fn owner() -> Owner {
        let client = Client { session: SESSION, name: "a reset or a restore".to_owned() };
        Owner { client: Arc::new(client), pid: std::process::id(), program: None }
    }
}

fn check_name(name: &str) -> Result<(), StateError> {
    if is_state_name(name) { Ok(()) } else { Err(StateError::Name(name.to_owned())) }
}

impl std::fmt::Debug for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("States").field("saved", &self.saved).finish_non_exhaustive()
    }
}
