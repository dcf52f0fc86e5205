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
use crate::http::frame::service::{Answer, ErrorFormat, Operation, Service};
use crate::http::frame::service_operations::{
    SERVICE_GET_PROPERTIES, SERVICE_GET_USER_DELEGATION_KEY, SERVICE_PREFLIGHT,
    SERVICE_SET_PROPERTIES,
};
use crate::http::request::Request;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::File,
    route,
    operations: &OPERATIONS,
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

static SERVICE_LIST_SHARES_SEGMENT: Operation =
    Operation::pool_read("ServiceListSharesSegment", ResourceLevel::Service, &[List], |call| {
        FileCall(call).list_shares()
    });
static SHARE_CREATE: Operation =
    Operation::pool_change("ShareCreate", ResourceLevel::Container, &[Create, Write], |call| {
        FileCall(call).create_share()
    });
static SHARE_GET_PROPERTIES: Operation =
    Operation::pool_read("ShareGetProperties", ResourceLevel::Container, &[Read, List], |call| {
        FileCall(call).share_properties()
    });
static SHARE_DELETE: Operation =
    Operation::pool_change("ShareDelete", ResourceLevel::Container, &[Delete], |call| {
        FileCall(call).delete_share()
    });
static SHARE_ACQUIRE_LEASE: Operation =
    Operation::pool_change("ShareAcquireLease", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).acquire_share_lease()
    });
static SHARE_RELEASE_LEASE: Operation =
    Operation::pool_change("ShareReleaseLease", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).release_share_lease()
    });
static SHARE_CHANGE_LEASE: Operation =
    Operation::pool_change("ShareChangeLease", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).change_share_lease()
    });
static SHARE_RENEW_LEASE: Operation =
    Operation::pool_change("ShareRenewLease", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).renew_share_lease()
    });
static SHARE_BREAK_LEASE: Operation =
    Operation::pool_change("ShareBreakLease", ResourceLevel::Container, &[Write, Delete], |call| {
        FileCall(call).break_share_lease()
    });
static SHARE_CREATE_SNAPSHOT: Operation = Operation::pool_change(
    "ShareCreateSnapshot",
    ResourceLevel::Container,
    &[Create, Write],
    |call| FileCall(call).create_snapshot(),
);
static SHARE_CREATE_PERMISSION: Operation =
    Operation::pool_change("ShareCreatePermission", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).create_permission()
    })
    .service_sas(&[Write]);
static SHARE_GET_PERMISSION: Operation =
    Operation::pool_read("ShareGetPermission", ResourceLevel::Container, &[Read], |call| {
        FileCall(call).permission()
    })
    .service_sas(&[Read]);
static SHARE_SET_PROPERTIES: Operation =
    Operation::pool_change("ShareSetProperties", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).set_share_properties()
    });
static SHARE_GET_METADATA: Operation =
    Operation::pool_read("ShareGetMetadata", ResourceLevel::Container, &[Read, List], |call| {
        FileCall(call).share_metadata()
    });
static SHARE_SET_METADATA: Operation =
    Operation::pool_change("ShareSetMetadata", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).set_share_metadata()
    });
static SHARE_GET_ACCESS_POLICY: Operation =
    Operation::pool_read("ShareGetAccessPolicy", ResourceLevel::Container, &[Read], |call| {
        FileCall(call).access_policy()
    });
static SHARE_SET_ACCESS_POLICY: Operation =
    Operation::pool_change("ShareSetAccessPolicy", ResourceLevel::Container, &[Write], |call| {
        FileCall(call).set_access_policy()
    });
static SHARE_GET_STATISTICS: Operation =
    Operation::pool_read("ShareGetStatistics", ResourceLevel::Container, &[Read, List], |call| {
        FileCall(call).share_statistics()
    })
    .touches(|request| footprint::container_read(ServiceKind::File, request));
static SHARE_RESTORE: Operation =
    Operation::pool_change("ShareRestore", ResourceLevel::Container, &[Create, Write], |call| {
        FileCall(call).restore_share()
    })
    .touches(|request| footprint::all_written(ServiceKind::File, request));
