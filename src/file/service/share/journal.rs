//! The share's clock, and its rows in the journal.

use std::sync::Arc;

use super::Share;
use crate::clock::TimeSource;
use crate::file::rules::SharePath;
use crate::file::service::error::{FileError, Result};
use crate::journal::{AccountJournal, Event, FileEvent, Happening};
use crate::rules::{FileId, Owner, Timestamp};

/// The journal and the clock.
pub(super) struct Journal {
    pub(super) clock: Arc<dyn TimeSource>,
    pub(super) rows: AccountJournal,
}

impl Share {
    /// The time now, by the clock that the share was opened with.
    pub fn now(&self) -> Timestamp {
        self.journal.clock.now()
    }

    /// True if grants and closes are noted too.
    pub(crate) fn notes_all(&self) -> bool {
        self.journal.rows.journal().records_all()
    }

    /// Notes an event. That of an open has the identity of the file, whose lock the caller holds.
    pub(crate) fn note(
        &self,
        file: Option<FileId>,
        path: &SharePath,
        who: &Owner,
        what: Happening,
    ) {
        self.journal.rows.push(Event::File(FileEvent {
            share: Arc::clone(self.name()),
            path: path.to_string(),
            file,
            who: who.clone(),
            what,
        }));
    }

    /// Notes a refusal, and passes the answer on.
    pub(crate) fn note_refusal<T>(
        &self,
        operation: &'static str,
        path: &SharePath,
        who: &Owner,
        answer: Result<T>,
    ) -> Result<T> {
        if let Err(FileError::Denied(denial)) = &answer {
            let cause = Box::new(denial.cause((self.options.spelled)(denial)));
            self.note(None, path, who, Happening::Refused { operation, cause });
        }
        answer
    }
}
