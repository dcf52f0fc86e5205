//! The operations of the File service: the shape of each request, what a SAS must permit, and the
//! function that carries it out. The names are those of the service's own description.

use std::sync::Arc;

use hyper::{Method, StatusCode};

use super::{FileCall, footprint as touches};
use crate::file::service::FileService;
use crate::file::service::shares::ShareRef;
use crate::http::auth::Permission::{Create, Delete, List, Read, Write};
use crate::http::auth::{FILE_SIGNATURES, ResourceLevel};
use crate::http::frame::call::Call;
use crate::http::frame::footprint;
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::{Code, Denied, Refusal};
use crate::http::frame::routing::{
    CONTAINER, DELETE, GET, HEAD, LOOK, OBJECT, POST, PUT, RouteRow, SERVICE, When, by_shape, row,
    row_when,
};
use crate::http::frame::service::{Answer, ErrorFormat, Operation, Service, operations};
use crate::http::frame::service_operations::{
    preflight, service_properties, set_service_properties, user_delegation_key,
};
use crate::http::request::Request;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::File,
    route,
    operations: OPERATIONS,
    first_version: "2014-02-14",
    needs_version: true,
    errors: ErrorFormat::Xml,
    signatures: &FILE_SIGNATURES,
    target: |address, _| (address.container.as_deref(), address.path()),
    object: |request| SERVICE_TABLE.named_path(&request.address),
    touches: |operation, request| {
        footprint::by_level(ServiceKind::File, operation, request, touches::of_file)
    },
    policy,
    anonymous: |_, _, _| false,
    answered: Some(answered),
    properties: &["HourMetrics", "MinuteMetrics", "Cors", "ProtocolSettings"],
};

/// The root of a share is a directory too.
const DIRECTORY: &[ResourceLevel] = &[ResourceLevel::Container, ResourceLevel::Object];

const ACTION: &str = "x-ms-lease-action";
const SHARE_LEASE: (&str, &str) = ("share", "lease");
const FILE_LEASE: (&str, &str) = ("", "lease");
const RECURSIVE: When = When::Has("x-ms-recursive");
const COPY_SOURCE: When = When::Has("x-ms-copy-source");

fn route(request: &Request) -> Result<&'static Operation, Refusal> {
    by_shape(&TABLE, &SERVICE_PREFLIGHT, request)
}

fn policy(account: &dyn HostedAccount, share: &str, id: &str) -> Option<StoredPolicy> {
    let files: &Arc<FileService> = service(account, ServiceKind::File).ok()?;
    let info = files.properties(&ShareRef::new(share)).ok()?;
    info.properties.policies.into_iter().find(|policy| policy.id == id)
}

/// A request that asks for a file as a directory, or the other way round, finds nothing. A refusal
/// by a rule tells the journal its cause.
fn answered(call: &Call<'_>, answer: Answer) -> Answer {
    let mut refusal = match answer {
        Err(refusal) => refusal,
        answer => return answer,
    };
    let looks = matches!(call.method, Method::GET | Method::HEAD);
    if looks && refusal.code == Code::Is("ResourceTypeMismatch") {
        let missing = Refusal::explained(StatusCode::NOT_FOUND, "ResourceNotFound", "");
        return Err(Refusal { denied: refusal.denied, ..missing });
    }
    if let Some(Denied::By(rule)) = refusal.denied.as_deref()
        && let Some(denial) = rule.downcast_ref()
    {
        let cause = FileCall(call).engine()?.cause(denial);
        refusal.denied = Some(Box::new(Denied::Because(cause)));
    }
    Err(refusal)
}

