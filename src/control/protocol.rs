//! Requests and answers as they travel: one JSON object a line, each with its version `v`.
//!
//! ```text
//! -> {"v":1,"do":"hold","path":"a.txt","access":"rw","share":"none"}
//! <- {"v":1,"answer":"held","handle":1099511627777,"path":"/a.txt","access":"rw","share":"none"}
//! ```
//!
//! An unknown field of a request is an error: a misspelled condition would otherwise be met by
//! doing nothing. A client passes over fields of an answer that it does not know.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::events::EventPage;
use super::refusal::RefusalKind;

/// The version spoken here.
pub const VERSION: u64 = 1;

/// What a client asks for. A request without `share_name` means the only share there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Is anybody there?
    Ping {},
    /// What is served, and where.
    Status {},
    /// Opens a file for as long as the connection lasts.
    Hold(Hold),
    /// Who has what open.
    Handles {
        /// In this share alone.
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
        share_name: Option<String>,
        /// Which one.
        handle: Option<u64>,
        /// All there are.
        #[serde(default)]
        all: bool,
    },
    /// Takes a delete-pending mark away.
    Undelete {
        /// In which share.
        share_name: Option<String>,
        /// From which name.
        path: String,
    },
    /// What stands in the way of a name.
    Why {
        /// In which share.
        share_name: Option<String>,
        /// Of which name.
        path: String,
    },
    /// The next events of the log, at most a page of them.
    Events {
        /// Of this share alone.
        share_name: Option<String>,
        /// On this path, and below it.
        path: Option<String>,
        /// Those after the event of this number.
        #[serde(default)]
        after: u64,
        /// For how long to wait for the first one, if there is none yet.
        #[serde(default)]
        wait_ms: u64,
    },
    /// From now on the asking process and all it starts open with this share mode, until
    /// `run-end` or the end of the connection.
    RunStart {
        /// What their opens tolerate.
        share: String,
        /// On this mount alone.
        mount: Option<PathBuf>,
    },
    /// Ends that.
    RunEnd {},
    /// Unmounts.
    Unmount {
        /// The mount point.
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
    /// Makes a share.
    CreateShare {
        /// What it is called.
        name: String,
        /// Its quota.
        quota_gib: Option<u32>,
    },
    /// Deletes a share.
    DeleteShare {
        /// Which one.
        name: String,
        /// And its snapshots, leased or not; without it, one that has any is refused.
        #[serde(default)]
        snapshots: bool,
    },
    /// The lease of a file, or of the share for its root.
    Lease {
        /// In which share.
        share_name: Option<String>,
        /// Of which file.
        path: String,
    },
    /// Ends that lease.
    BreakLease {
        /// In which share.
        share_name: Option<String>,
        /// Of which file.
        path: String,
        /// Within how many seconds, for a share's; a file's ends at once.
        period: Option<u32>,
    },
    /// Takes a snapshot of a share. Before the answer come others, of how far it is.
    CreateSnapshot {
        /// Of which share.
        share_name: Option<String>,
    },
    /// The snapshots of a share.
    ListSnapshots {
        /// Of which one.
        share_name: Option<String>,
    },
    /// Deletes a snapshot.
    DeleteSnapshot {
        /// Of which share.
        share_name: Option<String>,
        /// By its stamp.
        snapshot: String,
    },
    /// The connection plays a script from now on: its next requests are steps.
    Play {
        /// On which share.
        share_name: Option<String>,
        /// The script is a trace, which has its file made for it.
        #[serde(default)]
        trace: bool,
    },
    /// A step of the script, as `latchfs play` reads it.
    Step {
        /// What to do.
        step: Map<String, Value>,
    },
    /// Stops the server.
    Shutdown {},
}

/// An open to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// In which share.
    pub share_name: Option<String>,
    /// Which file.
    pub path: String,
    /// Letters r, w, d, or none.
    pub access: String,
    /// What it tolerates, likewise.
    pub share: String,
    /// open (the default), create, open-if, overwrite, overwrite-if, supersede.
    pub disposition: Option<String>,
    /// Marks the name for deletion when it closes.
    #[serde(default)]
    pub delete_on_close: bool,
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// It is done; there is nothing to say about it.
    Done {},
    /// What is served.
    Status(Status),
    /// The open was granted.
    Held(Held),
    /// Who has what open.
    Handles {
        /// By share and identity.
        handles: Vec<HandleRow>,
        /// How many more there are.
        left_out: usize,
    },
    /// Opens were ended.
    Closed {
        /// How many.
        closed: u64,
    },
    /// A mark was taken away, or there was none.
    Undeleted {
        /// There was one.
        was_pending: bool,
    },
    /// What stands in the way.
    Why(Why),
    /// How REST clients find the server.
    Connection(Connection),
    /// The shares.
    Shares {
        /// By name.
        shares: Vec<ShareEntry>,
    },
    /// A lease.
    Lease(Lease),
    /// A lease was ended, or there was none.
    LeaseBroken {
        /// There was one.
        was_leased: bool,
        /// In how many seconds it ends.
        seconds: u64,
    },
    /// Snapshots of a share: all, or the one that was taken.
    Snapshots {
        /// Of which share.
        share_name: String,
        /// Their stamps, oldest first.
        snapshots: Vec<String>,
    },
    /// The answer is being worked on: so much is done.
    Progress {
        /// Files copied.
        files: u64,
        /// Bytes passed.
        bytes: u64,
    },
    /// The next events.
    Events(EventPage),
    /// What a step gave.
    Step(StepAnswer),
    /// A rule refused.
    Refused(Refused),
    /// It could not be done.
    Failed {
        /// Why, and what to do.
        message: String,
    },
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Of the program.
    pub version: String,
    /// Of the server.
    pub pid: u32,
    /// The shares.
    pub shares: Vec<ShareRow>,
    /// The mounts.
    pub mounts: Vec<MountRow>,
    /// The URL of the File service, with the account.
    #[serde(default)]
    pub endpoint: Option<String>,
}

