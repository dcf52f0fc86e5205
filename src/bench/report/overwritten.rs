//! Lost update and laundered `ETag`: a client overwrites what it has not read. Files have the same
//! rule under a name of their own, since a mount writes them too.
//!
//! The order of two writers is told by the `ETags` that each found and left, since rows come in the
//! order of the answers.

use super::finding::{Level, ReportRule};
use super::found::Found;
use super::past::{ClientId, ObjectState, Past, Read, ReadParts, Step, Write};
use super::row::{ReportRow, is_append};
use crate::rules::asked::Parts;
use crate::rules::service::ServiceKind;

/// The most overwrites of an object that wait for the row of the change before them.
const WAITING_MAX: usize = 4;

/// A write that replaced another version than the one that its client has read.
#[derive(Clone, Debug)]
pub struct Overwrite {
    read: Step,
    /// The answer that the `ETag` of the condition came with.
    learned: Option<Step>,
    write: Write,
}

/// What other clients changed between two versions of an object.
#[derive(Debug)]
enum Between<'a> {
    Nothing,
    /// Another part, or the whole where this client changes a part.
    Beside(&'a Write),
    /// Something that is overwritten.
    Overlapping(&'a Write),
    /// The row of a change has not come.
    Unknown,
}

/// Judges a write that is not remembered yet.
pub fn look(past: &mut Past, row: &ReportRow<'_>, write: &Write) -> Option<Found> {
    let condition = row.asked().if_match.as_deref().filter(|etag| *etag != "*");
    match condition.filter(|_| row.request.service != ServiceKind::File) {
        Some(etag) => laundered(past, write, etag),
        None if row.is_guarded() || is_append(row.operation()) => None,
        None => unguarded(past, write),
    }
}

/// Judges the overwrites that waited for this write's row. The write is remembered already.
pub fn arrived(past: &mut Past, write: &Write) -> Vec<Found> {
    let state = past.of_object(write.step.object);
    if state.waiting.is_empty() {
        return Vec::new();
    }
    let (due, waiting) = std::mem::take(&mut state.waiting)
        .into_iter()
        .partition(|one: &Overwrite| one.write.before == write.step.etag);
    state.waiting = waiting;
    let due: Vec<Overwrite> = due;
    due.iter()
        .filter_map(|one| match between(past.seen_object(write.step.object), one) {
            Between::Overlapping(other) => Some(lost(past, one, other)),
            _ => None,
        })
        .collect()
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
    let overwrite =
        Overwrite { read: read.clone(), learned: Some(learned.clone()), write: write.clone() };
    match between(past.seen_object(write.step.object), &overwrite) {
        Between::Overlapping(other) => Some(lost(past, &overwrite, other)),
        Between::Nothing | Between::Beside(_) => None,
        Between::Unknown => {
            wait(past, overwrite);
            None
        }
    }
}

fn unguarded(past: &mut Past, write: &Write) -> Option<Found> {
    let read = read_before(past, write)?.clone();
    let overwrite = Overwrite { read, learned: None, write: write.clone() };
    let read = &overwrite.read;
    let rule = rule_of(past, write);
    let mut steps = vec![read.clone(), write.step.clone()];
    let message = if read.etag == write.before {
        without_condition(past, read)
    } else {
        let object = past.seen_object(write.step.object);
        match between(object, &overwrite) {
            Between::Overlapping(other) => return Some(lost(past, &overwrite, other)),
            Between::Beside(other) => {
                let message = beside(past, read, other);
                steps.insert(1, other.step.clone());
                message
            }
            Between::Nothing => without_condition(past, read),
            Between::Unknown => {
                let opened = object.opened.clone().filter(|opened| opened.seq > read.seq);
                let message = match &opened {
                    Some(opened) => format!(
                        "{} read the file and wrote it without a lease; {} opened it for writing \
                         in between",
                        past.name(read.client),
                        past.name(opened.client)
                    ),
                    None => without_condition(past, read),
                };
                steps.splice(1..1, opened);
                wait(past, overwrite);
                message
            }
        }
    };
    Some(Found::new(rule, Level::Hint, steps, message))
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
fn between<'a>(object: &'a ObjectState, overwrite: &Overwrite) -> Between<'a> {
    let Overwrite { read, write, .. } = overwrite;
    let client: ClientId = write.step.client;
    let mut at = write.before.as_deref();
    let mut found = Between::Nothing;
    for _ in 0..=object.writes.len() {
        let Some(etag) = at.filter(|etag| read.etag.as_deref() != Some(etag)) else { break };
        let Some(other) = object.write_of(etag) else {
            let is_first = at == write.before.as_deref();
            return if is_first { Between::Unknown } else { found };
        };
        if other.step.client != client {
            if overlaps(write.parts.as_ref(), other.parts.as_ref()) {
                return Between::Overlapping(other);
            }
            found = Between::Beside(other);
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

fn wait(past: &mut Past, overwrite: Overwrite) {
    let waiting = &mut past.of_object(overwrite.write.step.object).waiting;
    if waiting.len() < WAITING_MAX {
        waiting.push(overwrite);
    }
}

fn rule_of(past: &Past, write: &Write) -> ReportRule {
    if past.seen_object(write.step.object).name.starts_with("file:") {
        ReportRule::File
    } else {
        ReportRule::LostUpdate
    }
}

fn lost(past: &Past, overwrite: &Overwrite, other: &Write) -> Found {
    let Overwrite { read, learned, write } = overwrite;
    let (one, two) = (past.name(read.client), past.name(other.step.client));
    let verb = if write.step.etag.is_none() { "deleted" } else { "overwrote" };
    let mut steps = vec![read.clone(), other.step.clone(), write.step.clone()];
    let (rule, message) = if let Some(learned) = learned {
        steps.push(learned.clone());
        let message = format!(
            "{one} read the content, {two} changed it, and {one} {verb} the change with the \
             ETag of a later {}",
            learned.operation
        );
        (ReportRule::LaunderedEtag, message)
    } else {
        let message = format!(
            "{one} read it, {two} changed it, and {one} {verb} the change without a condition"
        );
        (rule_of(past, write), message)
    };
    Found::new(rule, Level::Error, steps, message)
}

fn without_condition(past: &Past, read: &Step) -> String {
    format!(
        "{} read it, and then wrote it without a condition: a change between the two would be lost",
        past.name(read.client)
    )
}

fn beside(past: &Past, read: &Step, other: &Write) -> String {
    format!(
        "{} read it and wrote a part of it without a condition; {} changed another part, or all \
         of it, in between",
        past.name(read.client),
        past.name(other.step.client)
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