operations! {
    FileCall;

    SERVICE_PREFLIGHT preflight ("ServicePreflight", "Preflight File Request") Service &[]
        => (preflight);
    SERVICE_SET_PROPERTIES pool_change ("ServiceSetProperties", "Set File Service Properties")
        Service &[Write] => (set_service_properties);
    SERVICE_GET_PROPERTIES read ("ServiceGetProperties", "Get File Service Properties")
        Service &[Read] => (service_properties);
    SERVICE_GET_USER_DELEGATION_KEY pool_read
        ("ServiceGetUserDelegationKey", "Get User Delegation Key") Service &[Read]
        => (user_delegation_key);
    SERVICE_LIST_SHARES_SEGMENT pool_read ("ServiceListSharesSegment", "List Shares")
        Service &[List] => list_shares;
    SHARE_CREATE pool_change ("ShareCreate", "Create Share") Container &[Create, Write]
        => create_share;
    SHARE_GET_PROPERTIES pool_read ("ShareGetProperties", "Get Share Properties")
        Container &[Read, List] => share_properties;
    SHARE_DELETE pool_change ("ShareDelete", "Delete Share") Container &[Delete] => delete_share;
    SHARE_ACQUIRE_LEASE pool_change ("ShareAcquireLease", "Lease Share") Container &[Write]
        => lease_share;
    SHARE_RELEASE_LEASE pool_change ("ShareReleaseLease", "Lease Share") Container &[Write]
        => lease_share;
    SHARE_CHANGE_LEASE pool_change ("ShareChangeLease", "Lease Share") Container &[Write]
        => lease_share;
    SHARE_RENEW_LEASE pool_change ("ShareRenewLease", "Lease Share") Container &[Write]
        => lease_share;
    SHARE_BREAK_LEASE pool_change ("ShareBreakLease", "Lease Share") Container &[Write, Delete]
        => lease_share;
    SHARE_CREATE_SNAPSHOT pool_change ("ShareCreateSnapshot", "Snapshot Share")
        Container &[Create, Write] => create_snapshot;
    #[service_sas (&[Write])]
    SHARE_CREATE_PERMISSION pool_change ("ShareCreatePermission", "Create Permission")
        Container &[Write] => create_permission;
    #[service_sas (&[Read])]
    SHARE_GET_PERMISSION pool_read ("ShareGetPermission", "Get Permission") Container &[Read]
        => permission;
    SHARE_SET_PROPERTIES pool_change ("ShareSetProperties", "Set Share Properties")
        Container &[Write] => set_share_properties;
    SHARE_GET_METADATA pool_read ("ShareGetMetadata", "Get Share Metadata") Container &[Read, List]
        => share_metadata;
    SHARE_SET_METADATA pool_change ("ShareSetMetadata", "Set Share Metadata") Container &[Write]
        => set_share_metadata;
    SHARE_GET_ACCESS_POLICY pool_read ("ShareGetAccessPolicy", "Get Share ACL") Container &[Read]
        => access_policy;
    SHARE_SET_ACCESS_POLICY pool_change ("ShareSetAccessPolicy", "Set Share ACL") Container &[Write]
        => set_access_policy;
    #[touches (|request| footprint::container_read(ServiceKind::File, request))]
    SHARE_GET_STATISTICS pool_read ("ShareGetStatistics", "Get Share Stats") Container &[Read, List]
        => share_statistics;
    #[touches (|request| footprint::all_written(ServiceKind::File, request))]
    SHARE_RESTORE pool_change ("ShareRestore", "Restore Share") Container &[Create, Write]
        => restore_share;
    DIRECTORY_CREATE pool_change ("DirectoryCreate", "Create Directory") Object &[Create, Write]
        => create_directory;
    DIRECTORY_GET_PROPERTIES pool_read ("DirectoryGetProperties", "Get Directory Properties")
        Object &[Read, List] => directory_properties;
    DIRECTORY_DELETE pool_change ("DirectoryDelete", "Delete Directory") Object &[Delete]
        => delete_directory;
    DIRECTORY_SET_PROPERTIES pool_change ("DirectorySetProperties", "Set Directory Properties")
        Object &[Write] => set_directory_properties;
    DIRECTORY_SET_METADATA pool_change ("DirectorySetMetadata", "Set Directory Metadata")
        Object &[Write] => set_directory_metadata;
    #[touches (touches::listed)]
    DIRECTORY_LIST_FILES_AND_DIRECTORIES_SEGMENT pool_read
        ("DirectoryListFilesAndDirectoriesSegment", "List Directories and Files") Object &[List]
        => list_directory;
    DIRECTORY_LIST_HANDLES pool_read ("DirectoryListHandles", "List Handles") Object &[List, Read]
        => list_handles;
    DIRECTORY_FORCE_CLOSE_HANDLES pool_change ("DirectoryForceCloseHandles", "Force Close Handles")
        Object &[Write] => force_close_handles;
    #[touches (touches::renamed)]
    DIRECTORY_RENAME pool_change ("DirectoryRename", "Rename Directory") Object &[Write]
        => (|call| FileCall(call).rename(true));
    FILE_CREATE pool_change ("FileCreate", "Create File") Object &[Create, Write] => create_file;
    #[overridable ()]
    FILE_DOWNLOAD pool_read ("FileDownload", "Get File") Object &[Read] => download;
    #[overridable ()]
    FILE_GET_PROPERTIES pool_read ("FileGetProperties", "Get File Properties") Object &[Read]
        => file_properties;
    FILE_DELETE pool_change ("FileDelete", "Delete File") Object &[Delete] => delete_file;
    FILE_SET_HTTP_HEADERS pool_change ("FileSetHttpHeaders", "Set File Properties") Object &[Write]
        => set_file_properties;
    FILE_SET_METADATA pool_change ("FileSetMetadata", "Set File Metadata") Object &[Write]
        => set_file_metadata;
    #[touches (touches::leased)]
    FILE_ACQUIRE_LEASE pool_change ("FileAcquireLease", "Lease File") Object &[Write]
        => lease_file;
    #[touches (touches::leased)]
    FILE_RELEASE_LEASE pool_change ("FileReleaseLease", "Lease File") Object &[Write]
        => lease_file;
    #[touches (touches::leased)]
    FILE_CHANGE_LEASE pool_change ("FileChangeLease", "Lease File") Object &[Write]
        => lease_file;
    #[touches (touches::leased)]
    FILE_BREAK_LEASE pool_change ("FileBreakLease", "Lease File") Object &[Write]
        => lease_file;
    FILE_UPLOAD_RANGE pool_change ("FileUploadRange", "Put Range") Object &[Write] => upload_range;
    #[touches (touches::copied)]
    FILE_UPLOAD_RANGE_FROM_URL pool_change ("FileUploadRangeFromURL", "Put Range From URL")
        Object &[Write] => upload_range_from_url;
    FILE_GET_RANGE_LIST pool_read ("FileGetRangeList", "List Ranges") Object &[Read] => range_list;
    #[touches (touches::copied)]
    FILE_START_COPY pool_change ("FileStartCopy", "Copy File") Object &[Create, Write]
        => start_copy;
    FILE_ABORT_COPY pool_change ("FileAbortCopy", "Abort Copy File") Object &[Write] => abort_copy;
    FILE_LIST_HANDLES pool_read ("FileListHandles", "List Handles") Object &[List, Read]
        => list_handles;
    FILE_FORCE_CLOSE_HANDLES pool_change ("FileForceCloseHandles", "Force Close Handles")
        Object &[Write] => force_close_handles;
    #[touches (touches::renamed)]
    FILE_RENAME pool_change ("FileRename", "Rename File") Object &[Write]
        => (|call| FileCall(call).rename(false));
    FILE_CREATE_SYMBOLIC_LINK pool_change ("FileCreateSymbolicLink", "Create Symbolic Link")
        Object &[Create, Write] => create_symbolic_link;
    FILE_GET_SYMBOLIC_LINK pool_read ("FileGetSymbolicLink", "Get Symbolic Link") Object &[Read]
        => get_symbolic_link;
    #[touches (touches::linked)]
    FILE_CREATE_HARD_LINK pool_change ("FileCreateHardLink", "Create Hard Link")
        Object &[Create, Write] => create_hard_link;
}

