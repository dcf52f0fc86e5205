//! The latest changes of a service, in memory.
//!
//! Decides how many changes are remembered: the oldest make room. The service decides what a change
//! is, and which changes are reported. The memory is lost at a restart; no rule depends on it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// Changes that a service remembers.
pub const HISTORY_MAX: usize = 4_096;

/// The latest changes, oldest first.
#[derive(Debug)]
pub(crate) struct Recent<T>(Mutex<VecDeque<T>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Recent<T> {
    fn changes(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.0.lock().expect("nothing panics while the latest changes are held")
    }

    /// Remembers changes that are committed.
    pub fn add(&self, committed: Vec<T>) {
        if committed.is_empty() {
            return;
        }
        let mut changes = self.changes();
        changes.extend(committed);
        let surplus = changes.len().saturating_sub(HISTORY_MAX);
        changes.drain(..surplus);
    }

    /// Forgets all changes: they were made to data that was replaced.
    pub fn clear(&self) {
        self.changes().clear();
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn latest(&self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        self.changes().iter().rev().filter(|change| wanted(change)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_changes_make_room() {
        let recent = Recent::default();
        recent.add((0..HISTORY_MAX).collect());
        recent.add(vec![HISTORY_MAX]);
        let all = recent.latest(|_| true);
        assert_eq!((all.len(), all[0], all[HISTORY_MAX - 1]), (HISTORY_MAX, HISTORY_MAX, 1));
        assert_eq!(recent.latest(|change| change % 2_000 == 0), [4_000, 2_000]);
        recent.clear();
        assert!(recent.latest(|_| true).is_empty());
    }
}
