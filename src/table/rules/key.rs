//! `PartitionKey` and `RowKey`: which values are legal.
//!
//! Decides the limits of a key and the order of entities: by partition key, then by row key, both
//! by their UTF-8 bytes. The spelling of keys in URLs is decided in `table/rest`.

use super::denial::TableDenial;
use super::value::utf16_units;

/// The property that holds the partition key.
pub const PARTITION_KEY: &str = "PartitionKey";
/// The property that holds the row key.
pub const ROW_KEY: &str = "RowKey";
/// The property that holds the time of the last write.
pub const TIMESTAMP: &str = "Timestamp";

/// UTF-16 units of a key: 1 KiB.
pub const KEY_UNITS_MAX: usize = 512;

/// The key of an entity within its table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntityKey {
    pub partition: String,
    pub row: String,
}

impl EntityKey {
    /// The key of these two values, unchecked.
    pub fn new(partition: impl Into<String>, row: impl Into<String>) -> Self {
        Self { partition: partition.into(), row: row.into() }
    }

    pub fn check(&self) -> Result<(), TableDenial> {
        check_key(PARTITION_KEY, &self.partition)?;
        check_key(ROW_KEY, &self.row)
    }
}

fn check_key(which: &'static str, value: &str) -> Result<(), TableDenial> {
    if let Some(units) = Some(utf16_units(value)).filter(|units| *units > KEY_UNITS_MAX) {
        return Err(TableDenial::KeyValueTooLarge(which, units));
    }
    if value.contains(is_forbidden) {
        return Err(TableDenial::KeyOutOfRange(which, value.escape_debug().to_string()));
    }
    Ok(())
}

fn is_forbidden(letter: char) -> bool {
    matches!(letter, '/' | '\\' | '#' | '?' | '\0'..='\x1f' | '\x7f'..='\u{9f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_empty_and_may_hold_punctuation() {
        for value in ["", "it's", "% + & = ( ) , : @ $", "blank here", "größe", "😀", "{a}"] {
            assert_eq!(EntityKey::new(value, value).check(), Ok(()), "{value}");
        }
    }

    #[test]
    fn slashes_hashes_question_marks_and_control_characters_are_refused_t34() {
        for value in ["a/b", "\\", "#", "?x", "\0", "a\tb", "\u{7f}", "\u{85}", "\u{9f}"] {
            let refused = EntityKey::new("p", value).check();
            assert!(matches!(refused, Err(TableDenial::KeyOutOfRange(ROW_KEY, _))), "{value:?}");
            let refused = EntityKey::new(value, "r").check();
            assert!(
                matches!(refused, Err(TableDenial::KeyOutOfRange(PARTITION_KEY, _))),
                "{value:?}"
            );
        }
        let text = EntityKey::new("a/b", "r").check().unwrap_err().to_string();
        assert_eq!(text, "The 'PartitionKey' parameter of value 'a/b' is out of range.");
    }

    #[test]
    fn a_key_has_at_most_512_units_t35() {
        assert_eq!(EntityKey::new("a".repeat(512), "😀".repeat(256)).check(), Ok(()));
        let refused = EntityKey::new("a".repeat(513), "").check();
        assert_eq!(refused, Err(TableDenial::KeyValueTooLarge(PARTITION_KEY, 513)));
        let refused = EntityKey::new("", "😀".repeat(257)).check();
        assert_eq!(refused, Err(TableDenial::KeyValueTooLarge(ROW_KEY, 514)));
    }

    #[test]
    fn keys_are_ordered_by_partition_then_by_row() {
        let mut keys = [
            EntityKey::new("b", ""),
            EntityKey::new("a", "z"),
            EntityKey::new("a", ""),
            EntityKey::new("", "z"),
        ];
        keys.sort();
        let order: Vec<_> = keys.iter().map(|key| (&*key.partition, &*key.row)).collect();
        assert_eq!(order, [("", "z"), ("a", ""), ("a", "z"), ("b", "")]);
    }
}
