//! Transactions of the blob store: what may be read in one, and what may be changed. The database
//! decides the outcome. The methods are with their subjects: containers, states, blocks, list,
//! tags; those of settings and of the counter behind `ETag`s are here.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension};

use super::content::{Bytes, Content};
use super::extents::Extent;
use super::files::OpenFile;
use super::reclaim::{self, ReaderToken};
use super::types::signed;
use super::{Shared, unsynced};
use crate::db::DbError;

/// The counter in the database is this far ahead, so that it need not be written each time. In
/// ticks of 100 ns: a restart after a kill skips one second.
const AHEAD: u64 = 10_000_000;

/// A number of the store itself, in the table `meta`.
#[derive(Clone, Copy)]
pub(super) enum Meta {
    /// No counter that was given out is greater.
    Counter,
    /// How often all rows were replaced.
    Replaced,
}

impl Meta {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Replaced => "replaced",
        }
    }

    pub(super) fn get(self, conn: &Connection) -> Result<i64, DbError> {
        let mut select = conn.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
        Ok(select.query_row([self.name()], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    pub(super) fn set(self, conn: &Connection, value: i64) -> Result<(), DbError> {
        conn.prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)")?
            .execute((self.name(), value))?;
        Ok(())
    }
}

/// A transaction that sees one committed state of all blobs.
pub struct BlobTx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) shared: &'a Shared,
    pub(super) token: &'a ReaderToken,
}

/// A transaction that can change blobs, and sees its own changes.
pub struct WriteTx<'a> {
    tx: BlobTx<'a>,
    open: RefCell<OpenFiles>,
}

/// Files with new references. They stay open until the outcome of the transaction is known, so that
/// a file which is not open gets no reference any more.
pub(super) type OpenFiles = Vec<Arc<OpenFile>>;

impl BlobTx<'_> {
    /// A text that was kept under this name.
    pub fn setting(&self, name: &str) -> Result<Option<String>, DbError> {
        let mut select = self.conn.prepare_cached("SELECT text FROM setting WHERE name = ?1")?;
        Ok(select.query_row([name], |row| row.get(0)).optional()?)
    }
}

impl WriteTx<'_> {
    /// Runs `f` in the writer's transaction.
    pub(super) fn run<T, E>(
        conn: &Connection,
        shared: &Shared,
        f: impl FnOnce(&WriteTx<'_>) -> Result<T, E>,
    ) -> Result<(T, OpenFiles), E> {
        let token = &shared.readers.enter();
        let tx = WriteTx { tx: BlobTx { conn, shared, token }, open: RefCell::default() };
        let value = f(&tx)?;
        Ok((value, tx.open.into_inner()))
    }

    /// Gives `owner` bytes that are in a file, as the extent at `start` of this write. `None`:
    /// there are no bytes.
    pub(super) fn refer(
        &self,
        owner: i64,
        content: Content,
        start: u64,
        write: u64,
    ) -> Result<Option<Extent>, DbError> {
        let (length, crc, synced) = (content.length(), content.crc64(), content.synced);
        match content.bytes {
            Bytes::Inline(bytes) if bytes.is_empty() => Ok(None),
            Bytes::Inline(_) => {
                Err(DbError::Io("a part of a blob was taken as a whole blob".to_owned()))
            }
            Bytes::InFile(file, _) if !file.is_of(&self.shared.files) => {
                Err(DbError::Io("content of another account was put into this one".to_owned()))
            }
            Bytes::InFile(file, offset) => {
                let id = file.id;
                self.open.borrow_mut().push(file);
                reclaim::add_reference(self.conn, owner, id)?;
                if !synced {
                    unsynced::note(self.conn, self.shared, (id, offset), length, crc)?;
                }
                Ok(Some(Extent { start, length, file: id, offset, write }))
            }
        }
    }

    /// Keeps a text under a name, or removes it.
    pub fn set_setting(&self, name: &str, text: Option<&str>) -> Result<(), DbError> {
        match text {
            Some(text) => self
                .conn
                .prepare_cached("INSERT OR REPLACE INTO setting (name, text) VALUES (?1, ?2)")?
                .execute([name, text])?,
            None => {
                self.conn.prepare_cached("DELETE FROM setting WHERE name = ?1")?.execute([name])?
            }
        };
        Ok(())
    }

    /// A number that is greater than all before it, also those of earlier processes, and at least
    /// `at_least`.
    pub fn next_counter(&self, at_least: u64) -> Result<u64, DbError> {
        let next = |last: u64| last.saturating_add(1).max(at_least);
        let counter = &self.shared.last_counter;
        let last = counter.update(Ordering::AcqRel, Ordering::Acquire, next);
        let given = next(last);
        if signed(given) > Meta::Counter.get(self.conn)? {
            Meta::Counter.set(self.conn, signed(given.saturating_add(AHEAD)))?;
        }
        Ok(given)
    }
}

impl<'a> Deref for WriteTx<'a> {
    type Target = BlobTx<'a>;

    fn deref(&self) -> &BlobTx<'a> {
        &self.tx
    }
}
