//! Rows of the journal in JSON, one object each, with the names that `docs/api.md` lists.
//! Programs behind process ids are looked up here, when a row is read.
//!
//! Which rows are kept, and in which order, is decided in [`super::ring`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::peers::{Process, identity, process_of};
use super::programs::{Programs, words};
use super::row::{AnsweredRequest, AtGate, Event, FileEvent, Happening, Row, ServerChange};
use crate::rules::address::ObjectAddress;
use crate::rules::gate::Visitor;
use crate::rules::service::ServiceKind;
use crate::rules::time::iso;
use crate::rules::who::{Identity, Who};
use crate::rules::{Cause, FileId, Owner, RefusalKind, Timestamp};

/// The kinds of events.
pub const KINDS: [&str; 22] = [
    "request",
    "gated",
    "released",
    "abandoned",
    "fault",
    "clock",
    "state",
    "reset",
    "mark",
    "exploration",
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

/// One row of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventRow {
    /// Its number, from 1 in each run of the server.
    pub seq: u64,
    /// When, by the clock of the server.
    pub time: String,
    /// When, by the clock of the system.
    pub system: String,
    /// The kind of the event.
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

/// A page of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<EventRow>,
    /// How many were dropped from the journal before they were asked for.
    pub lost: u64,
    /// The number of the last event looked at: the next page starts after it.
    pub last: u64,
    /// The number of the newest event there is.
    pub newest: u64,
}

/// Why something was refused, in the row of the refusal or of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct RefusalFields<'a> {
    operation: &'a str,
    rule: RefusalKind,
    code: &'a str,
    status: u16,
    /// The errno of the mount; empty if the object is not on a mount.
    errno: &'a str,
    /// In words, naming the holder.
    message: String,
    /// The open in the way.
    holder: Option<HolderFields>,
}

/// The open in the way of a refused request, as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct HolderFields {
    handle: u64,
    /// The process; 0 where there is none.
    pid: u32,
    /// Its program; none if it has ended.
    program: Option<String>,
    /// The client it came through.
    client: String,
    access: String,
    share_mode: String,
    /// Since when, in UTC.
    since: String,
}

impl EventRow {
    /// The row in JSON. Each process is looked up once for all rows that share `programs`.
    pub fn of(row: &Row, programs: &mut Programs) -> Self {
        let mut made = Self {
            seq: row.seq,
            time: iso(row.time),
            system: iso(row.system),
            event: String::new(),
            account: row.account.as_deref().map(str::to_owned),
            service: None,
            object: None,
            more: Map::new(),
        };
        match &*row.event {
            Event::File(event) => made.file(event, programs),
            Event::Refused(refused) => {
                made.is("refused", refused.service);
                made.object = Some(format!("{}:{}", refused.service, refused.object));
                made.place("", &refused.object);
                made.who(&programs.resolve(&refused.who));
                if let Some(by) = refused.client_by {
                    made.add(&json!({ "client_by": by }));
                }
                made.add(&refusal(refused.operation, &refused.cause, programs));
            }
            Event::Written { .. } => unreachable!("a page has no changes"),
            Event::Request(answered) => made.request(row.system, answered, programs),
            Event::Gated(at) => made.at_gate("gated", at, row.system),
            Event::Released(at) => {
                made.at_gate("released", at, row.system);
                made.add(&json!({ "timed_out": at.timed_out }));
            }
            Event::Abandoned(at) => made.at_gate("abandoned", at, row.system),
            Event::Fault { fault, visitor } => {
                made.visit("fault", visitor, row.system);
                made.add(&json!({ "fault": fault }));
            }
            Event::Changed(ServerChange { kind, by, id, detail, .. }) => {
                (*kind).clone_into(&mut made.event);
                made.add(&json!({ "client": by, "detail": detail }));
                if let Some(id) = id {
                    made.add(&json!({ "id": id }));
                }
            }
        }
        debug_assert!(KINDS.contains(&&*made.event), "{}", made.event);
        made
    }

    /// A text among the further fields; empty if there is none.
    pub fn text(&self, field: &str) -> &str {
        self.more.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number among the further fields.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.more.get(field).and_then(Value::as_u64)
    }

    fn is(&mut self, event: &str, service: ServiceKind) {
        event.clone_into(&mut self.event);
        self.service = Some(service.label().to_owned());
    }

    fn add(&mut self, fields: &impl Serialize) {
        match serde_json::to_value(fields) {
            Ok(Value::Object(fields)) => self.more.extend(fields),
            other => unreachable!("an event is an object: {other:?}"),
        }
    }

    fn place(&mut self, share: &str, path: &str) {
        self.add(&json!({ "share": share, "path": path }));
    }

    fn who(&mut self, who: &Owner) {
        let Owner { client, pid, program } = who;
        self.add(&json!({ "pid": pid, "program": program.as_deref(), "client": client.name }));
    }

