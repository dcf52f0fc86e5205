//! Counters that must never run back.

use rusqlite::OptionalExtension;

use super::Tx;
use crate::core::table::Ticks;
use crate::store::db::DbError;

impl Tx<'_> {
    /// The tick below which all timestamps were given away.
    pub fn tick_ceiling(&self) -> Result<Ticks, DbError> {
        let mut statement =
            self.0.prepare_cached("SELECT value FROM counters WHERE name = 'ticks'")?;
        let value = statement.query_row([], |row| row.get(0).map(Ticks));
        Ok(value.optional()?.unwrap_or_default())
    }

    /// Raises the ceiling of timestamps.
    pub fn set_tick_ceiling(&self, ticks: Ticks) -> Result<(), DbError> {
        let mut statement = self.0.prepare_cached(
            "INSERT INTO counters (name, value) VALUES ('ticks', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?;
        statement.execute([ticks.0])?;
        Ok(())
    }
}
