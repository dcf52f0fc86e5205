//! Which rows of the journal a request is given: `latchfs events`, the event file, and the stream
//! of the HTTP API. The fields of a row are decided in [`crate::journal::json`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::ObjectAddress;
use super::failure::ApiFailure;
use super::session::Session;
use crate::file::rules::SharePath;
use crate::file::rules::name::fold;
use crate::journal::json::{EventPage, EventRow};
use crate::journal::programs::{Programs, resolved};
use crate::journal::ring::PAGE_MAX;
use crate::journal::row::ServerChange;
use crate::journal::{Event, Journal, Page, Reads, Row};
use crate::rules::service::ServiceKind;

/// The longest page, in bytes of JSON, unless its only event is longer: a client chooses most of an
/// event's texts, and a page is kept for as long as a client does not read it.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

/// Which events of the stream are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamRequest {
    /// Those after the event of this number.
    pub after: u64,
    /// Of this account alone.
    pub of_account: Option<String>,
    /// Of this service alone: file, blob, queue or table.
    pub service: Option<String>,
    /// Of these kinds alone.
    pub kinds: Vec<String>,
}

impl StreamRequest {
    fn lets_through(&self, row: &EventRow) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        is(&self.of_account, &row.account)
            && is(&self.service, &row.service)
            && (self.kinds.is_empty() || self.kinds.contains(&row.event))
    }
}

impl Session {
    /// The next events of the stream.
    pub fn stream(&self, request: &StreamRequest) -> EventPage {
        let journal = &self.serving.controls().journal;
        let Page { rows, lost, last, newest } = journal.after(request.after, PAGE_MAX, Reads::All);
        let mut programs = Programs::default();
        let rows = rows.iter().map(|row| EventRow::of(row, &mut programs));
        let (events, last) = page_of(rows.filter(|row| request.lets_through(row)), last);
        EventPage { events, lost, last, newest }
    }

    /// Records what the client of this connection changed of what tests control.
    pub(super) fn tell(&self, kind: &'static str, id: Option<u64>, detail: impl Into<String>) {
        self.push_change(kind, id, detail.into(), false);
    }

    /// Records that what comes has nothing to do with what was; the number of the row.
    pub(super) fn tell_barrier(&self, kind: &'static str, detail: impl Into<String>) -> u64 {
        self.push_change(kind, None, detail.into(), true)
    }

    fn push_change(
        &self,
        kind: &'static str,
        id: Option<u64>,
        detail: String,
        is_barrier: bool,
    ) -> u64 {
        // The process of a command waits for its answer, so its program is known now.
        let by = resolved(&self.owner).to_string();
        let change = ServerChange { kind, by, id, detail, is_barrier };
        self.serving.controls().journal.push(None, Event::Changed(change))
    }
}

/// The rows that fit one page, and the number of the last event looked at: `last` if all fit.
fn page_of(rows: impl Iterator<Item = EventRow>, last: u64) -> (Vec<EventRow>, u64) {
    let (mut events, mut bytes) = (Vec::new(), 0);
    for row in rows {
        bytes += bytes_of(&row);
        if let Some(EventRow { seq, .. }) = events.last()
            && bytes > PAGE_BYTES_MAX
        {
            let seq = *seq;
            return (events, seq);
        }
        events.push(row);
    }
    (events, last)
}

/// The length of a row in JSON.
fn bytes_of(row: &EventRow) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, row) {
        Ok(()) => count.0,
        Err(error) => unreachable!("an event is JSON: {error}"),
    }
}

/// Refusals and what became of opens: what `latchfs events` lists, in one account.
#[derive(Debug, Default)]
pub struct EventFilter {
    /// Of this share alone.
    pub share_name: Option<String>,
    /// On this path, in any spelling, and below it.
    pub path: Option<SharePath>,
    /// On this object of another service, and below it.
    pub object: Option<ObjectAddress>,
}

impl EventFilter {
    fn lets_through(&self, event: &Event) -> bool {
        match event {
            Event::File(event) => {
                let whole = ObjectAddress::Service(ServiceKind::File);
                let of_object = self.object.as_ref().is_none_or(|object| *object == whole);
                let of_share = self.share_name.as_deref().is_none_or(|name| *event.share == *name);
                let within = |path: &SharePath| is_within(event.path.trim_matches('/'), path);
                of_object && of_share && self.path.as_ref().is_none_or(within)
            }
            Event::Refused(refused) => {
                let address = format!("{}:{}", refused.service, refused.object);
                let address = ObjectAddress::read(&address);
                let of_files = self.share_name.is_some()
                    || self.path.as_ref().is_some_and(|path| !path.is_root());
                match &self.object {
                    Some(object) => address.is_some_and(|address| object.holds(&address)),
                    None => !of_files,
                }
            }
            _ => false,
        }
    }
}

