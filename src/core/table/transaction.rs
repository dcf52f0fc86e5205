//! Entity group transactions: which operations may be in one transaction.
//!
//! Decides the faults of form, which are checked before any entity is read. [`super::change`]
//! decides the outcome of each operation; the engine carries out all operations or none.

use std::collections::HashSet;

use super::denial::{Denial, Fault};
use super::key::Key;

/// Operations of a transaction.
pub const OPERATIONS_MAX: usize = 100;

/// Checks that the operations, each by its table and key, may stand together.
pub fn check<'a>(
    operations: impl ExactSizeIterator<Item = (&'a str, &'a Key)>,
) -> Result<(), Fault> {
    if operations.len() > OPERATIONS_MAX {
        let text = "The batch request operation exceeds the maximum 100 changes per change set.";
        let denial = Denial::InvalidInput(text.into());
        return Err(Fault { index: OPERATIONS_MAX - 1, denial });
    }
    let mut rows = HashSet::new();
    let mut group: Option<(&str, &str)> = None;
    for (index, (table, key)) in operations.enumerate() {
        let (first_table, first_partition) = *group.get_or_insert((table, &key.partition));
        if !first_table.eq_ignore_ascii_case(table) || first_partition != key.partition {
            let denial = Denial::CommandsInBatchActOnDifferentPartitions;
            return Err(Fault { index, denial });
        }
        if !rows.insert(&*key.row) {
            return Err(Fault { index, denial: Denial::InvalidDuplicateRow });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(keys: &[(&str, Key)]) -> Option<(usize, Denial)> {
        check(keys.iter().map(|(table, key)| (*table, key)))
            .err()
            .map(|Fault { index, denial }| (index, denial))
    }

    #[test]
    fn rows_of_one_partition_stand_together() {
        let key = |row: usize| ("tab", Key::new("p", row.to_string()));
        assert_eq!(fault(&[]), None);
        assert_eq!(fault(&(0..100).map(key).collect::<Vec<_>>()), None);
        assert_eq!(fault(&[key(1), ("TAB", Key::new("p", "2"))]), None);
    }

    #[test]
    fn the_101st_operation_is_told_with_index_99_t65() {
        let keys: Vec<_> = (0..101).map(|row| ("tab", Key::new("p", row.to_string()))).collect();
        let (index, denial) = fault(&keys).unwrap();
        let text = Fault { index, denial }.to_string();
        assert_eq!(
            text,
            "99:The batch request operation exceeds the maximum 100 changes per change set."
        );
    }

    #[test]
    fn the_second_of_two_that_do_not_fit_is_told_t66() {
        let a = ("tab", Key::new("p", "a"));
        assert_eq!(fault(&[a.clone(), a.clone()]), Some((1, Denial::InvalidDuplicateRow)));
        let different = Some((1, Denial::CommandsInBatchActOnDifferentPartitions));
        assert_eq!(fault(&[a.clone(), ("tab", Key::new("q", "a"))]), different);
        assert_eq!(fault(&[a, ("other", Key::new("p", "b"))]), different);
    }
}