    fn file(&mut self, event: &FileEvent, programs: &mut Programs) {
        let kind = match &event.what {
            Happening::Granted { handle, access, share } => {
                let (access, share) = (access.to_string(), share.to_string());
                self.add(&json!({ "handle": handle.0, "access": access, "share_mode": share }));
                "granted"
            }
            Happening::Refused { operation, cause } => {
                self.add(&refusal(operation, cause, programs));
                "refused"
            }
            Happening::Shared { handle, share } => {
                self.add(&json!({ "handle": handle.0, "share_mode": share.to_string() }));
                "share-changed"
            }
            Happening::Closed { handle, forced } => {
                self.add(&json!({ "handle": handle.0 }));
                if *forced { "force-closed" } else { "closed" }
            }
            Happening::MarkedForDeletion => "delete-pending",
            Happening::Unmarked => "undeleted",
            Happening::Removed => "removed",
        };
        self.is(kind, ServiceKind::File);
        let (share, path) = (event.share.to_string(), event.path.trim_matches('/').to_owned());
        self.object = Some(ObjectAddress::File { share, path }.to_string());
        self.place(&event.share, &event.path);
        self.who(&programs.resolve(&event.who));
        if let Some(FileId { ino, born }) = event.file {
            self.add(&json!({ "file": format!("{ino}-{born}") }));
        }
    }

    fn request(&mut self, ended: Timestamp, answered: &AnsweredRequest, programs: &mut Programs) {
        let took = i64::try_from(answered.took.as_nanos()).unwrap_or(i64::MAX);
        let started = Timestamp(ended.0.saturating_sub(took));
        self.is("request", answered.service);
        self.sender(&answered.who, ended);
        self.object = object_of(answered.service, &answered.path);
        self.add(&answered.asked);
        self.add(&answered.given);
        self.add(&json!({
            "operation": answered.operation,
            "path": answered.path,
            "client_request": answered.client_request.as_deref(),
            "user_agent": answered.user_agent.as_deref(),
            "request_id": answered.request_id,
            "status": answered.status,
            "code": Some(&answered.code).filter(|code| !code.is_empty()),
            "started": iso(started),
            "duration_us": u64::try_from(answered.took.as_micros()).unwrap_or(u64::MAX),
            "answer": answered.answer,
        }));
        let Some(refused) = &answered.refusal else { return };
        let why = match &refused.cause {
            Some(cause) => json!(refusal(answered.operation, cause, programs)),
            None => json!({
                "operation": answered.operation,
                "code": answered.code,
                "status": answered.status,
                "rule": refused.conflict.map(RefusalKind::from),
                "message": refused.message,
            }),
        };
        self.add(&json!({ "refusal": why }));
    }

    fn at_gate(&mut self, event: &str, at: &AtGate, when: Timestamp) {
        self.visit(event, &at.visitor, when);
        self.add(&json!({ "gate": at.gate, "at": at.point.name(), "request": at.request }));
    }

    fn visit(&mut self, event: &str, visitor: &Visitor, when: Timestamp) {
        self.is(event, visitor.service);
        self.object = object_of(visitor.service, &visitor.path);
        self.sender(&visitor.who, when);
        self.add(&visitor.asked);
        self.add(&json!({
            "operation": visitor.operation,
            "path": visitor.path,
            "client_request": visitor.client_request.as_deref(),
            "user_agent": visitor.user_agent.as_deref(),
        }));
    }

    /// The client of a request, and its process on this machine, where it can be told.
    fn sender(&mut self, who: &Who, when: Timestamp) {
        let process = process_of(&who.connection, when);
        let Identity { name, by } = identity(who, process.as_ref());
        self.add(&json!({
            "client": &*name,
            "client_by": by,
            "connection": &*who.connection,
        }));
        if let Some(Process { pid, program }) = process {
            self.add(&json!({ "pid": pid, "program": &*program }));
        }
    }
}

fn refusal<'a>(operation: &'a str, cause: &'a Cause, programs: &mut Programs) -> RefusalFields<'a> {
    let owner = cause.holder.as_ref().map(|holder| programs.resolve(&holder.owner));
    RefusalFields {
        operation,
        rule: cause.kind,
        code: cause.spelled.code,
        status: cause.spelled.status,
        errno: cause.spelled.errno,
        message: words(&cause.message, cause.holder.as_ref(), owner.as_ref()),
        holder: cause.holder.as_ref().zip(owner).map(|(holder, owner)| HolderFields {
            handle: holder.handle.0,
            pid: owner.pid,
            program: owner.program.as_deref().map(str::to_owned),
            client: owner.client.name.clone(),
            access: holder.access.to_string(),
            share_mode: holder.share.to_string(),
            since: iso(holder.since),
        }),
    }
}

/// The object that a request to a service names by its path; none if it names the whole service.
pub fn object_of(service: ServiceKind, path: &str) -> Option<String> {
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