/// The shapes of requests.
pub(super) static TABLE: [RouteRow; 56] = [
    row(PUT, SERVICE, "service", "properties", &SERVICE_SET_PROPERTIES),
    row(GET, SERVICE, "service", "properties", &SERVICE_GET_PROPERTIES),
    row(GET, SERVICE, "", "list", &SERVICE_LIST_SHARES_SEGMENT),
    row(POST, SERVICE, "service", "userdelegationkey", &SERVICE_GET_USER_DELEGATION_KEY),
    row(PUT, CONTAINER, "share", "", &SHARE_CREATE),
    row(LOOK, CONTAINER, "share", "", &SHARE_GET_PROPERTIES),
    row(DELETE, CONTAINER, "share", "", &SHARE_DELETE),
    row_when(PUT, CONTAINER, SHARE_LEASE, When::Is(ACTION, "acquire"), &SHARE_ACQUIRE_LEASE),
    row_when(PUT, CONTAINER, SHARE_LEASE, When::Is(ACTION, "release"), &SHARE_RELEASE_LEASE),
    row_when(PUT, CONTAINER, SHARE_LEASE, When::Is(ACTION, "change"), &SHARE_CHANGE_LEASE),
    row_when(PUT, CONTAINER, SHARE_LEASE, When::Is(ACTION, "renew"), &SHARE_RENEW_LEASE),
    row_when(PUT, CONTAINER, SHARE_LEASE, When::Is(ACTION, "break"), &SHARE_BREAK_LEASE),
    row(PUT, CONTAINER, "share", "snapshot", &SHARE_CREATE_SNAPSHOT),
    row(PUT, CONTAINER, "share", "filepermission", &SHARE_CREATE_PERMISSION),
    row(GET, CONTAINER, "share", "filepermission", &SHARE_GET_PERMISSION),
    row(PUT, CONTAINER, "share", "properties", &SHARE_SET_PROPERTIES),
    row(LOOK, CONTAINER, "share", "metadata", &SHARE_GET_METADATA),
    row(PUT, CONTAINER, "share", "metadata", &SHARE_SET_METADATA),
    row(LOOK, CONTAINER, "share", "acl", &SHARE_GET_ACCESS_POLICY),
    row(PUT, CONTAINER, "share", "acl", &SHARE_SET_ACCESS_POLICY),
    row(GET, CONTAINER, "share", "stats", &SHARE_GET_STATISTICS),
    row(PUT, CONTAINER, "share", "undelete", &SHARE_RESTORE),
    row(PUT, DIRECTORY, "directory", "", &DIRECTORY_CREATE),
    row(LOOK, DIRECTORY, "directory", "", &DIRECTORY_GET_PROPERTIES),
    row(LOOK, DIRECTORY, "directory", "metadata", &DIRECTORY_GET_PROPERTIES),
    row(DELETE, DIRECTORY, "directory", "", &DIRECTORY_DELETE),
    row(PUT, DIRECTORY, "directory", "properties", &DIRECTORY_SET_PROPERTIES),
    row(PUT, DIRECTORY, "directory", "metadata", &DIRECTORY_SET_METADATA),
    row(GET, DIRECTORY, "directory", "list", &DIRECTORY_LIST_FILES_AND_DIRECTORIES_SEGMENT),
    row(PUT, OBJECT, "directory", "rename", &DIRECTORY_RENAME),
    // These two have no `restype`, for directories either: what the path names decides.
    row(GET, CONTAINER, "", "listhandles", &DIRECTORY_LIST_HANDLES),
    row_when(GET, OBJECT, ("", "listhandles"), RECURSIVE, &DIRECTORY_LIST_HANDLES),
    row(GET, OBJECT, "", "listhandles", &FILE_LIST_HANDLES),
    row(PUT, CONTAINER, "", "forceclosehandles", &DIRECTORY_FORCE_CLOSE_HANDLES),
    row_when(PUT, OBJECT, ("", "forceclosehandles"), RECURSIVE, &DIRECTORY_FORCE_CLOSE_HANDLES),
    row(PUT, OBJECT, "", "forceclosehandles", &FILE_FORCE_CLOSE_HANDLES),
    row_when(PUT, OBJECT, ("", ""), COPY_SOURCE, &FILE_START_COPY),
    row(PUT, OBJECT, "", "", &FILE_CREATE),
    row(GET, OBJECT, "", "", &FILE_DOWNLOAD),
    row(HEAD, OBJECT, "", "", &FILE_GET_PROPERTIES),
    row(LOOK, OBJECT, "", "metadata", &FILE_GET_PROPERTIES),
    row(DELETE, OBJECT, "", "", &FILE_DELETE),
    row(PUT, OBJECT, "", "properties", &FILE_SET_HTTP_HEADERS),
    row(PUT, OBJECT, "", "metadata", &FILE_SET_METADATA),
    row_when(PUT, OBJECT, FILE_LEASE, When::Is(ACTION, "acquire"), &FILE_ACQUIRE_LEASE),
    row_when(PUT, OBJECT, FILE_LEASE, When::Is(ACTION, "release"), &FILE_RELEASE_LEASE),
    row_when(PUT, OBJECT, FILE_LEASE, When::Is(ACTION, "change"), &FILE_CHANGE_LEASE),
    row_when(PUT, OBJECT, FILE_LEASE, When::Is(ACTION, "break"), &FILE_BREAK_LEASE),
    row_when(PUT, OBJECT, ("", "range"), COPY_SOURCE, &FILE_UPLOAD_RANGE_FROM_URL),
    row(PUT, OBJECT, "", "range", &FILE_UPLOAD_RANGE),
    row(GET, OBJECT, "", "rangelist", &FILE_GET_RANGE_LIST),
    row(PUT, OBJECT, "", "copy", &FILE_ABORT_COPY),
    row(PUT, OBJECT, "", "rename", &FILE_RENAME),
    row(PUT, OBJECT, "symboliclink", "", &FILE_CREATE_SYMBOLIC_LINK),
    row(GET, OBJECT, "symboliclink", "", &FILE_GET_SYMBOLIC_LINK),
    row(PUT, OBJECT, "hardlink", "", &FILE_CREATE_HARD_LINK),
];
