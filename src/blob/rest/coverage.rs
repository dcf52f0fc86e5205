//! The entries of the Blob service's table of operations that cannot be read from code: the version
//! that introduced an operation, and its differences to the service. The section of the page is
//! written by [`crate::http::frame::coverage`].

use super::operations::{
    ABOVE_BLOBS, APPEND_BLOB_CREATE, BLOB_COPY_FROM_URL, BLOB_START_COPY_FROM_URL,
    BLOCK_BLOB_PUT_BLOB_FROM_URL, CONTAINER_LIST_BLOB_HIERARCHY_SEGMENT, OF_BLOBS,
    PAGE_BLOB_CREATE, PAGE_BLOB_GET_PAGE_RANGES_DIFF, PAGE_BLOB_RESIZE,
    PAGE_BLOB_UPDATE_SEQUENCE_NUMBER, SERVICE_TABLE,
};
use crate::http::auth::ResourceLevel;
use crate::http::frame::coverage::Coverage;
use crate::http::frame::host::HostedAccount;
use crate::http::frame::routing::{CONTAINER, GET, OBJECT, PUT, RouteRow, When, row, row_when};

/// The version of the service that first had an operation; what no page names is as old as the
/// service.
fn since(operation: &'static str) -> &'static str {
    match operation {
        "PageBlobResize" | "PageBlobUpdateSequenceNumber" => "2011-08-18",
        "BlobAbortCopyFromURL" => "2012-02-12",
        lease if lease.ends_with("Lease") => "2012-02-12",
        "ServicePreflight" | "ServiceGetStatistics" => "2013-08-15",
        "AppendBlobCreate" | "AppendBlobAppendBlock" => "2015-02-21",
        "PageBlobGetPageRangesDiff" => "2015-07-08",
        "PageBlobCopyIncremental" => "2016-05-31",
        "BlobSetTier" => "2017-04-17",
        "BlobUndelete" => "2017-07-29",
        "ServiceGetAccountInfo"
        | "ContainerGetAccountInfo"
        | "BlobGetAccountInfo"
        | "BlobCopyFromURL"
        | "BlockBlobStageBlockFromURL" => "2018-03-28",
        "ServiceGetUserDelegationKey"
        | "ServiceSubmitBatch"
        | "AppendBlobAppendBlockFromUrl"
        | "PageBlobUploadPagesFromURL" => "2018-11-09",
        "ServiceFilterBlobs" | "ContainerRestore" | "BlobGetTags" | "BlobSetTags" | "BlobQuery"
        | "AppendBlobSeal" => "2019-12-12",
        "BlobSetExpiry" => "2020-02-10",
        "ContainerSubmitBatch" | "BlockBlobPutBlobFromUrl" => "2020-04-08",
        "BlobSetImmutabilityPolicy"
        | "BlobDeleteImmutabilityPolicy"
        | "BlobSetLegalHold"
        | "ContainerRename" => "2020-06-12",
        "ContainerFilterBlobs" => "2021-04-10",
        _ => "2009-09-19",
    }
}

/// The differences to the service that a user should know.
fn differs(operation: &'static str) -> &'static str {
    match operation {
        "ServiceSetProperties" | "ServiceGetProperties" => {
            "CORS rules and the retention of deleted blobs have an effect; the rest is kept"
        }
        "ServiceGetStatistics" => "on `ACCOUNT-secondary`",
        "ServiceGetUserDelegationKey" => "with `--oauth basic`",
        "ContainerDelete" => "the name is free at once",
        "ContainerListBlobHierarchySegment" => "with `delimiter`; always XML, never Arrow",
        "ContainerListBlobFlatSegment" => "always XML, never Arrow",
        "ContainerSetMetadata" | "ContainerSetAccessPolicy" => "takes If-Match too",
        "BlobCopyFromURL" | "BlockBlobPutBlobFromUrl" => {
            "with `x-ms-copy-source`; a source on another server needs `--copy-sources any`"
        }
        "BlobStartCopyFromURL"
        | "BlockBlobStageBlockFromURL"
        | "PageBlobUploadPagesFromURL"
        | "AppendBlobAppendBlockFromUrl" => "a source on another server needs `--copy-sources any`",
        "BlobSetTier" => "out of Archive at once",
        "PageBlobGetPageRangesDiff" => "or with `prevsnapshot`",
        _ => "",
    }
}

/// Forms of a request that a table of shapes cannot tell apart, for [`super::operations`] looks at
/// several headers at once.
const FORMS: [RouteRow; 9] = [
    row(GET, CONTAINER, "container", "list", &CONTAINER_LIST_BLOB_HIERARCHY_SEGMENT),
    row_when(PUT, OBJECT, ("", ""), When::Is("x-ms-blob-type", "PageBlob"), &PAGE_BLOB_CREATE),
    row_when(PUT, OBJECT, ("", ""), When::Is("x-ms-blob-type", "AppendBlob"), &APPEND_BLOB_CREATE),
    row_when(
        PUT,
        OBJECT,
        ("", ""),
        When::Is("x-ms-blob-type", "BlockBlob"),
        &BLOCK_BLOB_PUT_BLOB_FROM_URL,
    ),
    row_when(PUT, OBJECT, ("", ""), When::Has("x-ms-copy-source"), &BLOB_START_COPY_FROM_URL),
    row_when(PUT, OBJECT, ("", ""), When::Is("x-ms-requires-sync", "true"), &BLOB_COPY_FROM_URL),
    row_when(
        PUT,
        OBJECT,
        ("", "properties"),
        When::Has("x-ms-blob-content-length"),
        &PAGE_BLOB_RESIZE,
    ),
    row_when(
        PUT,
        OBJECT,
        ("", "properties"),
        When::Has("x-ms-sequence-number-action"),
        &PAGE_BLOB_UPDATE_SEQUENCE_NUMBER,
    ),
    row_when(
        GET,
        OBJECT,
        ("", "pagelist"),
        When::Has("x-ms-previous-snapshot-url"),
        &PAGE_BLOB_GET_PAGE_RANGES_DIFF,
    ),
];

/// All requests. That a blob of the root container needs no container is not shown.
fn rows() -> &'static [RouteRow] {
    let of_blobs = OF_BLOBS.iter().map(|row| RouteRow { levels: OBJECT, ..*row });
    let all: Vec<RouteRow> = ABOVE_BLOBS.iter().copied().chain(of_blobs).chain(FORMS).collect();
    Box::leak(all.into_boxed_slice())
}

fn paths(level: ResourceLevel) -> (&'static str, &'static str) {
    match level {
        ResourceLevel::Service => ("/", "/"),
        ResourceLevel::Container => ("/CONTAINER", "/docs"),
        ResourceLevel::Object => ("/CONTAINER/BLOB", "/docs/blob"),
    }
}

/// Nothing is needed: that a container is missing is an answer too.
const fn prepare(_: &dyn HostedAccount) {}

/// The section of the Blob service.
pub(crate) fn coverage() -> Coverage {
    Coverage {
        service: &SERVICE_TABLE,
        page: "docs/blob.md",
        title: "Operations of the Blob service",
        rows: rows(),
        paths,
        prepare,
        groups: &["Service", "Container", "BlockBlob", "PageBlob", "AppendBlob", "Blob"],
        since,
        differs,
    }
}
