//! Lost update, laundered `ETag` and check-then-create: a client overwrites what it has not read.
//! Files have the same rule under a name of their own, since a mount writes them too.
//!
//! The order of two writers is told by the `ETags` that each found and left, since rows come in the
//! order of the answers.

use super::finding::{Level, ReportRule};
use super::found::Found;
use super::past::{ObjectState, Past, Read, ReadParts, Step, Write};
use super::row::ReportRow;
use crate::rules::asked::Parts;
use crate::rules::service::ServiceKind;

/// The most overwrites of an object that wait for the row of the change before them.
const WAITING_MAX: usize = 4;

/// A write that may have replaced another version than the one that its client knew.
#[derive(Clone, Debug)]
pub struct Overwrite {
    rule: ReportRule,
    /// The answer that it rests on; for check-then-create, that the object is not there.
    read: Step,
    /// The answer that the `ETag` of the condition came with.
    learned: Option<Step>,
    write: Write,
}

/// What other clients changed between two versions of an object.
#[derive(Debug)]
enum Between {
    Nothing,
    /// Another part, or the whole where this client changes a part.
    Beside(Step),
    /// Something that is overwritten.
    Overlapping(Step),
    /// The client has replaced the whole since its read, which was judged then.
    Own,
    /// The row of a change has not come.
    Unknown,
}

/// Judges a write that is not remembered yet.
pub fn look(past: &mut Past, row: &ReportRow<'_>, write: &Write) -> Option<Found> {
    let condition = row.asked().if_match.as_deref().filter(|etag| *etag != "*");
    match condition.filter(|_| row.request.service != ServiceKind::File) {
        Some(etag) => laundered(past, write, etag),
        None if write.is_guarded => None,
        None => unguarded(past, write),
    }
}

/// Judges the overwrites that waited for this write's row. The write is remembered already.
pub fn arrived(past: &mut Past, write: &Write) -> Vec<Found> {
    let state = past.of_object(write.step.object);
    let is_due = |one: &mut Overwrite| one.write.before == write.step.etag;
    let due: Vec<_> = state.waiting.extract_if(.., is_due).collect();
    due.into_iter().filter_map(|one| judged(past, one)).collect()
}

fn laundered(past: &mut Past, write: &Write, etag: &str) -> Option<Found> {
    if matches!(write.parts, Some(Parts::Metadata | Parts::Headers)) {
        return None;
    }
    let entry = past.seen(write.step.client, write.step.object)?;
    let read = entry.content.as_ref().filter(|read| read.parts.supports(write.parts.as_ref()))?;
    let learned = entry.learned.as_ref()?;
    let (read, by_write, learned) = (&read.step, learned.by_write, &learned.step);
    if !past.is_recent(read) || learned.seq < read.seq || learned.etag.as_deref() != Some(etag) {
        return None;
    }
    if read.etag == learned.etag {
        let message = format!(
            "{} read the content, and wrote with the ETag of a later {}: a change between the two \
             would be overwritten",
            past.name(read.client),
            learned.operation
        );
        let steps = vec![read.clone(), learned.clone(), write.step.clone()];
        let found = Found::new(ReportRule::LaunderedEtag, Level::Hint, steps, message);
        return (!by_write).then_some(found);
    }
    let (read, learned) = (read.clone(), Some(learned.clone()));
    let (rule, write) = (ReportRule::LaunderedEtag, write.clone());
    judged(past, Overwrite { rule, read, learned, write })
}

fn unguarded(past: &mut Past, write: &Write) -> Option<Found> {
    let (rule, read) = match super::created::absent(past, write) {
        Some(check) => (ReportRule::CheckThenCreate, check),
        None => (rule_of(past, write), read_before(past, write)?),
    };
    let (read, write) = (read.clone(), write.clone());
    judged(past, Overwrite { rule, read, learned: None, write })
}

/// What is found, or the hint that it could happen. Waits if the row of a change has not come.
fn judged(past: &mut Past, overwrite: Overwrite) -> Option<Found> {
    let Overwrite { rule, read, learned, write } = &overwrite;
    let mut steps = vec![read.clone(), write.step.clone()];
    let message = match between(past.seen_object(write.step.object), &overwrite) {
        Between::Overlapping(other) => return Some(lost(past, overwrite, other)),
        _ if learned.is_some() => return None,
        Between::Own => return None,
        Between::Nothing => without_condition(past, *rule, read),
        Between::Beside(other) => {
            let message = beside(past, read, &other);
            steps.push(other);
            message
        }
        Between::Unknown => {
            let opened = past.seen_object(write.step.object).opened.clone();
            let opened = opened.filter(|opened| opened.seq > read.seq);
            let message = opened.as_ref().map(|opened| opened_between(past, read, opened));
            steps.extend(opened);
            let (rule, waiting) = (*rule, &mut past.of_object(overwrite.write.step.object).waiting);
            if waiting.len() < WAITING_MAX {
                waiting.push(overwrite);
            }
            return Some(Found::new(rule, Level::Hint, steps, message?));
        }
    };
    Some(Found::new(*rule, Level::Hint, steps, message))
}

