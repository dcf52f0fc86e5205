//! A file that is held open for a client: how it is asked for, opened and closed.
//!
//! Decides how an open is written as JSON, and that byte ranges are locked all or none: a hold
//! whose locks are refused is closed again. What is granted is decided by the File service. How
//! long a hold of the API lasts is decided in [`super::holds`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::file::rules::create::{Disposition, OpenRequest};
use crate::file::rules::ranges::{ByteRange, LockKind};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::{FileError, FileServiceError, Handle, Share};
use crate::rules::{Client, Context, Owner};

/// The most byte ranges that one hold locks.
pub const LOCKS_MAX: usize = 1024;

/// A hold as it is asked for: the file, and how it is opened.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [
    { "path": "a.txt" },
    {
        "path": "b.txt", "share": "docs", "access": "rw", "share_mode": "r",
        "disposition": "open-if", "delete_on_close": false, "for_ms": 30000,
        "locks": [{ "start": 0, "length": 10 }]
    },
]))]
pub struct HoldOptions {
    /// The account; none for the first. A call has it in its query.
    #[serde(skip)]
    pub account: Option<String>,
    /// The share; the only one without it.
    #[serde(default)]
    pub share: Option<String>,
    /// The file, from the root of the share.
    pub path: String,
    /// Letters r, w, d, or none
    #[serde(default = "read", serialize_with = "as_text", deserialize_with = "access")]
    #[schemars(with = "String", extend("default" = "r"))]
    pub access: Access,
    /// Letters r, w, d, or none
    #[serde(default = "share_none", serialize_with = "as_text", deserialize_with = "share_mode")]
    #[schemars(with = "String", extend("default" = "none"))]
    pub share_mode: ShareMode,
    /// Whether the file is made, opened or emptied.
    #[serde(default = "open", with = "disposition")]
    #[schemars(with = "String", extend("default" = "open", "enum" = disposition::NAMES))]
    pub disposition: Disposition,
    /// Whether the file is deleted when the hold ends.
    #[serde(default)]
    pub delete_on_close: bool,
    /// Byte ranges to lock, all or none.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub locks: Vec<LockWanted>,
    /// When a hold of the API ends by itself.
    #[serde(default)]
    #[schemars(range(max = 3_600_000), extend("default" = 60_000))]
    pub for_ms: Option<u64>,
    /// The answer goes on until the hold ends; the hold ends with the connection
    #[serde(default)]
    pub while_connected: bool,
}

/// A byte range to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

fn read() -> Access {
    Access::R
}

fn share_none() -> ShareMode {
    ShareMode::NONE
}

fn open() -> Disposition {
    Disposition::Open
}

fn as_text<S: serde::Serializer>(
    value: &impl std::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn access<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Access, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map_or(Ok(read()), |text| read_access(&text)).map_err(D::Error::custom)
}

fn share_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ShareMode, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map_or(Ok(share_none()), |text| read_share_mode(&text)).map_err(D::Error::custom)
}

/// The access that the letters mean.
pub fn read_access(text: &str) -> Result<Access, String> {
    Access::parse(text).ok_or_else(|| format!("access '{text}': expected letters r, w, d, or none"))
}

/// The share mode that the letters mean.
pub fn read_share_mode(text: &str) -> Result<ShareMode, String> {
    ShareMode::parse(text)
        .ok_or_else(|| format!("share mode '{text}': expected letters r, w, d, or none"))
}

pub mod disposition {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::file::rules::create::Disposition;

    pub const NAMES: [&str; 6] =
        ["open", "create", "open-if", "overwrite", "overwrite-if", "supersede"];
    const ALL: [Disposition; 6] = [
        Disposition::Open,
        Disposition::Create,
        Disposition::OpenIf,
        Disposition::Overwrite,
        Disposition::OverwriteIf,
        Disposition::Supersede,
    ];

    /// The disposition of that name.
    pub fn read(name: &str) -> Result<Disposition, String> {
        let found = NAMES.iter().position(|known| *known == name).map(|at| ALL[at]);
        found.ok_or_else(|| {
            format!(
                "disposition '{name}': expected open, create, open-if, overwrite, overwrite-if or \
                 supersede"
            )
        })
    }

    pub fn serialize<S: Serializer>(one: &Disposition, serializer: S) -> Result<S::Ok, S::Error> {
        let at = ALL.iter().position(|other| other == one).unwrap_or_default();
        serializer.serialize_str(NAMES[at])
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Disposition, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        name.map_or(Ok(Disposition::Open), |name| read(&name)).map_err(D::Error::custom)
    }
}

