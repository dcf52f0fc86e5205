//! What a client creates: whether it did so because it was not there, for check-then-create, and
//! published empty, what others see of it before it is whole.
//!
//! Whether another client's creation was replaced is decided in [`super::overwritten`].

use super::finding::{Level, ReportRule};
use super::found::Found;
use super::past::{CreatedEmpty, Past, Step, Write};
use super::row::ReportRow;

/// True for an operation that creates and never replaces.
pub fn creates_only(operation: &str) -> bool {
    matches!(
        operation,
        "Insert Entity"
            | "Create Container"
            | "Create Directory"
            | "Create Hard Link"
            | "Create Queue"
            | "Create Share"
            | "Create Symbolic Link"
            | "Create Table"
    )
}

/// The latest answer by which the client of a write knew that the object is not there, if the write
/// may create it and may replace it.
pub fn absent<'a>(past: &'a Past, write: &Write) -> Option<&'a Step> {
    let (client, object) = (write.step.client, write.step.object);
    let creates = write.step.etag.is_some() && write.parts.is_none();
    if !creates || creates_only(write.step.operation) {
        return None;
    }
    let entry = past.seen(client, object);
    let told = entry.and_then(|entry| entry.absent.as_ref());
    let known = entry.and_then(|entry| {
        let content = entry.content.as_ref().map(|read| read.step.seq);
        content.max(entry.learned.as_ref().map(|learned| learned.step.seq))
    });
    let name = &past.seen_object(object).name;
    let lists = past.seen_client(client).lists.iter();
    let lists = lists.filter(|list| {
        let within = past.seen_object(list.step.object).name.len();
        let is_in = name.starts_with(&*past.seen_object(list.step.object).name)
            && name.as_bytes().get(within) == Some(&b'/');
        is_in && name[within + 1..].starts_with(&list.prefix) && !list.objects.contains(&object)
    });
    let by_list = lists.map(|list| &list.step).filter(|step| Some(step.seq) > known);
    let latest = by_list.chain(told).max_by_key(|step| step.seq)?;
    past.is_recent(latest).then_some(latest)
}

/// Judges a write that may fill what its client created empty. It is not remembered yet.
pub fn published_empty(past: &mut Past, row: &ReportRow<'_>, write: &Write) -> Option<Found> {
    let state = past.of_object(write.step.object);
    let is_put = matches!(row.operation(), "Put Blob" | "Put Block List");
    if is_put && write.before.is_none() && row.asked().length == Some(0) {
        state.empty = Some(CreatedEmpty { step: write.step.clone(), read: None });
        return None;
    }
    let CreatedEmpty { step, read } = state.empty.take()?;
    let fills = is_put && step.client == write.step.client && step.etag == write.before;
    if !fills {
        return None;
    }
    let one = past.name(step.client);
    let (level, message) = match &read {
        Some(read) => (
            Level::Warn,
            format!(
                "{one} created it empty and filled it later; {} read the empty blob",
                past.name(read.client)
            ),
        ),
        None => (
            Level::Hint,
            format!(
                "{one} created it empty and filled it later: a reader between the two would get \
                 an empty blob"
            ),
        ),
    };
    let steps = [Some(step), read, Some(write.step.clone())].into_iter().flatten().collect();
    Some(Found::new(ReportRule::PublishedEmpty, level, steps, message))
}

/// Remembers that a client has read an object that may be empty still.
pub fn read(past: &mut Past, step: &Step) {
    if let Some(empty) = &mut past.of_object(step.object).empty
        && empty.step.client != step.client
        && empty.step.etag == step.etag
    {
        empty.read.get_or_insert_with(|| step.clone());
    }
}
