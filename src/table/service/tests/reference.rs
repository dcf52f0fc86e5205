//! A slow, obvious Table service: maps of maps, every rule written out once more.

use std::collections::BTreeMap;

use crate::table::rules::{How, Value};

/// Names of a table, keys, what is given.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert(Vec<(String, Value)>),
    Write(How, Condition, Vec<(String, Value)>),
    Delete(Condition),
}

/// A condition by what it says of the entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    Absent,
    Any,
    /// The entity's own ETag, or one that nobody has if there is no entity.
    Current,
    Stale,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Entity {
    pub values: Vec<(String, Value)>,
    /// How often it was written: stands for the ETag.
    version: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    TableNotFound,
    ResourceNotFound,
    EntityAlreadyExists,
    ConditionNotMet,
    MissingHeader,
    TableAlreadyExists,
}

pub(super) type Rows = BTreeMap<(String, String), Entity>;

#[derive(Clone, Default)]
pub(super) struct Reference {
    pub tables: BTreeMap<String, Rows>,
    versions: u64,
}

impl Reference {
    pub(super) fn create(&mut self, table: &str) -> Result<(), Refused> {
        if self.tables.contains_key(table) {
            return Err(Refused::TableAlreadyExists);
        }
        self.tables.insert(table.to_owned(), Rows::new());
        Ok(())
    }

    pub(super) fn delete(&mut self, table: &str) -> Result<(), Refused> {
        self.tables.remove(table).map(drop).ok_or(Refused::ResourceNotFound)
    }

    pub(super) fn step(
        &mut self,
        table: &str,
        key: &(String, String),
        step: &Step,
    ) -> Result<(), Refused> {
        if matches!(step, Step::Delete(Condition::Absent)) {
            return Err(Refused::MissingHeader);
        }
        let rows = self.tables.get_mut(table).ok_or(Refused::TableNotFound)?;
        self.versions += 1;
        let version = self.versions;
        let exists = rows.contains_key(key);
        match step {
            Step::Insert(_) if exists => Err(Refused::EntityAlreadyExists),
            Step::Insert(values) => {
                rows.insert(key.clone(), Entity { values: values.clone(), version });
                Ok(())
            }
            Step::Write(_, condition, _) if !exists && *condition != Condition::Absent => {
                Err(Refused::ResourceNotFound)
            }
            Step::Delete(_) if !exists => Err(Refused::ResourceNotFound),
            Step::Write(_, Condition::Stale, _) | Step::Delete(Condition::Stale) => {
                Err(Refused::ConditionNotMet)
            }
            Step::Write(how, _, values) => {
                let entity = rows.entry(key.clone()).or_default();
                entity.version = version;
                if *how == How::Replace {
                    entity.values.clear();
                }
                for (name, value) in values {
                    match entity.values.iter().position(|(known, _)| known == name) {
                        Some(index) => entity.values[index].1 = value.clone(),
                        None => entity.values.push((name.clone(), value.clone())),
                    }
                }
                Ok(())
            }
            Step::Delete(_) => {
                rows.remove(key);
                Ok(())
            }
        }
    }

    /// All steps or none; the index of the one that fails.
    pub(super) fn transact(
        &mut self,
        table: &str,
        steps: &[((String, String), Step)],
    ) -> Result<(), (usize, Refused)> {
        let form =
            steps.iter().position(|(_, step)| matches!(step, Step::Delete(Condition::Absent)));
        if let Some(index) = form {
            return Err((index, Refused::MissingHeader));
        }
        if !self.tables.contains_key(table) {
            return Err((0, Refused::TableNotFound));
        }
        let mut after = self.clone();
        for (index, (key, step)) in steps.iter().enumerate() {
            after.step(table, key, step).map_err(|refused| (index, refused))?;
        }
        *self = after;
        Ok(())
    }
}
