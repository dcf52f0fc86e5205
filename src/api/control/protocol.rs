//! Requests and answers as they travel: one JSON object a line, each with its version `v`.
//!
//! ```text
//! -> {"v":2,"do":"hold","path":"a.txt","access":"rw","share_mode":"none"}
//! <- {"v":2,"answer":"held","handle":1099511627777,"share":"docs","path":"/a.txt", ...}
//! ```
//!
//! A request may name an `account`; it means the first of the server otherwise. An unknown field of
//! a request is an error: a misspelled condition would otherwise be ignored. A client ignores
//! fields of an answer that it does not know. Lines are read and written in [`super::wire`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::controls::{ClockRequest, ClockState, FaultEntry, FaultRequest, GateEntry, GateRequest};
use super::events::StreamRequest;
use super::held::{LeaseRow, LockRow, MessageRow, PendingRow};
use super::object_lease::ObjectLease;
use super::objects::{ChangeRow, ObjectState};
use super::refusal::FailureKind;
pub use super::rows::{
    ConnectionInfo, FileExplanation, FileLeaseRow, HandleRow, HoldRow, MountRow, RefusalDetail,
    ServerStatus, ShareEntry, ShareRow,
};
use super::states::{StateEntry, StateRequest};
use crate::journal::json::EventPage;

/// A request of a client. A request without `share` means the only share of the account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    Ping {},
    /// Asks which shares, services and mounts are served, and where.
    Status {},
    /// Opens a file until it is released or the connection ends.
    Hold(HoldRequest),
    /// Whether a hold of this connection is still open. The answer waits while it is.
    Holding {
        handle: u64,
        /// For how long to wait.
        #[serde(default)]
        wait_ms: u64,
    },
    /// Closes a hold of this connection.
    Release {
        handle: u64,
    },
    /// Who has what open.
    Handles {
        /// In this share alone.
        #[serde(rename = "share")]
        share_name: Option<String>,
        /// On this file or directory alone; the share's root if there is none.
        path: Option<String>,
        /// And on all below it.
        #[serde(default)]
        recursive: bool,
    },
    /// Ends an open by force, or all of them.
    CloseHandle {
        /// In this share alone.
        #[serde(rename = "share")]
        share_name: Option<String>,
        handle: Option<u64>,
        #[serde(default)]
        all: bool,
    },
    /// Takes a delete-pending mark away.
    Undelete {
        #[serde(rename = "share")]
        share_name: Option<String>,
        path: String,
    },
    /// Asks why a name cannot be opened.
    Why {
        #[serde(rename = "share")]
        share_name: Option<String>,
        path: String,
    },
    /// Asks for the state of a blob, a container, a message or an entity.
    WhyObject {
        /// Its address, as in `blob:CONTAINER/NAME`.
        object: String,
    },
    /// The latest changes of an object and of all below it.
    History {
        /// Its address; without it, all changes of the account.
        object: Option<String>,
    },
    /// The lease of a blob or a container.
    ObjectLease {
        object: String,
    },
    BreakObjectLease {
        object: String,
        /// Within how many seconds; when its time is over without it.
        period: Option<u32>,
    },
    Locks {
        /// In this share alone.
        #[serde(rename = "share")]
        share_name: Option<String>,
        /// Of this file alone.
        path: Option<String>,
    },
    /// Files that are delete pending.
    Pending {},
    /// Leases in force, of shares, files, containers and blobs.
    Leases {},
    /// Messages that no Get returns yet.
    Messages {
        /// Of this queue alone.
        queue: Option<String>,
    },
    /// The next events of the log, at most a page of them.
    Events {
        /// Of this share alone.
        #[serde(rename = "share")]
        share_name: Option<String>,
        /// On this path, or on this object of another service, and below it.
        path: Option<String>,
        /// Those after the event of this number.
        #[serde(default)]
        after: u64,
        /// For how long to wait for the first one, if there is none yet.
        #[serde(default)]
        wait_ms: u64,
    },
    /// The next events of the stream of all services, at most a page of them.
    Stream(StreamRequest),
    /// From now on the asking process and all it starts open with this share mode, until
    /// `run-end` or the end of the connection.
    RunStart {
        /// The share mode of their opens.
        share_mode: String,
        /// On this mount alone.
        mount: Option<PathBuf>,
    },
    RunEnd {},
    Unmount {
        path: PathBuf,
        /// At once, though programs use it.
        #[serde(default)]
        lazy: bool,
    },
    /// How clients of the REST listener find it. The answer holds the key.
    Connection {},
    /// The shares, with what they are as a whole.
    ListShares {
        /// And those that can be restored.
        #[serde(default)]
        deleted: bool,
    },
    CreateShare {
        name: String,
        quota_gib: Option<u32>,
    },
    DeleteShare {
        name: String,
        /// And its snapshots, leased or not; without it, one that has any is refused.
        #[serde(default)]
        snapshots: bool,
    },
    /// The lease of a file, or of the share for its root.
    Lease {
        #[serde(rename = "share")]
        share_name: Option<String>,
        path: String,
    },
    BreakLease {
        #[serde(rename = "share")]
        share_name: Option<String>,
        path: String,
        /// Within how many seconds, for a share's; a file's ends at once.
        period: Option<u32>,
    },
    /// Takes a snapshot of a share. Before the answer come others, of how far it is.
    CreateSnapshot {
        #[serde(rename = "share")]
        share_name: Option<String>,
    },
    /// The snapshots of a share.
    ListSnapshots {
        #[serde(rename = "share")]
        share_name: Option<String>,
    },
    DeleteSnapshot {
        #[serde(rename = "share")]
        share_name: Option<String>,
        snapshot: String,
    },
    /// The clock of the server.
    Clock(ClockRequest),
    Gate(GateRequest),
    /// The faults of the server.
    Fault(FaultRequest),
    /// The state of the server as a whole.
    State(StateRequest),
    Shutdown {},
}

