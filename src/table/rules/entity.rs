//! An entity's properties: their limits, and how a merge joins two sets of them.
//!
//! Decides what an entity may hold. Keys are checked in [`super::key`], single values in
//! [`super::value`].

use super::datetime::Ticks;
use super::denial::TableDenial;
use super::key::{EntityKey, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use super::value::{Value, ValueRef, utf16_units};

/// Properties of an entity, its keys and its timestamp apart.
pub const PROPERTIES_MAX: usize = 252;
/// Characters of a property name.
pub const PROPERTY_NAME_MAX: usize = 255;
/// Bytes of an entity by the service's formula.
pub const ENTITY_BYTES_MAX: usize = 1 << 20;

/// An entity as filters and writers of JSON see it, wherever its values are kept.
pub trait EntityFields {
    fn partition(&self) -> &str;
    fn row(&self) -> &str;
    /// The time of the last write.
    fn timestamp(&self) -> Ticks;
    /// Its properties in stored order, keys and timestamp apart.
    fn properties(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)>;

    /// The value of that name, keys and timestamp among them.
    fn field(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            PARTITION_KEY => Some(ValueRef::String(self.partition())),
            ROW_KEY => Some(ValueRef::String(self.row())),
            TIMESTAMP => Some(ValueRef::DateTime(self.timestamp())),
            _ => self.properties().find(|(known, _)| *known == name).map(|(_, value)| value),
        }
    }
}

/// The properties of an entity in their order, each name once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Properties(Vec<(String, Value)>);

impl Properties {
    /// Of pairs whose names differ.
    pub fn new(pairs: Vec<(String, Value)>) -> Self {
        Self(pairs)
    }

    /// The pairs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_ref()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These properties after Merge Entity with `given`: a given value replaces the one of its
    /// name, in its place; new names follow.
    #[must_use]
    pub fn merged(mut self, given: Self) -> Self {
        for (name, value) in given.0 {
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, kept)) => *kept = value,
                None => self.0.push((name, value)),
            }
        }
        self
    }

    /// Checks the limits that hold for each property.
    pub fn check_each(&self) -> Result<(), TableDenial> {
        for (name, value) in self.iter() {
            check_name(name)?;
            if value.is_too_large() {
                return Err(TableDenial::PropertyValueTooLarge(name.to_owned()));
            }
        }
        Ok(())
    }

    /// Checks the limits that hold for an entity as a whole: also for the result of a merge.
    pub fn check_whole(&self, key: &EntityKey) -> Result<(), TableDenial> {
        if self.len() > PROPERTIES_MAX {
            return Err(TableDenial::TooManyProperties(self.len()));
        }
        let mut bytes = 4 + 2 * (utf16_units(&key.partition) + utf16_units(&key.row));
        for (name, value) in self.iter() {
            bytes += 8 + 2 * utf16_units(name) + value.counted_bytes();
        }
        if bytes > ENTITY_BYTES_MAX { Err(TableDenial::EntityTooLarge(bytes)) } else { Ok(()) }
    }
}

/// A property name is an identifier: a letter or `_`, then letters, digits and `_`.
fn check_name(name: &str) -> Result<(), TableDenial> {
    if name.chars().count() > PROPERTY_NAME_MAX {
        return Err(TableDenial::PropertyNameTooLong);
    }
    let first = name.chars().next().is_some_and(|first| first == '_' || first.is_alphabetic());
    if first && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric()) {
        Ok(())
    } else {
        Err(TableDenial::PropertyNameInvalid(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rules::value::STRING_UNITS_MAX;

    fn of(pairs: &[(&str, Value)]) -> Properties {
        Properties::new(pairs.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
    }

    #[test]
    fn a_merge_keeps_overwrites_and_appends_t21_t22() {
        let kept = of(&[("a", Value::Int32(1)), ("b", Value::Int32(2))]);
        let given = of(&[("c", Value::Boolean(true)), ("a", Value::String("x".into()))]);
        let merged = kept.merged(given);
        assert_eq!(
            merged,
            of(&[
                ("a", Value::String("x".into())),
                ("b", Value::Int32(2)),
                ("c", Value::Boolean(true)),
            ])
        );
    }

    #[test]
    fn names_are_identifiers_of_at_most_255_characters_t38() {
        for name in ["a", "_", "A1_", "größe", &"x".repeat(255)] {
            assert_eq!(of(&[(name, Value::Int32(0))]).check_each(), Ok(()), "{name}");
        }
        for name in ["", "a-b", "1a", "a b", "a.b", "$a"] {
            let refused = of(&[(name, Value::Int32(0))]).check_each();
            assert_eq!(refused, Err(TableDenial::PropertyNameInvalid(name.into())));
        }
        let long = of(&[(&"x".repeat(256), Value::Int32(0))]);
        assert_eq!(long.check_each(), Err(TableDenial::PropertyNameTooLong));
    }

    #[test]
    fn an_entity_has_at_most_252_properties_t37() {
        let many = |count| {
            Properties::new((0..count).map(|n| (format!("p{n}"), Value::Int32(n))).collect())
        };
        assert_eq!(many(252).check_whole(&EntityKey::new("", "")), Ok(()));
        assert_eq!(
            many(253).check_whole(&EntityKey::new("", "")),
            Err(TableDenial::TooManyProperties(253))
        );
    }

    #[test]
    fn an_entity_counts_at_most_one_mebibyte_t40() {
        // 4 + 2(1 + 1) = 8 for the keys; each property 8 + 2 + 4 + 2 units.
        let key = EntityKey::new("p", "r");
        let full = |name: char, units| (name.to_string(), Value::String("x".repeat(units)));
        let mut pairs: Vec<_> = ('a'..='o').map(|name| full(name, STRING_UNITS_MAX)).collect();
        let used = 8 + 15 * (14 + 2 * STRING_UNITS_MAX);
        pairs.push(full('p', (ENTITY_BYTES_MAX - used - 14) / 2));
        assert_eq!(Properties::new(pairs.clone()).check_whole(&key), Ok(()));
        assert_eq!(Properties::new(pairs.clone()).check_each(), Ok(()));
        if let Some((_, Value::String(text))) = pairs.last_mut() {
            text.push('x');
        }
        let refused = Properties::new(pairs).check_whole(&key);
        assert_eq!(refused, Err(TableDenial::EntityTooLarge(ENTITY_BYTES_MAX + 2)));
    }
}
