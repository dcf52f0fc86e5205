//! A row of the journal, and what it may tell of.
//!
//! Decides which rows are kept longer than others, and that texts which a request chooses are cut.
//! Who writes a row is decided by the services and their faces.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::programs::resolved;
use crate::rules::address::ObjectAddress;
use crate::rules::asked::{Asked, Parts};
use crate::rules::conflict::Conflict;
use crate::rules::gate::{Point, Visitor};
use crate::rules::given::Given;
use crate::rules::service::ServiceKind;
use crate::rules::who::{ClientBy, Who};
use crate::rules::{Access, Cause, FileId, HandleId, Owner, ShareMode, Timestamp, Writer};

/// The longest path and message that a row keeps, in bytes. A request chooses both, and needs no
/// credentials for it.
pub const TEXT_MAX: usize = 1_024;

/// The longest name of an object that a refused request leaves in its row, in bytes: longer than
/// the names that a service permits.
const NAME_MAX: usize = 8_192;

/// Stands for the operation of a request that was refused before it was known.
pub const UNKNOWN: &str = "Unknown";

/// One row of the journal.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number, from 1 in each run of the server, without gaps; of a change, that of the event
    /// before it.
    pub seq: u64,
    /// When, by the clock of the server.
    pub time: Timestamp,
    /// When, by the clock of the system.
    pub system: Timestamp,
    /// In which account; none if it concerns the server.
    pub account: Option<Arc<str>>,
    pub event: Arc<Event>,
}

/// The content of a row. Most rows are of requests: what is longer than an open is boxed, so that
/// their rows stay short.
#[derive(Debug)]
pub enum Event {
    /// Something happened to an open or a name of the File service.
    File(FileEvent),
    /// A request to the Blob, Queue or Table service was refused.
    Refused(Box<RefusedRequest>),
    /// An object of the Blob, Queue or Table service was changed. Histories read it; it is no
    /// event, and has no number of its own.
    Written {
        change: Box<Change>,
        /// How often the data of the service had been replaced.
        generation: u64,
    },
    /// A request was answered.
    Request(Box<AnsweredRequest>),
    /// A request stopped at a gate.
    Gated(Box<AtGate>),
    /// A request that had stopped at a gate went on.
    Released(Box<AtGate>),
    /// A request that had stopped at a gate ended there: its client went away, or all data was
    /// replaced.
    Abandoned(Box<AtGate>),
    /// A request met a fault.
    Fault { fault: u64, visitor: Box<Visitor> },
    /// The clock, a gate, a fault or the state of the server was changed.
    Changed(ServerChange),
}

impl Event {
    /// The row of a refused request. A refusal by the File service names share and path, as those
    /// on the mount do.
    pub fn refused(mut request: RefusedRequest) -> Self {
        cut(&mut request.object, NAME_MAX);
        cut(&mut request.cause.message, TEXT_MAX);
        if request.service != ServiceKind::File {
            return Self::Refused(Box::new(request));
        }
        let RefusedRequest { object, who, operation, cause, .. } = request;
        let (share, path) = object.split_once('/').unwrap_or((&object, ""));
        let what = Happening::Refused { operation, cause: Box::new(cause) };
        Self::File(FileEvent {
            share: share.into(),
            path: format!("/{path}"),
            file: None,
            who,
            what,
        })
    }

    /// True for rows that are kept longer: refusals, forced closes, deletions, changes of
    /// objects, and what tests change. The others come with every request and every open.
    pub const fn is_lasting(&self) -> bool {
        match self {
            Self::File(event) => !event.what.is_ordinary(),
            Self::Refused(_) | Self::Written { .. } | Self::Changed(_) => true,
            Self::Request(_)
            | Self::Gated(_)
            | Self::Released(_)
            | Self::Abandoned(_)
            | Self::Fault { .. } => false,
        }
    }