static DIRECTORY_CREATE: Operation =
    Operation::pool_change("DirectoryCreate", ResourceLevel::Object, &[Create, Write], |call| {
        FileCall(call).create_directory()
    });
static DIRECTORY_GET_PROPERTIES: Operation =
    Operation::pool_read("DirectoryGetProperties", ResourceLevel::Object, &[Read, List], |call| {
        FileCall(call).directory_properties()
    });
static DIRECTORY_DELETE: Operation =
    Operation::pool_change("DirectoryDelete", ResourceLevel::Object, &[Delete], |call| {
        FileCall(call).delete_directory()
    });
static DIRECTORY_SET_PROPERTIES: Operation =
    Operation::pool_change("DirectorySetProperties", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).set_directory_properties()
    });
static DIRECTORY_SET_METADATA: Operation =
    Operation::pool_change("DirectorySetMetadata", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).set_directory_metadata()
    });
static DIRECTORY_LIST_FILES_AND_DIRECTORIES_SEGMENT: Operation = Operation::pool_read(
    "DirectoryListFilesAndDirectoriesSegment",
    ResourceLevel::Object,
    &[List],
    |call| FileCall(call).list_directory(),
)
.touches(touches::listed);
static DIRECTORY_LIST_HANDLES: Operation =
    Operation::pool_read("DirectoryListHandles", ResourceLevel::Object, &[List, Read], |call| {
        FileCall(call).list_handles()
    });
static DIRECTORY_FORCE_CLOSE_HANDLES: Operation =
    Operation::pool_change("DirectoryForceCloseHandles", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).force_close_handles()
    });
static DIRECTORY_RENAME: Operation =
    Operation::pool_change("DirectoryRename", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).rename(true)
    })
    .touches(touches::renamed);
static FILE_CREATE: Operation =
    Operation::pool_change("FileCreate", ResourceLevel::Object, &[Create, Write], |call| {
        FileCall(call).create_file()
    });
static FILE_DOWNLOAD: Operation =
    Operation::pool_read("FileDownload", ResourceLevel::Object, &[Read], |call| {
        FileCall(call).download()
    })
    .overridable();
static FILE_GET_PROPERTIES: Operation =
    Operation::pool_read("FileGetProperties", ResourceLevel::Object, &[Read], |call| {
        FileCall(call).file_properties()
    })
    .overridable();
static FILE_DELETE: Operation =
    Operation::pool_change("FileDelete", ResourceLevel::Object, &[Delete], |call| {
        FileCall(call).delete_file()
    });
static FILE_SET_HTTP_HEADERS: Operation =
    Operation::pool_change("FileSetHttpHeaders", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).set_file_properties()
    });
static FILE_SET_METADATA: Operation =
    Operation::pool_change("FileSetMetadata", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).set_file_metadata()
    });
static FILE_ACQUIRE_LEASE: Operation =
    Operation::pool_change("FileAcquireLease", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).acquire_file_lease()
    })
    .touches(touches::leased);
static FILE_RELEASE_LEASE: Operation =
    Operation::pool_change("FileReleaseLease", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).release_file_lease()
    })
    .touches(touches::leased);
static FILE_CHANGE_LEASE: Operation =
    Operation::pool_change("FileChangeLease", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).change_file_lease()
    })
    .touches(touches::leased);
static FILE_BREAK_LEASE: Operation =
    Operation::pool_change("FileBreakLease", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).break_file_lease()
    })
    .touches(touches::leased);
static FILE_UPLOAD_RANGE: Operation =
    Operation::pool_change("FileUploadRange", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).upload_range()
    });
static FILE_UPLOAD_RANGE_FROM_URL: Operation =
    Operation::pool_change("FileUploadRangeFromURL", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).upload_range_from_url()
    })
    .touches(touches::copied);
static FILE_GET_RANGE_LIST: Operation =
    Operation::pool_read("FileGetRangeList", ResourceLevel::Object, &[Read], |call| {
        FileCall(call).range_list()
    });
static FILE_START_COPY: Operation =
    Operation::pool_change("FileStartCopy", ResourceLevel::Object, &[Create, Write], |call| {
        FileCall(call).start_copy()
    })
    .touches(touches::copied);
