//! Settings of the service, and the counter behind `ETag`s.
//! What they mean is decided by the engine.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension};

use super::tx::{BlobTx, WriteTx};
use super::types::signed;
use crate::db::DbError;

/// The counter in the database is this far ahead, so that it need not be written each time. In
/// ticks of 100 ns: a restart after a kill skips one second.
const AHEAD: u64 = 10_000_000;

impl BlobTx<'_> {
    /// A text that was kept under this name.
    pub fn setting(&self, name: &str) -> Result<Option<String>, DbError> {
        let mut select = self.conn.prepare_cached("SELECT text FROM setting WHERE name = ?1")?;
        Ok(select.query_row([name], |row| row.get(0)).optional()?)
    }
}

impl WriteTx<'_> {
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
        if signed(given) > self.shared.ceiling.load(Ordering::Acquire) {
            let ceiling = signed(given.saturating_add(AHEAD));
            set_ceiling(self.conn, ceiling)?;
            self.effects().ceiling = Some(ceiling);
        }
        Ok(given)
    }
}

/// A number that no counter given out has passed.
pub(super) fn ceiling(conn: &Connection) -> Result<i64, DbError> {
    let mut select = conn.prepare_cached("SELECT value FROM meta WHERE name = 'counter'")?;
    Ok(select.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

pub(super) fn set_ceiling(conn: &Connection, value: i64) -> Result<(), DbError> {
    conn.prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES ('counter', ?1)")?
        .execute([value])?;
    Ok(())
}
