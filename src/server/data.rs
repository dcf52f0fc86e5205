//! The data of a server: opened, filled, with the shares that are wanted.
//!
//! Decides that all names are checked before anything is made: a start that fails leaves no share
//! behind. Where an account keeps its data is decided in `disk/data_root`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::container_seed;
use super::error::StartError;
use super::host::spelling;
use super::load::Loads;
use super::memory::Memory;
use super::mount_points::MountPoint;
use super::options::{Data, FillProgress, Seed, SeedInto, ServerOptions};
use super::states;
use crate::bench::{Controls, States};
use crate::clock::{SystemClock, TestClock, TimeSource};
use crate::disk::{DataRoot, DataRootError, HIDDEN, StoreError};
use crate::file::rules::name::is_share_name;
use crate::file::service::shares::{ListOptions, NewShare};
use crate::file::service::{FileOptions, FileService, FileServiceError, ShareOptions};
use crate::file::store::root::{RootError, ShareRoot};
use crate::file::store::share::SnapshotError;
use crate::http::auth::Credential;
use crate::journal::AccountJournal;
use crate::server::{Account, AccountOptions, Accounts};

/// The share that is made where there is none.
const FIRST_SHARE: &str = "share";

/// Data that is open and not yet served.
pub struct OpenedData {
    /// The accounts.
    pub accounts: Arc<Accounts>,
    /// The state as a whole; `None` where one existing directory is served.
    pub states: Option<States>,
    /// The server's own folder: control socket, log, keys.
    pub folder: PathBuf,
    /// Where the data is, for people.
    pub place: String,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The shares of the first account that are served by default.
    pub names: Vec<String>,
    /// Keeps other servers out of the data directory.
    pub root: Option<DataRoot>,
    /// Holds the data, where that is in memory; dropped last.
    pub memory: Option<Memory>,
}

/// Opens the data, with the shares and seeds of the options.
pub fn open(
    options: &ServerOptions,
    progress: &mut FillProgress<'_>,
) -> Result<OpenedData, StartError> {
    Memory::sweep();
    let loads = check_names(options)?;
    match &options.data {
        Data::Existing { source, name, state } => {
            if loads.accounts().next().is_some() {
                let why = "one existing directory has no place for containers, queues and tables";
                return Err(StartError::Options(why.to_owned()));
            }
            open_existing(options, source, name, state.as_deref())
        }
        Data::Directory(path) => open_root(options, path, None, loads, progress),
        Data::Memory => {
            let memory = Memory::new(options.memory_limit)?;
            let path = memory.data().to_owned();
            open_root(options, &path, Some(memory), loads, progress)
        }
    }
}

/// Refuses names that contradict each other, before anything is made; what is to be loaded comes
/// back.
fn check_names(options: &ServerOptions) -> Result<Loads, StartError> {
    let mut accounts = BTreeSet::new();
    for account in &options.listen.credentials {
        if !accounts.insert(account.name()) {
            let name = account.name().to_owned();
            return Err(crate::http::auth::CredentialError::GivenTwice(name).into());
        }
    }
    let first = options.listen.credentials.first().map_or("", Credential::name);
    let loads = Loads::of_options(&options.loads, &options.objects, first);
    let loads = loads.map_err(StartError::Options)?;
    if let Some(account) = loads.accounts().find(|account| !accounts.contains(account)) {
        return Err(StartError::Options(format!("no account '{account}' is served")));
    }
    for (option, account, share) in shares_by_account(options) {
        if !accounts.contains(account) {
            return Err(StartError::Options(format!(
                "{option} {account}/{share}: no account '{account}' is served"
            )));
        }
    }
    let further = shares_by_account(options).map(|(_, _, share)| share);
    let named = options.shares.iter().chain(options.mounts.iter().map(|place| &place.share));
    for name in named.chain(further) {
        if !is_share_name(name) {
            return Err(StartError::Options(format!(
                "share name '{name}': expected 3 to 63 lower-case letters, digits and single \
                 hyphens"
            )));
        }
    }
    for MountPoint { account, share, path } in &options.mounts {
        if let Some(account) = account
            && !accounts.contains(account.as_str())
        {
            return Err(StartError::Options(format!(
                "--mount {account}/{share}={}: no account '{account}' is served",
                path.display()
            )));
        }
        let listed = account.is_some() || options.shares.is_empty();
        if !listed && !options.shares.contains(share) {
            return Err(StartError::Options(format!(
                "--mount {share}={}: '{share}' is not among the shares given with --share: {}",
                path.display(),
                options.shares.join(", ")
            )));
        }
        if !path.is_dir() && std::fs::symlink_metadata(path).is_err_and(|why| is_missing(&why)) {
            return Err(StartError::Options(format!(
                "the mount point {} is not a directory: create it first",
                path.display()
            )));
        }
    }
    Ok(loads)
}