impl HoldOptions {
    /// Holds an existing file for reading, sharing nothing.
    pub fn new(share: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            account: None,
            share: Some(share.into()),
            path: path.into(),
            access: read(),
            share_mode: share_none(),
            disposition: open(),
            delete_on_close: false,
            locks: Vec::new(),
            for_ms: None,
            while_connected: false,
        }
    }

    pub(crate) fn open_request(&self) -> OpenRequest {
        let mut request = OpenRequest::plain(self.access, self.share_mode);
        request.disposition = self.disposition;
        request.options.delete_on_close = self.delete_on_close;
        request
    }

    /// The byte ranges to lock.
    pub(crate) fn ranges(&self) -> Result<Vec<(ByteRange, LockKind)>, HoldError> {
        if self.locks.len() > LOCKS_MAX {
            let why = format!("a hold locks at most {LOCKS_MAX} byte ranges");
            return Err(HoldError::Options(why));
        }
        let range = |one: &LockWanted| {
            let kind = if one.exclusive { LockKind::Exclusive } else { LockKind::Shared };
            let range = match one.length {
                Some(length) => ByteRange::new(one.start, length),
                None => ByteRange::from_posix(one.start, u64::MAX),
            };
            range.map(|range| (range, kind)).map_err(|error| HoldError::Options(error.to_string()))
        };
        self.locks.iter().map(range).collect()
    }
}

/// Why a file cannot be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The account is not served.
    #[error("no account '{0}' is served here")]
    NoAccount(String),
    /// The path cannot be one of a share.
    #[error("{path}: {why}")]
    Path { path: String, why: String },
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The share cannot be used.
    #[error(transparent)]
    Share(#[from] FileServiceError),
    /// A rule refused, or the disk.
    #[error(transparent)]
    Open(#[from] FileError),
}

/// A file that is held open. Closed when dropped.
#[derive(Debug)]
pub struct Hold {
    share: Arc<Share>,
    handle: Handle,
    path: SharePath,
}

impl Hold {
    /// Opens a file or a directory of a share for this process.
    pub(crate) fn open_as(
        share: Arc<Share>,
        path: &str,
        request: &OpenRequest,
        locks: &[(ByteRange, LockKind)],
    ) -> Result<Self, HoldError> {
        let path = SharePath::new(path)
            .map_err(|why| HoldError::Path { path: path.to_owned(), why: why.to_string() })?;
        let client = Client { session: 1 << 40, name: "this process".to_owned() };
        let (pid, program) = (std::process::id(), Some("a hold".into()));
        let owner = Owner { client: Arc::new(client), pid, program };
        Self::open_for(owner, share, &path, request, locks)
    }

    /// Opens a file of a share for that client.
    pub(crate) fn open(
        owner: Owner,
        share: Arc<Share>,
        path: &SharePath,
        options: &HoldOptions,
    ) -> Result<Self, HoldError> {
        Self::open_for(owner, share, path, &options.open_request(), &options.ranges()?)
    }

    fn open_for(
        owner: Owner,
        share: Arc<Share>,
        path: &SharePath,
        request: &OpenRequest,
        locks: &[(ByteRange, LockKind)],
    ) -> Result<Self, HoldError> {
        let cx = Context::local(share.now(), owner, "hold");
        let opened = share.open_waiting(&cx, path, request)?;
        // Closes the open if a lock is refused.
        let held = Self { share, handle: opened.handle, path: opened.path };
        if !locks.is_empty() {
            held.share.lock(&held.handle, locks)?;
        }
        Ok(held)
    }

    /// Reads up to `length` bytes at `offset`; fewer, or none, at the end of the file.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, HoldError> {
        match self.share.read(&self.handle, offset, length) {
            Err(FileError::Denied(Denial::EndOfFile)) => Ok(Vec::new()),
            read => Ok(read?),
        }
    }

    /// Writes these bytes, 4 MiB at most, at `offset`.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), HoldError> {
        Ok(self.share.write(&self.handle, offset, bytes)?)
    }

    /// The number of the handle, as `latchfs handles` shows it.
    pub fn id(&self) -> u64 {
        self.handle.id().0
    }

    /// Whether the hold was closed by force.
    pub fn was_closed(&self) -> bool {
        self.share.path_of(&self.handle).is_err()
    }

    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// The file, as spelled on disk.
    pub(crate) fn path(&self) -> &SharePath {
        &self.path
    }

    /// Closes the file; false if it was closed by force before.
    pub(crate) fn close(&self) -> Result<bool, FileError> {
        match self.share.close(&self.handle) {
            Ok(()) => Ok(true),
            Err(FileError::Denied(Denial::HandleClosed)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            log::error!("closing handle {}: {error}", self.handle.id());
        }
    }
}
