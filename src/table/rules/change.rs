//! The effect of a write on an entity: `If-Match` against the stored entity (S80-S93).
//!
//! Decides whether a write is carried out and how. [`super::entity`] checks the limits of the
//! result; the engine gives the new timestamp.

use super::datetime::Ticks;
use super::denial::TableDenial;
use super::etag::IfMatch;

/// How the properties of a request are combined with the stored properties of the entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum How {
    /// The given properties are all there are afterwards.
    Replace,
    /// Properties that are not given stay.
    Merge,
}

/// A write of one entity. An update without a condition is an upsert (S91, S92).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntityChange {
    Insert,
    /// Update Entity, Merge Entity, Insert Or Replace Entity, Insert Or Merge Entity.
    Write(How, IfMatch),
    Delete(IfMatch),
}

/// The effect of a write on an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The entity is new and has the given properties.
    Create,
    /// The entity there gets the given properties.
    Alter(How),
    /// The entity there goes.
    Remove,
}

impl EntityChange {
    /// It is refused if another client has changed the entity, or made it.
    pub const fn is_conditional(&self) -> bool {
        matches!(self, Self::Insert | Self::Write(_, IfMatch::Is(_)) | Self::Delete(IfMatch::Is(_)))
    }

    /// The name of the operation in the service's documentation.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Insert => "Insert Entity",
            Self::Write(How::Replace, IfMatch::Absent) => "Insert Or Replace Entity",
            Self::Write(How::Merge, IfMatch::Absent) => "Insert Or Merge Entity",
            Self::Write(How::Replace, _) => "Update Entity",
            Self::Write(How::Merge, _) => "Merge Entity",
            Self::Delete(_) => "Delete Entity",
        }
    }

    /// Checks what can be refused without looking at the entity.
    pub fn check_form(&self) -> Result<(), TableDenial> {
        match self {
            Self::Delete(IfMatch::Absent) => Err(TableDenial::MissingIfMatch),
            _ => Ok(()),
        }
    }

    /// Decides the effect on an entity that was last written at `there`, or is missing. A missing
    /// entity is refused before a condition that does not hold.
    pub fn decide(&self, there: Option<Ticks>) -> Result<Effect, TableDenial> {
        self.check_form()?;
        match (self, there) {
            (Self::Insert | Self::Write(_, IfMatch::Absent), None) => Ok(Effect::Create),
            (Self::Insert, Some(_)) => Err(TableDenial::EntityAlreadyExists(None)),
            (_, None) => Err(TableDenial::ResourceNotFound),
            (Self::Write(_, condition) | Self::Delete(condition), Some(ticks))
                if !condition.holds(ticks) =>
            {
                Err(TableDenial::UpdateConditionNotSatisfied(None))
            }
            (Self::Write(how, _), Some(_)) => Ok(Effect::Alter(*how)),
            (Self::Delete(_), Some(_)) => Ok(Effect::Remove),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rules::etag::etag;

    const AT: Ticks = Ticks(13_000_000_000_000_000);

    /// The table of `docs/table.md`, which is tried through HTTP too.
    #[test]
    fn writes_follow_the_table_of_the_page() {
        let page = include_str!("../../../docs/table.md");
        let table = page.split("\n## What a write does\n").nth(1).expect("the heading");
        let rows = table.lines().skip_while(|line| !line.starts_with("|--")).skip(1);
        let mut tried = 0;
        for row in rows.take_while(|line| line.starts_with('|')) {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let there = (cells[1] == "there").then_some(AT);
            let given = match cells[2].trim_matches('`') {
                "none" => None,
                "current" => Some(etag(AT)),
                "old" => Some(etag(Ticks(AT.0 - 1))),
                other => Some(other.to_owned()),
            };
            let Ok(condition) = IfMatch::parse(given.as_deref()) else {
                assert_eq!(cells[3], "400 InvalidInput", "{row}");
                continue;
            };
            let change = match cells[0] {
                "POST" => EntityChange::Insert,
                "PUT" => EntityChange::Write(How::Replace, condition),
                "PATCH" | "MERGE" => EntityChange::Write(How::Merge, condition),
                _ => EntityChange::Delete(condition),
            };
            let answer = match (change.decide(there), &change) {
                (Ok(Effect::Create), EntityChange::Insert) => "201",
                (Ok(Effect::Create), EntityChange::Write(..)) if there.is_none() => "204",
                (Ok(Effect::Alter(how)), EntityChange::Write(asked, _)) if how == *asked => "204",
                (Ok(Effect::Remove), EntityChange::Delete(_)) => "204",
                (Err(TableDenial::EntityAlreadyExists(None)), _) => "409 EntityAlreadyExists",
                (Err(TableDenial::ResourceNotFound), _) => "404 ResourceNotFound",
                (Err(TableDenial::MissingIfMatch), _) => "400 MissingRequiredHeader",
                (Err(TableDenial::UpdateConditionNotSatisfied(None)), _) => {
                    "412 UpdateConditionNotSatisfied"
                }
                (other, _) => panic!("{row}: {other:?}"),
            };
            assert_eq!(answer, cells[3], "{row}");
            tried += 1;
        }
        assert_eq!(tried, 26);
    }

    #[test]
    fn an_update_without_a_condition_is_named_an_upsert() {
        let name = |how, condition| EntityChange::Write(how, condition).operation();
        assert_eq!(name(How::Replace, IfMatch::Absent), "Insert Or Replace Entity");
        assert_eq!(name(How::Merge, IfMatch::Absent), "Insert Or Merge Entity");
        assert_eq!(name(How::Replace, IfMatch::Any), "Update Entity");
        assert_eq!(name(How::Merge, IfMatch::Is("W/\"x\"".into())), "Merge Entity");
    }
}