    /// About how much memory the lists of a row take.
    pub(super) fn lists_bytes(&self) -> usize {
        match self {
            Self::Request(answered) => {
                let names = answered.asked.parts.as_ref().map_or(0, Parts::names_bytes);
                answered.given.lists_bytes() + names
            }
            _ => 0,
        }
    }

    /// True for changes, which are not events.
    pub(super) const fn is_change(&self) -> bool {
        matches!(self, Self::Written { .. })
    }

    /// The service and the rule of a refusal because of another client.
    pub(super) fn conflict(&self) -> Option<(ServiceKind, &'static str)> {
        match self {
            Self::File(FileEvent { what: Happening::Refused { cause, .. }, .. }) => {
                Some((ServiceKind::File, cause.kind.conflict()?))
            }
            Self::Refused(refused) => Some((refused.service, refused.cause.kind.conflict()?)),
            _ => None,
        }
    }

    /// The event as it is kept: with texts of at most [`TEXT_MAX`] bytes, and with the program of a
    /// process that was refused, closed a handle by force or deleted a share, since the process
    /// may have ended when somebody reads the journal.
    /// The programs of opens, ordinary closes and deletions of files are not looked up: they are
    /// too many.
    pub(super) fn kept(mut self) -> Self {
        match &mut self {
            Self::File(event) => {
                let removed = event.what == Happening::Removed && event.path != "/";
                if !removed && !event.what.is_ordinary() {
                    event.who = resolved(&event.who);
                }
            }
            Self::Refused(refused) => refused.who = resolved(&refused.who),
            Self::Request(answered) => {
                cut(&mut answered.path, TEXT_MAX);
                if let Some(refusal) = &mut answered.refusal {
                    cut(&mut refusal.message, TEXT_MAX);
                }
            }
            Self::Gated(at) | Self::Released(at) | Self::Abandoned(at) => {
                cut(&mut at.visitor.path, TEXT_MAX);
            }
            Self::Fault { visitor, .. } => cut(&mut visitor.path, TEXT_MAX),
            Self::Changed(change) => cut(&mut change.detail, TEXT_MAX),
            Self::Written { .. } => {}
        }
        self
    }
}

/// Cuts a text off at `max` bytes. The memory of the rest is given back.
fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        *text = text[..text.floor_char_boundary(max - '…'.len_utf8())].to_owned() + "…";
    }
}

/// Something that happened to an open or a name of the File service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    pub share: Arc<str>,
    /// From the root of the share, with a slash before it.
    pub path: String,
    /// The identity of the file, if the file is open.
    pub file: Option<FileId>,
    pub who: Owner,
    pub what: Happening,
}

/// What happened to an open or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An open was granted.
    Granted { handle: HandleId, access: Access, share: ShareMode },
    /// Something was refused by a rule.
    Refused {
        /// The refused operation: `open`, `delete`, `put range`.
        operation: &'static str,
        cause: Box<Cause>,
    },
    /// The share mode of an open was changed.
    Shared {
        handle: HandleId,
        /// Its new share mode.
        share: ShareMode,
    },
    Closed {
        handle: HandleId,
        /// By Force Close Handles.
        forced: bool,
    },
    /// A name became delete pending.
    MarkedForDeletion,
    /// The mark was taken away.
    Unmarked,
    /// A name was removed.
    Removed,
}

impl Happening {
    /// True for events of every open that meets no conflict.
    pub const fn is_ordinary(&self) -> bool {
        matches!(
            self,
            Self::Granted { .. } | Self::Shared { .. } | Self::Closed { forced: false, .. }
        )
    }
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    pub service: ServiceKind,
    /// The object as the command line names it, without the service: `docs/a.txt`.
    pub object: String,
    pub who: Owner,
    /// How the name of the client is known, if the request itself gives it.
    pub client_by: Option<ClientBy>,
    pub operation: &'static str,
    pub cause: Cause,
}

