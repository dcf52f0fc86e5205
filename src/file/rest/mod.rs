//! The operations of the File service: one file a resource.
//!
//! ```text
//!   operations   the table: shape, permissions and function of each operation
//!   service      list shares
//!   share         a share as a whole, its access policies and permissions
//!   leases       leases of shares, snapshots and files
//!   directory    create, delete, properties and metadata of directories
//!   list         the entries of a directory
//!   file          create, delete, properties and metadata of files; renames
//!   content      reading and writing ranges
//!   download     the bytes of a long answer
//!   ranges       which ranges hold data, and what changed since a snapshot
//!   links        symbolic and hard links
//!   copy         Copy File and Abort Copy File
//!   from_url     Put Range From URL, and copies from other servers
//!   source       the file that a request names as its source
//!   handles      listing handles, and closing them by force
//!   headers      property headers, read and written; rest_path: the path of a request
//!   footprint    what a request reads and writes, for explorations
//!   error        status and code of each refusal
//!   coverage     what no code knows of the table of operations
//! ```
//!
//! Each operation reads its headers, calls the engine once, and spells the answer.

mod content;
mod copy;
#[cfg(test)]
mod coverage;
mod directory;
pub mod download;
pub mod error;
#[allow(clippy::module_inception, reason = "the File service has files")]
mod file;
mod footprint;
mod from_url;
mod handles;
pub mod headers;
mod leases;
mod links;
mod list;
pub mod operations;
mod ranges;
mod rest_path;
mod service;
mod share;
mod source;

#[cfg(test)]
pub(crate) use coverage::coverage;

use std::ops::Deref;
use std::sync::Arc;

use self::rest_path::rest_path;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::shares::{ShareRef, SnapshotName};
use crate::file::service::{Asking, FileError, FileService, Share};
use crate::http::auth::{AuthError, GrantedBy, Permission};
use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::request::Query;
use crate::rules::Context;

/// A request to the File service that was authorised.
pub struct FileCall<'a>(pub &'a Call<'a>);

impl<'a> Deref for FileCall<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

impl<'a> FileCall<'a> {
    fn engine(&self) -> Result<&'a FileService, Refusal> {
        self.0.service::<Arc<FileService>>().map(|files| &**files)
    }

    fn cx(&self) -> &'a Context {
        self.0.context
    }

    /// The share or snapshot that the request names, with its lease ID.
    fn share_ref(&self, snapshot: Option<&'a SnapshotName>) -> Result<ShareRef<'a>, Refusal> {
        let lease_id = self.0.request.lease_id("x-ms-lease-id")?;
        Ok(ShareRef { name: self.share()?, snapshot, lease_id })
    }

    /// The share, for something that changes it.
    fn share_to_change(&self) -> Result<Arc<Share>, Refusal> {
        let snapshot = self.snapshot()?;
        let at = ShareRef { name: self.share()?, snapshot: snapshot.as_ref(), lease_id: None };
        Ok(self.engine()?.share_to_change(&at)?)
    }

    /// The share as it is now.
    fn live_share(&self) -> Result<Arc<Share>, Refusal> {
        Ok(self.engine()?.share(self.share()?)?)
    }

    /// The share, which the path must name.
    fn share(&self) -> Result<&'a str, Refusal> {
        let missing = || Refusal::bad("InvalidUri", "The path does not name a share.");
        self.0.request.address.container.as_deref().ok_or_else(missing)
    }

    /// The path within the share.
    fn path(&self) -> Result<SharePath, Refusal> {
        Ok(rest_path(&self.address.rest, self.flag("x-ms-allow-trailing-dot")?)?)
    }

    /// The snapshot that the query names.
    fn snapshot(&self) -> Result<Option<SnapshotName>, Refusal> {
        snapshot_of(&self.query)
    }

    /// True for a SAS that permits to create and not to write: it never overwrites.
    fn may_only_create(&self) -> bool {
        !self.grant.permits(Permission::Write)
    }

    /// The refusal of a file that exists, to a caller that may only create one.
    fn overwriting(&self, error: FileError) -> Refusal {
        match (error, &self.grant.by) {
            (FileError::Denied(Denial::NameTaken), GrantedBy::Sas { permissions, .. })
                if self.may_only_create() =>
            {
                let (granted, needed) = (permissions.letters(), vec![Permission::Write]);
                AuthError::PermissionMismatch { granted, needed }.into()
            }
            (error, _) => error.into(),
        }
    }

    /// Who asks, with the lease ID of a file.
    fn asking(&self) -> Result<Asking<'a>, Refusal> {
        Ok(Asking { cx: self.cx(), lease_id: self.0.request.lease_id("x-ms-lease-id")? })
    }
}

/// The snapshot that a query names.
fn snapshot_of(query: &Query) -> Result<Option<SnapshotName>, Refusal> {
    stamp_of(query, "sharesnapshot")
}

/// The snapshot that a parameter of a query names.
pub(crate) fn stamp_of(query: &Query, parameter: &str) -> Result<Option<SnapshotName>, Refusal> {
    let Some(text) = query.get(parameter) else { return Ok(None) };
    let name = SnapshotName::parse(text);
    name.map(Some)
        .ok_or_else(|| Refusal::query(parameter, text, "it is not the time of a snapshot"))
}
