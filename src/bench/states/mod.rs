//! The state of a server as a whole: saved, restored, and reset.
//!
//! ```text
//!   States    what front ends ask for, and how a state is saved
//!   replace   all data of all accounts replaced, while clients are connected
//!   saved     saved states on disk
//!   note      the note on disk of the replacement that is under way
//!   trash     what was replaced, removed in the background
//! ```
//!
//! Knows no service: the data is a list of parts ([`crate::disk::part`]) that [`ServerData`] gives.
//! Requests that are under way take effect before the replacement, or are carried out after it, on
//! the new data; those of the File service are then refused with "try again". Handles are closed by
//! force and holds end. A request that waits at a gate ends there, without an answer. The counters
//! behind `ETag`s, receipts, snapshots and handles go on: no value comes a second time. If a
//! replacement fails half way, no request is acknowledged until a start has completed it.

mod error;
mod note;
mod replace;
mod saved;
mod trash;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use error::{DamagedState, StateError};

use self::note::{Note, Replacement};
use self::saved::{Manifest, SavedStates, account_folder, is_state_name, make_folder};
use self::trash::Trash;
use super::Controls;
use crate::clock::{SystemClock, TimeSource as _};
use crate::disk::Durability;
use crate::disk::part::{Part, PartError};
use crate::disk::steps::step;
use crate::rules::Timestamp;

/// States that a server keeps.
pub const STATES_MAX: usize = 256;

/// A state that was saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedState {
    pub name: String,
    /// When it was saved, by the system's clock.
    pub saved: Timestamp,
}

/// All data of a server.
pub trait ServerData: Send + Sync {
    /// The names of all accounts.
    fn accounts(&self) -> Vec<String>;

    /// The parts of an account that have data, or that have data in its folder `saved` of a saved
    /// state. They are held and replaced in this order.
    fn parts(
        &self,
        account: &str,
        saved: Option<&Path>,
    ) -> Result<Vec<Box<dyn Part + '_>>, PartError>;

    /// Makes what the server has at a start with no data and is no part of [`ServerData::parts`].
    fn refill(&self) -> Result<(), String>;

    /// Whether a replacement is on the disk before it is answered. In any case it survives the end
    /// of the process.
    fn durability(&self) -> Durability;

    /// From now on no request is acknowledged: the data is not whole.
    fn halt(&self, why: String);

    /// Why no request is acknowledged any more.
    fn halted(&self) -> Option<&str>;
}

/// The state of a server: all services of all accounts.
pub struct States {
    data: Arc<dyn ServerData>,
    controls: Arc<Controls>,
    saved: SavedStates,
    trash: Trash,
    /// Held while the state is saved or replaced.
    replacing: Mutex<()>,
}

impl States {
    /// Of the server whose own folder is `folder`.
    pub fn open(
        folder: &Path,
        data: Arc<dyn ServerData>,
        controls: Arc<Controls>,
    ) -> Result<Self, StateError> {
        let saved = SavedStates::at(folder);
        let trash = Trash::open(&saved.trash())?;
        saved.sweep(&trash)?;
        Ok(Self { data, controls, saved, trash, replacing: Mutex::default() })
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
        let served = self.data.accounts();
        if let Some(account) = note.accounts.iter().find(|name| !served.contains(name)) {
            return Err(StateError::CutOff { account: account.clone() });
        }
        self.replace(&note)
    }

    /// Removes everything: the server is as after a start with no data. Gates and faults are
    /// removed, and the clock shows the system's time. May wait.
    pub fn reset(&self) -> Result<(), StateError> {
        self.replace(&self.note(Replacement::Reset)).map_err(StateError::of_reset)?;
        self.controls.faults.remove(None);
        self.controls.gates.remove(None);
        self.data.refill().map_err(StateError::Refill)
    }

    /// Saves all data under a name, in place of a state that has it. May wait; clients are served
    /// meanwhile.
    pub fn save(&self, name: &str) -> Result<SavedState, StateError> {
        check_name(name)?;
        let _replacing = self.alone()?;
        let names = self.saved.names()?;
        if names.len() >= STATES_MAX && !names.iter().any(|known| known == name) {
            return Err(StateError::TooMany);
        }
        let folder = self.saved.prepare(name, &self.trash)?;
        let saved = self.save_in(&folder).and_then(|manifest| {
            self.saved.publish(name, &manifest, &self.trash)?;
            Ok(SavedState { name: name.to_owned(), saved: manifest.saved })
        });
        if saved.is_err()
            && let Err(error) = self.saved.give_up(name)
        {
            log::warn!("a state that could not be saved stays until the next start: {error}");
        }
        saved
    }

    /// Saves all parts in a folder, those that can be held as they are at one moment.
    fn save_in(&self, folder: &Path) -> Result<Manifest, StateError> {
        let accounts = self.data.accounts();
        let mut parts = Vec::new();
        for account in &accounts {
            make_folder(&account_folder(folder, account))?;
            let of_account = self.data.parts(account, None)?;
            parts.extend(of_account.into_iter().map(|part| (account, part)));
        }
        let mut saving = Vec::new();
        for (account, part) in &parts {
            saving.push((*account, part.save(&account_folder(folder, account))?));
        }
        for (_, part) in &mut saving {
            part.begin()?;
        }
        let clock = self.controls.clock.setting();
        for (_, part) in &mut saving {
            part.release();
        }
        step();
        let mut saved = BTreeMap::<_, Vec<_>>::new();
        for (account, part) in saving {
            saved.entry(account.clone()).or_default().extend(part.finish()?);
            step();
        }
        for paths in saved.values_mut() {
            paths.sort();
        }
        Ok(Manifest { saved: SystemClock.now(), clock, accounts, parts: saved })
    }

    /// Replaces all data by the state of that name, and sets the clock as it was. Requests that
    /// wait at gates end; gates and faults stay. May wait.
    pub fn restore(&self, name: &str) -> Result<(), StateError> {
        check_name(name)?;
        self.replace(&self.note(Replacement::Restore(name.to_owned())))
    }

    /// The states that were saved, by name; for each one whose properties cannot be read, why not.
    pub fn list(&self) -> Result<Vec<Result<SavedState, DamagedState>>, StateError> {
        let mut states = Vec::new();
        for name in self.saved.names()? {
            // One that was deleted meanwhile is none.
            let Some(path) = self.saved.path(&name) else { continue };
            states.push(match Manifest::of(&path) {
                Ok(manifest) => Ok(SavedState { name, saved: manifest.saved }),
                Err(error) => Err(DamagedState::new(&name, &error)),
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
        match self.data.halted() {
            Some(why) => Err(StateError::HalfDone(why.to_owned())),
            None => Ok(alone),
        }
    }

    /// A replacement of the data of all accounts.
    fn note(&self, by: Replacement) -> Note {
        Note { by, accounts: self.data.accounts() }
    }
}

fn check_name(name: &str) -> Result<(), StateError> {
    if is_state_name(name) { Ok(()) } else { Err(StateError::Name(name.to_owned())) }
}