/// A share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRow {
    /// Its name.
    pub name: String,
    /// How many of its files have opens, locks or leases.
    pub files_in_use: usize,
}

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRow {
    /// Of which share.
    pub share: String,
    /// Where.
    pub path: PathBuf,
}

/// How clients of the REST listener find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The account's name.
    pub account: String,
    /// Its key.
    pub key: String,
    /// The URL of the File service, with the account.
    pub endpoint: String,
    /// All of it in one.
    pub connection_string: String,
}

/// A share with what it is as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareEntry {
    /// Its name.
    pub name: String,
    /// Its quota.
    pub quota_gib: u32,
    /// How many snapshots it has.
    pub snapshots: usize,
    /// The state of its lease, as REST names it.
    pub lease: String,
    /// Where it is mounted.
    pub mounts: Vec<PathBuf>,
    /// Its version, if it was deleted and can be restored.
    pub deleted: Option<String>,
}

/// The lease of a file or a share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// In which share.
    pub share_name: String,
    /// Of what: `/` is the share itself.
    pub path: String,
    /// As in `x-ms-lease-state`.
    pub state: String,
    /// As in `x-ms-lease-status`.
    pub status: String,
    /// As in `x-ms-lease-duration`, while it is leased.
    pub duration: Option<String>,
    /// The ID of a file's lease, also of one that was broken.
    pub id: Option<String>,
}

/// A granted open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its identity.
    pub handle: u64,
    /// In which share.
    pub share_name: String,
    /// The file, as spelled on disk.
    pub path: String,
    /// What it may do.
    pub access: String,
    /// What it tolerates.
    pub share: String,
}

/// An open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandleRow {
    /// Its identity.
    pub handle: u64,
    /// In which share.
    pub share_name: String,
    /// On what.
    pub path: String,
    /// What it may do.
    pub access: String,
    /// What it tolerates.
    pub share: String,
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

/// What stands in the way of a name.
#[derive(Default, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// In which share.
    pub share_name: String,
    /// As spelled on disk.
    pub path: String,
    /// It is marked for deletion.
    pub delete_pending: bool,
    /// It is leased through REST.
    pub leased: bool,
    /// It has the read-only attribute.
    pub read_only: bool,
    /// Its opens.
    pub opens: Vec<HandleRow>,
    /// Its byte-range locks, in words.
    pub locks: Vec<String>,
    /// How many opens there are below it.
    pub opens_below: usize,
    /// The newest refusals, oldest first: when, whom, and why.
    pub refusals: Vec<String>,
}

impl Why {
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

/// What a step of a script gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepAnswer {
    /// By its NTSTATUS name.
    pub status: String,
    /// What it gave back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<Value>,
    /// What the refusal says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A rule refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Which kind of rule.
    pub kind: RefusalKind,
    /// In words, naming the holder.
    pub message: String,
    /// The open in the way.
    pub holder: Option<HandleRow>,
}

/// Reads a request.
pub fn read_request(line: &[u8]) -> Result<Request, String> {
    let object = read_object(line)?;
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

/// Reads an answer.
pub fn read_answer(line: &[u8]) -> Result<Answer, String> {
    let object = read_object(line)?;
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

fn read_object(line: &[u8]) -> Result<Map<String, Value>, String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("not a JSON object: {error}"))?;
    match object.remove("v") {
        Some(version) if version.as_u64() == Some(VERSION) => Ok(object),
        Some(version) => Err(format!(
            "version {version} of the control protocol is not spoken here, only {VERSION}: use \
             the same latchfs for the server and the command"
        )),
        None => Err(format!("no version: a line carries \"v\":{VERSION}")),
    }
}

/// A request or an answer as a line.
pub fn write_line(message: &impl Serialize) -> Vec<u8> {
    let mut object = match serde_json::to_value(message) {
        Ok(Value::Object(object)) => object,
        other => unreachable!("a message is an object with text keys: {other:?}"),
    };
    object.insert("v".into(), VERSION.into());
    let mut line = Value::Object(object).to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_an_answer_survive_the_way() {
        let hold = Hold {
            path: "a\nb".into(),
            access: "rw".into(),
            share: "none".into(),
            ..Hold::default()
        };
        let request = Request::Hold(hold);
        let line = write_line(&request);
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        assert_eq!(read_request(&line).unwrap(), request);
        let answer = Answer::Closed { closed: 3 };
        assert_eq!(read_answer(&write_line(&answer)).unwrap(), answer);
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        for (line, part) in [
            (r#"{"do":"ping"}"#, "no version"),
            (r#"{"v":2,"do":"ping"}"#, "version 2"),
            (r#"{"v":1,"do":"pign"}"#, "unknown variant `pign`"),
            (r#"{"v":1,"do":"ping","x":1}"#, "unknown field `x`"),
            (r#"{"v":1,"do":"undelete"}"#, "missing field `path`"),
            (r#"{"v":1,"do":"hold","path":"a","access":"r","share":"","shared":1}"#, "`shared`"),
            ("[]", "not a JSON object"),
            ("", "not a JSON object"),
        ] {
            let why = read_request(line.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
