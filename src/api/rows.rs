//! The parts of answers: a server, shares, leases, opens, reasons of refusals.
//!
//! Decides the names that JSON has for them (docs/api.md). Which request is answered with what is
//! in [`crate::api::calls`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controls::ClockState;
use super::refusal::RefusalKind;
use crate::journal::json::EventRow;

/// The server and everything that it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    pub version: String,
    pub pid: u32,
    pub accounts: Vec<String>,
    pub shares: Vec<ShareRow>,
    pub mounts: Vec<MountRow>,
    /// The URL of the File service, with the account, if that service listens.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The URL of each service that listens, with the account.
    #[serde(default)]
    pub endpoints: BTreeMap<String, String>,
    /// The URL of the page and the HTTP API, if the server has them.
    #[serde(default)]
    pub admin: Option<String>,
    /// The token of that address, if it asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_token: Option<String>,
    /// Where the data is.
    #[serde(default)]
    pub data: String,
    /// For how long the server has run.
    #[serde(default)]
    pub uptime_seconds: u64,
    #[serde(default)]
    pub clock: ClockState,
    /// What the start screen notes: who can reach the services, why nothing is mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareRow {
    pub account: String,
    pub name: String,
    /// How many of its files have opens, locks or leases.
    pub files_in_use: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MountRow {
    pub account: String,
    pub share: String,
    pub path: PathBuf,
}

/// How clients of the REST listener find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionInfo {
    pub account: String,
    pub key: String,
    /// The URL of the File service, with the account, if that service listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The URL of each service that listens, with the account.
    #[serde(default)]
    pub endpoints: BTreeMap<String, String>,
    /// All of it in one.
    pub connection_string: String,
    /// The certificate that clients must trust, if it was made by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// A share with what it is as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareEntry {
    pub name: String,
    pub quota_gib: u32,
    /// How many snapshots it has.
    pub snapshots: usize,
    /// The state of its lease, as REST names it.
    pub lease: String,
    /// Where it is mounted.
    pub mounts: Vec<MountRow>,
    /// Its version, if it was deleted and can be restored.
    pub deleted: Option<String>,
}

/// The lease of a file or a share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLeaseRow {
    #[serde(rename = "share")]
    pub share_name: String,
    /// Of what: `/` is the share itself.
    pub path: String,
    /// The value of `x-ms-lease-state`.
    pub state: String,
    /// The value of `x-ms-lease-status`.
    pub status: String,
    /// The value of `x-ms-lease-duration`, while it is leased.
    pub duration: Option<String>,
    /// The ID of a file's lease, also of one that was broken.
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldRow {
    pub handle: u64,
    pub account: String,
    #[serde(rename = "share")]
    pub share_name: String,
    /// The file, as spelled on disk.
    pub path: String,
    pub access: String,
    pub share_mode: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandleRow {
    pub handle: u64,
    pub account: String,
    #[serde(rename = "share")]
    pub share_name: String,
    pub path: String,
    pub access: String,
    pub share_mode: String,
    /// The process; 0 where there is none.
    pub pid: u32,
    /// Its program; none if it has ended.
    pub program: Option<String>,
    /// The client it came through.
    pub client: String,
    /// Since when, in UTC.
    pub since: String,
    /// For how long, in seconds.
    pub seconds: u64,
    /// The name is marked for deletion when it closes.
    pub delete_on_close: bool,
    /// The name is marked.
    pub delete_pending: bool,
}

/// The opens, locks, leases and marks that refuse opens of a name.
#[derive(Default, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileExplanation {
    pub account: String,
    #[serde(rename = "share")]
    pub share_name: String,
    /// As spelled on disk.
    pub path: String,
    /// It is marked for deletion.
    pub delete_pending: bool,
    /// It is leased through REST.
    pub leased: bool,
    /// It has the read-only attribute.
    pub read_only: bool,
    pub opens: Vec<HandleRow>,
    /// Its byte-range locks, in words.
    pub locks: Vec<String>,
    /// How many opens there are below it.
    pub opens_below: usize,
    /// The newest refusals, oldest first.
    pub refusals: Vec<EventRow>,
}

impl FileExplanation {
    /// True if nothing stands in anybody's way.
    pub fn is_free(&self) -> bool {
        let Self { delete_pending, leased, read_only, opens, locks, opens_below, .. } = self;
        !delete_pending
            && !leased
            && !read_only
            && opens.is_empty()
            && locks.is_empty()
            && *opens_below == 0
    }
}

/// A refusal by a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalDetail {
    /// Which kind of rule.
    pub kind: RefusalKind,
    /// In words, naming the holder.
    pub message: String,
    /// The open in the way.
    pub holder: Option<HandleRow>,
}
