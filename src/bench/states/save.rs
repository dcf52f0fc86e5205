//! A state that is saved: what it holds, and the moment that it is of.
//!
//! Decides that the databases of all accounts are saved as they are at one moment, for which their
//! writers are held; and that shares are copied while programs write, as a share snapshot is. Where
//! a state is kept is decided in [`crate::bench::saved`].

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::databases::Databases;
use super::{STATES_MAX, SavedState, StateError, States};
use crate::bench::saved::saved_parts;
use crate::bench::saved::steps::step;
use crate::clock::{Setting, SystemClock, TimeSource as _};
use crate::disk::StoreError;
use crate::rules::Timestamp;

/// The properties of a saved state as a whole.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// When it was saved, by the system's clock.
    pub saved: Timestamp,
    /// How the clock of the server went.
    pub clock: Setting,
    /// The accounts that were served.
    pub accounts: Vec<String>,
    /// The parts of each account that were saved ([`saved_parts`]). States of earlier versions do
    /// not tell.
    #[serde(default)]
    pub parts: BTreeMap<String, Vec<String>>,
}

/// The folder of an account in a saved state.
pub(super) fn account_folder(state: &Path, account: &str) -> PathBuf {
    state.join("accounts").join(account)
}

impl States {
    /// Saves everything under a name. The state there may be is replaced.
    pub(super) fn save_all(&self, name: &str) -> Result<SavedState, StateError> {
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

    fn save_in(&self, folder: &Path) -> Result<Manifest, StateError> {
        let accounts: Vec<_> = self.accounts.iter().collect();
        let mut databases = Vec::new();
        for account in &accounts {
            make(&account_folder(folder, account.name()))?;
            databases.push(Databases::open(account, None)?);
        }
        let mut saved = Vec::new();
        for (account, databases) in accounts.iter().zip(&databases) {
            saved.push(databases.save(&account_folder(folder, account.name()))?);
        }
        let clock = {
            let _held: Vec<_> = databases.iter().map(Databases::hold).collect();
            for saved in &mut saved {
                saved.begin()?;
            }
            self.accounts.controls().clock.setting()
        };
        step();
        for saved in saved {
            saved.finish()?;
        }
        for account in &accounts {
            account.file().save_shares(&account_folder(folder, account.name()))?;
            step();
        }
        let accounts: Vec<_> = accounts.iter().map(|account| account.name().to_string()).collect();
        let mut parts = BTreeMap::new();
        for account in &accounts {
            parts.insert(account.clone(), saved_parts(&account_folder(folder, account))?);
        }
        Ok(Manifest { saved: SystemClock.now(), clock, accounts, parts })
    }
}

fn make(folder: &Path) -> Result<(), StoreError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| StoreError::Io { what: "making a folder for a state", source })
}
