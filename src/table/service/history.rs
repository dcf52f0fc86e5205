//! Recent changes of entities, and what is known of one entity.
//!
//! The last writer of an entity is in its row and outlives a restart; older changes are in memory
//! only, in the journal.

use super::{TableError, TableResult, TableService, table_of};
use crate::db::Store as _;
use crate::journal::Change;
use crate::rules::Writer;
use crate::rules::address::ObjectAddress;
use crate::table::rules::{EntityFields, EntityKey, TableName, Ticks};

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
    pub changes: Vec<Change>,
}

impl TableService {
    /// Reports the last write of an entity and its latest changes. May wait; not for an event loop.
    pub fn why(&self, table: &TableName, key: &EntityKey) -> TableResult<EntityExplanation> {
        let (entity, last_writer) = self.store.read(|tx| {
            let table = table_of(tx, table)?;
            Ok::<_, TableError>((tx.entity(table, key)?, tx.last_writer(table, key)?))
        })?;
        let object = entity_address(table, key);
        Ok(EntityExplanation {
            ticks: entity.as_ref().map(EntityFields::timestamp),
            properties: entity.map_or(0, |entity| entity.properties().count()),
            last_writer,
            changes: self.changes(|change| object.holds(&change.object)),
        })
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn changes(&self, wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        self.memory.history.latest(wanted)
    }
}

pub(super) fn entity_address(table: &TableName, key: &EntityKey) -> ObjectAddress {
    let EntityKey { partition, row } = key.clone();
    ObjectAddress::Entity { table: table.to_string(), partition, row }
}
