//! The operations of the Blob service, and the rules that each follows.
//!
//! Decides for each operation which conditions it takes, its lease class, and which types and
//! states of blobs it needs, in one table: [`BlobOperation::rules`]. REST has the table of requests
//! and permissions; [`super::admit`] has the order in which the rules are checked.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::{Accepted, Immutable, Rules};

/// The operations: the name in the service's own description of its interface, and the name of its
/// documentation page.
macro_rules! operations {
    ($($name:ident $title:literal,)*) => {
        /// An operation of the Blob service.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum BlobOperation {
            $($name,)*
        }

        impl BlobOperation {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the service's own description of its interface.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The name of its documentation page, as people say it.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)*
                }
            }

            /// The name and the title.
            pub const fn names(self) -> (&'static str, &'static str) {
                (self.name(), self.title())
            }
        }
    };
}

operations! {
    ContainerCreate "Create Container",
    ContainerGetProperties "Get Container Properties",
    ContainerGetMetadata "Get Container Metadata",
    ContainerDelete "Delete Container",
    ContainerSetMetadata "Set Container Metadata",
    ContainerGetAccessPolicy "Get Container ACL",
    ContainerSetAccessPolicy "Set Container ACL",
    ContainerRestore "Restore Container",
    ContainerAcquireLease "Lease Container",
    ContainerReleaseLease "Lease Container",
    ContainerRenewLease "Lease Container",
    ContainerBreakLease "Lease Container",
    ContainerChangeLease "Lease Container",
    BlobDownload "Get Blob",
    BlobGetProperties "Get Blob Properties",
    BlobGetMetadata "Get Blob Metadata",
    BlobDelete "Delete Blob",
    BlobUndelete "Undelete Blob",
    BlobSetHttpHeaders "Set Blob Properties",
    BlobSetImmutabilityPolicy "Set Blob Immutability Policy",
    BlobDeleteImmutabilityPolicy "Delete Blob Immutability Policy",
    BlobSetLegalHold "Set Blob Legal Hold",
    BlobSetMetadata "Set Blob Metadata",
    BlobAcquireLease "Lease Blob",
    BlobReleaseLease "Lease Blob",
    BlobRenewLease "Lease Blob",
    BlobChangeLease "Lease Blob",
    BlobBreakLease "Lease Blob",
    BlobCreateSnapshot "Snapshot Blob",
    BlobStartCopyFromURL "Copy Blob",
    BlobCopyFromURL "Copy Blob From URL",
    BlobAbortCopyFromURL "Abort Copy Blob",
    BlobSetTier "Set Blob Tier",
    BlobGetTags "Get Blob Tags",
    BlobSetTags "Set Blob Tags",
    PageBlobCreate "Put Blob",
    PageBlobUploadPages "Put Page",
    PageBlobClearPages "Put Page",
    PageBlobUploadPagesFromURL "Put Page From URL",
    PageBlobGetPageRanges "Get Page Ranges",
    PageBlobGetPageRangesDiff "Get Page Ranges",
    PageBlobResize "Set Blob Properties",
    PageBlobUpdateSequenceNumber "Set Blob Properties",
    AppendBlobCreate "Put Blob",
    AppendBlobAppendBlock "Append Block",
    AppendBlobAppendBlockFromUrl "Append Block From URL",
    AppendBlobSeal "Append Blob Seal",
    BlockBlobUpload "Put Blob",
    BlockBlobPutBlobFromUrl "Put Blob From URL",
    BlockBlobStageBlock "Put Block",
    BlockBlobStageBlockFromURL "Put Block From URL",
    BlockBlobCommitBlockList "Put Block List",
    BlockBlobGetBlockList "Get Block List",
}
