//! Rows of entities: point access and scans along the keys.
//!
//! Decides how a [`Range`] becomes a seek. What is done with a row is the engine's.

use rusqlite::{OptionalExtension, Row, Statement, params};

use super::body::{self, Body};
use super::tables::{TableId, unreadable};
use super::{TableTx, writer};
use crate::db::DbError;
use crate::rules::Writer;
use crate::table::rules::range::{Edge, Side};
use crate::table::rules::{EntityFields, EntityKey, Position, Properties, Range, Ticks, ValueRef};

/// An entity in the row that a scan is at.
pub struct EntityRef<'a> {
    partition: &'a str,
    row: &'a str,
    ticks: Ticks,
    body: Body<'a>,
}

impl EntityFields for EntityRef<'_> {
    fn partition(&self) -> &str {
        self.partition
    }

    fn row(&self) -> &str {
        self.row
    }

    fn timestamp(&self) -> Ticks {
        self.ticks
    }

    fn properties(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        self.body.iter()
    }
}

/// An entity that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEntity {
    key: EntityKey,
    ticks: Ticks,
    body: Vec<u8>,
}

impl EntityFields for StoredEntity {
    fn partition(&self) -> &str {
        &self.key.partition
    }

    fn row(&self) -> &str {
        &self.key.row
    }

    fn timestamp(&self) -> Ticks {
        self.ticks
    }

    fn properties(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        // It was checked when it was read, or encoded here.
        Body::known(&self.body).iter()
    }
}

impl StoredEntity {
    /// An entity as it is written now.
    pub fn new(key: EntityKey, ticks: Ticks, properties: &Properties) -> Self {
        Self { key, ticks, body: body::encode(properties) }
    }

    /// Its properties, to be changed.
    pub fn to_properties(&self) -> Properties {
        let pairs = self.properties().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Properties::new(pairs.collect())
    }
}

/// How a scan ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scanned {
    /// At the end of the range.
    Wholly,
    /// Where the visitor stopped it.
    Stopped,
}

