//! The report: what went wrong between clients, or was never tried, by the rows of the journal.
//!
//! Rows go in one by one; what a rule needs is remembered until the next barrier, so that the
//! length of the journal does not matter. Decides in which order the rules look at a row, and that
//! a write has one finding of the rules about overwriting, the worst.
//!
//! ```text
//!   row          a row as the rules see it
//!   past         what is remembered, by client and object
//!   overwritten  lost update, laundered ETag, files
//!   created      check-then-create, published empty
//!   leases       unfenced lease
//!   repeated     blind retry, stale receipt
//!   untested     never tested
//!   finding      rules, levels, evidence; found: before it is counted; shape: one pattern
//!   sections     the findings from mark to mark; ignore rules
//!   junit        a report for CI systems
//!   follower     feeds the rows of the journal in
//! ```

mod created;
mod finding;
mod follower;
mod found;
mod junit;
mod leases;
mod overwritten;
mod past;
mod repeated;
mod row;
mod sections;
mod shape;
mod untested;

#[cfg(test)]
mod tests;

pub use finding::{Evidence, Finding, Level, ReportRule};
pub use follower::{Follower, Reporter};
pub use junit::document as junit;
pub use past::ENTRIES_MAX;
pub use row::ReportRow;
pub use sections::{FINDINGS_MAX, IGNORES_MAX, IgnoreRule, MARKS_MAX, Report};

use found::Found;
use past::{ClientId, Learned, ObjectId, Past, Read, ReadParts, Shown, Step, Write};
use row::{OperationReads, reads};
use sections::Sections;
use std::sync::Arc;

use crate::rules::Timestamp;

/// The state of the report.
#[derive(Debug)]
pub struct Engine {
    past: Past,
    pub sections: Sections,
}

impl Default for Engine {
    fn default() -> Self {
        Self::remembering(ENTRIES_MAX)
    }
}

impl Engine {
    /// A report that remembers so many pairs of a client and an object.
    pub fn remembering(max: usize) -> Self {
        Self { past: Past::new(max), sections: Sections::default() }
    }

    /// What was read and written before has nothing to do with what comes: all data was replaced,
    /// or a test begins, which has a name then.
    pub fn barrier(&mut self, mark: Option<&str>) {
        self.sections.incomplete |= self.past.is_full;
        self.past.clear();
        if let Some(mark) = mark {
            self.sections.mark(mark);
        }
    }

    /// Rows were lost on their way here.
    pub fn lost(&mut self) {
        self.sections.incomplete = true;
    }

    pub fn report(&self, since: Option<&str>, level: Level) -> Option<Report> {
        let mut report = self.sections.report(since, level)?;
        report.incomplete |= self.past.is_full;
        Some(report)
    }

    /// A client of a mount opened a file for writing.
    pub fn opened(
        &mut self,
        (seq, time): (u64, Timestamp),
        account: &str,
        client: &Arc<str>,
        object: &str,
    ) {
        let Some(client) = self.past.client(client, true) else { return };
        let Some(object) = self.past.object(account, object) else { return };
        let operation = "Mount Open";
        let step = Step { seq, time, client, operation, object, etag: None, status: None, nth: 0 };
        self.past.of_object(object).opened = Some(step);
    }

    /// Looks at a request that was answered.
    pub fn request(&mut self, row: &ReportRow<'_>) {
        self.sections.count_request();
        for (key, refused) in untested::tried(row) {
            self.sections.tried(key, refused, row.seq);
        }
        let Some(client) = self.past.client_of(row) else { return };
        let state = self.past.of_client(client);
        state.requests += 1;
        let nth = state.requests;
        // A snapshot or a version does not change, and is another object than what it was made of.
        if row.asked().version.is_some() {
            return;
        }
        let at = At { client, nth };
        // A batch names no object, and its parts do.
        if row.object.is_empty() {
            return self.writes(row, at);
        }
        let Some(object) = self.past.object(row.account, row.object) else { return };
        let step = row.step(client, object, nth, row.request.given.etag_read.as_deref());
        let found = repeated::retried(&mut self.past, row, &step);
        self.note(found);
        if let Some(receipt) = row.asked().receipt_used {
            let found = repeated::receipt_used(&self.past, receipt, &step);
            self.note(found);
        }
        self.given(row, at);
        leases::leased(&mut self.past, row, &step);
        self.writes(row, at);
        self.reads(row, at, step);
    }

