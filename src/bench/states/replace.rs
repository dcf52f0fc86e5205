//! All data of all accounts replaced at once, while clients are connected and mounts are in use.
//!
//! Decides the order of steps. What can fail comes first where that is possible, while the old
//! data is untouched: a saved state is checked, what takes long is staged, all parts are held, and
//! each has a replacement ready that only waits to be put in place. Then the replacement is written
//! down, so that a start after a kill completes it; and only when all parts are replaced is that
//! note removed, and anybody served again. If a part cannot be replaced after that note, nobody is
//! served until a start has completed it. So no request is acknowledged that a start would undo.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::note::{Note, Replacement};
use super::saved::{Manifest, account_folder};
use super::{DamagedState, ServerData, StateError, States};
use crate::clock::Setting;
use crate::disk::StoreError;
use crate::disk::part::{HeldPart, NextData, Part};
use crate::disk::steps::step;

/// Bytes that must be free on the disk: for folders, new shares, and the last pages of databases.
const ROOM: u64 = 1 << 20;

/// The parts of one account, and the folders of their next data.
struct AccountParts<'a> {
    parts: Vec<Box<dyn Part + 'a>>,
    saved: Option<PathBuf>,
    scrap: PathBuf,
}

/// A part that is held, with its next data.
type Held<'a> = (Box<dyn HeldPart + 'a>, NextData<'a>);

/// Has no request acknowledged any more when it is dropped before the replacement is complete, by a
/// panic too. To be dropped before what is held: requests that waited find out.
struct Halt<'a> {
    data: &'a dyn ServerData,
    complete: bool,
}

impl Halt<'_> {
    fn because(self, cause: &StateError) -> StateError {
        let error = StateError::half_done(cause.to_string().trim_end_matches('.'));
        log::error!("{error}");
        self.data.halt(error.to_string());
        error
    }
}

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        if !self.complete {
            self.data.halt(StateError::half_done("it panicked").to_string());
        }
    }
}

impl States {
    /// Replaces everything in the accounts of the note.
    pub(super) fn replace(&self, note: &Note) -> Result<(), StateError> {
        let _replacing = self.alone()?;
        let (state, clock) = self.next(&note.by)?;
        let scrap = self.trash.scrap()?;
        let mut accounts = Vec::new();
        for account in &note.accounts {
            let saved = state.as_deref().map(|state| account_folder(state, account));
            let parts = self.data.parts(account, saved.as_deref())?;
            accounts.push(AccountParts { parts, saved, scrap: scrap.path().join(account) });
        }
        stage(&note.by, &accounts, clock)?;
        self.check_room(&accounts)?;
        self.replace_parts(note, &accounts, clock)?;
        // With nothing held: a mount has the kernel look names up.
        for part in accounts.iter().flat_map(|account| &account.parts) {
            part.replaced();
        }
        Ok(())
    }

