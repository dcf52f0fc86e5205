//! Tables and entities that were read or written lately, in memory.
//!
//! Decides which are kept: all tables that were asked for, entities that are not large. When they
//! may be used, and how many there are, is decided in [`crate::db::kept`].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::db::kept::{Kept, KeptWrite, Missing, Suspended};
use crate::table::rules::{EntityKey, TableName};
use crate::table::store::{StoredEntity, TableId};

/// Bytes of entities that an account keeps.
const BYTES_MAX: usize = 4 << 20;
/// The largest entity that is kept.
const ENTITY_MAX: usize = 16 << 10;
/// Bytes of tables that an account keeps.
const TABLES_MAX: usize = 256 << 10;
/// Bytes that are counted for an entry besides its texts.
const ENTRY_BYTES: usize = 256;

/// An entity with its table. The identity of a table is not used again, so that entities of a
/// deleted table are not found any more.
type Entity = (TableId, Arc<StoredEntity>);
/// A table by its name, in any case.
type Table = (TableName, TableId);

/// The tables and entities of an account that were read or written lately.
#[derive(Debug)]
pub(super) struct KnownEntities {
    tables: Arc<Kept<Table>>,
    entities: Arc<Kept<Entity>>,
}

/// A write of a table or an entity under way. What was known of it is known no more.
pub(super) enum KnownWrite {
    /// A table, made or deleted.
    Table { _write: KeptWrite<Table> },
    /// An entity, and how it is after the commit; none if it is deleted.
    Entity(KeptWrite<Entity>, TableId, Option<Arc<StoredEntity>>),
}

/// Nothing is known until the value is dropped.
pub(super) struct NothingKnown<'a> {
    _tables: Suspended<'a, Table>,
    _entities: Suspended<'a, Entity>,
}

/// The name of a table as it is compared.
struct Folded<'a>(&'a TableName);

impl Hash for Folded<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut folded = [0; 64];
        let name = self.0.as_str().as_bytes();
        // Longer names are not legal; their ends would not be compared here, but by the caller.
        let length = name.len().min(folded.len());
        folded[..length].copy_from_slice(&name[..length]);
        folded[..length].make_ascii_lowercase();
        state.write(&folded[..length]);
    }
}

impl Default for KnownEntities {
    fn default() -> Self {
        Self { tables: Arc::new(Kept::new(TABLES_MAX)), entities: Arc::new(Kept::new(BYTES_MAX)) }
    }
}

impl KnownEntities {
    /// The identity of a table.
    pub fn table(&self, name: &TableName) -> Result<TableId, Missing> {
        let is_it = |(known, _): &Table| known.as_str().eq_ignore_ascii_case(name.as_str());
        self.tables.find(&Folded(name), is_it).map(|(_, id)| id)
    }

    pub fn entity(&self, table: TableId, key: &EntityKey) -> Result<Arc<StoredEntity>, Missing> {
        let is_it = |(in_table, known): &Entity| *in_table == table && known.key() == key;
        self.entities.find(&(table, key), is_it).map(|(_, entity)| entity)
    }

    /// Keeps a table that was looked up after it was missing here.
    pub fn put_table(&self, missing: Missing, name: &TableName, id: TableId) {
        self.tables.put(missing, ENTRY_BYTES + name.as_str().len(), (name.clone(), id));
    }

    /// Keeps an entity that was read after it was missing here.
    pub fn put_entity(&self, missing: Missing, table: TableId, entity: &Arc<StoredEntity>) {
        if let Some(bytes) = counted(entity) {
            self.entities.put(missing, bytes, (table, Arc::clone(entity)));
        }
    }

    /// Begins to make or delete a table, in the writer's transaction.
    pub fn write_table(&self, name: &TableName) -> KnownWrite {
        KnownWrite::Table { _write: self.tables.write(&Folded(name)) }
    }

    /// Begins to write or delete an entity, in the writer's transaction.
    pub fn write_entity(
        &self,
        table: TableId,
        key: &EntityKey,
        after: Option<Arc<StoredEntity>>,
    ) -> KnownWrite {
        KnownWrite::Entity(self.entities.write(&(table, key)), table, after)
    }

    /// Forgets everything. To be called before all rows are replaced.
    pub fn suspend(&self) -> NothingKnown<'_> {
        NothingKnown { _tables: self.tables.suspend(), _entities: self.entities.suspend() }
    }
}

impl KnownWrite {
    /// The write is committed: an entity that is not large is known from now on.
    pub fn committed(self) {
        if let Self::Entity(write, table, Some(entity)) = self
            && let Some(bytes) = counted(&entity)
        {
            write.committed(bytes, (table, entity));
        }
    }
}

/// The bytes that are counted for an entity; none if it is not kept.
fn counted(entity: &StoredEntity) -> Option<usize> {
    let bytes = entity.bytes();
    (bytes <= ENTITY_MAX).then_some(ENTRY_BYTES + bytes)
}
