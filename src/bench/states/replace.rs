//! All data of all accounts replaced at once, while clients are connected and mounts are in use.
//!
//! Decides the order of steps. What can fail comes first where that is possible, while the old
//! data is untouched: saved shares are copied, shares are closed, writers are held, and each
//! database has a transaction that only waits for its commit. Then the replacement is written
//! down, so that a start after a kill completes it; and only when all parts are replaced is that
//! note removed, and anybody served again. If a part cannot be replaced after that note, nobody is
//! served until a start has completed it. So no request is acknowledged that a start would undo.

use std::path::{Path, PathBuf};

use super::databases::{Databases, HeldDatabases, saved_bytes};
use super::save::{Manifest, account_folder};
use super::{DamagedState, StateError, States};
use crate::bench::saved::steps::step;
use crate::bench::saved::{Note, Replacement, check_saved, copy_shares};
use crate::clock::Setting;
use crate::disk::{Durability, StoreError};
use crate::file::service::FileServiceError;
use crate::file::service::shares::{ReplacingShares, Untold};
use crate::file::store::root::Layout;
use crate::rules::service::ServiceKind;
use crate::server::service_properties::HeldProperties;
use crate::server::{Account, Accounts};

/// Bytes that must be free on the disk: for folders, new shares, and the last pages of databases.
const ROOM: u64 = 1 << 20;

/// The data that takes the place of all data.
struct ReplacementData {
    /// The saved state, if it is one.
    state: Option<PathBuf>,
    clock: Setting,
}

impl ReplacementData {
    /// The folder of an account in the saved state.
    fn of(&self, account: &Account) -> Option<PathBuf> {
        self.state.as_ref().map(|state| account_folder(state, account.name()))
    }
}

/// The folders of a replacement, in the trash: what is not used goes there.
struct Folders<'a>(&'a Path);

impl Folders<'_> {
    /// Where the shares of an account go.
    fn aside(&self, account: &Account) -> PathBuf {
        self.0.join(&**account.name())
    }

    /// Where the shares are that take their places. No account has a dot in its name.
    fn next(&self, account: &Account) -> PathBuf {
        self.0.join(".next").join(&**account.name())
    }
}

/// All services of some accounts. Requests wait, or are refused, until the value is dropped.
struct ClosedServices<'a> {
    held: Vec<HeldDatabases<'a>>,
    properties: Vec<HeldProperties<'a>>,
    shares: Vec<(&'a Account, ReplacingShares<'a>)>,
}

