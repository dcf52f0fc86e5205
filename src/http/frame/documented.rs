//! The names of operations in the services' documentation.
//!
//! The tables of operations have the names that the SDKs are generated with, one for each function
//! of a client; people know the documentation, where several of them are one operation.

use crate::rules::service::ServiceKind;

/// The name of an operation in the documentation; its own name if the documentation has none.
pub fn name_of(service: ServiceKind, operation: &'static str) -> &'static str {
    let table = match service {
        ServiceKind::File => FILE,
        ServiceKind::Blob => BLOB,
        ServiceKind::Queue => QUEUE,
        ServiceKind::Table => TABLE,
    };
    let found = table.iter().find(|(_, names)| names.contains(&operation));
    found.map_or(operation, |(title, _)| title)
}

type Titles = &'static [(&'static str, &'static [&'static str])];

const FILE: Titles = &[
    ("Preflight File Request", &["ServicePreflight"]),
    ("Set File Service Properties", &["ServiceSetProperties"]),
    ("Get File Service Properties", &["ServiceGetProperties"]),
    ("Get User Delegation Key", &["ServiceGetUserDelegationKey"]),
    ("List Shares", &["ServiceListSharesSegment"]),
    ("Create Share", &["ShareCreate"]),
    ("Get Share Properties", &["ShareGetProperties"]),
    ("Set Share Properties", &["ShareSetProperties"]),
    ("Get Share Metadata", &["ShareGetMetadata"]),
    ("Set Share Metadata", &["ShareSetMetadata"]),
    ("Delete Share", &["ShareDelete"]),
    ("Restore Share", &["ShareRestore"]),
    ("Snapshot Share", &["ShareCreateSnapshot"]),
    ("Get Share ACL", &["ShareGetAccessPolicy"]),
    ("Set Share ACL", &["ShareSetAccessPolicy"]),
    ("Get Share Stats", &["ShareGetStatistics"]),
    ("Create Permission", &["ShareCreatePermission"]),
    ("Get Permission", &["ShareGetPermission"]),
    (
        "Lease Share",
        &[
            "ShareAcquireLease",
            "ShareBreakLease",
            "ShareChangeLease",
            "ShareReleaseLease",
            "ShareRenewLease",
        ],
    ),
    ("List Directories and Files", &["DirectoryListFilesAndDirectoriesSegment"]),
    ("Create Directory", &["DirectoryCreate"]),
    ("Get Directory Properties", &["DirectoryGetProperties"]),
    ("Set Directory Properties", &["DirectorySetProperties"]),
    ("Set Directory Metadata", &["DirectorySetMetadata"]),
    ("Delete Directory", &["DirectoryDelete"]),
    ("Rename Directory", &["DirectoryRename"]),
    ("List Handles", &["DirectoryListHandles", "FileListHandles"]),
    ("Force Close Handles", &["DirectoryForceCloseHandles", "FileForceCloseHandles"]),
    ("Create File", &["FileCreate"]),
    ("Get File", &["FileDownload"]),
    ("Get File Properties", &["FileGetProperties"]),
    ("Set File Properties", &["FileSetHttpHeaders"]),
    ("Set File Metadata", &["FileSetMetadata"]),
    ("Delete File", &["FileDelete"]),
    ("Rename File", &["FileRename"]),
    ("Put Range", &["FileUploadRange"]),
    ("Put Range From URL", &["FileUploadRangeFromURL"]),
    ("List Ranges", &["FileGetRangeList"]),
    ("Copy File", &["FileStartCopy"]),
    ("Abort Copy File", &["FileAbortCopy"]),
    ("Create Hard Link", &["FileCreateHardLink"]),
    ("Create Symbolic Link", &["FileCreateSymbolicLink"]),
    ("Get Symbolic Link", &["FileGetSymbolicLink"]),
    ("Lease File", &["FileAcquireLease", "FileBreakLease", "FileChangeLease", "FileReleaseLease"]),
];