static FILE_ABORT_COPY: Operation =
    Operation::pool_change("FileAbortCopy", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).abort_copy()
    });
static FILE_LIST_HANDLES: Operation =
    Operation::pool_read("FileListHandles", ResourceLevel::Object, &[List, Read], |call| {
        FileCall(call).list_handles()
    });
static FILE_FORCE_CLOSE_HANDLES: Operation =
    Operation::pool_change("FileForceCloseHandles", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).force_close_handles()
    });
static FILE_RENAME: Operation =
    Operation::pool_change("FileRename", ResourceLevel::Object, &[Write], |call| {
        FileCall(call).rename(false)
    })
    .touches(touches::renamed);
static FILE_CREATE_SYMBOLIC_LINK: Operation = Operation::pool_change(
    "FileCreateSymbolicLink",
    ResourceLevel::Object,
    &[Create, Write],
    |call| FileCall(call).create_symbolic_link(),
);
static FILE_GET_SYMBOLIC_LINK: Operation =
    Operation::pool_read("FileGetSymbolicLink", ResourceLevel::Object, &[Read], |call| {
        FileCall(call).get_symbolic_link()
    });
static FILE_CREATE_HARD_LINK: Operation =
    Operation::pool_change("FileCreateHardLink", ResourceLevel::Object, &[Create, Write], |call| {
        FileCall(call).create_hard_link()
    })
    .touches(touches::linked);

static OPERATIONS: [&Operation; 53] = [
    &SERVICE_PREFLIGHT,
    &SERVICE_SET_PROPERTIES,
    &SERVICE_GET_PROPERTIES,
    &SERVICE_LIST_SHARES_SEGMENT,
    &SERVICE_GET_USER_DELEGATION_KEY,
    &SHARE_CREATE,
    &SHARE_GET_PROPERTIES,
    &SHARE_DELETE,
    &SHARE_ACQUIRE_LEASE,
    &SHARE_RELEASE_LEASE,
    &SHARE_CHANGE_LEASE,
    &SHARE_RENEW_LEASE,
    &SHARE_BREAK_LEASE,
    &SHARE_CREATE_SNAPSHOT,
    &SHARE_CREATE_PERMISSION,
    &SHARE_GET_PERMISSION,
    &SHARE_SET_PROPERTIES,
    &SHARE_GET_METADATA,
    &SHARE_SET_METADATA,
    &SHARE_GET_ACCESS_POLICY,
    &SHARE_SET_ACCESS_POLICY,
    &SHARE_GET_STATISTICS,
    &SHARE_RESTORE,
    &DIRECTORY_CREATE,
    &DIRECTORY_GET_PROPERTIES,
    &DIRECTORY_DELETE,
    &DIRECTORY_SET_PROPERTIES,
    &DIRECTORY_SET_METADATA,
    &DIRECTORY_LIST_FILES_AND_DIRECTORIES_SEGMENT,
    &DIRECTORY_LIST_HANDLES,
    &DIRECTORY_FORCE_CLOSE_HANDLES,
    &DIRECTORY_RENAME,
    &FILE_CREATE,
    &FILE_DOWNLOAD,
    &FILE_GET_PROPERTIES,
    &FILE_DELETE,
    &FILE_SET_HTTP_HEADERS,
    &FILE_SET_METADATA,
    &FILE_ACQUIRE_LEASE,
    &FILE_RELEASE_LEASE,
    &FILE_CHANGE_LEASE,
    &FILE_BREAK_LEASE,
    &FILE_UPLOAD_RANGE,
    &FILE_UPLOAD_RANGE_FROM_URL,
    &FILE_GET_RANGE_LIST,
    &FILE_START_COPY,
    &FILE_ABORT_COPY,
    &FILE_LIST_HANDLES,
    &FILE_FORCE_CLOSE_HANDLES,
    &FILE_RENAME,
    &FILE_CREATE_SYMBOLIC_LINK,
    &FILE_GET_SYMBOLIC_LINK,
    &FILE_CREATE_HARD_LINK,
];

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
