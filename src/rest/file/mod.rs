//! The operations of the File service: one file a resource.
//!
//! ```text
//!   service      list shares; service properties, preflight
//!   share        create, delete, properties; policies, permissions, leases: the rest of it
//!   directory    create, delete, properties; list: what is in one
//!   file         create, delete, properties, leases; content: reading and writing ranges;
//!                ranges: which there are
//!   rename, copy, handles; from_url: ranges and copies from other servers too
//! ```
//!
//! Each operation reads its headers, calls the engine once, and spells the answer.

mod content;
mod copy;
mod directory;
#[allow(clippy::module_inception, reason = "the File service has files")]
mod file;
mod from_url;
mod handles;
mod leases;
mod list;
mod permissions;
mod policies;
mod preflight;
mod ranges;
mod rename;
mod service;
mod share;

use std::sync::Arc;

pub use content::RANGE_MD5;
pub use service::Service;

use super::handle::Site;
use super::refusal::Refusal;
use super::reply::Reply;
use super::request::Request;
use super::route::Operation;
use super::source::Source;
use crate::core::Owner;
use crate::engine::account::{ShareRef, SnapshotName};
use crate::engine::{Asking, Engine, Share};

type Answer = Result<Reply, Refusal>;

/// A request that was let through.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub site: &'a Arc<Site>,
    pub request: &'a Request,
    pub who: &'a Owner,
}

impl<'a> Call<'a> {
    fn engine(&self) -> &'a Engine {
        &self.site.engine
    }

    /// The share or snapshot that the request names, with its lease ID.
    fn share_ref(&self, snapshot: Option<&'a SnapshotName>) -> Result<ShareRef<'a>, Refusal> {
        let lease_id = self.request.lease_id("x-ms-lease-id")?;
        Ok(ShareRef { name: self.request.share()?, snapshot, lease_id })
    }

    /// The share, for something that changes it.
    fn share_to_change(&self) -> Result<Arc<Share>, Refusal> {
        let snapshot = self.request.snapshot()?;
        let at =
            ShareRef { name: self.request.share()?, snapshot: snapshot.as_ref(), lease_id: None };
        Ok(self.engine().share_to_change(&at)?)
    }

    /// The share as it is now.
    fn live_share(&self) -> Result<Arc<Share>, Refusal> {
        Ok(self.engine().share(self.request.share()?)?)
    }

    /// What the URL in header `name` stands for.
    fn source(&self, name: &str) -> Result<Source, Refusal> {
        self.request.source(self.site.options.authorise.accounts(), name)
    }

    /// Who asks, with the lease ID of a file.
    fn asking(&self) -> Result<Asking<'a>, Refusal> {
        Ok(Asking { who: self.who, lease_id: self.request.lease_id("x-ms-lease-id")? })
    }

    /// Does what is asked for.
    pub fn carry_out(&self, operation: Operation) -> Answer {
        match operation {
            Operation::ServicePreflight => self.preflight(),
            Operation::ServiceSetProperties => self.set_service_properties(),
            Operation::ServiceGetProperties => self.service_properties(),
            Operation::ServiceListSharesSegment => self.list_shares(),
            Operation::ServiceGetUserDelegationKey => {
                Err(Refusal::not_implemented("Get User Delegation Key"))
            }
            Operation::ShareCreate => self.create_share(),
            Operation::ShareGetProperties => self.share_properties(),
            Operation::ShareDelete => self.delete_share(),
            Operation::ShareAcquireLease => self.acquire_share_lease(),
            Operation::ShareReleaseLease => self.release_share_lease(),
            Operation::ShareChangeLease => self.change_share_lease(),
            Operation::ShareRenewLease => self.renew_share_lease(),
            Operation::ShareBreakLease => self.break_share_lease(),
            Operation::ShareCreateSnapshot => self.create_snapshot(),
            Operation::ShareCreatePermission => self.create_permission(),
            Operation::ShareGetPermission => self.permission(),
            Operation::ShareSetProperties => self.set_share_properties(),
            Operation::ShareGetMetadata => self.share_metadata(),
            Operation::ShareSetMetadata => self.set_share_metadata(),
            Operation::ShareGetAccessPolicy => self.access_policy(),
            Operation::ShareSetAccessPolicy => self.set_access_policy(),
            Operation::ShareGetStatistics => self.share_statistics(),
            Operation::ShareRestore => self.restore_share(),
            Operation::DirectoryCreate => self.create_directory(),
            Operation::DirectoryGetProperties => self.directory_properties(),
            Operation::DirectoryDelete => self.delete_directory(),
            Operation::DirectorySetProperties => self.set_directory_properties(),
            Operation::DirectorySetMetadata => self.set_directory_metadata(),
            Operation::DirectoryListFilesAndDirectoriesSegment => self.list_directory(),
            Operation::DirectoryListHandles | Operation::FileListHandles => self.list_handles(),
            Operation::DirectoryForceCloseHandles | Operation::FileForceCloseHandles => {
                self.force_close_handles()
            }
            Operation::DirectoryRename => self.rename(true),
            Operation::FileCreate => self.create_file(),
            Operation::FileDownload => self.download(),
            Operation::FileGetProperties => self.file_properties(),
            Operation::FileDelete => self.delete_file(),
            Operation::FileSetHttpHeaders => self.set_file_properties(),
            Operation::FileSetMetadata => self.set_file_metadata(),
            Operation::FileAcquireLease => self.acquire_file_lease(),
            Operation::FileReleaseLease => self.release_file_lease(),
            Operation::FileChangeLease => self.change_file_lease(),
            Operation::FileBreakLease => self.break_file_lease(),
            Operation::FileUploadRange => self.upload_range(),
            Operation::FileUploadRangeFromURL => self.upload_range_from_url(),
            Operation::FileGetRangeList => self.range_list(),
            Operation::FileStartCopy => self.start_copy(),
            Operation::FileAbortCopy => self.abort_copy(),
            Operation::FileRename => self.rename(false),
            Operation::FileCreateSymbolicLink
            | Operation::FileGetSymbolicLink
            | Operation::FileCreateHardLink => {
                Err(Refusal::not_implemented("A link, which NFS shares alone have,"))
            }
        }
    }
}