impl TableTx<'_> {
    /// The entity of that key.
    pub fn entity(&self, table: TableId, key: &EntityKey) -> Result<Option<StoredEntity>, DbError> {
        let mut statement = self.0.prepare_cached(
            "SELECT ticks, body FROM entities WHERE table_id = ?1 AND pk = ?2 AND rk = ?3",
        )?;
        let row = statement.query_row(params![table.0, key.partition, key.row], |row| {
            Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?))
        });
        let Some((ticks, body)) = row.optional()? else { return Ok(None) };
        if Body::checked(&body).is_none() {
            return Err(damaged(&key.partition, &key.row));
        }
        Ok(Some(StoredEntity { key: key.clone(), ticks: Ticks(ticks), body }))
    }

    /// When the entity of that key was written last.
    pub fn written(&self, table: TableId, key: &EntityKey) -> Result<Option<Ticks>, DbError> {
        let mut statement = self.0.prepare_cached(
            "SELECT ticks FROM entities WHERE table_id = ?1 AND pk = ?2 AND rk = ?3",
        )?;
        let row = statement
            .query_row(params![table.0, key.partition, key.row], |row| row.get(0).map(Ticks));
        Ok(row.optional()?)
    }

    /// The request that wrote the entity of that key last.
    pub fn last_writer(&self, table: TableId, key: &EntityKey) -> Result<Option<Writer>, DbError> {
        let mut statement = self.0.prepare_cached(
            "SELECT writer, ticks FROM entities WHERE table_id = ?1 AND pk = ?2 AND rk = ?3",
        )?;
        let row = statement.query_row(params![table.0, key.partition, key.row], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1).map(Ticks)?))
        });
        Ok(row.optional()?.map(|(text, ticks)| writer::decode(&text, ticks)))
    }

    /// Writes an entity of a new key; false if there is one of its key.
    pub fn insert_entity(
        &self,
        table: TableId,
        entity: &StoredEntity,
        by: &Writer,
    ) -> Result<bool, DbError> {
        let mut statement = self.0.prepare_cached(
            "INSERT INTO entities (table_id, pk, rk, ticks, writer, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (table_id, pk, rk) DO NOTHING",
        )?;
        let StoredEntity { key, ticks, body } = entity;
        let by = writer::encode(by);
        let inserted =
            statement.execute(params![table.0, key.partition, key.row, ticks.0, by, body])?;
        Ok(inserted == 1)
    }

    /// Writes an entity over the one of its key.
    pub fn update_entity(
        &self,
        table: TableId,
        entity: &StoredEntity,
        by: &Writer,
    ) -> Result<(), DbError> {
        let mut statement = self.0.prepare_cached(
            "UPDATE entities SET ticks = ?4, writer = ?5, body = ?6
             WHERE table_id = ?1 AND pk = ?2 AND rk = ?3",
        )?;
        let StoredEntity { key, ticks, body } = entity;
        let by = writer::encode(by);
        let updated =
            statement.execute(params![table.0, key.partition, key.row, ticks.0, by, body])?;
        assert_eq!(updated, 1, "an entity that is updated is there");
        Ok(())
    }

    /// Removes the entity of that key.
    pub fn remove_entity(&self, table: TableId, key: &EntityKey) -> Result<(), DbError> {
        let mut statement = self
            .0
            .prepare_cached("DELETE FROM entities WHERE table_id = ?1 AND pk = ?2 AND rk = ?3")?;
        statement.execute(params![table.0, key.partition, key.row])?;
        Ok(())
    }

    /// Visits the entities of a range in their order until `visit` returns false.
    pub fn scan(
        &self,
        table: TableId,
        range: &Range,
        mut visit: impl FnMut(&EntityRef<'_>) -> bool,
    ) -> Result<Scanned, DbError> {
        const COLUMNS: &str = "SELECT pk, rk, ticks, body FROM entities WHERE table_id = ?1";
        let Position::In(partition, edge) = &range.start else { return Ok(Scanned::Wholly) };
        let (place, row) = match edge {
            Edge::At(row, Side::Before) => ("AND (pk, rk) >= (?2, ?3)", Some(row)),
            Edge::At(row, Side::After) => ("AND (pk, rk) > (?2, ?3)", Some(row)),
            Edge::End => ("AND pk > ?2", None),
        };
        let sql = format!("{COLUMNS} {place} ORDER BY pk, rk");
        let mut statement = self.0.prepare_cached(&sql)?;
        bind(&mut statement, table, partition, row)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let entity = read_row(row)?;
            if !range.end.is_after(entity.partition, entity.row) {
                return Ok(Scanned::Wholly);
            }
            if !visit(&entity) {
                return Ok(Scanned::Stopped);
            }
        }
        Ok(Scanned::Wholly)
    }
}

fn bind(
    statement: &mut Statement<'_>,
    table: TableId,
    partition: &str,
    row: Option<&String>,
) -> Result<(), DbError> {
    statement.raw_bind_parameter(1, table.0)?;
    statement.raw_bind_parameter(2, partition)?;
    if let Some(row) = row {
        statement.raw_bind_parameter(3, row)?;
    }
    Ok(())
}

fn read_row<'a>(row: &'a Row<'_>) -> Result<EntityRef<'a>, DbError> {
    let text = |column| row.get_ref(column)?.as_str().map_err(unreadable);
    let (partition, row_key) = (text(0)?, text(1)?);
    let ticks = Ticks(row.get_ref(2)?.as_i64().map_err(unreadable)?);
    let bytes = row.get_ref(3)?.as_blob().map_err(unreadable)?;
    let body = Body::checked(bytes).ok_or_else(|| damaged(partition, row_key))?;
    Ok(EntityRef { partition, row: row_key, ticks, body })
}

fn damaged(partition: &str, row: &str) -> DbError {
    DbError::damaged(format!("the entity ({partition:?}, {row:?}) cannot be read"))
}