/// The latest read that a write may rest on.
fn read_before<'a>(past: &'a Past, write: &Write) -> Option<&'a Step> {
    let entry = past.seen(write.step.client, write.step.object)?;
    let rests = |read: &&Read| read.parts.supports(write.parts.as_ref());
    let reads = [&entry.content, &entry.attributes].into_iter().flatten().filter(rests);
    let latest = reads.map(|read| &read.step).max_by_key(|step| step.seq)?;
    past.is_recent(latest).then_some(latest)
}

/// What others changed since the version that was read, up to the one that was overwritten.
fn between(object: &ObjectState, overwrite: &Overwrite) -> Between {
    let Overwrite { read, write, .. } = overwrite;
    let mut at = write.before.as_deref();
    let mut found = Between::Nothing;
    for nth in 0..=object.writes.len() {
        let Some(etag) = at.filter(|etag| read.etag.as_deref() != Some(etag)) else { break };
        let Some(other) = object.write_of(etag) else {
            return if nth == 0 { Between::Unknown } else { found };
        };
        if other.step.client != write.step.client {
            if overlaps(write.parts.as_ref(), other.parts.as_ref()) {
                return Between::Overlapping(other.step.clone());
            }
            found = Between::Beside(other.step.clone());
        } else if other.parts.is_none() && !other.is_guarded {
            return Between::Own;
        }
        at = other.before.as_deref();
    }
    found
}

/// Whether a write of `parts` overwrites one of `others`. A whole write that a part is written
/// into afterwards is not lost.
fn overlaps(parts: Option<&Parts>, others: Option<&Parts>) -> bool {
    match (parts, others) {
        (Some(_), None) => false,
        _ => Parts::overlap(parts, others),
    }
}

fn rule_of(past: &Past, write: &Write) -> ReportRule {
    if past.seen_object(write.step.object).name.starts_with("file:") {
        ReportRule::File
    } else {
        ReportRule::LostUpdate
    }
}

fn lost(past: &Past, overwrite: Overwrite, other: Step) -> Found {
    let Overwrite { rule, read, learned, write } = overwrite;
    let (one, two) = (past.name(read.client), past.name(other.client));
    let verb = if write.step.etag.is_none() { "deleted" } else { "overwrote" };
    let message = match &learned {
        Some(learned) => format!(
            "{one} read the content, {two} changed it, and {one} {verb} the change with the ETag \
             of a later {}",
            learned.operation
        ),
        None if rule == ReportRule::CheckThenCreate => format!(
            "{one} was told that it is not there, {two} created it, and {one} replaced it without \
             a condition"
        ),
        None => format!(
            "{one} read it, {two} changed it, and {one} {verb} the change without a condition"
        ),
    };
    let steps = [read, other, write.step].into_iter().chain(learned).collect();
    Found::new(rule, Level::Error, steps, message)
}

fn without_condition(past: &Past, rule: ReportRule, read: &Step) -> String {
    let one = past.name(read.client);
    if rule == ReportRule::CheckThenCreate {
        return format!(
            "{one} was told that it is not there, and then created it without a condition: another \
             client's creation between the two would be replaced"
        );
    }
    format!("{one} read it, and then wrote it without a condition: a change between would be lost")
}

fn beside(past: &Past, read: &Step, other: &Step) -> String {
    format!(
        "{} read it and wrote a part of it without a condition; {} changed another part, or all \
         of it, in between",
        past.name(read.client),
        past.name(other.client)
    )
}

fn opened_between(past: &Past, read: &Step, opened: &Step) -> String {
    format!(
        "{} read the file and wrote it without a lease; {} opened it for writing in between",
        past.name(read.client),
        past.name(opened.client)
    )
}

/// The parts that two reads of one version make together.
pub fn joined(one: &ReadParts, other: &ReadParts) -> ReadParts {
    match (one, other) {
        (
            ReadParts::Content(Some(Parts::Range(first, end))),
            ReadParts::Content(Some(Parts::Range(other, last))),
        ) => ReadParts::Content(Some(Parts::Range(*first.min(other), *end.max(last)))),
        (one, other) if one == other => one.clone(),
        _ => ReadParts::Content(None),
    }
}
