//! The version of the rows of a database: tells a reader whether what it read before still holds.
//!
//! Decides when rows that were read may be used again without a look into the database: while no
//! write transaction has begun since before they were read. The writer holds a [`Changing`] from
//! before the first statement of a transaction until its outcome is known, and drops it before the
//! request is answered. So a reader who comes after an answer finds another version, and one who
//! comes while the outcome is open finds none. What another program writes to the file is not seen;
//! no other program may write to it.

use std::sync::atomic::{AtomicU64, Ordering};

/// One state of all rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Version(u64);

/// The version of a database, and whether it is about to change.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Odd while a write transaction is under way.
    count: AtomicU64,
}

/// A write transaction that is under way. There is one at most, since there is one writer.
#[must_use]
pub(super) struct Changing<'a>(&'a Versions);

impl Versions {
    /// The version that a reader finds who begins now; `None` while a write is under way.
    pub(super) fn now(&self) -> Option<Version> {
        let count = self.count.load(Ordering::SeqCst);
        count.is_multiple_of(2).then_some(Version(count))
    }

    /// Begins a write transaction.
    pub(super) fn change(&self) -> Changing<'_> {
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        debug_assert!(before.is_multiple_of(2), "there is one writer");
        Changing(self)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_no_version_before_its_end_and_another_one_after() {
        let versions = Versions::default();
        let before = versions.now();
        assert!(before.is_some());
        let changing = versions.change();
        assert_eq!(versions.now(), None);
        drop(changing);
        assert!(versions.now().is_some() && versions.now() != before);
    }
}
