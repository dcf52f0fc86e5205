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

    fn conditions() -> [IfMatch; 4] {
        [IfMatch::Absent, IfMatch::Any, IfMatch::Is(etag(AT)), IfMatch::Is(etag(Ticks(AT.0 + 1)))]
    }

    #[test]
    fn updates_by_condition_and_by_what_is_there_t3_t4_t6_t9_t10_t11() {
        let refused = Err(TableDenial::UpdateConditionNotSatisfied(None));
        for how in [How::Replace, How::Merge] {
            let there = [
                Ok(Effect::Alter(how)),
                Ok(Effect::Alter(how)),
                Ok(Effect::Alter(how)),
                refused.clone(),
            ];
            let missing = [
                Ok(Effect::Create),
                Err(TableDenial::ResourceNotFound),
                Err(TableDenial::ResourceNotFound),
                Err(TableDenial::ResourceNotFound),
            ];
            for (condition, (there, missing)) in
                conditions().into_iter().zip(there.into_iter().zip(missing))
            {
                let change = EntityChange::Write(how, condition);
                assert_eq!(change.decide(Some(AT)), there, "{change:?}");
                assert_eq!(change.decide(None), missing, "{change:?}");
            }
        }
    }

    #[test]
    fn a_deletion_needs_a_condition_t7_t8() {
        let [absent, any, same, other] = conditions();
        let decide =
            |condition: &IfMatch, there| EntityChange::Delete(condition.clone()).decide(there);
        assert_eq!(decide(&absent, Some(AT)), Err(TableDenial::MissingIfMatch));
        assert_eq!(decide(&absent, None), Err(TableDenial::MissingIfMatch));
        assert_eq!(decide(&any, Some(AT)), Ok(Effect::Remove));
        assert_eq!(decide(&same, Some(AT)), Ok(Effect::Remove));
        let refused = Err(TableDenial::UpdateConditionNotSatisfied(None));
        assert_eq!(decide(&other, Some(AT)), refused);
        for condition in [any, same, other] {
            assert_eq!(decide(&condition, None), Err(TableDenial::ResourceNotFound));
        }
    }

    #[test]
    fn an_insertion_takes_free_keys_only_t19() {
        assert_eq!(EntityChange::Insert.decide(None), Ok(Effect::Create));
        assert_eq!(
            EntityChange::Insert.decide(Some(AT)),
            Err(TableDenial::EntityAlreadyExists(None))
        );
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
