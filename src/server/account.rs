//! A storage account: its services, each with data of its own. Accounts share nothing.
//!
//! Decides where an account's services find their data. What a service does is decided in its own
//! folder; who may use an account is decided in `http/auth`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::service_properties::ServiceProperties;
use crate::bench::Controls;
use crate::blob::service::{BlobOptions, BlobResult, BlobService, Retention};
use crate::clock::{SystemClock, TimeSource};
use crate::db::first_use::FirstUse;
use crate::db::{DbError, SyncMode};
use crate::disk::{DataRoot, StateDir};
use crate::file::service::{FileOptions, FileService, FileServiceError};
use crate::journal::{AccountJournal, Journal};
use crate::queue::service::{QueueResult, QueueService};
use crate::rules::service::ServiceKind;
use crate::table::service::{TableResult, TableService};

/// How the services of an account behave.
#[derive(Clone)]
pub struct AccountOptions {
    /// The clock of the server.
    pub clock: Arc<dyn TimeSource>,
    /// The journal of the server.
    pub journal: Arc<Journal>,
    /// The File service.
    pub file: FileOptions,
    /// The Blob service.
    pub blob: BlobOptions,
}

impl Default for AccountOptions {
    fn default() -> Self {
        let (file, blob) = (FileOptions::default(), BlobOptions::default());
        Self { clock: Arc::new(SystemClock), journal: Arc::default(), file, blob }
    }
}

/// A storage account.
pub struct Account {
    name: Arc<str>,
    clock: Arc<dyn TimeSource>,
    journal: AccountJournal,
    file: Arc<FileService>,
    blob: FirstUse<Arc<BlobService>>,
    blob_options: BlobOptions,
    queue: FirstUse<QueueService>,
    table: FirstUse<TableService>,
    properties: BTreeMap<ServiceKind, ServiceProperties>,
}

impl Account {
    /// Opens the account `name` of a data directory; a new one is empty.
    pub fn open(
        root: &DataRoot,
        name: &str,
        options: &AccountOptions,
    ) -> Result<Self, FileServiceError> {
        let (files, state) = (root.files_path(name), root.state_path(name));
        let (clock, journal) = (Arc::clone(&options.clock), Arc::clone(&options.journal));
        let journal = AccountJournal::new(journal, name);
        let file = FileService::open_at(&files, &state, options.file.clone(), clock, journal)?;
        let mut account = Self::with(name, file, Some(&root.account_path(name)))?;
        account.blob_options = options.blob.clone();
        Ok(account)
    }

    /// An account with every service in a folder of its own, for tests of front ends.
    #[cfg(test)]
    pub fn in_folder(folder: &Path, name: &str) -> Self {
        let root = DataRoot::open(folder).unwrap();
        Self::open(&root, name, &AccountOptions::default()).unwrap()
    }

    /// An account whose File service is open already, such as one existing directory served as a
    /// share.
    pub fn with_file(name: &str, file: FileService) -> Result<Self, FileServiceError> {
        Self::with(name, file, None)
    }

