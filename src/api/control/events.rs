//! Events in JSON, one object each, with the names that `docs/api.md` lists. Program names are
//! looked up here, when the events are read.
//!
//! Which events are kept, and in which order, is decided by the engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::address::ObjectAddress;
use super::refusal::RefusalKind;
use super::serving::{Serving, Spelled};
use crate::file::rules::name::fold;
use crate::file::rules::{Denial, Holder, SharePath};
use crate::journal::events::{Conflicted, Event, Happening};
use crate::journal::programs::{Programs, words};
use crate::journal::ring::RingPage;
use crate::rules::FileId;
use crate::rules::service::ServiceKind;
use crate::rules::time::iso;
use crate::server::Account;

/// The longest that one request waits for an event: a follower asks again.
pub const FOLLOW_WAIT_MAX: Duration = Duration::from_secs(1);

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// An open was granted.
    Granted,
    Refused,
    Closed,
    /// An open was closed by force.
    ForceClosed,
    /// The share mode of an open was changed.
    ShareChanged,
    /// A name was marked for deletion.
    DeletePending,
    /// The mark was taken away.
    Undeleted,
    /// A name was removed.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    pub time: String,
    /// The kind of the event.
    pub event: EventKind,
    pub account: String,
    #[serde(default = "of_files")]
    pub service: String,
    /// In which share; empty where the event is not of the File service.
    #[serde(rename = "share")]
    pub share_name: String,
    /// On which path, or on which object of another service.
    pub path: String,
    /// Who acted: its process; 0 where there is none.
    pub pid: u32,
    /// Its program, if it was still there to be asked.
    pub program: Option<String>,
    /// The client it came through; of a REST request that carried an ID, with that ID.
    pub client: String,
    /// The open that was granted, closed or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// The identity of the file it is open on: names come and go, this stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The access of the open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_mode: Option<String>,
    /// Of a refusal: what was refused, and why.
    #[serde(flatten)]
    pub refusal: Option<RefusalRow>,
}

/// A refused operation, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRow {
    pub operation: String,
    /// Which kind of rule refused.
    pub rule: RefusalKind,
    /// The error code of REST.
    pub code: String,
    /// The status that goes with the code.
    pub status: u16,
    /// The errno of the mount; empty if the object is not on a mount.
    pub errno: String,
    /// In words, naming the holder.
    pub message: String,
    /// The open in the way.
    pub holder: Option<HolderRow>,
}

/// The open in the way of a refused request, as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderRow {
    pub handle: u64,
    /// The process; 0 where there is none.
    pub pid: u32,
    /// Its program; none if it has ended.
    pub program: Option<String>,
    /// The client it came through.
    pub client: String,
    pub access: String,
    pub share_mode: String,
    /// Since when, in UTC.
    pub since: String,
}

/// A page of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<EventRow>,
    /// How many were dropped from the log before they were asked for.
    pub lost: u64,
    /// The number of the last event looked at: the next page starts after it.
    pub last: u64,
    /// The number of the newest event there is.
    pub newest: u64,
}

/// Which events are meant.
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
        if let Some(object) = &self.object {
            return address_of(event).is_some_and(|address| object.holds(&address));
        }
        let of_share = self.share_name.as_deref().is_none_or(|name| *event.share == *name);
        of_share && self.path.as_ref().is_none_or(|path| is_within(&event.path, path))
    }
}

/// The object of an event: of a file, the File service as a whole, which has paths instead.
fn address_of(event: &Event) -> Option<ObjectAddress> {
    match &event.what {
        Happening::Conflicted(conflicted) => {
            ObjectAddress::read(&format!("{}:{}", conflicted.service, conflicted.object))
        }
        _ => Some(ObjectAddress::Service(ServiceKind::File)),
    }
}

fn is_within(path: &SharePath, of: &SharePath) -> bool {
    let (path, of) = (fold(path.as_str()), fold(of.as_str()));
    let below = path.strip_prefix(&*of);
    below.is_some_and(|rest| rest.is_empty() || of.is_empty() || rest.starts_with('/'))
}