impl<'a> ClosedServices<'a> {
    fn close(accounts: &[&'a Account], databases: &'a [Databases<'a>]) -> Result<Self, StateError> {
        let owner = States::owner();
        let mut shares = Vec::new();
        for account in accounts {
            shares.push((*account, account.file().begin_replacing(&owner)?));
        }
        step();
        let properties = accounts.iter().flat_map(|account| hold_properties(account)).collect();
        let held = databases.iter().map(Databases::hold).collect();
        Ok(Self { held, properties, shares })
    }

    /// Does all that can fail and leaves the old data untouched.
    fn prepare(&self, next: &ReplacementData, folders: &Folders<'_>) -> Result<(), StateError> {
        for ((account, shares), held) in self.shares.iter().zip(&self.held) {
            shares.prepare(&folders.aside(account), &folders.next(account))?;
            held.replace(next.of(account).as_deref(), next.clock.now())?;
            held.flush()?;
        }
        Ok(())
    }

    /// Replaces the databases, and the directories of shares.
    fn replace(&self, folders: &Folders<'_>) -> Result<(), StateError> {
        for held in &self.held {
            held.commit()?;
        }
        for (account, shares) in &self.shares {
            shares.set_aside(&folders.aside(account))?;
            shares.put_in_place(&folders.next(account))?;
        }
        step();
        Ok(())
    }
}

/// Has no request acknowledged any more when it is dropped before the replacement is complete, by a
/// panic too. To be dropped before what is closed: requests that waited find out.
pub(super) struct Halt<'a> {
    pub(super) accounts: &'a Accounts,
    pub(super) complete: bool,
}

impl Halt<'_> {
    fn because(self, cause: &StateError) -> StateError {
        let error = StateError::half_done(cause.to_string().trim_end_matches('.'));
        log::error!("{error}");
        self.accounts.halt(error.to_string());
        error
    }
}

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        if !self.complete {
            self.accounts.halt(StateError::half_done("it panicked").to_string());
        }
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
        let folders = Folders(scrap.path());
        for account in &accounts {
            if let Some(saved) = next.of(account) {
                let layout = Layout { files: &saved.join("files"), state: &saved };
                copy_shares(layout, &folders.next(account)).map_err(FileServiceError::Snapshot)?;
                step();
            }
        }
        self.check_room(&next, &accounts)?;
        let mut closed = ClosedServices::close(&accounts, &databases)?;
        closed.prepare(&next, &folders)?;
        step();
        self.saved.begin(note)?;
        let mut halt = Halt { accounts: &self.accounts, complete: false };
        for (_, shares) in &mut closed.shares {
            shares.end();
        }
        match self.put_in_force(&next, &closed, &folders) {
            Ok(untold) => {
                halt.complete = true;
                Ok(untold)
            }
            Err(cause) => Err(halt.because(&cause)),
        }
    }

    /// Replaces the data, and removes the note when that is done.
    fn put_in_force(
        &self,
        next: &ReplacementData,
        closed: &ClosedServices<'_>,
        folders: &Folders<'_>,
    ) -> Result<Vec<Untold>, StateError> {
        let durability = self.durability();
        self.saved.settle(durability)?;
        closed.replace(folders)?;
        self.accounts.controls().clock.set(next.clock);
        for properties in &closed.properties {
            properties.reload()?;
        }
        for held in &closed.held {
            held.replaced();
        }
        let shares = closed.shares.iter();
        let untold = shares.map(|(account, shares)| self.serve(next, account, shares));
        let untold = untold.collect::<Result<_, _>>()?;
        step();
        self.saved.end(durability)?;
        Ok(untold)
    }

    /// The data that the replacement puts in place. A saved state is checked as a whole, while
    /// nothing is replaced yet.
    fn next(&self, by: &Replacement) -> Result<ReplacementData, StateError> {
        let Replacement::Restore(name) = by else {
            return Ok(ReplacementData { state: None, clock: Setting::default() });
        };
        let state = self.saved.path(name).ok_or_else(|| StateError::NotFound(name.clone()))?;
        let damaged =
            |error: StoreError| DamagedState { name: name.clone(), why: error.to_string() };
        let manifest: Manifest = self.saved.manifest(&state).map_err(damaged)?;
        for account in &manifest.accounts {
            if self.accounts.get(account).is_none() {
                let (name, account) = (name.clone(), account.clone());
                return Err(StateError::NoAccount { name, account });
            }
        }
        for account in &manifest.accounts {
            let parts = manifest.parts.get(account).map_or(&[][..], Vec::as_slice);
            check_saved(&account_folder(&state, account), parts).map_err(damaged)?;
        }
        Ok(ReplacementData { state: Some(state), clock: manifest.clock })
    }

    /// Refuses what does not fit on the disk. The rows of a restored state are written to the log,
    /// and then to the database; its shares are copied already.
    fn check_room(&self, next: &ReplacementData, accounts: &[&Account]) -> Result<(), StateError> {
        let folders = accounts.iter().filter_map(|account| next.of(account));
        let databases: u64 = folders.map(|folder| saved_bytes(&folder)).sum();
        let needed = databases.saturating_mul(2).saturating_add(ROOM);
        match self.saved.free() {
            Some(free) if free < needed && next.state.is_none() => {
                Err(StateError::NoRoomToReset { needed, free })
            }
            Some(free) if free < needed => Err(StateError::Full { needed, free }),
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
        next: &ReplacementData,
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
