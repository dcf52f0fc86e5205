//! All data of all accounts replaced at once, while clients are connected and mounts are in use.
//!
//! Decides the order of steps. All that can fail comes first, while the old data is untouched:
//! saved shares are copied, shares are closed, writers are held, and each database has a
//! transaction that only waits for its commit. Then the replacement is written down, so that a
//! start after a kill completes it; and only when all parts are replaced is that note removed, and
//! anybody served again. So no request is acknowledged that a start would undo.

use std::path::PathBuf;

use super::databases::{Databases, saved_bytes};
use super::save::{Manifest, account_folder};
use super::{StateError, States};
use crate::core::service::ServiceKind;
use crate::engine::Account;
use crate::engine::clock::Setting;
use crate::engine::file::FileServiceError;
use crate::engine::file::shares::{ReplacingShares, Untold};
use crate::engine::service_properties::HeldProperties;
use crate::store::Durability;
use crate::store::root::Layout;
use crate::store::saved::steps::step;
use crate::store::saved::{Note, Replacement, copy_shares};

/// The data that takes the place of all data.
struct Next {
    /// The saved state, if it is one.
    state: Option<PathBuf>,
    clock: Setting,
}

impl Next {
    /// The folder of an account in the saved state.
    fn of(&self, account: &Account) -> Option<PathBuf> {
        self.state.as_ref().map(|state| account_folder(state, account.name()))
    }
}

impl States {
    /// Replaces everything in the accounts of the note. Returns the followers of shares, who are to
    /// be told with no lock held.
    pub(super) fn replace_all(&self, note: &Note) -> Result<Vec<Untold>, StateError> {
        let next = self.next(&note.by)?;
        let accounts = note.accounts.iter().filter_map(|name| self.accounts.get(name));
        let accounts: Vec<&Account> = accounts.map(|account| &**account).collect();
        let mut databases = Vec::new();
        for account in &accounts {
            databases.push(Databases::open(account, next.of(account).as_deref())?);
        }
        let scrap = self.trash.scrap()?;
        let aside = scrap.path();
        // In the trash: what is not used goes there.
        let copies = aside.join("copies");
        for account in &accounts {
            if let Some(saved) = next.of(account) {
                let layout = Layout { files: &saved.join("files"), state: &saved };
                copy_shares(layout, &copies.join(&**account.name()))
                    .map_err(FileServiceError::Snapshot)?;
                step();
            }
        }
        self.check_room(&next, &accounts)?;
        let owner = Self::owner();
        let mut shares = Vec::new();
        for account in &accounts {
            shares.push((*account, account.file().begin_replacing(&owner)?));
        }
        step();
        let properties: Vec<_> =
            accounts.iter().flat_map(|account| hold_properties(account)).collect();
        let held: Vec<_> = databases.iter().map(Databases::hold).collect();
        for (account, held) in accounts.iter().zip(&held) {
            held.replace(next.of(account).as_deref(), next.clock.now())?;
        }
        step();
        let durability = self.durability();
        self.saved.begin(note)?;
        let mut replaced = || -> Result<Vec<Untold>, StateError> {
            self.saved.settle(durability)?;
            for held in &held {
                held.commit()?;
            }
            for (account, shares) in &mut shares {
                shares.set_aside(&aside.join(&**account.name()))?;
                shares.put_in_place(&copies.join(&**account.name()))?;
            }
            step();
            self.accounts.controls().clock.set(next.clock);
            for properties in &properties {
                properties.reload()?;
            }
            for held in &held {
                held.replaced();
            }
            let untold = shares.iter().map(|(account, shares)| self.serve(&next, account, shares));
            let untold = untold.collect::<Result<_, _>>()?;
            step();
            self.saved.end(durability)?;
            Ok(untold)
        };
        let untold = replaced().map_err(|error| StateError::HalfDone(Box::new(error)))?;
        drop((held, properties, shares));
        Ok(untold)
    }

    fn next(&self, by: &Replacement) -> Result<Next, StateError> {
        let Replacement::Restore(name) = by else {
            return Ok(Next { state: None, clock: Setting::default() });
        };
        let state = self.saved.path(name).ok_or_else(|| StateError::NotFound(name.clone()))?;
        let manifest: Manifest = self.saved.manifest(&state)?;
        for account in &manifest.accounts {
            if self.accounts.get(account).is_none() {
                let (name, account) = (name.clone(), account.clone());
                return Err(StateError::NoAccount { name, account });
            }
        }
        Ok(Next { state: Some(state), clock: manifest.clock })
    }

    /// Refuses a restore whose databases do not fit on the disk: their commits must not fail. The
    /// rows are written to the log, and then to the database.
    fn check_room(&self, next: &Next, accounts: &[&Account]) -> Result<(), StateError> {
        let folders = accounts.iter().filter_map(|account| next.of(account));
        let needed: u64 = folders.map(|folder| saved_bytes(&folder)).sum();
        match self.saved.free() {
            Some(free) if free < needed.saturating_mul(2) => Err(StateError::Full { needed, free }),
            _ => Ok(()),
        }
    }

    /// Whether the replacement is on the disk before it is answered. In any case it survives the
    /// end of the process.
    fn durability(&self) -> Durability {
        if self.accounts.first().file().options().share.sync_always {
            Durability::Synced
        } else {
            Durability::Cached
        }
    }

    /// A restored state has its own shares; an empty one those of a start, and those that are
    /// mounted.
    fn serve(
        &self,
        next: &Next,
        account: &Account,
        shares: &ReplacingShares<'_>,
    ) -> Result<Untold, StateError> {
        let mut wanted = self.shares.get(&**account.name()).cloned().unwrap_or_default();
        wanted.extend(account.file().followed_names());
        if next.state.is_some() {
            wanted.clear();
        }
        Ok(shares.serve(&wanted)?)
    }
}

fn hold_properties(account: &Account) -> impl Iterator<Item = HeldProperties<'_>> {
    ServiceKind::ALL.into_iter().map(|kind| account.properties(kind).hold())
}