/// The shares that options name with their account: the option, the account and the share.
fn shares_by_account(
    options: &ServerOptions,
) -> impl Iterator<Item = (&'static str, &str, &String)> {
    let named = options.account_shares.iter();
    let named = named.map(|(account, share)| ("--share", account.as_str(), share));
    let filled = options.seeds.iter().filter_map(|seed| match &seed.into {
        SeedInto::ShareOf(account, share) => Some(("--seed", account.as_str(), share)),
        SeedInto::Share(_) | SeedInto::Container(_) => None,
    });
    named.chain(filled)
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

fn account_options(options: &ServerOptions, controls: &Controls) -> AccountOptions {
    let clock: Arc<dyn TimeSource> = Arc::<TestClock>::clone(&controls.clock);
    let journal = Arc::clone(&controls.journal);
    let share = ShareOptions { spelled: spelling(options.listen.error_names), ..options.share };
    let file = FileOptions { share, ..FileOptions::default() };
    AccountOptions { clock, journal, file, blob: options.blob.clone() }
}

/// The clock, gates, faults and journal of a server.
fn controls(options: &ServerOptions) -> Arc<Controls> {
    let controls = Controls::default();
    if options.events.all {
        controls.journal.list_all();
    }
    if options.events.no_requests {
        controls.journal.turn_off();
    }
    Arc::new(controls)
}

fn open_existing(
    options: &ServerOptions,
    source: &Path,
    name: &str,
    state: Option<&Path>,
) -> Result<OpenedData, StartError> {
    let [first, ..] = options.listen.credentials.as_slice() else {
        unreachable!("a server has at least one account")
    };
    refuse_served(source)?;
    let controls = controls(options);
    let AccountOptions { clock, journal, file, .. } = account_options(options, &controls);
    let journal = AccountJournal::new(journal, first.name());
    let engine = FileService::serve_directory(name, source, state, file, clock, journal)?;
    let folder = engine.folder();
    let account = Account::with_file(first.name(), engine)?;
    Ok(OpenedData {
        accounts: Arc::new(Accounts::new(account, []).with_controls(controls)),
        states: None,
        folder,
        place: source.display().to_string(),
        notes: Vec::new(),
        names: vec![name.to_owned()],
        root: None,
        memory: None,
    })
}

/// Refuses a directory that lies in the data directory of a running server: two tables of opens
/// would rule one directory.
fn refuse_served(source: &Path) -> Result<(), StartError> {
    for above in source.ancestors() {
        if above.join(HIDDEN).is_dir()
            && let Err(error @ DataRootError::Served(_)) = DataRoot::open(above)
        {
            return Err(error.into());
        }
    }
    Ok(())
}

fn open_root(
    options: &ServerOptions,
    path: &Path,
    memory: Option<Memory>,
    loads: Loads,
    progress: &mut FillProgress<'_>,
) -> Result<OpenedData, StartError> {
    if options.reset {
        DataRoot::reset(path).map_err(StartError::Reset)?;
    }
    make_data_directory(path)?;
    let root =
        DataRoot::open(path).map_err(|error| with_cure(RootError::from(error).into(), path))?;
    if States::is_interrupted(root.folder())? {
        // Before shares are filled: they may be replaced.
        let accounts = open_accounts(options, &root, path)?;
        states::open(root.folder(), &accounts, BTreeMap::new(), Loads::default())?.complete()?;
    }
    let names: BTreeSet<String> = of_first_account(options).cloned().collect();
    let first = options.listen.credentials[0].name();
    let mut notes = fill(&root, first, &names, &options.seeds, progress)?;
    let accounts = open_accounts(options, &root, path)?;
    notes.extend(fill_containers(accounts.first(), &options.seeds, progress)?);
    let names = make_shares(accounts.first().file(), names)?;
    let mounted =
        options.mounts.iter().filter_map(|place| Some((place.account.as_deref()?, &place.share)));
    let named = shares_by_account(options).map(|(_, account, share)| (account, share));
    for (account, share) in mounted.chain(named) {
        if let Some(account) = accounts.get(account) {
            make_share(account.file(), share)?;
        }
    }
    notes.extend(loads.apply(&accounts).map_err(StartError::Options)?);
    let place = match &memory {
        Some(memory) => memory.words(),
        None => root.path().display().to_string(),
    };
    notes.extend(memory.as_ref().and_then(Memory::note));
    notes.extend(accounts.iter().flat_map(|account| account.file().left_out().values().cloned()));
    notes.extend(not_served(path, &options.listen.credentials));
    let folder = root.folder().to_owned();
    let fresh = shares_after_reset(options);
    let states = Some(states::open(&folder, &accounts, fresh, loads)?);
    let root = Some(root);
    Ok(OpenedData { accounts, states, folder, place, notes, names, root, memory })
}

fn open_accounts(
    options: &ServerOptions,
    root: &DataRoot,
    path: &Path,
) -> Result<Arc<Accounts>, StartError> {
    let controls = controls(options);
    let names = options.listen.credentials.iter().map(Credential::name);
    let opening = account_options(options, &controls);
    let opened: Result<Vec<_>, _> = names.map(|name| Account::open(root, name, &opening)).collect();
    let mut opened = opened.map_err(|error| with_cure(error, path))?;
    let first = opened.remove(0);
    Ok(Arc::new(Accounts::new(first, opened).with_controls(controls)))
}

/// The note on accounts that have data in the directory and are not served.
fn not_served(data: &Path, served: &[Credential]) -> Option<String> {
    let entries = std::fs::read_dir(data).ok()?;
    let names = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let known = name.starts_with('.') || served.iter().any(|account| account.name() == name);
        (!known && entry.path().is_dir()).then_some(name)
    });
    let names: BTreeSet<String> = names.collect();
    (!names.is_empty()).then(|| {
        let names = Vec::from_iter(names).join(", ");
        format!("{} has data of accounts that are not served: {names}", data.display())
    })
}

