//! Entity group transactions: which operations may be in one transaction.
//!
//! Decides the faults of form, which are checked before any entity is read. [`super::change`]
//! decides the outcome of each operation; the engine carries out all operations or none.

use std::collections::HashSet;

use super::denial::{TableDenial, TransactionDenial};
use super::key::EntityKey;

/// Operations of a transaction.
pub const OPERATIONS_MAX: usize = 100;

/// Checks that the operations, each by its table and key, may stand together.
pub fn check<'a>(
    operations: impl ExactSizeIterator<Item = (&'a str, &'a EntityKey)>,
) -> Result<(), TransactionDenial> {
    if operations.len() > OPERATIONS_MAX {
        let text = "The batch request operation exceeds the maximum 100 changes per change set.";
        let denial = TableDenial::InvalidInput(text.into());
        return Err(TransactionDenial { index: OPERATIONS_MAX - 1, denial });
    }
    let mut rows = HashSet::new();
    let mut group: Option<(&str, &str)> = None;
    for (index, (table, key)) in operations.enumerate() {
        let (first_table, first_partition) = *group.get_or_insert((table, &key.partition));
        if !first_table.eq_ignore_ascii_case(table) || first_partition != key.partition {
            let denial = TableDenial::CommandsInBatchActOnDifferentPartitions;
            return Err(TransactionDenial { index, denial });
        }
        if !rows.insert(&*key.row) {
            return Err(TransactionDenial { index, denial: TableDenial::InvalidDuplicateRow });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(keys: &[(&str, EntityKey)]) -> Option<(usize, TableDenial)> {
        check(keys.iter().map(|(table, key)| (*table, key)))
            .err()
            .map(|TransactionDenial { index, denial }| (index, denial))
    }

    #[test]
    fn rows_of_one_partition_stand_together() {
        let key = |row: usize| ("tab", EntityKey::new("p", row.to_string()));
        assert_eq!(fault(&[]), None);
        assert_eq!(fault(&(0..100).map(key).collect::<Vec<_>>()), None);
        assert_eq!(fault(&[key(1), ("TAB", EntityKey::new("p", "2"))]), None);
    }

    #[test]
    fn the_101st_operation_is_told_with_index_99_t65() {
        let keys: Vec<_> =
            (0..101).map(|row| ("tab", EntityKey::new("p", row.to_string()))).collect();
        let (index, denial) = fault(&keys).unwrap();
        let text = TransactionDenial { index, denial }.to_string();
        assert_eq!(
            text,
            "99:The batch request operation exceeds the maximum 100 changes per change set."
        );
    }

    #[test]
    fn the_second_of_two_that_do_not_fit_is_told_t66() {
        let a = ("tab", EntityKey::new("p", "a"));
        assert_eq!(fault(&[a.clone(), a.clone()]), Some((1, TableDenial::InvalidDuplicateRow)));
        let different = Some((1, TableDenial::CommandsInBatchActOnDifferentPartitions));
        assert_eq!(fault(&[a.clone(), ("tab", EntityKey::new("q", "a"))]), different);
        assert_eq!(fault(&[a, ("other", EntityKey::new("p", "b"))]), different);
    }
}
