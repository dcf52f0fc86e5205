//! Identities of files, handles and clients, and points in time.
//!
//! A file is known by its identity, never by its path: hard links share one table entry, and a
//! renamed file keeps its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Identity of a file or directory within a share: inode number and birth time, since some file
/// systems hand a freed inode number out again at once.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
pub struct FileId {
    /// The inode number; REST shows it as `x-ms-file-id`.
    pub ino: u64,
    /// Birth time in nanoseconds since 1970, 0 where the file system keeps none.
    pub born: i64,
}

impl fmt::Display for FileId {
    /// The form in the names of files that are kept beside it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ino, self.born)
    }
}

impl FileId {
    /// Reads the form that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (ino, born) = text.split_once('-')?;
        Some(Self { ino: ino.parse().ok()?, born: born.parse().ok()? })
    }
}

/// Identity of an open. Never reused, not after a restart either.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
pub struct HandleId(pub u64);

impl fmt::Display for HandleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A moment: nanoseconds since 1970 UTC. The rules are given it, they never ask a clock.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The moment `span` later, at the end of time if there is none.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// The span from `earlier` to `self`, zero if it lies the other way.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A client: one mount, one control connection, one scripted connection. Shared by all its opens.
#[derive(PartialEq, Eq, Debug, Clone, Serialize)]
pub struct Client {
    /// Shown as `SessionId` in List Handles.
    pub session: u64,
    /// The name that the client gives itself: `mount /mnt/share`.
    pub name: String,
}

/// Who holds an open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The client it came through.
    pub client: Arc<Client>,
    /// Process id, 0 where there is none.
    pub pid: u32,
    /// Program name, where it was known at the open. A front end that knows only the pid leaves
    /// it out and looks it up when it reports.
    pub program: Option<Arc<str>>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.program, self.pid) {
            (Some(program), 0) => write!(f, "{program}")?,
            (Some(program), pid) => write!(f, "{program} (pid {pid})")?,
            (None, 0) => return f.write_str(&self.client.name),
            (None, pid) => write!(f, "pid {pid}")?,
        }
        write!(f, " through {}", self.client.name)
    }
}
