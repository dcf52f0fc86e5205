//! The Blob, Queue and Table services of one account, held while their rows are replaced or the
//! moment is chosen that is saved.
//!
//! Decides that a service which was never used is left alone. How rows are replaced and saved is
//! decided in the services' stores.

use std::path::Path;
use std::sync::Arc;

use super::StateError;
use crate::bench::saved::steps::step;
use crate::blob::service::BlobService;
use crate::blob::store::{HeldBlobs, SavedBlobs};
use crate::db::DbError;
use crate::db::counted::{HeldRows, SavedRows};
use crate::queue::rules::Tick;
use crate::queue::service::QueueService;
use crate::rules::Timestamp;
use crate::server::Account;
use crate::table::rules::Ticks;
use crate::table::service::TableService;

/// The names of the databases of an account, in its folder and in a saved state.
const FILES: [&str; 3] = ["blob.db", "queue.db", "table.db"];

/// The services of an account that have a database.
pub(super) struct Databases<'a> {
    account: &'a Account,
    blob: Option<Arc<BlobService>>,
    queue: Option<&'a QueueService>,
    table: Option<&'a TableService>,
}

/// The same, with their writers held.
pub(super) struct HeldDatabases<'a> {
    databases: &'a Databases<'a>,
    blob: Option<HeldBlobs<'a>>,
    queue: Option<HeldRows<'a, Tick>>,
    table: Option<HeldRows<'a, Ticks>>,
}

/// The same, being saved.
pub(super) struct SavedDatabases<'a> {
    databases: &'a Databases<'a>,
    blob: Option<SavedBlobs<'a>>,
    queue: Option<SavedRows<Tick>>,
    table: Option<SavedRows<Ticks>>,
}

impl<'a> Databases<'a> {
    /// Opens the services that have a database on disk, or in the saved state in `saved`.
    pub(super) fn open(account: &'a Account, saved: Option<&Path>) -> Result<Self, StateError> {
        let there = account.has_databases();
        let is_saved = |file| saved.is_some_and(|folder| folder.join(file).exists());
        let [blob, queue, table] = FILES;
        Ok(Self {
            account,
            blob: (there.blob || is_saved(blob)).then(|| account.blob()).transpose()?,
            queue: (there.queue || is_saved(queue)).then(|| account.queue()).transpose()?,
            table: (there.table || is_saved(table)).then(|| account.table()).transpose()?,
        })
    }

    /// Holds their writers: requests that write wait until the value is dropped.
    pub(super) fn hold(&'a self) -> HeldDatabases<'a> {
        HeldDatabases {
            databases: self,
            blob: self.blob.as_ref().map(|service| service.hold()),
            queue: self.queue.map(QueueService::hold),
            table: self.table.map(TableService::hold),
        }
    }

    /// Prepares to save them in `folder`.
    pub(super) fn save(&'a self, folder: &Path) -> Result<SavedDatabases<'a>, DbError> {
        Ok(SavedDatabases {
            databases: self,
            blob: self.blob.as_ref().map(|service| service.save(folder)).transpose()?,
            queue: self.queue.map(|service| service.save(folder)).transpose()?,
            table: self.table.map(|service| service.save(folder)).transpose()?,
        })
    }
}

impl HeldDatabases<'_> {
    /// Replaces all rows by those saved in `folder`, or by none, in transactions that wait for
    /// [`HeldDatabases::commit`]. The clock will show `now`.
    pub(super) fn replace(&self, folder: Option<&Path>, now: Timestamp) -> Result<(), StateError> {
        let [blob, queue, table] =
            FILES.map(|file| folder.filter(|folder| folder.join(file).exists()));
        if let Some(held) = &self.blob {
            match blob {
                Some(folder) => BlobService::restore(held, folder, now)?,
                None => held.empty()?,
            }
        }
        if let Some(held) = &self.queue {
            queue.map_or_else(|| held.empty(), |folder| held.restore(folder))?;
        }
        if let Some(held) = &self.table {
            table.map_or_else(|| held.empty(), |folder| held.restore(folder))?;
        }
        Ok(())
    }

    /// Writes the rows, so that the commits need little more of the disk.
    pub(super) fn flush(&self) -> Result<(), DbError> {
        self.blob.as_ref().map_or(Ok(()), HeldBlobs::flush)?;
        self.queue.as_ref().map_or(Ok(()), HeldRows::flush)?;
        self.table.as_ref().map_or(Ok(()), HeldRows::flush)
    }

    pub(super) fn commit(&self) -> Result<(), DbError> {
        if let Some(held) = &self.blob {
            held.commit()?;
            step();
        }
        if let Some(held) = &self.queue {
            held.commit()?;
            step();
        }
        if let Some(held) = &self.table {
            held.commit()?;
            step();
        }
        Ok(())
    }

    /// Has the services forget what they know of the rows before. The properties of services and
    /// the clock are those of the new data by now.
    pub(super) fn replaced(&self) {
        let Databases { account, blob, queue, table } = self.databases;
        let clock = account.clock();
        if let Some(service) = blob {
            service.replaced(clock, account.retention());
        }
        if let (Some(service), Some(held)) = (queue, &self.queue) {
            service.replaced(clock, held.saved_last());
        }
        if let (Some(service), Some(held)) = (table, &self.table) {
            service.replaced(clock, held.saved_last());
        }
    }
}

impl SavedDatabases<'_> {
    /// The rows of this moment are saved. The writers are held.
    pub(super) fn begin(&mut self) -> Result<(), DbError> {
        if let Some(saved) = &mut self.blob {
            saved.begin()?;
        }
        let Databases { queue, table, .. } = self.databases;
        if let (Some(saved), Some(service)) = (&mut self.queue, queue) {
            saved.begin(service.last_change())?;
        }
        if let (Some(saved), Some(service)) = (&mut self.table, table) {
            saved.begin(service.last_ticks())?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), DbError> {
        self.blob.map_or(Ok(()), SavedBlobs::finish)?;
        step();
        self.queue.map_or(Ok(()), SavedRows::finish)?;
        step();
        self.table.map_or(Ok(()), SavedRows::finish)
    }
}

/// How long the databases are that a saved state has of an account.
pub(super) fn saved_bytes(folder: &Path) -> u64 {
    let length =
        |file| folder.join(file).metadata().map_or(0, |meta: std::fs::Metadata| meta.len());
    FILES.iter().map(length).sum()
}
