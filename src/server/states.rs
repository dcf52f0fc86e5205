//! The parts of all data of a server, which `bench/states` saves and replaces together.
//!
//! Decides which parts there are, and that a service that was never used is left alone. How a part
//! is saved and replaced is decided by its service.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::load::Loads;
use super::service_properties::HeldProperties;
use super::{Account, Accounts};
use crate::bench::{ServerData, StateError, States};
use crate::blob::service::BlobsPart;
use crate::db::DbError;
use crate::db::counted::RowsPart;
use crate::disk::Durability;
use crate::disk::part::{HeldPart, NextData, Part, PartError, SavingPart};
use crate::file::service::shares::SharesPart;
use crate::queue::service::QueueError;
use crate::rules::service::ServiceKind;
use crate::table::service::TableError;

/// All accounts, and the shares of each that exist after a reset.
struct AllAccounts {
    accounts: Arc<Accounts>,
    after_reset: BTreeMap<String, BTreeSet<String>>,
    loads: Loads,
}

/// The saved states of a server whose own folder is `folder`. After a reset it has the shares
/// `after_reset` of each account, empty, those that are mounted, and what `loads` names.
pub(super) fn open(
    folder: &Path,
    accounts: &Arc<Accounts>,
    after_reset: BTreeMap<String, BTreeSet<String>>,
    loads: Loads,
) -> Result<States, StateError> {
    let data = AllAccounts { accounts: Arc::clone(accounts), after_reset, loads };
    States::open(folder, Arc::new(data), Arc::clone(accounts.controls()))
}

impl ServerData for AllAccounts {
    fn accounts(&self) -> Vec<String> {
        self.accounts.names()
    }

    fn parts(
        &self,
        account: &str,
        saved: Option<&Path>,
    ) -> Result<Vec<Box<dyn Part + '_>>, PartError> {
        let Some(account) = self.accounts.get(account) else { return Ok(Vec::new()) };
        let has = |file: &str, is_used: bool| {
            is_used || saved.is_some_and(|folder| folder.join(file).exists())
        };
        let after_reset = self.after_reset.get(&**account.name()).cloned().unwrap_or_default();
        let mut parts: Vec<Box<dyn Part>> = vec![
            Box::new(SharesPart::new(account.file(), after_reset)),
            Box::new(PropertiesPart(account)),
        ];
        if has("blob.db", account.has_used(ServiceKind::Blob)) {
            let (service, clock) = (account.blob()?, Arc::clone(account.clock()));
            parts.push(Box::new(BlobsPart { service, clock }));
        }
        if has("queue.db", account.has_used(ServiceKind::Queue)) {
            parts.push(Box::new(RowsPart::of(account.queue()?, account.clock())));
        }
        if has("table.db", account.has_used(ServiceKind::Table)) {
            parts.push(Box::new(RowsPart::of(account.table()?, account.clock())));
        }
        Ok(parts)
    }

    fn refill(&self) -> Result<(), String> {
        self.loads.apply(&self.accounts).map(drop)
    }

    fn durability(&self) -> Durability {
        if self.accounts.first().file().options().share.sync_always {
            Durability::Synced
        } else {
            Durability::Cached
        }
    }

    fn halt(&self, why: String) {
        self.accounts.halt(why);
    }

    fn halted(&self) -> Option<&str> {
        self.accounts.halted()
    }
}

impl From<QueueError> for PartError {
    fn from(error: QueueError) -> Self {
        Self::new(&error, matches!(error, QueueError::Store(DbError::Full { .. })))
    }
}

impl From<TableError> for PartError {
    fn from(error: TableError) -> Self {
        Self::new(&error, matches!(error, TableError::Store(DbError::Full { .. })))
    }
}

/// The properties of an account's services. Their files are among those of the shares, which are
/// saved and replaced with them.
struct PropertiesPart<'a>(&'a Account);

struct ReplacedProperties<'a> {
    account: &'a Account,
    held: Vec<HeldProperties<'a>>,
}

impl Part for PropertiesPart<'_> {
    fn hold(&self) -> Result<Box<dyn HeldPart + '_>, PartError> {
        let held = ServiceKind::ALL.into_iter().map(|kind| self.0.properties(kind).hold());
        Ok(Box::new(ReplacedProperties { account: self.0, held: held.collect() }))
    }

    fn save(&self, _: &Path) -> Result<Box<dyn SavingPart + '_>, PartError> {
        Ok(Box::new(PropertiesPart(self.0)))
    }
}

impl HeldPart for ReplacedProperties<'_> {
    fn resume(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
        for properties in &self.held {
            properties.reload()?;
        }
        if let Some(blob) = self.account.open_blob() {
            blob.set_retention(self.account.retention());
        }
        Ok(())
    }
}

impl SavingPart for PropertiesPart<'_> {
    fn finish(self: Box<Self>) -> Result<Vec<String>, PartError> {
        Ok(Vec::new())
    }
}
