//! The counter behind receipts, which must never run back.

use rusqlite::OptionalExtension;

use super::QueueRows;
use crate::core::queue::Tick;
use crate::store::db::DbError;

impl QueueRows<'_> {
    /// A moment that no change before is after.
    pub fn change_ceiling(&self) -> Result<Tick, DbError> {
        let mut select =
            self.0.prepare_cached("SELECT value FROM counters WHERE name = 'change'")?;
        Ok(select.query_row([], |row| row.get(0).map(Tick)).optional()?.unwrap_or_default())
    }

    /// Sets the ceiling of changes.
    pub fn set_change_ceiling(&self, ceiling: Tick) -> Result<(), DbError> {
        let mut insert = self.0.prepare_cached(
            "INSERT INTO counters (name, value) VALUES ('change', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?;
        insert.execute([ceiling.0])?;
        Ok(())
    }
}