/// The events after `seq`, waiting for the first one for at most `patience`.
pub fn page(
    serving: &dyn Serving,
    account: &Account,
    filter: &EventFilter,
    seq: u64,
    patience: Duration,
) -> EventPage {
    let log = &account.file().options().events;
    let page = log.follow(seq, patience.min(FOLLOW_WAIT_MAX));
    let RingPage { mut events, lost, last, newest } = page;
    events.retain(|event| filter.lets_through(event));
    EventPage { events: rows(serving, account.name(), &events), lost, last, newest }
}

pub fn rows(serving: &dyn Serving, account: &str, events: &[Event]) -> Vec<EventRow> {
    let mut programs = Programs::default();
    events.iter().map(|event| row(serving, account, &mut programs, event)).collect()
}

/// One event as a row.
pub(super) fn row(
    serving: &dyn Serving,
    account: &str,
    programs: &mut Programs,
    event: &Event,
) -> EventRow {
    let who = programs.resolve(&event.who);
    let mut row = EventRow {
        seq: event.seq,
        time: iso(event.time),
        event: EventKind::Removed,
        account: account.to_owned(),
        service: of_files(),
        share_name: event.share.to_string(),
        path: event.path.to_string(),
        pid: who.pid,
        program: who.program.as_deref().map(str::to_owned),
        client: who.client.name.clone(),
        handle: None,
        file: event.file.map(|FileId { ino, born }| format!("{ino}-{born}")),
        access: None,
        share_mode: None,
        refusal: None,
    };
    row.event = match &event.what {
        Happening::Granted { handle, access, share } => {
            row.handle = Some(handle.0);
            row.access = Some(access.to_string());
            row.share_mode = Some(share.to_string());
            EventKind::Granted
        }
        Happening::Refused { operation, denial } => {
            row.refusal = Some(refusal(serving.spelled(denial), programs, operation, denial));
            EventKind::Refused
        }
        Happening::Conflicted(conflicted) => {
            conflicted.service.label().clone_into(&mut row.service);
            row.path.clone_from(&conflicted.object);
            row.refusal = Some(conflict(conflicted));
            EventKind::Refused
        }
        Happening::Shared { handle, share } => {
            row.handle = Some(handle.0);
            row.share_mode = Some(share.to_string());
            EventKind::ShareChanged
        }
        Happening::Closed { handle, forced } => {
            row.handle = Some(handle.0);
            if *forced { EventKind::ForceClosed } else { EventKind::Closed }
        }
        Happening::MarkedForDeletion => EventKind::DeletePending,
        Happening::Unmarked => EventKind::Undeleted,
        Happening::Removed => EventKind::Removed,
    };
    row
}

/// The service of events that name none.
fn of_files() -> String {
    ServiceKind::File.label().to_owned()
}

fn conflict(conflicted: &Conflicted) -> RefusalRow {
    RefusalRow {
        operation: conflicted.operation.to_owned(),
        rule: conflicted.conflict.into(),
        code: conflicted.code.to_owned(),
        status: conflicted.status,
        errno: String::new(),
        message: conflicted.message.clone(),
        holder: None,
    }
}

/// A refusal by a rule of the File service.
pub(super) fn refusal(
    spelled: Spelled,
    programs: &mut Programs,
    operation: &str,
    denial: &Denial,
) -> RefusalRow {
    let holder = denial.holder().map(|holder| {
        let owner = programs.resolve(&holder.owner);
        Holder { owner, ..holder.clone() }
    });
    let Spelled { code, status, errno } = spelled;
    RefusalRow {
        operation: operation.to_owned(),
        rule: RefusalKind::of(denial),
        code: code.to_owned(),
        status,
        errno: errno.to_owned(),
        message: words(denial, holder.as_ref()),
        holder: holder.map(|holder| HolderRow {
            handle: holder.handle.0,
            pid: holder.owner.pid,
            program: holder.owner.program.as_deref().map(str::to_owned),
            client: holder.owner.client.name.clone(),
            access: holder.access.to_string(),
            share_mode: holder.share.to_string(),
            since: iso(holder.since),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_itself_in_any_spelling_and_all_below_it() {
        let path = |text: &str| SharePath::new(text).unwrap();
        let within = |inner: &str, outer: &str| is_within(&path(inner), &path(outer));
        assert!(within("a/B", "a/b") && within("A/b/c", "a/B") && within("x", ""));
        assert!(!within("a/bc", "a/b") && !within("a", "a/b"));
    }
}
