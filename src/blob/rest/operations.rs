//! The operations of the Blob service: the shape of each request, what a SAS must permit, and the
//! function that carries it out. The names are those of the service's own description.
//!
//! Which conditions and leases an operation takes is a table in [`crate::blob::rules::operation`].

use std::sync::Arc;

use hyper::StatusCode;
use percent_encoding::percent_decode_str;

use super::service::{account_info, not_done};
use super::{BlobCall, footprint as touches};
use crate::blob::rules::name::{ROOT, kept_name};
use crate::blob::rules::{BlobOperation as Op, PublicAccess};
use crate::blob::service::BlobService;
use crate::http::auth::Permission::{
    Add, Create, Delete, DeleteVersion, Find, Immutability, List, PermanentDelete, Read, Tags,
    Write,
};
use crate::http::auth::{BLOB_SIGNATURES, Permission, ResourceLevel};
use crate::http::frame::address::Address;
use crate::http::frame::footprint;
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::routing::{
    CONTAINER, DELETE, GET, HEAD, LOOK, OBJECT, POST, PUT, RouteRow, SERVICE, When, by_shape, row,
    row_when,
};
use crate::http::frame::service::{Addressed, ErrorFormat, Operation, Service, operations};
use crate::http::frame::service_operations::{
    preflight, service_properties, service_stats, user_delegation_key,
};
use crate::http::request::Request;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::Blob,
    route,
    operations: OPERATIONS,
    first_version: "2009-09-19",
    needs_version: true,
    errors: ErrorFormat::Xml,
    signatures: &BLOB_SIGNATURES,
    target,
    object,
    touches: |operation, request| {
        footprint::by_level(ServiceKind::Blob, operation, request, touches::of_blob)
    },
    policy,
    anonymous,
    answered: None,
    properties: &[
        "Logging",
        "HourMetrics",
        "MinuteMetrics",
        "Cors",
        "DefaultServiceVersion",
        "DeleteRetentionPolicy",
        "StaticWebsite",
    ],
};

fn route(request: &Request) -> Result<&'static Operation, Refusal> {
    let (comp, restype) = (request.query.get("comp"), request.query.get("restype"));
    if comp.is_none() && restype.is_none() && is_data_lake(request) {
        let why = "Data Lake (dfs) is not served";
        return Err(Refusal::explained(StatusCode::NOT_IMPLEMENTED, "NotImplemented", why));
    }
    // A path of one segment without `restype` is a blob of the root container.
    let in_root = request.address.level() == ResourceLevel::Container && restype.is_none();
    let of_blob = request.address.level() == ResourceLevel::Object || in_root;
    let rows: &[RouteRow] = if of_blob { &OF_BLOBS } else { &ABOVE_BLOBS };
    let found = by_shape(rows, &SERVICE_PREFLIGHT, request)?;
    let has = |name: &str| request.headers.contains_key(name);
    Ok(match (comp, request.method.as_str()) {
        (None, "PUT") if of_blob => put_form(request)?,
        (Some("list"), _)
            if request.query.get("delimiter").is_some() && !of_blob && restype.is_some() =>
        {
            &CONTAINER_LIST_BLOB_HIERARCHY_SEGMENT
        }
        (Some("pagelist"), _)
            if request.query.get("prevsnapshot").is_some() || has("x-ms-previous-snapshot-url") =>
        {
            &PAGE_BLOB_GET_PAGE_RANGES_DIFF
        }
        (Some("properties"), "PUT") if of_blob && has("x-ms-blob-content-length") => {
            &PAGE_BLOB_RESIZE
        }
        (Some("properties"), "PUT") if of_blob && has("x-ms-sequence-number-action") => {
            &PAGE_BLOB_UPDATE_SEQUENCE_NUMBER
        }
        _ => found,
    })
}

