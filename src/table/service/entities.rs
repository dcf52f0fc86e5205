//! Get, insert, update, merge and delete one entity; entity group transactions, all writes of a set
//! or none.
//!
//! Decides that the condition is checked in the writer's transaction, so that of two requests
//! with one ETag exactly one succeeds (S81, S84); that all entities of a transaction get one
//! timestamp, and that the fault of the first operation that fails is the answer.

use std::sync::Arc;

use super::history::entity_address;
use super::{TableChange, TableResult, TableService, table_of};
use crate::db::{DbService as _, Store as _};
use crate::journal::Change;
use crate::rules::asked::Parts;
use crate::rules::context::Context;
use crate::table::rules::etag::etag;
use crate::table::rules::{
    self as rules, Effect, EntityFields, EntityKey, How, Properties, TableDenial, TableName, Ticks,
    transaction,
};
use crate::table::store::{StoredEntity, TableId};

/// A write of one entity.
#[derive(Clone, PartialEq, Debug)]
pub struct Write {
    /// The change, with its condition.
    pub change: rules::EntityChange,
    pub key: EntityKey,
    /// The given properties; none for a deletion.
    pub properties: Properties,
}

/// An entity after a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenEntity {
    pub key: EntityKey,
    /// Its timestamp, which is its ETag too; none after a deletion (S90).
    pub ticks: Option<Ticks>,
    /// The entity, after an insertion.
    pub inserted: Option<Arc<StoredEntity>>,
}

impl Write {
    /// Checks what needs no look at the table.
    pub(crate) fn check(&self) -> Result<(), TableDenial> {
        self.change.check_form()?;
        self.key.check()?;
        self.properties.check_each()?;
        self.properties.check_whole(&self.key)
    }
}

impl TableService {
    pub fn entity(&self, table: &TableName, key: &EntityKey) -> TableResult<Arc<StoredEntity>> {
        self.store.read(|tx| {
            let entity = tx.entity(table_of(tx, table)?, key)?;
            Ok(Arc::new(entity.ok_or(TableDenial::ResourceNotFound)?))
        })
    }

    /// Insert, Update, Merge, Insert Or Replace, Insert Or Merge and Delete Entity.
    pub async fn write(
        &self,
        context: &Context,
        table: &TableName,
        write: Write,
    ) -> TableResult<WrittenEntity> {
        write.check()?;
        let name = table.clone();
        let deletes = matches!(write.change, rules::EntityChange::Delete(_));
        let change = move |change: &TableChange<'_>| {
            let id = table_of(change.tx, &name)?;
            let ticks = change.tick();
            change.write(id, &name, write, ticks, "")
        };
        if deletes {
            self.delete(context, change).await
        } else {
            self.change(context, change).await
        }
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
    ) -> TableResult<WrittenEntity> {
        let Write { change, key, properties } = write;
        let (stored, there) = self.stored(table, &change, &key)?;
        let effect = change.decide(there).map_err(|denial| self.told(denial, table, &key))?;
        let operation = format!("{}{within}", change.operation());
        let by = self.writer(&operation, ticks.timestamp());
        let merges = effect == Effect::Alter(How::Merge);
        let merges = merges && self.context.noted.is_some();
        let names = || Parts::properties(properties.iter().map(|(name, _)| name));
        let parts = merges.then(names).flatten();
        let properties = match effect {
            Effect::Remove => None,
            Effect::Create | Effect::Alter(How::Replace) => Some(properties),
            Effect::Alter(How::Merge) => {
                let kept = stored.map(|entity| entity.to_properties()).unwrap_or_default();
                let merged = kept.merged(properties);
                merged.check_whole(&key)?;
                Some(merged)
            }
        };
        let entity =
            properties.map(|given| Arc::new(StoredEntity::new(key.clone(), ticks, &given)));
        match &entity {
            None => self.tx.remove_entity(table, &key)?,
            Some(entity) if effect == Effect::Create => {
                if !self.tx.insert_entity(table, entity, &by)? {
                    let taken = TableDenial::EntityAlreadyExists(None);
                    return Err(self.told(taken, table, &key).into());
                }
            }
            Some(entity) => self.tx.update_entity(table, entity, &by)?,
        }
        let ticks = entity.as_ref().map(|_| ticks);
        let inserted = entity.filter(|_| matches!(change, rules::EntityChange::Insert));
        let (object, etag) = (entity_address(name, &key), ticks.map(etag));
        self.context.changed(&object, (there.map(rules::etag::etag), etag.clone()), parts);
        if !within.is_empty() {
            self.context.note(|given| {
                let last = given.changed.last_mut().expect("it was noted");
                last.guarded = Some(change.is_conditional());
            });
        }
        self.changes.borrow_mut().push(Change { object, etag, by });
        Ok(WrittenEntity { key, ticks, inserted })
    }

    /// The entity that a write needs, and when it was written; none if there is none. An insertion
    /// finds out by inserting.
    fn stored(
        &self,
        table: TableId,
        change: &rules::EntityChange,
        key: &EntityKey,
    ) -> TableResult<(Option<StoredEntity>, Option<Ticks>)> {
        let stored = match change {
            rules::EntityChange::Write(How::Merge, _) => self.tx.entity(table, key)?,
            rules::EntityChange::Insert => None,
            _ => return Ok((None, self.tx.written(table, key)?)),
        };
        let there = stored.as_ref().map(EntityFields::timestamp);
        Ok((stored, there))
    }

    /// A refusal with the request that wrote the entity last.
    fn told(&self, denial: TableDenial, table: TableId, key: &EntityKey) -> TableDenial {
        // A refusal without a name is better than none.
        let by = || self.tx.last_writer(table, key).ok().flatten().map(Box::new);
        match denial {
            TableDenial::UpdateConditionNotSatisfied(_) => {
                TableDenial::UpdateConditionNotSatisfied(by())
            }
            TableDenial::EntityAlreadyExists(_) => TableDenial::EntityAlreadyExists(by()),
            other => other,
        }
    }
}

impl WrittenEntity {
    /// The ETag of the entity.
    pub fn etag(&self) -> Option<String> {
        self.ticks.map(rules::etag::etag)
    }
}

impl TableService {
    /// Carries all writes out, or none. The first name is the table's; the others have been
    /// checked to be of the same table by form.
    pub async fn transact(
        &self,
        context: &Context,
        writes: Vec<(TableName, Write)>,
    ) -> TableResult<Vec<WrittenEntity>> {
        transaction::check(writes.iter().map(|(table, write)| (table.as_str(), &write.key)))?;
        for (index, (_, write)) in writes.iter().enumerate() {
            write.check().map_err(|denial| super::TableError::Denied(denial).at(index))?;
        }
        let Some(name) = writes.first().map(|(name, _)| name.clone()) else {
            return Ok(Vec::new());
        };
        self.change(context, move |change| {
            let table = table_of(change.tx, &name).map_err(|error| error.at(0))?;
            let ticks = change.tick();
            let writes = writes.into_iter().enumerate().map(|(index, (_, write))| {
                let one = change.write(table, &name, write, ticks, " in a transaction");
                one.map_err(|error| error.at(index))
            });
            writes.collect()
        })
        .await
    }
}
