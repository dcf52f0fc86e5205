//! Identities of containers and states, times, and their form in a row.
//! Which states a blob has, and when, is decided by the engine.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::DbError;
use crate::rules::Timestamp;

/// A container, whatever its name. Never used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContainerId(pub i64);

/// A row with a state of a blob. Never used again; replacing the state's content keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StateId(pub i64);

/// A content file. Never used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct ContentId(pub(super) u64);

impl ContentId {
    /// No file: what pages that were cleared have.
    pub(super) const NONE: Self = Self(0);
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Which state of a name. Their order is that of listings: snapshots, oldest first, then versions,
/// oldest first, then the blob itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StateKey {
    /// A snapshot, by its time.
    Snapshot(Timestamp),
    /// An older version, by its time.
    Version(Timestamp),
    /// A blob that was deleted and is kept for a while.
    Deleted(Timestamp),
    Current,
    /// A name that has only uncommitted blocks.
    Uncommitted,
}

/// The kinds of [`StateKey`] that a name can have several of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateKind {
    Snapshot,
    Version,
    /// Deleted blobs that are kept.
    Deleted,
}

impl StateKind {
    pub(super) fn rank(self) -> i64 {
        match self {
            Self::Snapshot => 0,
            Self::Version => 1,
            Self::Deleted => 2,
        }
    }
}

impl StateKey {
    /// The key as the two columns that sort as the keys do.
    pub(super) fn columns(self) -> (i64, i64) {
        match self {
            Self::Snapshot(time) => (0, time.0),
            Self::Version(time) => (1, time.0),
            Self::Deleted(time) => (2, time.0),
            Self::Current => (3, 0),
            Self::Uncommitted => (4, 0),
        }
    }

    pub(super) fn from_columns(rank: i64, time: i64) -> Result<Self, DbError> {
        let time = Timestamp(time);
        Ok(match rank {
            0 => Self::Snapshot(time),
            1 => Self::Version(time),
            2 => Self::Deleted(time),
            3 => Self::Current,
            4 => Self::Uncommitted,
            other => return Err(DbError::damaged(format!("a blob has the rank {other}"))),
        })
    }
}

/// A deleted blob, snapshot, version or container is kept for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retained {
    /// When it was deleted.
    pub deleted: Timestamp,
    /// When it goes away.
    pub until: Timestamp,
}

impl Retained {
    pub(super) fn columns(retained: Option<Self>) -> (Option<i64>, Option<i64>) {
        (retained.map(|it| it.deleted.0), retained.map(|it| it.until.0))
    }

    pub(super) fn from_columns(deleted: Option<i64>, until: Option<i64>) -> Option<Self> {
        Some(Self { deleted: Timestamp(deleted?), until: Timestamp(until?) })
    }
}

/// A state of a blob. `R` is the caller's record of its properties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateRow<R> {
    /// Names the row in other calls.
    pub id: StateId,
    pub name: String,
    pub key: StateKey,
    /// Length of the content.
    pub length: u64,
    pub record: R,
    /// Set if the state is deleted and kept.
    pub retained: Option<Retained>,
}

/// A container. `C` is the caller's record of its properties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerRow<C> {
    /// Names the container in other calls.
    pub id: ContainerId,
    pub name: String,
    pub record: C,
    /// The version, and how long it is kept, if the container is deleted.
    pub retained: Option<(String, Retained)>,
}

/// The one place that decides how records look in the database.
pub(super) fn encode(record: &impl Serialize) -> Result<Vec<u8>, DbError> {
    serde_json::to_vec(record)
        .map_err(|error| DbError::Io(format!("a record cannot be written: {error}")))
}

pub(super) fn decode<R: DeserializeOwned>(bytes: &[u8]) -> Result<R, DbError> {
    serde_json::from_slice(bytes)
        .map_err(|error| DbError::damaged(format!("a record cannot be read: {error}")))
}

/// SQLite has signed integers only. Lengths, offsets and counters stay far below the limit.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> Result<u64, DbError> {
    u64::try_from(number).map_err(|_| DbError::damaged(format!("{number} where a size belongs")))
}

pub(super) fn text(bytes: Vec<u8>) -> Result<String, DbError> {
    String::from_utf8(bytes).map_err(|_| DbError::damaged("a name is not UTF-8"))
}