/// Whether a row is one of those that `latchfs events` and the event file list.
fn is_listed(journal: &Journal, row: &Row) -> bool {
    match &*row.event {
        Event::File(event) => journal.lists_all() || !event.what.is_ordinary(),
        Event::Refused(_) => true,
        _ => false,
    }
}

/// Rows after `seq` that `latchfs events` and the event file list.
pub fn listed(journal: &Journal, seq: u64) -> Page {
    let reads = if journal.lists_all() { Reads::All } else { Reads::Lasting };
    let mut page = journal.after(seq, PAGE_MAX, reads);
    page.rows.retain(|row| is_listed(journal, row));
    page
}

fn is_within(path: &str, of: &SharePath) -> bool {
    let (path, of) = (fold(path), fold(of.as_str()));
    let below = path.strip_prefix(&*of);
    below.is_some_and(|rest| rest.is_empty() || of.is_empty() || rest.starts_with('/'))
}

/// Asks for the next events that `latchfs events` lists, at most a page of them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetLog {
    /// Of this share alone
    pub share: Option<String>,
    /// On this path, or on this object of another service, and below it
    pub path: Option<String>,
    /// Those after the event of this number
    #[serde(default)]
    pub after: u64,
    /// For how long to wait for the first one, if there is none yet
    #[serde(default)]
    #[schemars(range(max = 600_000))]
    pub wait_ms: u64,
}

impl Session {
    /// The next events of the account that a request names.
    pub fn log(&self, of: &GetLog) -> Result<EventPage, ApiFailure> {
        let filter = self.filter(of.share.as_deref(), of.path.as_deref())?;
        let Page { mut rows, lost, last, newest } =
            listed(self.account.journal().journal(), of.after);
        rows.retain(|row| {
            // A request without an account concerns all.
            row.account.as_deref().is_none_or(|account| account == &**self.account.name())
                && filter.lets_through(&row.event)
        });
        Ok(EventPage { events: events_of(&rows), lost, last, newest })
    }

    /// The events that a request names: by a share, a path, or an object of another service.
    fn filter(&self, name: Option<&str>, path: Option<&str>) -> Result<EventFilter, ApiFailure> {
        let object = path.and_then(ObjectAddress::read);
        if let Some(object) = object.filter(|object| !matches!(object, ObjectAddress::File { .. }))
        {
            return Ok(EventFilter { object: Some(object), ..EventFilter::default() });
        }
        let (share_name, path) = self.place(name, path)?;
        if let Some(name) = &share_name {
            self.share(Some(name))?;
        }
        Ok(EventFilter { share_name, path, object: None })
    }
}

/// Rows as clients read them.
pub fn events_of(rows: &[Row]) -> Vec<EventRow> {
    let mut programs = Programs::default();
    rows.iter().map(|row| EventRow::of(row, &mut programs)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row_of(seq: u64, text: &str) -> EventRow {
        let row = json!({ "seq": seq, "time": "", "system": "", "event": "request", "path": text });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_page_ends_before_the_event_that_would_make_it_too_long() {
        // A control character takes six bytes in JSON.
        let text = "\u{1}".repeat(1_024);
        let rows = || (1..=1_000).map(|seq| row_of(seq, &text));
        let (events, last) = page_of(rows(), 1_000);
        assert_eq!((events.len() as u64, last), (last, events.last().unwrap().seq));
        let length = serde_json::to_string(&events).unwrap().len();
        assert!(length <= PAGE_BYTES_MAX + 2 * events.len(), "{length}");
        assert!(length > PAGE_BYTES_MAX - 2 * bytes_of(&events[0]), "{length}");
    }

    #[test]
    fn a_page_has_one_event_however_long_it_is_and_ends_where_the_look_ended() {
        let long = "x".repeat(PAGE_BYTES_MAX);
        let (events, last) = page_of((7..9).map(|seq| row_of(seq, &long)), 9);
        assert_eq!((events.len(), last), (1, 7));
        // Events that the client does not want are behind the last that it gets.
        let (events, last) = page_of([row_of(7, "")].into_iter(), 9);
        assert_eq!((events.len(), last), (1, 9));
    }

    #[test]
    fn a_path_means_itself_in_any_spelling_and_all_below_it() {
        let path = |text: &str| SharePath::new(text).unwrap();
        let within = |inner: &str, outer: &str| is_within(inner, &path(outer));
        assert!(within("a/B", "a/b") && within("A/b/c", "a/B") && within("x", ""));
        assert!(!within("a/bc", "a/b") && !within("a", "a/b"));
    }
}
