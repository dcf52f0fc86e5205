//! The copies that this process carries out.
//!
//! A record of any other pending copy was left by a process that has ended, or by a caller that
//! gave up. Such a copy is never finished and counts as failed, so that it does not refuse writes
//! for ever.

use std::sync::Arc;

use dashmap::DashSet;

use crate::file::store::share::Record;
use crate::rules::FileId;
use crate::rules::copy_status::CopyStatus;

type CopySet = DashSet<(FileId, String)>;

/// The copies under way, by destination and copy ID.
#[derive(Debug, Default)]
pub(crate) struct RunningCopies(Arc<CopySet>);

/// Marks a copy as under way until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningCopy {
    copies: Arc<CopySet>,
    key: (FileId, String),
}

impl RunningCopies {
    pub(crate) fn begin(&self, to: FileId, id: &str) -> RunningCopy {
        let key = (to, id.to_owned());
        self.0.insert(key.clone());
        RunningCopy { copies: Arc::clone(&self.0), key }
    }

    /// Turns a pending copy in a record into a failed one, if this process does not carry it out.
    pub(crate) fn end_if_dead(&self, to: FileId, record: &mut Record) {
        let Some(copy) = &mut record.copy else { return };
        if copy.status == CopyStatus::Pending && !self.0.contains(&(to, copy.id.clone())) {
            copy.status = CopyStatus::Failed;
            copy.description = Some("the copy was interrupted".to_owned());
        }
    }
}

impl RunningCopy {
    /// The ID of the copy.
    pub(crate) fn id(&self) -> &str {
        &self.key.1
    }
}

impl Drop for RunningCopy {
    fn drop(&mut self) {
        self.copies.remove(&self.key);
    }
}
