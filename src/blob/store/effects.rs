//! Work that a write transaction leaves until its outcome is known: after the commit, or after the
//! rollback. The database decides the outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::files::OpenFile;
use super::janitor::Chore;
use super::shared::Shared;
use super::staged::Staged;
use super::types::ContainerId;

/// Content that the transaction refers to, and what follows from a commit. Dropped without a word,
/// the outcome is unclear: then no file is removed.
#[derive(Default)]
pub(super) struct Effects {
    /// Files with new references. They stay open until the commit is done.
    pub(super) files: Vec<Arc<OpenFile>>,
    pub(super) chores: Vec<Chore>,
    /// Rows that became those of a blob.
    pub(super) staged: Vec<Staged>,
    /// Bytes that one reference less needs.
    pub(super) dropped: u64,
    /// Blobs whose next parts get a new file.
    pub(super) replaced: Vec<(ContainerId, String)>,
    /// The number in the database that counters may reach now.
    pub(super) ceiling: Option<i64>,
}

impl Effects {
    /// The transaction was committed.
    pub(super) fn committed(mut self, shared: &Shared) {
        self.files.clear();
        if let Some(ceiling) = self.ceiling {
            shared.ceiling.fetch_max(ceiling, Ordering::AcqRel);
        }
        for (container, name) in self.replaced.drain(..) {
            if let Some(parts) = shared.places.forget_parts(container, name) {
                shared.chores.add(Chore::Close(parts));
            }
        }
        for chore in self.chores.drain(..) {
            shared.chores.add(chore);
        }
        shared.add_garbage(self.dropped);
    }

    /// The transaction was rolled back: content that nothing else refers to is removed.
    pub(super) fn rolled_back(mut self) {
        self.files.clear();
        self.staged.clear();
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        for file in &self.files {
            file.doubt();
        }
        for staged in &mut self.staged {
            staged.leave();
        }
    }
}