/// The shares that a start with these options and no data makes, by account.
fn shares_after_reset(options: &ServerOptions) -> BTreeMap<String, BTreeSet<String>> {
    let mut shares = BTreeMap::<_, BTreeSet<String>>::new();
    let first = options.listen.credentials[0].name().to_owned();
    let mut named: BTreeSet<String> = of_first_account(options).cloned().collect();
    if named.is_empty() {
        named.insert(FIRST_SHARE.to_owned());
    }
    shares.insert(first, named);
    for place in &options.mounts {
        if let Some(account) = &place.account {
            shares.entry(account.clone()).or_default().insert(place.share.clone());
        }
    }
    for (_, account, share) in shares_by_account(options) {
        shares.entry(account.to_owned()).or_default().insert(share.clone());
    }
    shares
}

/// Makes the data directory if it is missing. A missing right is left to [`with_cure`].
fn make_data_directory(path: &Path) -> Result<(), StartError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    match made {
        Err(why) if why.kind() != std::io::ErrorKind::PermissionDenied => {
            let place = path.display();
            Err(StartError::Options(format!("cannot create data directory {place}: {why}")))
        }
        _ => Ok(()),
    }
}

/// The data directory that a start with these options makes; `None` if the directory exists.
pub fn missing_directory(data: &Data) -> Option<&Path> {
    match data {
        Data::Directory(path) => std::fs::symlink_metadata(path).is_err().then_some(path),
        Data::Memory | Data::Existing { .. } => None,
    }
}

/// Removes a data directory that this process made. What latchfs did not make stays, and so does
/// all of it if another server has taken the directory meanwhile.
pub fn remove_directory(path: &Path) {
    if let Err(error) = DataRoot::reset(path) {
        log::debug!("{}: {error}", path.display());
        return;
    }
    // Holds the lock until both are gone.
    let root = DataRoot::open(path);
    if let Ok(root) = &root {
        drop(std::fs::remove_dir_all(root.folder()));
        drop(std::fs::remove_dir(path));
    }
}

/// The names of shares of the first account that the options name.
fn of_first_account(options: &ServerOptions) -> impl Iterator<Item = &String> {
    let first = options.listen.credentials.first().map(|account| account.name().to_owned());
    let mounted = options
        .mounts
        .iter()
        .filter(move |place| place.account.is_none() || place.account == first);
    options.shares.iter().chain(mounted.map(|place| &place.share))
}