const BLOB: Titles = &[
    ("Preflight Blob Request", &["ServicePreflight"]),
    ("Set Blob Service Properties", &["ServiceSetProperties"]),
    ("Get Blob Service Properties", &["ServiceGetProperties"]),
    ("Get Blob Service Stats", &["ServiceGetStatistics"]),
    ("Get User Delegation Key", &["ServiceGetUserDelegationKey"]),
    (
        "Get Account Information",
        &["ServiceGetAccountInfo", "ContainerGetAccountInfo", "BlobGetAccountInfo"],
    ),
    ("Blob Batch", &["ServiceSubmitBatch", "ContainerSubmitBatch"]),
    ("Find Blobs by Tags", &["ServiceFilterBlobs"]),
    ("Find Blobs by Tags in Container", &["ContainerFilterBlobs"]),
    ("List Containers", &["ServiceListContainersSegment"]),
    ("Create Container", &["ContainerCreate"]),
    ("Get Container Properties", &["ContainerGetProperties"]),
    ("Get Container Metadata", &["ContainerGetMetadata"]),
    ("Set Container Metadata", &["ContainerSetMetadata"]),
    ("Get Container ACL", &["ContainerGetAccessPolicy"]),
    ("Set Container ACL", &["ContainerSetAccessPolicy"]),
    ("Delete Container", &["ContainerDelete"]),
    ("Restore Container", &["ContainerRestore"]),
    ("Rename Container", &["ContainerRename"]),
    (
        "Lease Container",
        &[
            "ContainerAcquireLease",
            "ContainerBreakLease",
            "ContainerChangeLease",
            "ContainerReleaseLease",
            "ContainerRenewLease",
        ],
    ),
    (
        "List Blobs",
        &[
            "ContainerListBlobFlatSegment",
            "ContainerListBlobFlatSegmentArrow",
            "ContainerListBlobHierarchySegment",
            "ContainerListBlobHierarchySegmentArrow",
        ],
    ),
    ("Put Blob", &["BlockBlobUpload", "AppendBlobCreate", "PageBlobCreate"]),
    ("Put Blob From URL", &["BlockBlobPutBlobFromUrl"]),
    ("Get Blob", &["BlobDownload"]),
    ("Get Blob Properties", &["BlobGetProperties"]),
    (
        "Set Blob Properties",
        &["BlobSetHttpHeaders", "PageBlobResize", "PageBlobUpdateSequenceNumber"],
    ),
    ("Get Blob Metadata", &["BlobGetMetadata"]),
    ("Set Blob Metadata", &["BlobSetMetadata"]),
    ("Get Blob Tags", &["BlobGetTags"]),
    ("Set Blob Tags", &["BlobSetTags"]),
    ("Set Blob Tier", &["BlobSetTier"]),
    ("Set Blob Expiry", &["BlobSetExpiry"]),
    ("Set Blob Immutability Policy", &["BlobSetImmutabilityPolicy"]),
    ("Delete Blob Immutability Policy", &["BlobDeleteImmutabilityPolicy"]),
    ("Set Blob Legal Hold", &["BlobSetLegalHold"]),
    ("Delete Blob", &["BlobDelete"]),
    ("Undelete Blob", &["BlobUndelete"]),
    ("Snapshot Blob", &["BlobCreateSnapshot"]),
    ("Query Blob Contents", &["BlobQuery"]),
    (
        "Lease Blob",
        &[
            "BlobAcquireLease",
            "BlobBreakLease",
            "BlobChangeLease",
            "BlobReleaseLease",
            "BlobRenewLease",
        ],
    ),
    ("Copy Blob", &["BlobStartCopyFromURL"]),
    ("Copy Blob From URL", &["BlobCopyFromURL"]),
    ("Abort Copy Blob", &["BlobAbortCopyFromURL"]),
    ("Put Block", &["BlockBlobStageBlock"]),
    ("Put Block From URL", &["BlockBlobStageBlockFromURL"]),
    ("Put Block List", &["BlockBlobCommitBlockList"]),
    ("Get Block List", &["BlockBlobGetBlockList"]),
    ("Append Block", &["AppendBlobAppendBlock"]),
    ("Append Block From URL", &["AppendBlobAppendBlockFromUrl"]),
    ("Append Blob Seal", &["AppendBlobSeal"]),
    ("Put Page", &["PageBlobUploadPages", "PageBlobClearPages"]),
    ("Put Page From URL", &["PageBlobUploadPagesFromURL"]),
    ("Get Page Ranges", &["PageBlobGetPageRanges", "PageBlobGetPageRangesDiff"]),
    ("Incremental Copy Blob", &["PageBlobCopyIncremental"]),
];

