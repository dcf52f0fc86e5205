//! Files: who has which open, what stands in the way of an open, and what mends it.
//!
//! Decides how opens and refusals are told to people, with the names of programs. The File service
//! decides what is refused.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::leases::file_of;
use super::log::events_of;
use super::objects::{OBJECT_FORM, ObjectState};
use super::serving::ServedAccount;
use super::session::Session;
use crate::file::rules::SharePath;
use crate::file::rules::ranges::{LockKind, RangeLock};
use crate::file::service::{FileKind, ListedHandle, Obstacle, Share};
use crate::journal::json::EventRow;
use crate::journal::programs::Programs;
use crate::journal::row::{Event, FileEvent, Happening};
use crate::rules::lease::FileLease;
use crate::rules::time::iso;
use crate::rules::{HandleId, Owner, Timestamp};

/// The most opens in one answer; how many more there are is said.
pub const HANDLES_MAX: usize = 10_000;

/// The most refusals that `why` tells of.
const REFUSALS_MAX: usize = 5;

/// The open of a file.
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
    #[serde(flatten)]
    pub hold: HoldRow,
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

/// Asks who has which file open.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetHandles {
    /// The share; the only one without it
    pub share: Option<String>,
    /// A path in the share
    pub path: Option<String>,
    /// Also handles below the path
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandleList {
    /// By share and identity.
    pub handles: Vec<HandleRow>,
    /// How many more there are.
    pub left_out: usize,
}

/// Closes a handle by force.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CloseHandle {
    pub handle: u64,
    /// The share; the only one without it
    pub share: Option<String>,
}

/// Closes the handle of that number by force, or all, and tells how many there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CloseHandles {
    /// In this share alone
    pub share: Option<String>,
    /// The handle; all without it
    pub handle: Option<u64>,
}

/// How many handles were closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    pub closed: u64,
}

/// Asks what stands in the way of an object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetWhy {
    /// Its address.
    #[schemars(description = OBJECT_FORM)]
    pub object: String,
}

/// What stands in the way of a file, or of another object; as `latchfs why --json` prints it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Explanation {
    File(FileExplanation),
    Object(ObjectState),
}

/// Takes the delete-pending mark from a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "share": "docs", "path": "a.txt" }]))]
pub struct Undelete {
    pub share: Option<String>,
    pub path: String,
}

/// A mark was taken away, or there was none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Undeleted {
    pub was_pending: bool,
}

impl Session {
    pub fn handles(&self, of: GetHandles) -> Result<HandleList, ApiFailure> {
        // Without a path: all open files.
        let recursive = of.recursive || of.path.is_none();
        let (name, path) = self.place(of.share.as_deref(), of.path.as_deref())?;
        let below = path.clone().unwrap_or_else(SharePath::root);
        let mut handles: Vec<HandleRow> = Vec::new();
        let mut left_out = 0;
        let ask = |share: &Share| share.all_handles(&below, recursive);
        for (share, opens) in self.ask_shares(name.as_deref(), path.as_ref(), ask)? {
            let room = HANDLES_MAX - handles.len();
            left_out += opens.len().saturating_sub(room);
            let opens = opens.iter().take(room);
            handles.extend(handle_rows(self.account.name(), share.name(), opens, share.now()));
        }
        Ok(HandleList { handles, left_out })
    }

    pub fn close_handle(&self, of: CloseHandle) -> Result<Closed, ApiFailure> {
        let CloseHandle { handle, share } = of;
        match self.close_handles(CloseHandles { share, handle: Some(handle) })? {
            Closed { closed: 0 } => {
                Err(ApiFailure::not_found(format!("handle {handle} is not open")))
            }
            closed => Ok(closed),
        }
    }

    pub fn close_handles(&self, of: CloseHandles) -> Result<Closed, ApiFailure> {
        let CloseHandles { share, handle } = of;
        let mut found: Vec<(Arc<Share>, HandleId)> = Vec::new();
        let ask = |share: &Share| share.all_handles(&SharePath::root(), true);
        for (share, opens) in self.ask_shares(share.as_deref(), None, ask)? {
            let wanted = opens.iter().filter(|open| handle.is_none_or(|id| open.id.0 == id));
            found.extend(wanted.map(|open| (Arc::clone(&share), open.id)));
        }
        if let Some(id) = handle
            && found.len() > 1
        {
            Err(format!("handle {id} is in several shares: add --share-name"))?;
        }
        let (mut closed, mut failed) = (0, None);
        for (share, id) in found {
            match share.force_close(&self.context("close-handle"), id) {
                // None, if its holder closed it meanwhile, or it ended with another.
                Ok(ended) => closed += ended,
                // The others are closed all the same.
                Err(error) => failed = failed.or(Some(format!("handle {id}: {error}"))),
            }
        }
        failed.map_or(Ok(Closed { closed }), |failed| Err(ApiFailure::failed(failed)))
    }

