//! The stream of events in JSON, one object each, with the names that `docs/api.md` lists.
//!
//! Which events are kept, and in which order, is decided in [`crate::journal::stream`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::address::ObjectAddress;
use super::connection::ControlConnection;
use super::controls::point_name;
use super::events;
use super::protocol::ControlAnswer;
use super::refusal::RefusalKind;
use super::serving::Serving;
use crate::bench::controls::Visitor;
use crate::file::rules::SharePath;
use crate::journal::events::Happening;
use crate::journal::programs::{Programs, resolved};
use crate::journal::ring::RingPage;
use crate::journal::stream::{AnsweredRequest, AtGate, ServerChange, StreamEntry, StreamEvent};
use crate::rules::Timestamp;
use crate::rules::service::ServiceKind;
use crate::rules::time::iso;

/// The longest page, in bytes of JSON, unless its only event is longer: a client chooses most of an
/// event's texts, and a page is kept for as long as a client does not read it.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

/// The kinds of events.
pub const KINDS: [&str; 19] = [
    "request",
    "gated",
    "released",
    "abandoned",
    "fault",
    "clock",
    "state",
    "gate-added",
    "gate-removed",
    "fault-added",
    "fault-removed",
    "refused",
    "granted",
    "closed",
    "force-closed",
    "share-changed",
    "delete-pending",
    "undeleted",
    "removed",
];

/// One event of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamRow {
    /// Its number, from 1 in each run of the server, without gaps.
    pub seq: u64,
    /// When, by the clock of the server.
    pub time: String,
    /// When, by the clock of the system.
    pub system: String,
    /// The kind of the entry.
    pub event: String,
    /// In which account; none if it concerns the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// On which object, as `latchfs why` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Further fields, by kind.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A page of the stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamPage {
    /// The events, oldest first.
    pub events: Vec<StreamRow>,
    /// How many were dropped from the stream before they were asked for.
    pub lost: u64,
    /// The number of the last event looked at: the next page starts after it.
    pub last: u64,
    /// The number of the newest event there is.
    pub newest: u64,
}

/// Which events of the stream are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRequest {
    /// Those after the event of this number.
    #[serde(default)]
    pub after: u64,
    /// Of this account alone.
    pub of_account: Option<String>,
    /// Of this service alone: file, blob, queue or table.
    pub service: Option<String>,
    /// Of these kinds alone.
    #[serde(default)]
    pub kinds: Vec<String>,
}

impl StreamRequest {
    fn lets_through(&self, row: &StreamRow) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        is(&self.of_account, &row.account)
            && is(&self.service, &row.service)
            && (self.kinds.is_empty() || self.kinds.contains(&row.event))
    }
}

impl ControlConnection {
    /// The next events of the stream.
    pub(super) fn stream(&self, request: &StreamRequest) -> ControlAnswer {
        let RingPage { events: entries, lost, last, newest } =
            self.serving.accounts().controls().stream.after(request.after);
        let mut programs = Programs::default();
        let rows = entries.iter().map(|entry| row(&*self.serving, &mut programs, entry));
        let (events, last) = page_of(rows.filter(|row| request.lets_through(row)), last);
        ControlAnswer::Stream(StreamPage { events, lost, last, newest })
    }

    /// Tells the stream what the client of this connection changed of what tests control.
    pub(super) fn tell(&self, kind: &'static str, id: Option<u64>, detail: impl Into<String>) {
        let stream = &self.serving.accounts().controls().stream;
        // The process of a command waits for its answer, so its program is known now.
        let by = || resolved(&self.owner).to_string();
        let change = || ServerChange { kind, by: by(), id, detail: detail.into() };
        stream.push(None, || StreamEvent::Changed(change()));
    }
}

fn row(serving: &dyn Serving, programs: &mut Programs, entry: &StreamEntry) -> StreamRow {
    let mut row = StreamRow {
        seq: entry.seq,
        time: iso(entry.time),
        system: iso(entry.system),
        event: String::new(),
        account: entry.account.as_deref().map(str::to_owned),
        service: None,
        object: None,
        more: Map::new(),
    };
    match &*entry.what {
        StreamEvent::Logged(event) => {
            let account = entry.account.as_deref().unwrap_or_default();
            let logged = events::row(serving, account, programs, event);
            row.service = Some(logged.service.clone());
            row.object = Some(match &event.what {
                Happening::Conflicted(conflicted) => {
                    format!("{}:{}", conflicted.service, conflicted.object)
                }
                _ => file(&event.share, &event.path),
            });
            row.time.clone_from(&logged.time);
            row.more = object(&logged);
            if let Some(Value::String(kind)) = row.more.remove("event") {
                row.event = kind;
            }
            for known in ["seq", "time", "account", "service"] {
                row.more.remove(known);
            }
        }
        StreamEvent::Request(answered) => {
            "request".clone_into(&mut row.event);
            row.service = Some(answered.service.label().to_owned());
            row.object = object_of(answered.service, &answered.path);
            row.more = request(serving, programs, entry.system, answered);
        }
        StreamEvent::Gated(at) => at_gate(&mut row, "gated", at),
        StreamEvent::Released(at) => at_gate(&mut row, "released", at),
        StreamEvent::Abandoned(at) => at_gate(&mut row, "abandoned", at),
        StreamEvent::Fault { fault, visitor } => {
            visit(&mut row, "fault", visitor);
            row.more.insert("fault".into(), json!(fault));
        }
        StreamEvent::Changed(ServerChange { kind, by, id, detail }) => {
            (*kind).clone_into(&mut row.event);
            row.more.insert("client".into(), json!(by));
            if let Some(id) = id {
                row.more.insert("id".into(), json!(id));
            }
            row.more.insert("detail".into(), json!(detail));
        }
    }
    debug_assert!(KINDS.contains(&&*row.event), "{}", row.event);
    row
}