const QUEUE: Titles = &[
    ("Preflight Queue Request", &["ServicePreflight"]),
    ("Set Queue Service Properties", &["ServiceSetProperties"]),
    ("Get Queue Service Properties", &["ServiceGetProperties"]),
    ("Get Queue Service Stats", &["ServiceGetStatistics"]),
    ("Get User Delegation Key", &["ServiceGetUserDelegationKey"]),
    ("List Queues", &["ServiceListQueuesSegment"]),
    ("Create Queue", &["QueueCreate"]),
    ("Delete Queue", &["QueueDelete"]),
    ("Get Queue Metadata", &["QueueGetProperties"]),
    ("Set Queue Metadata", &["QueueSetMetadata"]),
    ("Get Queue ACL", &["QueueGetAccessPolicy"]),
    ("Set Queue ACL", &["QueueSetAccessPolicy"]),
    ("Put Message", &["MessagesEnqueue"]),
    ("Get Messages", &["MessagesDequeue"]),
    ("Peek Messages", &["MessagesPeek"]),
    ("Clear Messages", &["MessagesClear"]),
    ("Update Message", &["MessageIdUpdate"]),
    ("Delete Message", &["MessageIdDelete"]),
];

const TABLE: Titles = &[
    ("Preflight Table Request", &["ServicePreflight"]),
    ("Set Table Service Properties", &["ServiceSetProperties"]),
    ("Get Table Service Properties", &["ServiceGetProperties"]),
    ("Get Table Service Stats", &["ServiceGetStatistics"]),
    ("Query Tables", &["TableQuery", "TableGet"]),
    ("Create Table", &["TableCreate"]),
    ("Delete Table", &["TableDelete"]),
    ("Get Table ACL", &["TableGetAccessPolicy"]),
    ("Set Table ACL", &["TableSetAccessPolicy"]),
    ("Query Entities", &["TableQueryEntities", "TableGetEntity"]),
    ("Insert Entity", &["TableInsertEntity"]),
    ("Insert Or Merge Entity", &["TableInsertOrMergeEntity"]),
    ("Insert Or Replace Entity", &["TableInsertOrReplaceEntity"]),
    ("Update Entity", &["TableUpdateEntity"]),
    ("Merge Entity", &["TableMergeEntity"]),
    ("Delete Entity", &["TableDeleteEntity"]),
    ("Entity Group Transaction", &["TableBatch"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_the_name_that_its_documentation_gives_it() {
        for service in [
            &crate::file::rest::operations::SERVICE_TABLE,
            &crate::blob::rest::operations::SERVICE_TABLE,
            &crate::queue::rest::operations::SERVICE_TABLE,
            &crate::table::rest::operations::SERVICE_TABLE,
        ] {
            for operation in service.operations {
                let title = name_of(service.kind, operation.name);
                assert!(title.contains(' '), "{} of {}", operation.name, service.kind);
            }
        }
        assert_eq!(name_of(ServiceKind::Blob, "PageBlobCreate"), "Put Blob");
    }
}