/// Fills the shares that are empty, and says which are not.
fn fill(
    root: &DataRoot,
    account: &str,
    named: &BTreeSet<String>,
    seeds: &[Seed],
    progress: &mut FillProgress<'_>,
) -> Result<Vec<String>, StartError> {
    let mut notes = Vec::new();
    let into_shares = seeds.iter().filter_map(|seed| match &seed.into {
        SeedInto::Share(share) => Some((account, share.as_ref(), &seed.directory)),
        SeedInto::ShareOf(account, share) => Some((account, Some(share), &seed.directory)),
        SeedInto::Container(_) => None,
    });
    for (account, share, directory) in into_shares {
        let root = ShareRoot::open_at(&root.files_path(account), &root.state_path(account))?;
        if !directory.exists() {
            let message = format!("--seed: {} does not exist", directory.display());
            return Err(StartError::Options(message));
        }
        let share = match share {
            Some(share) => share.clone(),
            None => only_share(&root, named)?,
        };
        let now = SystemClock.now();
        let filled = root.fill_share(&share, directory, now, &mut |done| progress(&share, done));
        let filled = match filled {
            Err(RootError::Fill(SnapshotError::Cancelled)) => {
                return Err(StartError::Options(format!(
                    "stopped before share {share} was filled: it stays empty"
                )));
            }
            Err(source) => return Err(StartError::Seed { path: directory.clone(), source }),
            Ok(filled) => filled,
        };
        if !filled {
            notes.push(format!("share {share} is not empty and is not filled: --reset empties it"));
        }
    }
    Ok(notes)
}

/// Fills the containers that are empty, and says which are not.
fn fill_containers(
    account: &Account,
    seeds: &[Seed],
    progress: &mut FillProgress<'_>,
) -> Result<Vec<String>, StartError> {
    let mut notes = Vec::new();
    for seed in seeds {
        let SeedInto::Container(container) = &seed.into else { continue };
        let service = account.blob().map_err(|error| {
            StartError::Options(format!("--seed blob:{container}: opening the blobs: {error}"))
        })?;
        let clock = account.clock();
        let filled =
            container_seed::fill(&service, &**clock, container, &seed.directory, progress)?;
        notes.extend(filled);
    }
    Ok(notes)
}

/// The share that is meant where none is named.
fn only_share(root: &ShareRoot, named: &BTreeSet<String>) -> Result<String, StartError> {
    let there = root.shares()?;
    let mut meant = if named.is_empty() { there.iter().collect() } else { Vec::from_iter(named) };
    if meant.len() > 1 {
        let message = "several shares are served: name one, as in --seed NAME=DIR";
        return Err(StartError::Options(message.into()));
    }
    Ok(meant.pop().cloned().unwrap_or_else(|| FIRST_SHARE.to_owned()))
}

/// Makes the named shares that are missing. Where none is named: those that exist, or a first one.
fn make_shares(file: &FileService, wanted: BTreeSet<String>) -> Result<Vec<String>, StartError> {
    let mut names = wanted;
    if names.is_empty() {
        names = share_names(file)?;
    }
    if names.is_empty() {
        names.insert(FIRST_SHARE.to_owned());
    }
    // Not again under the same name: what is damaged would be taken for a new share.
    names.retain(|name| !file.left_out().contains_key(name));
    for name in &names {
        make_share(file, name)?;
    }
    Ok(names.into_iter().collect())
}

fn make_share(file: &FileService, name: &str) -> Result<(), StartError> {
    if share_names(file)?.contains(name) {
        return Ok(());
    }
    file.create_share(name, NewShare::default())
        .map_err(|source| StartError::Share { name: name.to_owned(), source })?;
    Ok(())
}

/// All shares of a File service.
pub fn share_names(file: &FileService) -> Result<BTreeSet<String>, FileServiceError> {
    let shares = file.every_share(&ListOptions::default())?;
    Ok(shares.into_iter().map(|share| share.name.to_string()).collect())
}

fn with_cure(error: FileServiceError, data: &Path) -> StartError {
    match error {
        FileServiceError::Root(RootError::Data(DataRootError::Store {
            source: StoreError::PermissionDenied,
            path,
        })) => StartError::Options(format!(
            "{} may not be written: choose another data directory with --data, or give {} to user \
             {}, who runs this",
            path.display(),
            data.display(),
            rustix::process::geteuid().as_raw()
        )),
        error => error.into(),
    }
}
