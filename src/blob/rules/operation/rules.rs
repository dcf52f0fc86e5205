//! The rules of each operation, as one table.

use super::BlobOperation as Op;
use crate::blob::rules::state::BlobType;
use crate::rules::conditions::ConditionForm;
use crate::rules::conditions::copy::CopyKind;
use crate::rules::lease::LeaseClass;

/// Which conditions an operation takes, by the letters M If-Match, N If-None-Match, I
/// If-Modified-Since, U If-Unmodified-Since, T `x-ms-if-tags`. Others are ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted(pub &'static str);

impl Accepted {
    /// Whether the condition of this letter is taken.
    pub fn has(self, letter: char) -> bool {
        self.0.contains(letter)
    }
}

/// Whether a policy or legal hold stops an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Immutable {
    Admitted,
    /// Yes, unless the state before it stays as a version.
    RefusedUnlessVersioned,
    Refused,
}

/// The rules of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "columns of a table, each a yes or no")]
pub struct Rules {
    /// How it takes conditions.
    pub form: ConditionForm,
    /// Which conditions it takes.
    pub accepts: Accepted,
    /// Which conditions it takes on the source of a copy.
    pub source: Accepted,
    /// How it answers for the conditions of a copy.
    pub copy: Option<CopyKind>,
    /// How it meets a lease.
    pub lease: LeaseClass,
    /// The only type of blob that it is for.
    pub kind: Option<BlobType>,
    /// Whether it meets a blob that has uncommitted blocks and nothing else.
    pub reaches_uncommitted: bool,
    /// Whether an archived blob refuses it.
    pub needs_content: bool,
    /// Whether a policy or hold stops it.
    pub immutable: Immutable,
    /// Whether it leaves the state before it as a version, where the account keeps versions.
    pub makes_version: bool,
    /// Whether a customer's key must be sent for a blob that has one.
    pub needs_key: bool,
    /// Whether a pending copy to the blob refuses it.
    pub waits_for_copy: bool,
}

const ALL: Accepted = Accepted("MNIUT");
const NONE: Accepted = Accepted("");

/// An operation without conditions, lease or `ETag`.
const PLAIN: Rules = Rules {
    form: ConditionForm::Read,
    accepts: NONE,
    source: NONE,
    copy: None,
    lease: LeaseClass::Ignored,
    kind: None,
    reaches_uncommitted: false,
    needs_content: false,
    immutable: Immutable::Admitted,
    makes_version: false,
    needs_key: false,
    waits_for_copy: false,
};

const READ: Rules = Rules { accepts: ALL, lease: LeaseClass::Read, ..PLAIN };

/// A write of an existing blob.
const UPDATE: Rules = Rules {
    form: ConditionForm::Update,
    accepts: ALL,
    lease: LeaseClass::Write,
    needs_content: true,
    immutable: Immutable::Refused,
    waits_for_copy: true,
    ..PLAIN
};

/// A write that creates or replaces a blob.
const CREATE: Rules = Rules {
    form: ConditionForm::Create,
    reaches_uncommitted: true,
    immutable: Immutable::RefusedUnlessVersioned,
    makes_version: true,
    ..UPDATE
};

/// A write of pages or of an appended block, which keeps the rest of the content.
const EXTEND: Rules = Rules { form: ConditionForm::UpdateExisting, needs_key: true, ..UPDATE };
const PAGES: Rules = Rules { kind: Some(BlobType::Page), ..EXTEND };
const APPEND: Rules = Rules { kind: Some(BlobType::Append), ..EXTEND };

/// A change of something that is no content.
const REMARK: Rules = Rules {
    form: ConditionForm::UpdateExisting,
    accepts: Accepted("T"),
    needs_content: false,
    immutable: Immutable::Admitted,
    ..UPDATE
};

/// Put Block: the blob itself stays as it is.
const STAGE: Rules = Rules {
    form: ConditionForm::Create,
    accepts: NONE,
    kind: Some(BlobType::Block),
    reaches_uncommitted: true,
    immutable: Immutable::Admitted,
    ..UPDATE
};

const BLOB_LEASE: Rules = Rules {
    lease: LeaseClass::Action,
    needs_content: false,
    immutable: Immutable::Admitted,
    reaches_uncommitted: true,
    ..UPDATE
};

const CONTAINER_READ: Rules = Rules { accepts: NONE, ..READ };
/// The documented conditions; the engine takes the others too unless it is told to be strict.
const CONTAINER_WRITE: Rules = Rules {
    form: ConditionForm::UpdateExisting,
    accepts: Accepted("IU"),
    lease: LeaseClass::Read,
    ..PLAIN
};
const CONTAINER_LEASE: Rules = Rules { lease: LeaseClass::Action, ..CONTAINER_WRITE };