    pub fn why(&self, GetWhy { object }: GetWhy) -> Result<Explanation, ApiFailure> {
        let Some((share, path)) = file_of(&object) else {
            return Ok(Explanation::Object(self.why_object(&object)?));
        };
        let (share, path) = self.target(share.as_deref(), &path)?;
        let told = explain(&*self.account, &share, &path);
        Ok(Explanation::File(told.map_err(|error| self.refused(&share, &path, error))?))
    }

    pub fn undelete(&self, of: Undelete) -> Result<Undeleted, ApiFailure> {
        let (share, path) = self.target(of.share.as_deref(), &of.path)?;
        let undone = share.undelete(&self.context("undelete"), &path);
        let was_pending = undone.map_err(|error| self.refused(&share, &path, error))?;
        Ok(Undeleted { was_pending })
    }
}

/// Opens as rows. Each process is looked up once, however many opens it has.
pub(super) fn handle_rows<'a>(
    account: &str,
    share_name: &str,
    opens: impl IntoIterator<Item = &'a ListedHandle>,
    now: Timestamp,
) -> Vec<HandleRow> {
    let mut programs = Programs::default();
    let row =
        |open: &ListedHandle| row(account, share_name, open, &programs.resolve(&open.owner), now);
    opens.into_iter().map(row).collect()
}

fn row(
    account: &str,
    share_name: &str,
    open: &ListedHandle,
    owner: &Owner,
    now: Timestamp,
) -> HandleRow {
    let hold = HoldRow {
        handle: open.id.0,
        account: account.to_owned(),
        share_name: share_name.to_owned(),
        path: open.path.to_string(),
        access: open.access.to_string(),
        share_mode: open.share.to_string(),
    };
    HandleRow {
        hold,
        pid: owner.pid,
        program: owner.program.as_deref().map(str::to_owned),
        client: owner.client.name.clone(),
        since: iso(open.since),
        seconds: now.since(open.since).as_secs(),
        delete_on_close: open.delete_on_close,
        delete_pending: open.delete_pending,
    }
}

/// Reports why a name cannot be opened.
fn explain(
    account: &dyn ServedAccount,
    share: &Share,
    path: &SharePath,
) -> crate::file::service::Result<FileExplanation> {
    let found = share.lookup(path)?;
    let mut why = FileExplanation {
        account: account.name().to_string(),
        share_name: share.name().to_string(),
        path: found.path.to_string(),
        refusals: refusals(account, share, &found.path),
        ..FileExplanation::default()
    };
    let mut opens = Vec::new();
    for standing in share.why(&found.path)? {
        match standing {
            Obstacle::DeletePending(name) => why.delete_pending |= name == found.path,
            Obstacle::Lease(lease) => why.leased |= matches!(lease, FileLease::Leased(_)),
            // It ends by itself; what it keeps out is told in the refusals.
            Obstacle::Copy(_) => {}
            Obstacle::ReadOnly => why.read_only = true,
            Obstacle::Open(open) => opens.push(open),
            Obstacle::Lock(lock) => why.locks.push(locked(&lock)),
        }
    }
    why.opens = handle_rows(account.name(), share.name(), &opens, share.now());
    if found.stat.kind == FileKind::Directory {
        let all = share.all_handles(&found.path, true)?.len();
        // Saturating: opens come and go between the two looks.
        why.opens_below = all.saturating_sub(why.opens.len());
    }
    Ok(why)
}

fn locked(lock: &RangeLock) -> String {
    let kind = match lock.kind {
        LockKind::Shared => "shared",
        LockKind::Exclusive => "exclusive",
    };
    format!("{} ({kind}), through handle {}", lock.range, lock.handle)
}

/// The newest refusals on a path, oldest first.
fn refusals(account: &dyn ServedAccount, share: &Share, path: &SharePath) -> Vec<EventRow> {
    let is_refused = |event: &FileEvent| {
        matches!(event.what, Happening::Refused { .. })
            && event.share == *share.name()
            && event.path.eq_ignore_ascii_case(&path.to_string())
    };
    let rows = account.journal();
    let mut newest = rows.journal().latest(REFUSALS_MAX, |row| match &*row.event {
        Event::File(event) if row.account.as_ref() == Some(rows.account()) => {
            is_refused(event).then(|| row.clone())
        }
        _ => None,
    });
    newest.reverse();
    events_of(&newest)
}
