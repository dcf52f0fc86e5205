//! A file that is held open for a test: the second client, in the same process.
//!
//! The rules are decided by the engine. The hold ends when it is dropped.

use std::sync::Arc;

use crate::file::rules::create::{Disposition, OpenRequest};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::service::{FileError, FileServiceError, Handle, Share};
use crate::rules::{Client, Context, Owner};
use crate::server::Accounts;

/// The options of a hold: the file, and how it is opened.
#[derive(Clone, Debug)]
pub struct HoldOptions {
    /// The account; none for the first.
    pub account: Option<String>,
    /// The share.
    pub share: String,
    /// The file, from the root of the share.
    pub path: String,
    /// The access of the open.
    pub access: Access,
    /// The share mode of the open.
    pub share_mode: ShareMode,
    /// Whether the file is made, opened or emptied.
    pub disposition: Disposition,
    /// Whether the file is deleted when the hold ends.
    pub delete_on_close: bool,
}

impl HoldOptions {
    /// Holds an existing file for reading, sharing nothing.
    pub fn new(share: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            account: None,
            share: share.into(),
            path: path.into(),
            access: Access::R,
            share_mode: ShareMode::NONE,
            disposition: Disposition::Open,
            delete_on_close: false,
        }
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
    Path {
        /// The path.
        path: String,
        /// Why not.
        why: String,
    },
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
}

impl Hold {
    pub(super) fn open(accounts: &Accounts, options: &HoldOptions) -> Result<Self, HoldError> {
        let account = match &options.account {
            Some(name) => accounts.get(name).ok_or_else(|| HoldError::NoAccount(name.clone()))?,
            None => accounts.first(),
        };
        let share = account.file().share(&options.share)?;
        let mut request = OpenRequest::plain(options.access, options.share_mode);
        request.disposition = options.disposition;
        request.options.delete_on_close = options.delete_on_close;
        Self::open_as(share, &options.path, &request)
    }

    /// Opens a file or a directory of a share.
    pub(crate) fn open_as(
        share: Arc<Share>,
        path: &str,
        request: &OpenRequest,
    ) -> Result<Self, HoldError> {
        let path = SharePath::new(path)
            .map_err(|why| HoldError::Path { path: path.to_owned(), why: why.to_string() })?;
        let client = Arc::new(Client { session: 1 << 40, name: "this process".to_owned() });
        let owner = Owner { client, pid: std::process::id(), program: Some("a hold".into()) };
        let cx = Context::local(share.now(), owner, "hold");
        let handle = share.open(&cx, &path, request)?.handle;
        Ok(Self { share, handle })
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
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self.share.close(&self.handle) {
            // Closed by force: it has ended already.
            Ok(()) | Err(FileError::Denied(Denial::HandleClosed)) => {}
            Err(error) => log::error!("closing handle {}: {error}", self.handle.id()),
        }
    }
}