const SOURCE: Accepted = Accepted("MNIU");
const PART: Option<CopyKind> = Some(CopyKind::PartFromUrl);

impl Op {
    /// The rules of the operation.
    #[allow(clippy::too_many_lines, reason = "a table")]
    pub const fn rules(self) -> Rules {
        match self {
            Self::ContainerRestore | Self::BlobUndelete => PLAIN,
            Self::ContainerCreate => Rules { form: ConditionForm::Create, ..PLAIN },
            Self::ContainerGetProperties
            | Self::ContainerGetMetadata
            | Self::ContainerGetAccessPolicy => CONTAINER_READ,
            Self::ContainerSetMetadata => Rules { accepts: Accepted("I"), ..CONTAINER_WRITE },
            Self::ContainerSetAccessPolicy => CONTAINER_WRITE,
            Self::ContainerDelete => Rules { lease: LeaseClass::Delete, ..CONTAINER_WRITE },
            Self::ContainerAcquireLease
            | Self::ContainerReleaseLease
            | Self::ContainerRenewLease
            | Self::ContainerBreakLease
            | Self::ContainerChangeLease => CONTAINER_LEASE,
            Self::BlobDownload => Rules { needs_content: true, needs_key: true, ..READ },
            Self::BlobGetProperties | Self::BlobGetMetadata => Rules { needs_key: true, ..READ },
            Self::BlobDelete => Rules { reaches_uncommitted: true, needs_content: false, ..UPDATE },
            Self::BlobSetHttpHeaders => UPDATE,
            Self::PageBlobResize | Self::PageBlobUpdateSequenceNumber => {
                Rules { kind: Some(BlobType::Page), ..UPDATE }
            }
            Self::BlobSetMetadata => Rules {
                immutable: Immutable::RefusedUnlessVersioned,
                makes_version: true,
                needs_key: true,
                ..UPDATE
            },
            Self::BlobSetImmutabilityPolicy => {
                Rules { form: ConditionForm::UpdateExisting, accepts: Accepted("U"), ..PLAIN }
            }
            Self::BlobDeleteImmutabilityPolicy | Self::BlobSetLegalHold => {
                Rules { form: ConditionForm::UpdateExisting, ..PLAIN }
            }
            Self::BlobAcquireLease
            | Self::BlobReleaseLease
            | Self::BlobRenewLease
            | Self::BlobChangeLease
            | Self::BlobBreakLease => BLOB_LEASE,
            Self::BlobCreateSnapshot => Rules {
                lease: LeaseClass::Read,
                immutable: Immutable::Admitted,
                makes_version: true,
                needs_key: true,
                ..UPDATE
            },
            Self::BlobStartCopyFromURL => Rules {
                lease: LeaseClass::CopyTarget,
                source: ALL,
                copy: Some(CopyKind::CopyBlob),
                ..CREATE
            },
            Self::BlobCopyFromURL => {
                Rules { source: SOURCE, copy: Some(CopyKind::CopyBlobFromUrl), ..CREATE }
            }
            Self::BlockBlobPutBlobFromUrl => {
                Rules { source: ALL, copy: Some(CopyKind::PutBlobFromUrl), ..CREATE }
            }
            Self::BlobAbortCopyFromURL => {
                Rules { form: ConditionForm::UpdateExisting, lease: LeaseClass::AbortCopy, ..PLAIN }
            }
            Self::BlobSetTier | Self::BlobSetTags => REMARK,
            Self::BlobGetTags => Rules { accepts: Accepted("T"), ..READ },
            Self::PageBlobCreate | Self::AppendBlobCreate | Self::BlockBlobUpload => CREATE,
            Self::BlockBlobCommitBlockList => Rules { kind: Some(BlobType::Block), ..CREATE },
            Self::PageBlobUploadPages | Self::PageBlobClearPages => PAGES,
            Self::PageBlobUploadPagesFromURL => Rules { source: SOURCE, copy: PART, ..PAGES },
            Self::PageBlobGetPageRanges | Self::PageBlobGetPageRangesDiff => {
                Rules { kind: Some(BlobType::Page), ..READ }
            }
            Self::AppendBlobAppendBlock => APPEND,
            Self::AppendBlobAppendBlockFromUrl => Rules { source: SOURCE, copy: PART, ..APPEND },
            Self::AppendBlobSeal => Rules { accepts: SOURCE, needs_key: false, ..APPEND },
            Self::BlockBlobStageBlock => STAGE,
            Self::BlockBlobStageBlockFromURL => Rules { source: SOURCE, copy: PART, ..STAGE },
            Self::BlockBlobGetBlockList => Rules {
                accepts: Accepted("T"),
                kind: Some(BlobType::Block),
                reaches_uncommitted: true,
                needs_content: true,
                ..READ
            },
        }
    }
}
