//! Rows of containers. Which names are legal, and what a container's record says, is decided by
//! the engine.

use rusqlite::{OptionalExtension, Row as SqlRow, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::janitor::{Doomed, doom};
use super::list::successor;
use super::states::LEASE;
use super::tx::{BlobTx, WriteTx};
use super::types::{ContainerId, ContainerRow, Retained, decode, encode, signed, text};
use crate::db::DbError;

const COLUMNS: &str = "id, name, version, deleted, until, record";

impl BlobTx<'_> {
    /// The container of this name, if it is not deleted.
    pub fn container<C: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<ContainerRow<C>>, DbError> {
        self.deleted_container(name, "")
    }

    /// The deleted container of this name and version, while it is kept.
    pub fn deleted_container<C: DeserializeOwned>(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<ContainerRow<C>>, DbError> {
        let sql = format!("SELECT {COLUMNS} FROM container WHERE name = ?1 AND version = ?2");
        let mut select = self.conn.prepare_cached(&sql)?;
        let mut rows = select.query(params![name.as_bytes(), version])?;
        rows.next()?.map(container_row).transpose()
    }

    /// Containers in order of their names, from `from` on: the second result of the page before.
    pub fn list_containers<C: DeserializeOwned>(
        &self,
        prefix: &str,
        from: Option<&str>,
        limit: usize,
        deleted: bool,
    ) -> Result<(Vec<ContainerRow<C>>, Option<String>), DbError> {
        // A slash is in no name, so it can divide name and version.
        let (name, version) =
            from.map_or(("", ""), |from| from.split_once('/').unwrap_or((from, "")));
        let name = name.max(prefix);
        let sql = format!(
            "SELECT {COLUMNS} FROM container
             WHERE (name, version) >= (?1, ?2) AND name < ?3 AND (version = '' OR ?4)
             ORDER BY name, version LIMIT ?5"
        );
        let mut select = self.conn.prepare_cached(&sql)?;
        let end = successor(prefix.as_bytes());
        let limit_one_more = signed(limit as u64).saturating_add(1);
        let given = params![name.as_bytes(), version, end, deleted, limit_one_more];
        let mut rows = select.query(given)?;
        let mut page = Vec::new();
        while let Some(row) = rows.next()? {
            let row: ContainerRow<C> = container_row(row)?;
            if page.len() == limit {
                let version = row.retained.map_or(String::new(), |(version, _)| version);
                return Ok((page, Some(format!("{}/{version}", row.name))));
            }
            page.push(row);
        }
        Ok((page, None))
    }

    /// The containers whose records have a lease, in order.
    pub fn leased_containers<C: DeserializeOwned>(&self) -> Result<Vec<ContainerRow<C>>, DbError> {
        let mut select = self.conn.prepare_cached(
            "SELECT id, name, version, deleted, until, record FROM container
             WHERE version = '' AND instr(record, ?1) > 0 ORDER BY name",
        )?;
        let mut rows = select.query(params![LEASE])?;
        let mut containers = Vec::new();
        while let Some(row) = rows.next()? {
            containers.push(container_row(row)?);
        }
        Ok(containers)
    }
}

impl WriteTx<'_> {
    /// Makes a container. `None`: the name is taken.
    pub fn add_container(
        &self,
        name: &str,
        record: &impl Serialize,
    ) -> Result<Option<ContainerId>, DbError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO container (name, record) VALUES (?1, ?2)
             ON CONFLICT (name, version) DO NOTHING RETURNING id",
        )?;
        let id = insert.query_row(params![name.as_bytes(), encode(record)?], |row| row.get(0));
        Ok(id.optional()?.map(ContainerId))
    }

    pub fn update_container(
        &self,
        id: ContainerId,
        record: &impl Serialize,
    ) -> Result<(), DbError> {
        self.conn
            .prepare_cached("UPDATE container SET record = ?2 WHERE id = ?1")?
            .execute(params![id.0, encode(record)?])?;
        Ok(())
    }

    /// Deletes a container: its name is free at once. It is kept under the version, or its blobs
    /// are removed later.
    pub fn delete_container(
        &self,
        id: ContainerId,
        retained: Option<(&str, Retained)>,
    ) -> Result<(), DbError> {
        let Some((version, kept)) = retained else {
            self.conn.prepare_cached("DELETE FROM container WHERE id = ?1")?.execute([id.0])?;
            return doom(self.conn, self.shared, Doomed::Container(id));
        };
        self.conn
            .prepare_cached(
                "UPDATE container SET version = ?2, deleted = ?3, until = ?4 WHERE id = ?1",
            )?
            .execute(params![id.0, version, kept.deleted.0, kept.until.0])?;
        Ok(())
    }

    /// Brings a deleted container back under a name. False: the name is taken.
    pub fn restore_container(&self, id: ContainerId, name: &str) -> Result<bool, DbError> {
        let restored = self
            .conn
            .prepare_cached(
                "UPDATE OR IGNORE container
                 SET name = ?2, version = '', deleted = NULL, until = NULL WHERE id = ?1",
            )?
            .execute(params![id.0, name.as_bytes()])?;
        Ok(restored > 0)
    }
}

pub(super) fn container_row<C: DeserializeOwned>(
    row: &SqlRow<'_>,
) -> Result<ContainerRow<C>, DbError> {
    let version: String = row.get(2)?;
    let retained = Retained::from_columns(row.get(3)?, row.get(4)?);
    Ok(ContainerRow {
        id: ContainerId(row.get(0)?),
        name: text(row.get(1)?)?,
        record: decode(row.get_ref(5)?.as_blob().unwrap_or(&[]))?,
        retained: retained.map(|retained| (version, retained)),
    })
}
