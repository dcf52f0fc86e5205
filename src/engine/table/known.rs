//! Tables and entities that were read lately, in memory, for reads that come again while nothing
//! is written.
//!
//! Decides which are kept: all tables that were asked for, entities that are not large. How long
//! they are used, and how many there are, is decided in `store/db/cache`.

use std::sync::Arc;

use crate::core::table::{EntityKey, TableName};
use crate::store::db::{Cache, Version};
use crate::store::table::{StoredEntity, TableId};

/// Bytes of entities that an account keeps.
const BYTES_MAX: usize = 4 << 20;
/// The largest entity that is kept.
const ENTITY_MAX: usize = 16 << 10;
/// Bytes of tables that an account keeps.
const TABLES_MAX: usize = 64 << 10;
/// Bytes that are counted for an entry besides its texts.
const ENTRY_BYTES: usize = 256;

/// The tables and entities of an account that were read lately.
#[derive(Debug)]
pub(super) struct KnownEntities {
    tables: Cache<(TableName, TableId)>,
    entities: Cache<Arc<(TableName, Arc<StoredEntity>)>>,
}

impl Default for KnownEntities {
    fn default() -> Self {
        Self { tables: Cache::new(TABLES_MAX), entities: Cache::new(BYTES_MAX) }
    }
}

impl KnownEntities {
    /// The identity of a table, if it was looked up since the last write. A name in another case
    /// is another entry.
    pub fn table(&self, version: Version, name: &TableName) -> Option<TableId> {
        let found = self.tables.get(version, &name.as_str(), |(known, _)| known == name);
        found.map(|(_, id)| id)
    }

    /// An entity, if it was read since the last write.
    pub fn entity(
        &self,
        version: Version,
        table: &TableName,
        key: &EntityKey,
    ) -> Option<Arc<StoredEntity>> {
        let found = self.entities.get(version, &(table.as_str(), key), |known| {
            known.0 == *table && known.1.key() == key
        });
        found.map(|known| Arc::clone(&known.1))
    }

    /// Keeps a table that was looked up after `version` was noted.
    pub fn put_table(&self, version: Version, name: &TableName, id: TableId) {
        let bytes = ENTRY_BYTES + name.as_str().len();
        self.tables.put(version, &name.as_str(), bytes, (name.clone(), id));
    }

    /// Keeps an entity that was read after `version` was noted.
    pub fn put_entity(&self, version: Version, table: &TableName, entity: &Arc<StoredEntity>) {
        if entity.bytes() > ENTITY_MAX {
            return;
        }
        let bytes = ENTRY_BYTES + table.as_str().len() + entity.bytes();
        let known = Arc::new((table.clone(), Arc::clone(entity)));
        self.entities.put(version, &(table.as_str(), entity.key()), bytes, known);
    }
}