/// An open to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    #[serde(rename = "share")]
    pub share_name: Option<String>,
    pub path: String,
    /// Letters r, w, d, or none.
    pub access: String,
    /// Its share mode, in the same letters.
    pub share_mode: String,
    /// open (the default), create, open-if, overwrite, overwrite-if, supersede.
    pub disposition: Option<String>,
    /// Marks the name for deletion when it closes.
    #[serde(default)]
    pub delete_on_close: bool,
    /// Byte ranges to lock, all or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockWanted>,
}

/// A byte range to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockWanted {
    pub start: u64,
    /// How many bytes; to the end of the file, however long, without it.
    #[serde(default)]
    pub length: Option<u64>,
    /// For the holder alone; shared with readers otherwise.
    #[serde(default = "exclusive")]
    pub exclusive: bool,
}

/// A lock is exclusive unless the request says otherwise.
fn exclusive() -> bool {
    true
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ControlAnswer {
    /// It is done; there is nothing to say about it.
    Done {},
    /// The shares, services and mounts that are served.
    Status(ServerStatus),
    /// The open was granted.
    Held(HoldRow),
    /// Whether a hold is still open.
    Holding {
        /// False once it was closed by force.
        open: bool,
    },
    /// Who has what open.
    Handles {
        /// By share and identity.
        handles: Vec<HandleRow>,
        /// How many more there are.
        left_out: usize,
    },
    Closed {
        closed: u64,
    },
    /// A mark was taken away, or there was none.
    Undeleted {
        was_pending: bool,
    },
    /// Why a name cannot be opened.
    Why(FileExplanation),
    /// The state of an object.
    Object(ObjectState),
    History {
        /// Of an object and of all below it.
        changes: Vec<ChangeRow>,
    },
    Locks {
        /// By share, path and first byte.
        locks: Vec<LockRow>,
        /// How many more there are.
        left_out: usize,
    },
    /// Files that are delete pending.
    Pending {
        /// By share and path.
        pending: Vec<PendingRow>,
    },
    Leases {
        /// Of shares and files, then of containers and blobs.
        leases: Vec<LeaseRow>,
        /// How many more there are, or may be.
        left_out: usize,
    },
    /// Messages that no Get returns yet.
    Messages {
        /// Those that come back first, first.
        messages: Vec<MessageRow>,
        /// How many more there are.
        left_out: usize,
    },
    /// The lease of an object.
    ObjectLease(ObjectLease),
    /// How REST clients find the server.
    Connection(ConnectionInfo),
    Shares {
        shares: Vec<ShareEntry>,
    },
    Lease(FileLeaseRow),
    /// A lease was ended, or there was none.
    LeaseBroken {
        was_leased: bool,
        /// In how many seconds it ends.
        seconds: u64,
    },
    /// Snapshots of a share: all, or the one that was taken.
    Snapshots {
        #[serde(rename = "share")]
        share_name: String,
        /// Their stamps, oldest first.
        snapshots: Vec<String>,
    },
    /// The answer is being worked on: so much is done.
    Progress {
        files: u64,
        bytes: u64,
    },
    Events(EventPage),
    /// The next events of the stream of all services.
    Stream(EventPage),
    /// The result of a step.
    Clock(ClockState),
    Gates {
        gates: Vec<GateEntry>,
    },
    Faults {
        faults: Vec<FaultEntry>,
    },
    /// A gate or a fault is there.
    Added {
        id: u64,
    },
    /// Saved states: all, or the one that was saved.
    States {
        states: Vec<StateEntry>,
    },
    /// How many there were.
    Counted {
        count: usize,
    },
    Refused(RefusalDetail),
    /// The request was not carried out, and no rule refused it.
    Failed {
        /// Which kind of failure.
        #[serde(default)]
        kind: FailureKind,
        /// Why, and what to do.
        message: String,
    },
}

impl ControlAnswer {
    /// The answer to a request that makes no sense.
    pub(super) fn bad(message: String) -> Self {
        Self::Failed { kind: FailureKind::BadRequest, message }
    }
}