    fn with(
        name: &str,
        file: FileService,
        folder: Option<&Path>,
    ) -> Result<Self, FileServiceError> {
        let properties = open_properties(&file.services_path())?;
        let sync =
            if file.options().share.sync_always { SyncMode::Always } else { SyncMode::Normal };
        let blob = FirstUse::at(folder.map(Path::to_owned), sync);
        let queue = FirstUse::at(folder.map(|folder| folder.join("queue.db")), sync);
        let table = FirstUse::at(folder.map(|folder| folder.join("table.db")), sync);
        let (clock, journal) = (Arc::clone(file.clock()), file.journal().clone());
        let (name, file, blob_options) = (name.into(), Arc::new(file), BlobOptions::default());
        Ok(Self { name, clock, journal, file, blob, blob_options, queue, table, properties })
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The journal of the server, for rows of this account.
    pub fn journal(&self) -> &AccountJournal {
        &self.journal
    }

    /// The clock of the server.
    pub fn clock(&self) -> &Arc<dyn TimeSource> {
        &self.clock
    }

    /// The File service.
    pub fn file(&self) -> &Arc<FileService> {
        &self.file
    }

    /// The Blob service, opened if it is not open yet. May wait.
    pub fn blob(&self) -> BlobResult<Arc<BlobService>> {
        let (clock, journal) = (Arc::clone(&self.clock), self.journal.clone());
        let open = |folder: &Path, sync| {
            let options = BlobOptions { retention: self.retention(), ..self.blob_options.clone() };
            BlobService::open(folder, sync, options, clock, journal).map(Arc::new)
        };
        self.blob.get(open).cloned()
    }

    /// The retention that was set last.
    fn kept_retention(&self) -> Option<Retention> {
        let parts = self.properties(ServiceKind::Blob).get();
        parts.get(Retention::PART).and_then(|text| serde_json::from_str(text).ok())
    }

    /// The Blob service, if it is open.
    pub fn open_blob(&self) -> Option<&Arc<BlobService>> {
        self.blob.if_open()
    }

    /// The Table service, opened if it is not open yet. May wait.
    pub fn table(&self) -> TableResult<&TableService> {
        self.table.get(|file, sync| TableService::open(file, sync, self.journal.clone()))
    }

    /// The Table service, if it is open.
    pub fn open_table(&self) -> Option<&TableService> {
        self.table.if_open()
    }

    /// The Queue service, opened if it is not open yet. May wait.
    pub fn queue(&self) -> QueueResult<&QueueService> {
        let clock = Arc::clone(self.clock());
        self.queue.get(|path, sync| QueueService::open(path, sync, clock, self.journal.clone()))
    }

    /// The Queue service, if it is open.
    pub fn open_queue(&self) -> Option<&QueueService> {
        self.queue.if_open()
    }

    /// Whether a service has data on the disk, open or not.
    pub(crate) fn has_used(&self, service: ServiceKind) -> bool {
        match service {
            ServiceKind::File => true,
            ServiceKind::Blob => {
                self.blob.place().is_some_and(|folder| folder.join("blob.db").exists())
            }
            ServiceKind::Queue => self.queue.place().is_some_and(Path::exists),
            ServiceKind::Table => self.table.place().is_some_and(Path::exists),
        }
    }

    /// An error for each open service whose files have lost their names since they were opened.
    pub fn lost_places(&self) -> Vec<DbError> {
        let looked = [
            self.open_blob().map(|blob| blob.check_place()),
            self.open_queue().map(QueueService::check_place),
            self.open_table().map(TableService::check_place),
        ];
        looked.into_iter().flatten().filter_map(Result::err).collect()
    }

    /// The retention of blobs: that which was set last, or that of the options.
    pub(crate) fn retention(&self) -> Retention {
        self.kept_retention().unwrap_or(self.blob_options.retention)
    }

    /// The properties of a service: CORS rules and the like.
    pub fn properties(&self, service: ServiceKind) -> &ServiceProperties {
        &self.properties[&service]
    }
}

fn open_properties(
    folder: &Path,
) -> Result<BTreeMap<ServiceKind, ServiceProperties>, FileServiceError> {
    let state = Arc::new(StateDir::open(folder)?);
    let open = |kind| Ok((kind, ServiceProperties::open(Arc::clone(&state), kind)?));
    ServiceKind::ALL.into_iter().map(open).collect()
}

/// The accounts of a server, by name.
pub struct Accounts {
    by_name: BTreeMap<Arc<str>, Arc<Account>>,
    first: Arc<Account>,
    controls: Arc<Controls>,
    halted: OnceLock<String>,
}

impl Accounts {
    /// The account that is meant where none is named, and the others.
    pub fn new(first: Account, others: impl IntoIterator<Item = Account>) -> Self {
        let first = Arc::new(first);
        let all = others.into_iter().map(Arc::new).chain([Arc::clone(&first)]);
        let by_name = all.map(|one| (Arc::clone(one.name()), one)).collect();
        let journal = Arc::clone(first.journal().journal());
        let controls = Arc::new(Controls::new(Arc::default(), journal));
        Self { by_name, first, controls, halted: OnceLock::new() }
    }

    /// These accounts with the given controls, whose clock they were opened with.
    #[must_use]
    pub fn with_controls(self, controls: Arc<Controls>) -> Self {
        Self { controls, ..self }
    }

    /// The clock, gates and faults of the server.
    pub fn controls(&self) -> &Arc<Controls> {
        &self.controls
    }

    /// The journal of the server.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.controls.journal
    }

    /// From now on no request is acknowledged: the data is not whole. Only a start makes it so.
    pub(crate) fn halt(&self, why: String) {
        // The first reason stays.
        let _ = self.halted.set(why);
    }