    fn replace_parts(
        &self,
        note: &Note,
        accounts: &[AccountParts<'_>],
        clock: Setting,
    ) -> Result<(), StateError> {
        let mut held = Vec::new();
        for (part, next) in each_part(accounts, clock) {
            held.push((part.hold()?, next));
        }
        step();
        for (part, next) in &mut held {
            part.prepare(next)?;
        }
        step();
        self.saved.begin(note)?;
        let mut halt = Halt { data: &*self.data, complete: false };
        // A call of the mount can hold its directory in the kernel while it is delayed, and the end
        // of a share waits for the directory.
        self.controls.faults.end_delayed();
        for (part, _) in &mut held {
            part.end();
        }
        match self.put_in_force(&mut held, clock) {
            Ok(()) => {
                halt.complete = true;
                Ok(())
            }
            Err(cause) => Err(halt.because(&cause)),
        }
    }

    /// Replaces the data, and removes the note when that is done.
    fn put_in_force(&self, held: &mut [Held<'_>], clock: Setting) -> Result<(), StateError> {
        let durability = self.data.durability();
        self.saved.settle(durability)?;
        for (part, next) in &mut *held {
            part.replace(next)?;
            step();
        }
        // While all parts are held: requests that wait now came for the old data.
        self.controls.gates.end_all();
        self.controls.faults.end_delayed();
        self.controls.clock.set(clock);
        for (part, next) in held {
            part.resume(next)?;
        }
        step();
        Ok(self.saved.end(durability)?)
    }

    /// The saved state, if there is one, and how the clock goes then. Refuses a state that lost a
    /// part.
    fn next(&self, by: &Replacement) -> Result<(Option<PathBuf>, Setting), StateError> {
        let Replacement::Restore(name) = by else { return Ok((None, Setting::default())) };
        let state = self.saved.path(name).ok_or_else(|| StateError::NotFound(name.clone()))?;
        let manifest = Manifest::of(&state);
        let manifest = manifest.map_err(|error| DamagedState::new(name, &error))?;
        let served = self.data.accounts();
        if let Some(account) = manifest.accounts.iter().find(|name| !served.contains(name)) {
            let (name, account) = (name.clone(), account.clone());
            return Err(StateError::NoAccount { name, account });
        }
        for (account, parts) in &manifest.parts {
            let folder = account_folder(&state, account);
            if let Some(lost) = parts.iter().map(|part| folder.join(part)).find(|it| !it.exists()) {
                return Err(DamagedState::new(name, &StoreError::missing(&lost)).into());
            }
        }
        Ok((Some(state), manifest.clock))
    }

    /// Refuses what does not fit on the disk. The rows of a restored state are written to the log,
    /// and then to the database; its shares are staged already.
    fn check_room(&self, accounts: &[AccountParts<'_>]) -> Result<(), StateError> {
        let saved: Vec<_> =
            accounts.iter().filter_map(|account| account.saved.as_deref()).collect();
        let databases: u64 = saved.iter().map(|folder| bytes_of_files(folder)).sum();
        let needed = databases.saturating_mul(2).saturating_add(ROOM);
        match self.saved.free() {
            Some(free) if free < needed && saved.is_empty() => {
                Err(StateError::NoRoomToReset { needed, free })
            }
            Some(free) if free < needed => Err(StateError::Full { needed, free }),
            _ => Ok(()),
        }
    }
}

/// Checks the saved state as a whole, then does what takes long. Nothing is replaced yet.
fn stage(
    by: &Replacement,
    accounts: &[AccountParts<'_>],
    clock: Setting,
) -> Result<(), StateError> {
    for (part, next) in each_part(accounts, clock) {
        if let (Some(saved), Replacement::Restore(name)) = (next.saved, by) {
            part.check(saved).map_err(|error| DamagedState::new(name, &error))?;
        }
    }
    for (part, next) in each_part(accounts, clock) {
        part.stage(&next)?;
    }
    Ok(())
}

/// All parts in the order in which they are held, with their next data.
fn each_part<'a>(
    accounts: &'a [AccountParts<'_>],
    clock: Setting,
) -> impl Iterator<Item = (&'a dyn Part, NextData<'a>)> {
    accounts.iter().flat_map(move |AccountParts { parts, saved, scrap }| {
        let next = NextData { saved: saved.as_deref(), scrap, now: clock.now() };
        parts.iter().map(move |part| (&**part, next))
    })
}

/// The length of the databases in the folder of an account in a saved state.
fn bytes_of_files(folder: &Path) -> u64 {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| entry.metadata().ok()).filter(Metadata::is_file);
    files.map(|file| file.len()).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use super::*;
    use crate::bench::Controls;
    use crate::disk::Durability;
    use crate::disk::part::{PartError, SavingPart};

    /// The data of a server whose one part panics when it is replaced.
    #[derive(Default)]
    struct Panics(OnceLock<String>);

    impl ServerData for Panics {
        fn accounts(&self) -> Vec<String> {
            vec!["one".to_owned()]
        }

        fn parts(&self, _: &str, _: Option<&Path>) -> Result<Vec<Box<dyn Part + '_>>, PartError> {
            Ok(vec![Box::new(Self::default())])
        }

        fn refill(&self) -> Result<(), String> {
            Ok(())
        }

        fn durability(&self) -> Durability {
            Durability::Cached
        }

        fn halt(&self, why: String) {
            self.0.set(why).unwrap();
        }

        fn halted(&self) -> Option<&str> {
            self.0.get().map(String::as_str)
        }
    }

    impl Part for Panics {
        fn hold(&self) -> Result<Box<dyn HeldPart + '_>, PartError> {
            Ok(Box::new(Self::default()))
        }

        fn save(&self, _: &Path) -> Result<Box<dyn SavingPart + '_>, PartError> {
            unreachable!("nothing is saved")
        }
    }

    impl HeldPart for Panics {
        fn replace(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
            panic!("half way")
        }

        fn resume(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_half_way_ends_all_service_and_leaves_the_note() {
        let folder = tempfile::tempdir().unwrap();
        let data = Arc::new(Panics::default());
        let served: Arc<dyn ServerData> = Arc::<Panics>::clone(&data);
        let states = States::open(folder.path(), served, Arc::new(Controls::default())).unwrap();
        let panicked = std::thread::scope(|scope| scope.spawn(|| states.reset()).join());
        assert!(panicked.is_err());
        let why = data.halted().unwrap();
        assert!(why.contains("panicked"), "{why}");
        assert_eq!(states.save("a").unwrap_err().to_string(), why);
        assert!(States::is_interrupted(folder.path()).unwrap());
    }
}
