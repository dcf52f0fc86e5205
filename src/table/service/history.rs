//! Recent changes of entities, and what is known of one entity.
//!
//! The last writer of an entity is in its row and outlives a restart; older changes are in memory
//! only, as many as [`crate::journal::HISTORY_MAX`].

use super::{TableError, TableResult, TableService, table_of};
use crate::db::Store as _;
use crate::rules::Writer;
use crate::table::rules::{EntityFields, EntityKey, TableName, Ticks};

/// A change of an entity or a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedEntity {
    /// The table, as it was created.
    pub table: String,
    /// The entity; none if the table as a whole was changed.
    pub key: Option<EntityKey>,
    /// The timestamp that the entity has since; none if it was deleted.
    pub ticks: Option<Ticks>,
    pub by: Writer,
}

/// The last write of an entity and its latest changes, for `latchfs why`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntityExplanation {
    /// When it was written last; none if there is no such entity.
    pub ticks: Option<Ticks>,
    /// How many properties it has.
    pub properties: usize,
    /// The request that wrote it last.
    pub last_writer: Option<Writer>,
    /// Remembered changes, the latest first.
    pub changes: Vec<ChangedEntity>,
}

impl TableService {
    /// Reports the last write of an entity and its latest changes. May wait; not for an event loop.
    pub fn why(&self, table: &TableName, key: &EntityKey) -> TableResult<EntityExplanation> {
        let (entity, last_writer) = self.store.read(|tx| {
            let table = table_of(tx, table)?;
            Ok::<_, TableError>((tx.entity(table, key)?, tx.last_writer(table, key)?))
        })?;
        Ok(EntityExplanation {
            ticks: entity.as_ref().map(EntityFields::timestamp),
            properties: entity.map_or(0, |entity| entity.properties().count()),
            last_writer,
            changes: self.changes(|change| {
                change.key.as_ref() == Some(key)
                    && change.table.eq_ignore_ascii_case(table.as_str())
            }),
        })
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn changes(&self, wanted: impl Fn(&ChangedEntity) -> bool) -> Vec<ChangedEntity> {
        self.memory.history.latest(wanted)
    }
}