    fn note(&mut self, found: impl IntoIterator<Item = Found>) {
        for found in found {
            self.sections.add(&self.past, found);
        }
    }

    /// The messages that the client was given.
    fn given(&mut self, row: &ReportRow<'_>, at: At) {
        let queue = row.object.split('/').next().unwrap_or_default();
        for message in &row.request.given.messages {
            let Some(receipt) = message.receipt_given else { continue };
            let name = format_args!("{queue}/{}", message.message);
            let Some(object) = self.past.object(row.account, name) else { return };
            let step = row.step(at.client, object, at.nth, None);
            repeated::given(&mut self.past, receipt, &step);
        }
    }

    fn writes(&mut self, row: &ReportRow<'_>, at: At) {
        for (changed, parts) in row.writes() {
            let Some(object) = self.past.object(row.account, &changed.object) else { return };
            let write = Write {
                step: row.step(at.client, object, at.nth, changed.etag_after.as_deref()),
                before: changed.etag_before.as_deref().map(Arc::from),
                parts: parts.cloned(),
                is_guarded: row.is_guarded(changed),
            };
            let past = &mut self.past;
            let found = [leases::written(past, &write), overwritten::look(past, row, &write)];
            // The first of the worst.
            let worst = found.into_iter().flatten().rev().max_by_key(|found| found.level);
            let empty = created::published_empty(past, row, &write);
            past.wrote(write.clone());
            let arrived = overwritten::arrived(past, &write);
            self.note(worst.into_iter().chain(empty).chain(arrived));
            self.knows(write.step, true);
        }
    }

    fn reads(&mut self, row: &ReportRow<'_>, at: At, step: Step) {
        let kind = reads(row.operation());
        if kind == OperationReads::Nothing {
            return;
        }
        match row.request.status {
            Some(404) if kind != OperationReads::Names => {
                if let Some(entry) = self.past.entry(at.client, step.object) {
                    entry.absent = Some(step);
                }
            }
            // The client has that version already.
            Some(304) if kind == OperationReads::Content => {
                let etag = row.asked().if_none_match.as_deref();
                self.content(row, row.step(at.client, step.object, at.nth, etag));
            }
            Some(status) if status < 300 => match kind {
                OperationReads::Content if row.request.given.etag_read.is_some() => {
                    self.content(row, step);
                }
                OperationReads::Attributes if row.request.given.etag_read.is_some() => {
                    self.attributes(step);
                }
                _ => self.list(row, at, step.object, kind),
            },
            _ => {}
        }
    }

    fn content(&mut self, row: &ReportRow<'_>, step: Step) {
        created::read(&mut self.past, &step);
        let Some(entry) = self.past.entry(step.client, step.object) else { return };
        let mut parts = ReadParts::Content(row.asked().parts.clone());
        if let Some(before) = entry.content.as_ref().filter(|read| read.step.etag == step.etag) {
            parts = overwritten::joined(&before.parts, &parts);
        }
        entry.absent = None;
        entry.content = Some(Read { step, parts });
    }

    fn attributes(&mut self, step: Step) {
        if let Some(entry) = self.past.entry(step.client, step.object) {
            entry.attributes = Some(Read { step: step.clone(), parts: ReadParts::Attributes });
        }
        self.knows(step, false);
    }

    /// The client has learned of an object that is there, or of its end.
    fn knows(&mut self, step: Step, by_write: bool) {
        if let Some(entry) = self.past.entry(step.client, step.object) {
            entry.absent = None;
            entry.learned = Some(Learned { step, by_write });
        }
    }

    fn list(&mut self, row: &ReportRow<'_>, at: At, within: ObjectId, kind: OperationReads) {
        let mut objects = Vec::new();
        for listed in &row.request.given.listed {
            let Some(object) = self.past.object(row.account, &listed.0) else { return };
            let step = row.step(at.client, object, at.nth, listed.1.as_deref());
            // A query returns entities, a list names.
            if kind == OperationReads::Content {
                self.content(row, step);
            } else {
                self.knows(step, false);
            }
            objects.push(object);
        }
        if kind == OperationReads::Names && !row.request.given.listed_more {
            let step = row.step(at.client, within, at.nth, None);
            let prefix = row.asked().prefix.clone().unwrap_or_default();
            self.past.shown(at.client, Shown { step, prefix, objects });
        }
    }
}

/// The client of a row, and which of its requests it is.
#[derive(Clone, Copy, Debug)]
struct At {
    client: ClientId,
    nth: u64,
}