/// Whether a request has the marks of the Data Lake (dfs) interface, whose clients may be given the
/// URL of a Blob service. Taken for requests of Blob they would find containers missing.
fn is_data_lake(request: &Request) -> bool {
    request.query.names("resource")
        || request.query.names("action")
        || request.headers.contains_key("x-ms-rename-source")
}

/// Which of the forms of PUT without `comp`: with a source it is a copy, else Put Blob of a type.
fn put_form(request: &Request) -> Result<&'static Operation, Refusal> {
    let kind = request.header("x-ms-blob-type")?.unwrap_or_default();
    if request.headers.contains_key("x-ms-copy-source") {
        return Ok(match kind {
            _ if request.flag("x-ms-requires-sync")? => &BLOB_COPY_FROM_URL,
            "BlockBlob" => &BLOCK_BLOB_PUT_BLOB_FROM_URL,
            _ => &BLOB_START_COPY_FROM_URL,
        });
    }
    Ok(match kind {
        "PageBlob" => &PAGE_BLOB_CREATE,
        "AppendBlob" => &APPEND_BLOB_CREATE,
        _ => &BLOCK_BLOB_UPLOAD,
    })
}

/// The container and the blob that a request addresses, by the name that the blob is kept under. A
/// path of one segment that names no container is a blob of the root container; slashes at the ends
/// belong to the name.
pub(super) fn target(address: &Address, level: ResourceLevel) -> Addressed<'_> {
    match (level, &address.container) {
        (ResourceLevel::Object, Some(name)) if address.rest.is_empty() => (Some(ROOT), name.into()),
        (_, container) => {
            let path = percent_decode_str(&address.rest).decode_utf8_lossy();
            (container.as_deref(), kept_name(path))
        }
    }
}

/// The container or the blob that a request addresses.
fn object(request: &Request) -> String {
    let of_blob = request.query.get("restype").is_none();
    let level = if of_blob { ResourceLevel::Object } else { ResourceLevel::Container };
    match target(&request.address, level) {
        (Some(container), path) if path.is_empty() => container.to_owned(),
        (Some(container), path) => format!("{container}/{path}"),
        (None, _) => String::new(),
    }
}

/// A stored access policy of a container, as it authorises now.
fn policy(account: &dyn HostedAccount, container: &str, id: &str) -> Option<StoredPolicy> {
    let blobs: &Arc<BlobService> = service(account, ServiceKind::Blob).ok()?;
    let state = blobs.container_now(container)?;
    let now = account.clock().now();
    let (_, policies) = state.in_force(now);
    policies.iter().find(|policy| policy.id == id).cloned()
}

/// Whether a request without credentials is served: reads of a public container.
fn anonymous(account: &dyn HostedAccount, request: &Request, operation: &Operation) -> bool {
    let level = operation.needs.as_ref().map_or(ResourceLevel::Container, |needs| needs.level);
    let (container, _) = target(&request.address, level);
    is_public(account, container.unwrap_or_default(), operation)
}