/// A change of an object, once it is committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    pub object: ObjectAddress,
    /// The `ETag` that the object has since; none if the change did not move it.
    pub etag: Option<String>,
    pub by: Writer,
}

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct AnsweredRequest {
    pub service: ServiceKind,
    /// The operation, as the service's documentation names it.
    pub operation: &'static str,
    /// The path of the request without the account.
    pub path: String,
    /// Who sent the request.
    pub who: Who,
    /// The ID that the client gave the request.
    pub client_request: Option<Arc<str>>,
    /// The program that the client says it is.
    pub user_agent: Option<Arc<str>>,
    /// The ID that the server gave the request.
    pub request_id: String,
    /// The status of the answer; none if a fault closed the connection.
    pub status: Option<u16>,
    /// The error code of the answer, or nothing.
    pub code: String,
    /// How long the answer took to begin.
    pub took: Duration,
    /// Why the request was refused, if it was.
    pub refusal: Option<RequestRefusal>,
    /// What its head asked for.
    pub asked: Asked,
    /// What it read and changed.
    pub given: Given,
    pub answer: AnswerEnd,
}

impl AnsweredRequest {
    /// A request of which nothing is known but its sender.
    pub fn of(service: ServiceKind, who: Who) -> Self {
        Self {
            service,
            operation: UNKNOWN,
            path: String::new(),
            who,
            client_request: None,
            user_agent: None,
            request_id: String::new(),
            status: None,
            code: String::new(),
            took: Duration::ZERO,
            refusal: None,
            asked: Asked::default(),
            given: Given::default(),
            answer: AnswerEnd::default(),
        }
    }
}

/// What became of the answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerEnd {
    /// The client got it, as far as the server knows.
    #[default]
    Sent,
    /// A fault, a reset or a restore closed the connection instead.
    Dropped,
    /// A fault ended it in the middle of its body.
    Cut,
    /// The client went away before there was an answer.
    ClientGone,
}

/// Why a request was refused.
#[derive(Clone, Debug)]
pub struct RequestRefusal {
    /// The message of the answer.
    pub message: String,
    /// The rule of the File service that refused, with the holder.
    pub cause: Option<Box<Cause>>,
    /// The act of another client that refused a request to the other services.
    pub conflict: Option<Conflict>,
}

/// A request at a gate.
#[derive(Clone, Debug)]
pub struct AtGate {
    pub gate: u64,
    /// Where the gate is.
    pub point: Point,
    /// The number of the request among those that waited.
    pub request: u64,
    pub visitor: Visitor,
    /// The request went on because the gate's time limit ended.
    pub timed_out: bool,
}

/// A change of the clock, a gate, a fault or the state of the server.
#[derive(Clone, Debug)]
pub struct ServerChange {
    /// The kind of the change: `clock`, `gate-added`, `fault-removed`.
    pub kind: &'static str,
    pub by: String,
    /// The gate or the fault, where there is one.
    pub id: Option<u64>,
    /// More, in words: what the clock does, which state was restored.
    pub detail: String,
    /// What was read and written before has nothing to do with what comes after: a test began, or
    /// all data was replaced.
    pub is_barrier: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_a_request_chooses_are_cut_at_their_bound() {
        for (length, kept) in [(TEXT_MAX, TEXT_MAX), (TEXT_MAX + 1, TEXT_MAX), (60_000, TEXT_MAX)] {
            let mut text = "x".repeat(length);
            cut(&mut text, TEXT_MAX);
            assert_eq!((text.len(), text.capacity() <= 2 * kept), (kept, true), "{length}");
            assert_eq!(text.ends_with('…'), length > TEXT_MAX);
        }
        // Between characters.
        let mut text = "ä".repeat(TEXT_MAX);
        cut(&mut text, TEXT_MAX);
        assert!(text.len() <= TEXT_MAX && text.starts_with("ää") && text.ends_with("ä…"));
    }
}
