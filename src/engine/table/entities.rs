//! Get, insert, update, merge and delete one entity.
//!
//! Decides that the condition is checked in the writer's transaction, so that of two requests
//! with one ETag exactly one succeeds (S81, S84).

use std::sync::Arc;

use super::history::ChangedEntity;
use super::{ChangeSize, Purpose, Recorded, TableChange, TableResult, TableService, table_of};
use crate::core::table::{
    self as rules, Effect, EntityFields as _, EntityKey, How, Properties, TableDenial, TableName,
    Ticks,
};
use crate::engine::context::Context;
use crate::store::table::{StoredEntity, TableId};

/// Bytes of a value set that may be written on an event loop.
const SMALL_BYTES: usize = 64 << 10;

/// A write of one entity.
#[derive(Clone, PartialEq, Debug)]
pub struct Write {
    /// The change, with its condition.
    pub change: rules::EntityChange,
    /// The entity.
    pub key: EntityKey,
    /// The given properties; none for a deletion.
    pub properties: Properties,
}

/// An entity after a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenEntity {
    /// Its key.
    pub key: EntityKey,
    /// Its timestamp, which is its ETag too; none after a deletion (S90).
    pub ticks: Option<Ticks>,
    /// The entity, after an insertion.
    pub inserted: Option<StoredEntity>,
}

impl Write {
    /// Checks what needs no look at the table.
    pub(super) fn check(&self) -> Result<(), TableDenial> {
        self.change.check_form()?;
        self.key.check()?;
        self.properties.check_each()?;
        self.properties.check_whole(&self.key)
    }

    pub(super) fn bytes(&self) -> usize {
        self.properties.iter().map(|(name, value)| name.len() + value.counted_bytes()).sum()
    }
}

impl TableService {
    /// Get Entity.
    pub async fn entity(
        &self,
        table: &TableName,
        key: &EntityKey,
    ) -> TableResult<Arc<StoredEntity>> {
        let Some(version) = self.store.database().version() else {
            return self.read_entity(None, table, key).await.map(|(_, entity)| entity);
        };
        if let Some(entity) = self.known.entity(version, table, key) {
            return Ok(entity);
        }
        let id = self.known.table(version, table);
        let mut read = self.read_entity(id, table, key).await;
        // The table may have been deleted between the version and the read.
        if id.is_some() && self.store.database().version() != Some(version) {
            read = self.read_entity(None, table, key).await;
        }
        let (found, entity) = read?;
        if id.is_none() {
            self.known.put_table(version, table, found);
        }
        self.known.put_entity(version, table, &entity);
        Ok(entity)
    }

    /// Reads an entity, and its table if `id` does not say which one that is.
    async fn read_entity(
        &self,
        id: Option<TableId>,
        table: &TableName,
        key: &EntityKey,
    ) -> TableResult<(TableId, Arc<StoredEntity>)> {
        let (name, key) = (table.clone(), key.clone());
        self.look(move |tx| {
            let table = id.map_or_else(|| table_of(tx, &name), Ok)?;
            let entity = tx.entity(table, &key)?.ok_or(TableDenial::ResourceNotFound)?;
            Ok((table, Arc::new(entity)))
        })
        .await
    }

    /// Insert, Update, Merge, Insert Or Replace, Insert Or Merge and Delete Entity.
    pub async fn write(
        &self,
        context: &Context,
        table: &TableName,
        write: Write,
    ) -> TableResult<WrittenEntity> {
        write.check()?;
        let size = if write.bytes() > SMALL_BYTES { ChangeSize::Large } else { ChangeSize::Small };
        let name = table.clone();
        let purpose = match write.change {
            rules::EntityChange::Delete(_) => Purpose::Delete,
            rules::EntityChange::Insert | rules::EntityChange::Write(..) => Purpose::Store,
        };
        self.change_for(purpose, context, size, move |change| {
            let id = change.table(&name)?;
            let ticks = change.tick();
            let (answer, changed) = change.write(id, &name, write, ticks, "")?;
            Ok(Recorded::with(answer, vec![changed]))
        })
        .await
    }
}

impl TableChange<'_> {
    /// Carries a write out at `ticks`. `within` is appended to the operation's name in what is
    /// remembered of it.
    pub(super) fn write(
        &self,
        table: TableId,
        name: &TableName,
        write: Write,
        ticks: Ticks,
        within: &str,
    ) -> TableResult<(WrittenEntity, ChangedEntity)> {
        let Write { change, key, properties } = write;
        // A merge reads the entity once, for the condition and for its properties.
        let kept = match &change {
            rules::EntityChange::Write(How::Merge, _) => self.tx.entity(table, &key)?,
            _ => None,
        };
        let there = match &kept {
            Some(kept) => Some(kept.timestamp()),
            None => self.tx.written(table, &key)?,
        };
        // A refusal without a name is better than none.
        let by = || self.tx.last_writer(table, &key).ok().flatten().map(Box::new);
        let effect = change.decide(there).map_err(|denial| match denial {
            TableDenial::UpdateConditionNotSatisfied(_) => {
                TableDenial::UpdateConditionNotSatisfied(by())
            }
            TableDenial::EntityAlreadyExists(_) => TableDenial::EntityAlreadyExists(by()),
            other => other,
        })?;
        let operation = format!("{}{within}", change.operation());
        let by = self.writer(&operation, ticks.timestamp());
        let properties = match effect {
            Effect::Remove => {
                if !self.rehearsal {
                    self.tx.remove_entity(table, &key)?;
                }
                let written = WrittenEntity { key: key.clone(), ticks: None, inserted: None };
                let changed =
                    ChangedEntity { table: name.to_string(), key: Some(key), ticks: None, by };
                return Ok((written, changed));
            }
            Effect::Create | Effect::Alter(How::Replace) => properties,
            Effect::Alter(How::Merge) => {
                let kept = kept.map(|entity| entity.to_properties()).unwrap_or_default();
                let merged = kept.merged(properties);
                merged.check_whole(&key)?;
                merged
            }
        };
        let entity = StoredEntity::new(key.clone(), ticks, &properties);
        // A transaction goes on in a rehearsal: it writes each entity once, so that no check
        // depends on a write before it.
        if !self.rehearsal {
            self.tx.put_entity(table, &entity, &by)?;
        }
        let inserted = matches!(change, rules::EntityChange::Insert).then_some(entity);
        let written = WrittenEntity { key: key.clone(), ticks: Some(ticks), inserted };
        let changed =
            ChangedEntity { table: name.to_string(), key: Some(key), ticks: Some(ticks), by };
        Ok((written, changed))
    }
}

impl WrittenEntity {
    /// The ETag of the entity.
    pub fn etag(&self) -> Option<String> {
        self.ticks.map(rules::etag::etag)
    }
}
