//! Lists what is held now: byte-range locks, delete-pending files, hidden messages; leases
//! are in [`super::leases`].
//!
//! Decides their names in JSON, and how many are listed. The engine reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::ObjectAddress;
use super::failure::ApiFailure;
use super::files::{HANDLES_MAX, HandleRow, handle_rows};
use super::objects::ChangeRow;
use super::routes::GetPending;
use super::session::Session;
use crate::file::rules::ranges::{ByteRange, LockKind};
use crate::file::service::{HeldLock, PendingName, Share};
use crate::journal::programs::Programs;
use crate::rules::time::iso;

/// The most leases, and the most messages, in one answer; how many more there are is said.
pub const HELD_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockRow {
    pub account: String,
    #[serde(rename = "share")]
    pub share_name: String,
    pub path: String,
    pub start: u64,
    /// How many bytes; to the end of the file, however long, if there is no number.
    pub length: Option<u64>,
    /// For the holder alone; shared with readers otherwise.
    pub exclusive: bool,
    /// The holder in words.
    pub owner: String,
    /// The process; 0 where there is none.
    pub pid: u32,
    /// Its program; none if it has ended.
    pub program: Option<String>,
    /// The client it came through.
    pub client: String,
    /// The open that the lock was taken through.
    pub handle: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingRow {
    pub account: String,
    #[serde(rename = "share")]
    pub share_name: String,
    pub path: String,
    /// The opens that keep it.
    pub handles: Vec<HandleRow>,
}

/// A message that no Get returns yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageRow {
    pub account: String,
    pub object: String,
    /// When it is visible again, in UTC.
    pub visible: String,
    /// In how many seconds.
    pub seconds_left: u64,
    /// How often it was got.
    pub dequeue_count: u64,
    /// The request that got or updated it last; none if it was put with a delay.
    pub holder: Option<ChangeRow>,
}

/// Asks for byte-range locks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetLocks {
    /// The share; the only one without it
    pub share: Option<String>,
    /// A path in the share
    pub path: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LockList {
    /// By share, path and first byte.
    pub locks: Vec<LockRow>,
    /// How many more there are.
    pub left_out: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PendingList {
    /// By share and path.
    pub pending: Vec<PendingRow>,
}

/// Asks for messages that no Get returns yet.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetMessages {
    /// Of this queue alone
    pub queue: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageList {
    /// Those that come back first, first.
    pub messages: Vec<MessageRow>,
    /// How many more there are.
    pub left_out: usize,
}

impl Session {
    /// Byte-range locks, of one file or share or of all.
    pub fn locks(&self, of: GetLocks) -> Result<LockList, ApiFailure> {
        let (name, path) = self.place(of.share.as_deref(), of.path.as_deref())?;
        let mut programs = Programs::default();
        let (mut locks, mut left_out) = (Vec::new(), 0);
        let ask = |share: &Share| share.held_locks(path.as_ref());
        for (share, held) in self.ask_shares(name.as_deref(), path.as_ref(), ask)? {
            let room = HANDLES_MAX - locks.len();
            left_out += held.len().saturating_sub(room);
            let rows = held.into_iter().take(room);
            locks.extend(rows.map(|held| self.lock_row(share.name(), &mut programs, &held)));
        }
        Ok(LockList { locks, left_out })
    }

    fn lock_row(&self, share: &str, programs: &mut Programs, held: &HeldLock) -> LockRow {
        let owner = programs.resolve(&held.owner);
        LockRow {
            account: self.account.name().to_string(),
            share_name: share.to_owned(),
            path: held.path.to_string(),
            start: held.lock.range.start(),
            length: length(held.lock.range),
            exclusive: held.lock.kind == LockKind::Exclusive,
            owner: owner.to_string(),
            pid: owner.pid,
            program: owner.program.as_deref().map(str::to_owned),
            client: owner.client.name.clone(),
            handle: held.lock.handle.0,
        }
    }

    /// Files that are delete pending.
    pub fn pending(&self, _: GetPending) -> Result<PendingList, ApiFailure> {
        let mut pending = Vec::new();
        for (share, names) in self.ask_shares(None, None, Share::pending_names)? {
            pending.extend(names.into_iter().map(|PendingName { path, handles }| PendingRow {
                account: self.account.name().to_string(),
                share_name: share.name().to_string(),
                path: path.to_string(),
                handles: handle_rows(self.account.name(), share.name(), &handles, share.now()),
            }));
        }
        Ok(PendingList { pending })
    }

    /// Messages that no Get returns yet, of one queue or of all.
    pub fn messages(&self, of: GetMessages) -> Result<MessageList, ApiFailure> {
        let Some(service) = self.account.used_queue()? else {
            return Ok(MessageList { messages: Vec::new(), left_out: 0 });
        };
        let (found, left_out, now) = service.hidden(self.now(), of.queue.as_deref(), HELD_MAX)?;
        let messages = found.into_iter().map(|(queue, message)| {
            let address = ObjectAddress::Message { queue, id: message.id.to_string() };
            let visible = message.visible_at.timestamp();
            MessageRow {
                account: self.account.name().to_string(),
                object: address.to_string(),
                visible: iso(visible),
                seconds_left: visible.since(now.timestamp()).as_secs(),
                dequeue_count: message.dequeue_count.into(),
                holder: message.holder.as_ref().map(|by| self.row(&address, by, None)),
            }
        });
        Ok(MessageList { messages: messages.collect(), left_out })
    }
}

/// How many bytes a range has; none for one that has no end.
fn length(range: ByteRange) -> Option<u64> {
    match range.last() {
        None => Some(0),
        Some(u64::MAX) => None,
        Some(last) => Some(last - range.start() + 1),
    }
}
