//! The entries of the File service's table of operations that cannot be read from code: the version
//! that introduced an operation, and its differences to the service. The section of the page is
//! written by [`crate::http::frame::coverage`].

use std::sync::Arc;

use super::operations::{SERVICE_TABLE, TABLE};
use crate::file::service::FileService;
use crate::file::service::shares::NewShare;
use crate::http::auth::ResourceLevel;
use crate::http::frame::coverage::Coverage;
use crate::http::frame::host::{HostedAccount, service};
use crate::rules::service::ServiceKind;

/// The version of the service that first had an operation; what no page names is as old as the
/// service.
fn since(operation: &'static str) -> &'static str {
    match operation {
        "ServiceListSharesSegment"
        | "ShareCreate"
        | "ShareGetProperties"
        | "ShareDelete"
        | "ShareGetMetadata"
        | "ShareSetMetadata"
        | "DirectoryCreate"
        | "DirectoryGetProperties"
        | "DirectoryDelete"
        | "DirectorySetMetadata"
        | "DirectoryListFilesAndDirectoriesSegment"
        | "FileCreate"
        | "FileDownload"
        | "FileGetProperties"
        | "FileDelete"
        | "FileSetHttpHeaders"
        | "FileSetMetadata"
        | "FileUploadRange"
        | "FileGetRangeList" => "2014-02-14",
        "ServicePreflight"
        | "ServiceSetProperties"
        | "ServiceGetProperties"
        | "ShareSetProperties"
        | "ShareGetAccessPolicy"
        | "ShareSetAccessPolicy"
        | "ShareGetStatistics"
        | "FileStartCopy"
        | "FileAbortCopy" => "2015-02-21",
        "ShareCreateSnapshot" => "2017-04-17",
        "DirectoryListHandles"
        | "DirectoryForceCloseHandles"
        | "FileListHandles"
        | "FileForceCloseHandles" => "2018-11-09",
        "ShareCreatePermission"
        | "ShareGetPermission"
        | "DirectorySetProperties"
        | "FileAcquireLease"
        | "FileReleaseLease"
        | "FileChangeLease"
        | "FileBreakLease"
        | "FileUploadRangeFromURL" => "2019-02-02",
        "ShareRestore" => "2019-12-12",
        "ShareAcquireLease" | "ShareReleaseLease" | "ShareChangeLease" | "ShareRenewLease"
        | "ShareBreakLease" => "2020-02-10",
        "DirectoryRename" | "FileRename" => "2021-04-10",
        "FileCreateHardLink" => "2025-05-05",
        "ServiceGetUserDelegationKey" | "FileCreateSymbolicLink" | "FileGetSymbolicLink" => {
            "2025-07-05"
        }
        other => panic!("{other} has no version here"),
    }
}

/// The differences to the service that a user should know.
fn differs(operation: &'static str) -> &'static str {
    match operation {
        "ServiceSetProperties" | "ServiceGetProperties" => {
            "kept and given back; only CORS rules have an effect"
        }
        "ServiceGetUserDelegationKey" => "with `--oauth basic`",
        "ShareCreate" => "protocol, provisioned figures, tier and root squash are kept and shown",
        "ShareDelete" => "does not say how many bytes snapshots used",
        "ShareGetPermission" => "in the format that it was created in",
        "ShareRestore" => "under its own name",
        "FileGetRangeList" => {
            "in pages of 512 bytes, for up to 48 parts written by REST; past that as fine as the \
             file system keeps holes; all of a file that was moved is new"
        }
        "FileStartCopy" | "FileUploadRangeFromURL" => {
            "a source on another server needs `--copy-sources any`"
        }
        "DirectoryListHandles" | "FileListHandles" => "opens of the mount, and `latchfs hold`",
        "FileCreateSymbolicLink" => "on every share; metadata and times of a link are not kept",
        "FileGetSymbolicLink" | "FileCreateHardLink" => "on every share",
        _ => "",
    }
}

fn paths(level: ResourceLevel) -> (&'static str, &'static str) {
    match level {
        ResourceLevel::Service => ("/", "/"),
        ResourceLevel::Container => ("/SHARE", "/docs"),
        ResourceLevel::Object => ("/SHARE/PATH", "/docs/file"),
    }
}

/// There is a share to ask about, also after a row that deletes it.
fn prepare(account: &dyn HostedAccount) {
    let files: &Arc<FileService> = service(account, ServiceKind::File).unwrap();
    let _ = files.create_share("docs", NewShare::default());
}

/// The section of the File service.
pub(crate) fn coverage() -> Coverage {
    Coverage {
        service: &SERVICE_TABLE,
        page: "docs/semantics.md",
        title: "Operations of the File service",
        rows: &TABLE,
        paths,
        prepare,
        groups: &["Service", "Share", "Directory", "File"],
        since,
        differs,
    }
}