/// Whether anybody may ask for the operation in that container.
pub(super) fn is_public(
    account: &dyn HostedAccount,
    container: &str,
    operation: &Operation,
) -> bool {
    let of_blob = [
        &BLOB_DOWNLOAD,
        &BLOB_GET_PROPERTIES,
        &BLOB_GET_METADATA,
        &BLOCK_BLOB_GET_BLOCK_LIST,
        &PAGE_BLOB_GET_PAGE_RANGES,
    ];
    let of_container = [
        &CONTAINER_GET_PROPERTIES,
        &CONTAINER_GET_METADATA,
        &CONTAINER_LIST_BLOB_FLAT_SEGMENT,
        &CONTAINER_LIST_BLOB_HIERARCHY_SEGMENT,
    ];
    let is = |list: &[&'static Operation]| list.iter().any(|one| std::ptr::eq(*one, operation));
    let blobs = service::<Arc<BlobService>>(account, ServiceKind::Blob).ok();
    let state = blobs.and_then(|blobs| blobs.container_now(container));
    let Some(state) = state else { return false };
    let (access, _) = state.in_force(account.clock().now());
    match access {
        PublicAccess::Private => false,
        PublicAccess::Blob => is(&of_blob),
        PublicAccess::Container => is(&of_blob) || is(&of_container),
    }
}

const NEW: &[Permission] = &[Create, Write];
const LOOK_AT: &[Permission] = &[Read, List];

operations! {
    BlobCall;

    SERVICE_PREFLIGHT preflight ("ServicePreflight", "Preflight Blob Request") Service &[]
        => (preflight);
    SERVICE_GET_PROPERTIES read ("ServiceGetProperties", "Get Blob Service Properties")
        Service &[Read] => (service_properties);
    SERVICE_GET_STATISTICS read ("ServiceGetStatistics", "Get Blob Service Stats") Service &[Read]
        => (service_stats);
    SERVICE_GET_USER_DELEGATION_KEY pool_read
        ("ServiceGetUserDelegationKey", "Get User Delegation Key") Service &[Read]
        => (user_delegation_key);
    SERVICE_SET_PROPERTIES pool_change ("ServiceSetProperties", "Set Blob Service Properties")
        Service &[Write] => set_service_properties;
    SERVICE_LIST_CONTAINERS_SEGMENT pool_read ("ServiceListContainersSegment", "List Containers")
        Service &[List] => list_containers;
    SERVICE_GET_ACCOUNT_INFO read ("ServiceGetAccountInfo", "Get Account Information")
        Service &[Read, List, Write, Create] => (account_info);
    SERVICE_SUBMIT_BATCH change ("ServiceSubmitBatch", "Blob Batch")
        Service &[Delete, Write, Read, List] => submit_batch;
    #[touches (|request| footprint::all_read(ServiceKind::Blob, request))]
    SERVICE_FILTER_BLOBS pool_read ("ServiceFilterBlobs", "Find Blobs by Tags") Service &[Find]
        => find_blobs;
    CONTAINER_CREATE change (Op::ContainerCreate.names()) Container NEW => create_container;
    CONTAINER_GET_PROPERTIES read (Op::ContainerGetProperties.names()) Container LOOK_AT
        => container_properties;
    CONTAINER_GET_METADATA read (Op::ContainerGetMetadata.names()) Container LOOK_AT
        => container_metadata;
    CONTAINER_DELETE change (Op::ContainerDelete.names()) Container &[Delete] => delete_container;
    CONTAINER_SET_METADATA change (Op::ContainerSetMetadata.names()) Container &[Write]
        => set_container_metadata;
    CONTAINER_GET_ACCESS_POLICY read (Op::ContainerGetAccessPolicy.names()) Container &[Read]
        => container_acl;
    CONTAINER_SET_ACCESS_POLICY change (Op::ContainerSetAccessPolicy.names()) Container &[Write]
        => set_container_acl;
    #[touches (|request| footprint::all_written(ServiceKind::Blob, request))]
    CONTAINER_RESTORE change (Op::ContainerRestore.names()) Container NEW => restore_container;
    CONTAINER_RENAME pool_change ("ContainerRename", "Rename Container") Container &[Write]
        => (not_done);
    #[service_sas (&[Delete, Write])] #[or_level (ResourceLevel::Object)]
    CONTAINER_SUBMIT_BATCH change ("ContainerSubmitBatch", "Blob Batch")
        Container &[Delete, Write, Read, List] => submit_batch;
    #[service_sas (&[Find])]
    #[touches (|request| footprint::container_read(ServiceKind::Blob, request))]
    CONTAINER_FILTER_BLOBS pool_read ("ContainerFilterBlobs", "Find Blobs by Tags in Container")
        Container &[Find] => find_blobs;
    CONTAINER_ACQUIRE_LEASE change (Op::ContainerAcquireLease.names()) Container &[Write]
        => lease_container;
    CONTAINER_RELEASE_LEASE change (Op::ContainerReleaseLease.names()) Container &[Write]
        => lease_container;
    CONTAINER_RENEW_LEASE change (Op::ContainerRenewLease.names()) Container &[Write]
        => lease_container;
    CONTAINER_BREAK_LEASE change (Op::ContainerBreakLease.names()) Container &[Write, Delete]
        => lease_container;
    CONTAINER_CHANGE_LEASE change (Op::ContainerChangeLease.names()) Container &[Write]
        => lease_container;
    #[service_sas (&[List])] #[touches (touches::listed)]
    CONTAINER_LIST_BLOB_FLAT_SEGMENT pool_read ("ContainerListBlobFlatSegment", "List Blobs")
        Container &[List] => list_blobs;
    #[service_sas (&[List])] #[touches (touches::listed)]
    CONTAINER_LIST_BLOB_HIERARCHY_SEGMENT pool_read
        ("ContainerListBlobHierarchySegment", "List Blobs") Container &[List] => list_blobs;
    #[service_sas (&[Read, List, Write, Create])]
    CONTAINER_GET_ACCOUNT_INFO read ("ContainerGetAccountInfo", "Get Account Information")
        Container LOOK_AT => (account_info);
    #[overridable ()]
    BLOB_DOWNLOAD read_async (Op::BlobDownload.names()) Object &[Read] => get_blob;
    #[overridable ()]
    BLOB_GET_PROPERTIES read (Op::BlobGetProperties.names()) Object &[Read] => blob_properties;
    BLOB_GET_METADATA read (Op::BlobGetMetadata.names()) Object &[Read] => blob_metadata;
    BLOB_DELETE change (Op::BlobDelete.names()) Object &[Delete, DeleteVersion, PermanentDelete]
        => delete_blob;
    BLOB_UNDELETE change (Op::BlobUndelete.names()) Object &[Write] => undelete_blob;
    BLOB_SET_EXPIRY pool_change ("BlobSetExpiry", "Set Blob Expiry") Object &[Write] => (not_done);
    BLOB_SET_HTTP_HEADERS change (Op::BlobSetHttpHeaders.names()) Object &[Write] => set_properties;
    BLOB_SET_IMMUTABILITY_POLICY change (Op::BlobSetImmutabilityPolicy.names())
        Object &[Immutability] => set_immutability;
    BLOB_DELETE_IMMUTABILITY_POLICY change (Op::BlobDeleteImmutabilityPolicy.names())
        Object &[Immutability] => delete_immutability;
    BLOB_SET_LEGAL_HOLD change (Op::BlobSetLegalHold.names()) Object &[Immutability]
        => set_legal_hold;
    BLOB_SET_METADATA change (Op::BlobSetMetadata.names()) Object &[Write] => set_metadata;
    #[touches (touches::leased)]
    BLOB_ACQUIRE_LEASE change (Op::BlobAcquireLease.names()) Object &[Write] => lease_blob;
    #[touches (touches::leased)]
    BLOB_RELEASE_LEASE change (Op::BlobReleaseLease.names()) Object &[Write] => lease_blob;
    #[touches (touches::leased)]
    BLOB_RENEW_LEASE change (Op::BlobRenewLease.names()) Object &[Write] => lease_blob;
    #[touches (touches::leased)]
    BLOB_CHANGE_LEASE change (Op::BlobChangeLease.names()) Object &[Write] => lease_blob;
    #[touches (touches::leased)]
    BLOB_BREAK_LEASE change (Op::BlobBreakLease.names()) Object &[Write, Delete] => lease_blob;
    BLOB_CREATE_SNAPSHOT change (Op::BlobCreateSnapshot.names()) Object NEW => snapshot_blob;
    #[touches (touches::copied)]
    BLOB_START_COPY_FROM_URL change (Op::BlobStartCopyFromURL.names()) Object NEW => copy_blob;
    #[touches (touches::copied)]
    BLOB_COPY_FROM_URL change (Op::BlobCopyFromURL.names()) Object NEW => copy_from_url;
    BLOB_ABORT_COPY_FROM_URL change (Op::BlobAbortCopyFromURL.names()) Object &[Write]
        => abort_copy;
    BLOB_SET_TIER change (Op::BlobSetTier.names()) Object &[Write] => set_tier;
    BLOB_GET_ACCOUNT_INFO read ("BlobGetAccountInfo", "Get Account Information")
        Object &[Read, Write, Create] => (account_info);
    BLOB_QUERY read ("BlobQuery", "Query Blob Contents") Object &[Read] => (not_done);
    BLOB_GET_TAGS read (Op::BlobGetTags.names()) Object &[Tags] => blob_tags;
    BLOB_SET_TAGS change (Op::BlobSetTags.names()) Object &[Tags] => set_tags;
    PAGE_BLOB_CREATE change (Op::PageBlobCreate.names()) Object NEW => put_blob;
    PAGE_BLOB_UPLOAD_PAGES change (Op::PageBlobUploadPages.names()) Object &[Write] => put_page;
    PAGE_BLOB_CLEAR_PAGES change (Op::PageBlobClearPages.names()) Object &[Write] => put_page;
    #[touches (touches::copied)]
    PAGE_BLOB_UPLOAD_PAGES_FROM_URL change (Op::PageBlobUploadPagesFromURL.names()) Object &[Write]
        => put_page_from_url;
    PAGE_BLOB_GET_PAGE_RANGES pool_read (Op::PageBlobGetPageRanges.names()) Object &[Read]
        => page_list;
    PAGE_BLOB_GET_PAGE_RANGES_DIFF pool_read (Op::PageBlobGetPageRangesDiff.names()) Object &[Read]
        => page_list;
    PAGE_BLOB_RESIZE change (Op::PageBlobResize.names()) Object &[Write] => set_properties;
    PAGE_BLOB_UPDATE_SEQUENCE_NUMBER change (Op::PageBlobUpdateSequenceNumber.names())
        Object &[Write] => set_properties;
    PAGE_BLOB_COPY_INCREMENTAL pool_change ("PageBlobCopyIncremental", "Incremental Copy Blob")
        Object &[Write] => (not_done);
    APPEND_BLOB_CREATE change (Op::AppendBlobCreate.names()) Object NEW => put_blob;
    APPEND_BLOB_APPEND_BLOCK change (Op::AppendBlobAppendBlock.names()) Object &[Add, Write]
        => append_block;
    #[touches (touches::copied)]
    APPEND_BLOB_APPEND_BLOCK_FROM_URL change (Op::AppendBlobAppendBlockFromUrl.names())
        Object &[Add, Write] => append_from_url;
    APPEND_BLOB_SEAL change (Op::AppendBlobSeal.names()) Object &[Write] => seal_blob;
    BLOCK_BLOB_UPLOAD change (Op::BlockBlobUpload.names()) Object NEW => put_blob;
    #[touches (touches::copied)]
    BLOCK_BLOB_PUT_BLOB_FROM_URL change (Op::BlockBlobPutBlobFromUrl.names()) Object NEW
        => put_blob_from_url;
    #[touches (touches::block_staged)]
    BLOCK_BLOB_STAGE_BLOCK change (Op::BlockBlobStageBlock.names()) Object NEW => put_block;
    #[touches (touches::block_copied)]
    BLOCK_BLOB_STAGE_BLOCK_FROM_URL change (Op::BlockBlobStageBlockFromURL.names()) Object NEW
        => put_block_from_url;
    BLOCK_BLOB_COMMIT_BLOCK_LIST change (Op::BlockBlobCommitBlockList.names()) Object NEW
        => put_block_list;
    #[touches (touches::blocks_listed)]
    BLOCK_BLOB_GET_BLOCK_LIST pool_read (Op::BlockBlobGetBlockList.names()) Object &[Read]
        => block_list;
    // These two are answered as XML: see the flat and the hierarchical list.
    #[touches (touches::listed)]
    CONTAINER_LIST_BLOB_FLAT_SEGMENT_ARROW pool_read
        ("ContainerListBlobFlatSegmentArrow", "List Blobs") Container &[List] => list_blobs;
    #[touches (touches::listed)]
    CONTAINER_LIST_BLOB_HIERARCHY_SEGMENT_ARROW pool_read
        ("ContainerListBlobHierarchySegmentArrow", "List Blobs") Container &[List] => list_blobs;
}

const ACTION: &str = "x-ms-lease-action";
const SOURCE: When = When::Has("x-ms-copy-source");
const LEASE: (&str, &str) = ("", "lease");
const CONTAINER_LEASE: (&str, &str) = ("container", "lease");

/// A blob: of the root container, or of the container that its path names first.
const BLOB: &[ResourceLevel] = &[ResourceLevel::Container, ResourceLevel::Object];

const fn lease(
    level: &'static [ResourceLevel],
    action: &'static str,
    to: &'static Operation,
) -> RouteRow {
    let shape = match level {
        [ResourceLevel::Container] => CONTAINER_LEASE,
        _ => LEASE,
    };
    row_when(PUT, level, shape, When::Is(ACTION, action), to)
}

pub(super) static ABOVE_BLOBS: [RouteRow; 27] = [
    row(PUT, SERVICE, "service", "properties", &SERVICE_SET_PROPERTIES),
    row(GET, SERVICE, "service", "properties", &SERVICE_GET_PROPERTIES),
    row(GET, SERVICE, "service", "stats", &SERVICE_GET_STATISTICS),
    row(GET, SERVICE, "", "list", &SERVICE_LIST_CONTAINERS_SEGMENT),
    row(POST, SERVICE, "service", "userdelegationkey", &SERVICE_GET_USER_DELEGATION_KEY),
    row(LOOK, SERVICE, "account", "properties", &SERVICE_GET_ACCOUNT_INFO),
    row(POST, SERVICE, "", "batch", &SERVICE_SUBMIT_BATCH),
    // The JS client takes the account in the path for a container.
    row(POST, SERVICE, "container", "batch", &SERVICE_SUBMIT_BATCH),
    row(GET, SERVICE, "", "blobs", &SERVICE_FILTER_BLOBS),
    row(PUT, CONTAINER, "container", "", &CONTAINER_CREATE),
    row(LOOK, CONTAINER, "container", "", &CONTAINER_GET_PROPERTIES),
    row(LOOK, CONTAINER, "container", "metadata", &CONTAINER_GET_METADATA),
    row(DELETE, CONTAINER, "container", "", &CONTAINER_DELETE),
    row(PUT, CONTAINER, "container", "metadata", &CONTAINER_SET_METADATA),
    row(LOOK, CONTAINER, "container", "acl", &CONTAINER_GET_ACCESS_POLICY),
    row(PUT, CONTAINER, "container", "acl", &CONTAINER_SET_ACCESS_POLICY),
    row(PUT, CONTAINER, "container", "undelete", &CONTAINER_RESTORE),
    row(PUT, CONTAINER, "container", "rename", &CONTAINER_RENAME),
    row(POST, CONTAINER, "container", "batch", &CONTAINER_SUBMIT_BATCH),
    row(GET, CONTAINER, "container", "blobs", &CONTAINER_FILTER_BLOBS),
    lease(CONTAINER, "acquire", &CONTAINER_ACQUIRE_LEASE),
    lease(CONTAINER, "release", &CONTAINER_RELEASE_LEASE),
    lease(CONTAINER, "renew", &CONTAINER_RENEW_LEASE),
    lease(CONTAINER, "break", &CONTAINER_BREAK_LEASE),
    lease(CONTAINER, "change", &CONTAINER_CHANGE_LEASE),
    row(GET, CONTAINER, "container", "list", &CONTAINER_LIST_BLOB_FLAT_SEGMENT),
    row(LOOK, CONTAINER, "account", "properties", &CONTAINER_GET_ACCOUNT_INFO),
];

pub(super) static OF_BLOBS: [RouteRow; 36] = [
    row(LOOK, OBJECT, "account", "properties", &BLOB_GET_ACCOUNT_INFO),
    row(GET, BLOB, "", "", &BLOB_DOWNLOAD),
    row(HEAD, BLOB, "", "", &BLOB_GET_PROPERTIES),
    row(LOOK, BLOB, "", "metadata", &BLOB_GET_METADATA),
    row(DELETE, BLOB, "", "", &BLOB_DELETE),
    row(PUT, BLOB, "", "", &BLOCK_BLOB_UPLOAD),
    row(PUT, BLOB, "", "undelete", &BLOB_UNDELETE),
    row(PUT, BLOB, "", "expiry", &BLOB_SET_EXPIRY),
    row(PUT, BLOB, "", "properties", &BLOB_SET_HTTP_HEADERS),
    row(PUT, BLOB, "", "immutabilityPolicies", &BLOB_SET_IMMUTABILITY_POLICY),
    row(DELETE, BLOB, "", "immutabilityPolicies", &BLOB_DELETE_IMMUTABILITY_POLICY),
    row(PUT, BLOB, "", "legalhold", &BLOB_SET_LEGAL_HOLD),
    row(PUT, BLOB, "", "metadata", &BLOB_SET_METADATA),
    lease(BLOB, "acquire", &BLOB_ACQUIRE_LEASE),
    lease(BLOB, "release", &BLOB_RELEASE_LEASE),
    lease(BLOB, "renew", &BLOB_RENEW_LEASE),
    lease(BLOB, "change", &BLOB_CHANGE_LEASE),
    lease(BLOB, "break", &BLOB_BREAK_LEASE),
    row(PUT, BLOB, "", "snapshot", &BLOB_CREATE_SNAPSHOT),
    row(PUT, BLOB, "", "copy", &BLOB_ABORT_COPY_FROM_URL),
    row(PUT, BLOB, "", "tier", &BLOB_SET_TIER),
    row(POST, BLOB, "", "query", &BLOB_QUERY),
    row(GET, BLOB, "", "tags", &BLOB_GET_TAGS),
    row(PUT, BLOB, "", "tags", &BLOB_SET_TAGS),
    row_when(PUT, BLOB, ("", "page"), SOURCE, &PAGE_BLOB_UPLOAD_PAGES_FROM_URL),
    row_when(PUT, BLOB, ("", "page"), When::Is("x-ms-page-write", "clear"), &PAGE_BLOB_CLEAR_PAGES),
    row(PUT, BLOB, "", "page", &PAGE_BLOB_UPLOAD_PAGES),
    row(GET, BLOB, "", "pagelist", &PAGE_BLOB_GET_PAGE_RANGES),
    row(PUT, BLOB, "", "incrementalcopy", &PAGE_BLOB_COPY_INCREMENTAL),
    row_when(PUT, BLOB, ("", "appendblock"), SOURCE, &APPEND_BLOB_APPEND_BLOCK_FROM_URL),
    row(PUT, BLOB, "", "appendblock", &APPEND_BLOB_APPEND_BLOCK),
    row(PUT, BLOB, "", "seal", &APPEND_BLOB_SEAL),
    row_when(PUT, BLOB, ("", "block"), SOURCE, &BLOCK_BLOB_STAGE_BLOCK_FROM_URL),
    row(PUT, BLOB, "", "block", &BLOCK_BLOB_STAGE_BLOCK),
    row(PUT, BLOB, "", "blocklist", &BLOCK_BLOB_COMMIT_BLOCK_LIST),
    row(GET, BLOB, "", "blocklist", &BLOCK_BLOB_GET_BLOCK_LIST),
];