    /// Why no request may be acknowledged any more. Front ends ask before they carry a request out,
    /// and again before they answer it.
    pub fn halted(&self) -> Option<&str> {
        self.halted.get().map(String::as_str)
    }

    /// Opens the accounts `names` of a data directory; the first is the one that is meant where
    /// none is named.
    pub fn open(
        root: &DataRoot,
        first: &str,
        others: impl IntoIterator<Item = impl AsRef<str>>,
        options: &AccountOptions,
    ) -> Result<Self, FileServiceError> {
        let first = Account::open(root, first, options)?;
        let others = others.into_iter().map(|name| Account::open(root, name.as_ref(), options));
        Ok(Self::new(first, others.collect::<Result<Vec<_>, _>>()?))
    }

    /// The account of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Account>> {
        self.by_name.get(name)
    }

    /// The account that is meant where none is named.
    pub fn first(&self) -> &Arc<Account> {
        &self.first
    }

    /// All accounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.by_name.values()
    }

    /// The names of all accounts.
    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::service::shares::NewShare;
    use crate::server::PropertyParts;

    #[test]
    fn accounts_of_one_data_directory_do_not_see_each_others_shares() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let accounts = Accounts::open(&root, "one", ["two"], &AccountOptions::default()).unwrap();
        let [one, two] = ["one", "two"].map(|name| accounts.get(name).unwrap());
        one.file().create_share("docs", NewShare::default()).unwrap();
        assert!(one.file().share("docs").is_ok());
        assert!(two.file().share("docs").is_err());
        assert!(accounts.get("three").is_none());
        assert_eq!(accounts.first().name().as_ref(), "one");
    }

    #[test]
    fn service_properties_belong_to_one_service_of_one_account_and_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let parts = BTreeMap::from([("Cors".to_owned(), "<Cors />".to_owned())]);
        let open = |root: &DataRoot| {
            Accounts::open(root, "one", ["two"], &AccountOptions::default()).unwrap()
        };
        {
            let root = DataRoot::open(folder.path()).unwrap();
            let accounts = open(&root);
            accounts.first().properties(ServiceKind::Queue).set(parts.clone()).unwrap();
        }
        let root = DataRoot::open(folder.path()).unwrap();
        let accounts = open(&root);
        let of = |name, kind| accounts.get(name).unwrap().properties(kind).get();
        assert_eq!(*of("one", ServiceKind::Queue), parts);
        assert!(of("one", ServiceKind::File).is_empty());
        assert!(of("two", ServiceKind::Queue).is_empty());
    }

    fn keep(days: u16) -> Retention {
        Retention { days: Some(days), permanent_delete: false }
    }

    /// Sets the retention of blobs, on disk and in force, with a document beside it.
    fn set(account: &Account, mut parts: PropertyParts, retention: Option<Retention>) {
        let blob = account.blob().unwrap();
        if let Some(retention) = retention {
            let text = serde_json::to_string(&retention).unwrap();
            parts.insert(Retention::PART.to_owned(), text);
        }
        let apply = || {
            if let Some(retention) = retention {
                blob.set_retention(retention);
            }
        };
        account.properties(ServiceKind::Blob).set_then(parts, apply).unwrap();
    }

    #[test]
    fn the_retention_of_blobs_survives_a_restart_with_its_document() {
        let folder = tempfile::tempdir().unwrap();
        let parts = PropertyParts::from([("DeleteRetentionPolicy".to_owned(), "<x />".to_owned())]);
        {
            let account = Account::in_folder(folder.path(), "one");
            set(&account, parts.clone(), Some(keep(3)));
            assert_eq!(account.blob().unwrap().retention(), keep(3));
            set(&account, parts, None);
        }
        let account = Account::in_folder(folder.path(), "one");
        assert_eq!(account.blob().unwrap().retention(), keep(3));
        let kept = account.properties(ServiceKind::Blob).get();
        assert_eq!(kept["DeleteRetentionPolicy"], "<x />");
    }

    #[test]
    fn of_two_changes_of_the_retention_the_one_kept_last_is_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let account = Account::in_folder(folder.path(), "one");
        for round in 0..20 {
            std::thread::scope(|scope| {
                for days in 1..=4 {
                    let account = &account;
                    scope.spawn(move || set(account, PropertyParts::new(), Some(keep(days))));
                }
            });
            let in_force = account.blob().unwrap().retention();
            assert_eq!(account.kept_retention(), Some(in_force), "round {round}");
        }
    }
}
