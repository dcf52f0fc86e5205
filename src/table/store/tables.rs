//! Rows of tables: by name, in order, and what is left of deleted ones.
//!
//! Decides that a deleted table is gone at once while its entities go later, in slices: a table
//! made again under the name has another identity.

use rusqlite::{OptionalExtension, params};

use super::TableTx;
use crate::db::DbError;
use crate::rules::policy::SentPolicy;
use crate::table::rules::TableName;

/// The identity of a table. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableId(pub(super) i64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRow {
    pub id: TableId,
    /// Its name as it was created.
    pub name: String,
}

impl TableTx<'_> {
    /// The table of that name, in any case.
    pub fn table(&self, name: &TableName) -> Result<Option<TableRow>, DbError> {
        let mut statement =
            self.0.prepare_cached("SELECT id, name FROM tables WHERE folded = ?1")?;
        let row = statement.query_row([name.folded()], |row| {
            Ok(TableRow { id: TableId(row.get(0)?), name: row.get(1)? })
        });
        Ok(row.optional()?)
    }

    /// The identity of the table of that name, in any case.
    pub fn table_id(&self, name: &TableName) -> Result<Option<TableId>, DbError> {
        let mut statement = self.0.prepare_cached("SELECT id FROM tables WHERE folded = ?1")?;
        let id = statement.query_row([name.folded()], |row| row.get(0).map(TableId));
        Ok(id.optional()?)
    }

    /// Makes a table; false if the name is taken.
    pub fn create_table(&self, name: &TableName) -> Result<bool, DbError> {
        let mut statement = self.0.prepare_cached(
            "INSERT INTO tables (folded, name, policies) VALUES (?1, ?2, '[]')
             ON CONFLICT (folded) DO NOTHING",
        )?;
        Ok(statement.execute(params![name.folded(), name.as_str()])? == 1)
    }

    /// Deletes a table; false if there is none. Its entities stay until
    /// [`TableTx::sweep_deleted`] has removed them; nothing finds them meanwhile.
    pub fn delete_table(&self, name: &TableName) -> Result<bool, DbError> {
        let Some(TableId(id)) = self.table_id(name)? else { return Ok(false) };
        self.0.prepare_cached("DELETE FROM tables WHERE id = ?1")?.execute([id])?;
        let keep = "INSERT INTO deleted_tables (id) VALUES (?1)";
        self.0.prepare_cached(keep)?.execute([id])?;
        Ok(true)
    }

    /// Tables from the folded name `from` on, in the order of folded names, until `visit` returns
    /// false. `visit` gets the folded name and the table.
    pub fn tables_from(
        &self,
        from: &str,
        mut visit: impl FnMut(&str, &str) -> bool,
    ) -> Result<(), DbError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT folded, name FROM tables WHERE folded >= ?1 ORDER BY folded")?;
        let mut rows = statement.query([from])?;
        while let Some(row) = rows.next()? {
            let folded = row.get_ref(0)?.as_str().map_err(unreadable)?;
            let name = row.get_ref(1)?.as_str().map_err(unreadable)?;
            if !visit(folded, name) {
                break;
            }
        }
        Ok(())
    }

    /// Removes up to `rows` entities of deleted tables; true if some are left.
    pub fn sweep_deleted(&self, rows: usize) -> Result<bool, DbError> {
        let first = "SELECT id FROM deleted_tables LIMIT 1";
        let first = self.0.prepare_cached(first)?.query_row([], |row| row.get::<_, i64>(0));
        let Some(id) = first.optional()? else { return Ok(false) };
        let limit = i64::try_from(rows).unwrap_or(i64::MAX);
        let mut statement = self.0.prepare_cached(
            "DELETE FROM entities WHERE table_id = ?1 AND (pk, rk) IN
             (SELECT pk, rk FROM entities WHERE table_id = ?1 LIMIT ?2)",
        )?;
        if statement.execute([id, limit])? < rows {
            self.0.prepare_cached("DELETE FROM deleted_tables WHERE id = ?1")?.execute([id])?;
        }
        let left = "SELECT EXISTS (SELECT 1 FROM deleted_tables)";
        Ok(self.0.prepare_cached(left)?.query_row([], |row| row.get(0))?)
    }

    /// The stored access policies of the table of that name; none if there is no such table.
    pub fn policies(&self, name: &TableName) -> Result<Option<Vec<SentPolicy>>, DbError> {
        let mut statement =
            self.0.prepare_cached("SELECT policies FROM tables WHERE folded = ?1")?;
        let found = statement.query_row([name.folded()], |row| row.get::<_, String>(0));
        let Some(text) = found.optional()? else { return Ok(None) };
        let kept: Vec<[Option<String>; 4]> = serde_json::from_str(&text)
            .map_err(|error| DbError::damaged(format!("policies of {name}: {error}")))?;
        let policies = kept.into_iter().map(|[id, start, expiry, permission]| SentPolicy {
            id: id.unwrap_or_default(),
            start,
            expiry,
            permission,
        });
        Ok(Some(policies.collect()))
    }

    /// Sets the policies of a table; false if there is no such table.
    pub fn set_policies(&self, name: &TableName, policies: &[SentPolicy]) -> Result<bool, DbError> {
        let kept: Vec<_> = policies
            .iter()
            .map(|p| [Some(&p.id), p.start.as_ref(), p.expiry.as_ref(), p.permission.as_ref()])
            .collect();
        let text = serde_json::to_string(&kept)
            .map_err(|error| DbError::damaged(format!("policies of {name}: {error}")))?;
        let mut statement =
            self.0.prepare_cached("UPDATE tables SET policies = ?2 WHERE folded = ?1")?;
        Ok(statement.execute(params![name.folded(), text])? == 1)
    }
}

/// A column of another type than the schema's.
#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn unreadable(error: rusqlite::types::FromSqlError) -> DbError {
    DbError::damaged(format!("a column cannot be read: {error}"))
}