fn request(
    serving: &dyn Serving,
    programs: &mut Programs,
    ended: Timestamp,
    answered: &AnsweredRequest,
) -> Map<String, Value> {
    let took = i64::try_from(answered.took.as_nanos()).unwrap_or(i64::MAX);
    let started = Timestamp(ended.0.saturating_sub(took));
    let mut more = object(&json!({
        "operation": answered.operation,
        "path": answered.path,
        "client": answered.client,
        "client_request": answered.client_request.as_deref(),
        "user_agent": answered.user_agent.as_deref(),
        "request_id": answered.request_id,
        "status": answered.status,
        "code": Some(&answered.code).filter(|code| !code.is_empty()),
        "started": iso(started),
        "duration_us": u64::try_from(answered.took.as_micros()).unwrap_or(u64::MAX),
    }));
    if let Some(refused) = &answered.refusal {
        let told = match &refused.denial {
            Some(denial) => {
                let spelled = serving.spelled(denial);
                json!(events::refusal(spelled, programs, answered.operation, denial))
            }
            None => json!({
                "operation": answered.operation,
                "code": answered.code,
                "status": answered.status,
                "rule": refused.conflict.map(RefusalKind::from),
                "message": refused.message,
            }),
        };
        more.insert("refusal".into(), told);
    }
    more
}

/// The rows that fit one page, and the number of the last event looked at: `last` if all fit.
fn page_of(rows: impl Iterator<Item = StreamRow>, last: u64) -> (Vec<StreamRow>, u64) {
    let (mut events, mut bytes) = (Vec::new(), 0);
    for row in rows {
        bytes += bytes_of(&row);
        if let Some(StreamRow { seq, .. }) = events.last()
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
fn bytes_of(row: &StreamRow) -> usize {
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

fn at_gate(row: &mut StreamRow, event: &str, at: &AtGate) {
    visit(row, event, &at.visitor);
    row.more.insert("gate".into(), json!(at.gate));
    row.more.insert("at".into(), json!(point_name(at.point)));
    row.more.insert("request".into(), json!(at.request));
}

fn visit(row: &mut StreamRow, event: &str, visitor: &Visitor) {
    event.clone_into(&mut row.event);
    row.service = Some(visitor.service.label().to_owned());
    row.object = object_of(visitor.service, &visitor.path);
    row.more = object(&json!({
        "operation": visitor.operation,
        "path": visitor.path,
        "client": visitor.client,
        "client_request": visitor.client_request,
        "user_agent": visitor.user_agent.as_deref(),
    }));
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        other => unreachable!("an event is an object: {other:?}"),
    }
}

fn file(share: &str, path: &SharePath) -> String {
    let path = path.as_str().trim_matches('/').to_owned();
    ObjectAddress::File { share: share.to_owned(), path }.to_string()
}

/// The object that a request to a service names by its path; none if it names the whole service.
fn object_of(service: ServiceKind, path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let address = match service {
        ServiceKind::File | ServiceKind::Blob => return Some(format!("{service}:{path}")),
        ServiceKind::Queue => {
            let mut parts = path.split('/');
            let queue = parts.next()?.to_owned();
            match (parts.next(), parts.next()) {
                (Some("messages"), Some(id)) => ObjectAddress::Message { queue, id: id.to_owned() },
                _ => ObjectAddress::Queue(queue),
            }
        }
        ServiceKind::Table => table_object(path)?,
    };
    Some(address.to_string())
}

/// `Rows`, `Rows()`, `Rows(PartitionKey='p',RowKey='r')` and `Tables('Rows')`.
fn table_object(path: &str) -> Option<ObjectAddress> {
    let (name, keys) = path.split_once('(').unwrap_or((path, ""));
    if name.starts_with('$') {
        return None;
    }
    let table = name.to_owned();
    let quoted = quoted(keys);
    Some(match (name, quoted.as_slice()) {
        ("Tables", [table]) => ObjectAddress::Table(table.clone()),
        ("Tables", _) => return None,
        (_, [partition, row]) => {
            ObjectAddress::Entity { table, partition: partition.clone(), row: row.clone() }
        }
        _ => ObjectAddress::Table(table),
    })
}

/// The texts in quotes; a quote in one is doubled.
fn quoted(keys: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = keys.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\'' {
            continue;
        }
        let mut text = String::new();
        while let Some(letter) = letters.next() {
            if letter == '\'' && letters.next_if_eq(&'\'').is_none() {
                break;
            }
            text.push(letter);
        }
        found.push(text);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(seq: u64, text: &str) -> StreamRow {
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
    fn a_request_names_its_object_as_commands_do() {
        for (service, path, object) in [
            (ServiceKind::File, "docs/a/b.txt", Some("file:docs/a/b.txt")),
            (ServiceKind::Blob, "box", Some("blob:box")),
            (ServiceKind::Blob, "", None),
            (ServiceKind::Queue, "work", Some("queue:work")),
            (ServiceKind::Queue, "work/messages", Some("queue:work")),
            (ServiceKind::Queue, "work/messages/5f", Some("queue:work/5f")),
            (ServiceKind::Table, "Rows", Some("table:Rows")),
            (ServiceKind::Table, "Rows()", Some("table:Rows")),
            (
                ServiceKind::Table,
                "Rows(PartitionKey='it''s',RowKey='r')",
                Some("table:Rows/it's/r"),
            ),
            (ServiceKind::Table, "Tables('Rows')", Some("table:Rows")),
            (ServiceKind::Table, "Tables", None),
            (ServiceKind::Table, "$batch", None),
        ] {
            assert_eq!(object_of(service, path).as_deref(), object, "{path}");
        }
    }
}
