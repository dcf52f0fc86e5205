//! The rules of all operations, written out a second time as a table to compare with.

use super::{BlobOperation, EtagEffect};
use crate::rules::conditions::ConditionForm;
use crate::rules::lease::LeaseClass;

/// Operation, conditions, source conditions, form, lease class, `ETag`. Operations that are not
/// listed have none of these.
const TABLE: &str = "
ContainerCreate               | -     | -     | create | - | new
ContainerGetProperties        | -     | -     | read   | R | same
ContainerGetMetadata          | -     | -     | read   | R | same
ContainerDelete               | IU    | -     | exists | D | -
ContainerSetMetadata          | I     | -     | exists | R | new
ContainerGetAccessPolicy      | -     | -     | read   | R | same
ContainerSetAccessPolicy      | IU    | -     | exists | R | new
ContainerAcquireLease         | IU    | -     | exists | L | same
ContainerReleaseLease         | IU    | -     | exists | L | same
ContainerRenewLease           | IU    | -     | exists | L | same
ContainerBreakLease           | IU    | -     | exists | L | same
ContainerChangeLease          | IU    | -     | exists | L | same
BlobDownload                  | MNIUT | -     | read   | R | same
BlobGetProperties             | MNIUT | -     | read   | R | same
BlobGetMetadata               | MNIUT | -     | read   | R | same
BlobDelete                    | MNIUT | -     | update | W | -
BlobSetHttpHeaders            | MNIUT | -     | update | W | new
BlobSetImmutabilityPolicy     | U     | -     | exists | - | -
BlobDeleteImmutabilityPolicy  | -     | -     | exists | - | -
BlobSetLegalHold              | -     | -     | exists | - | -
BlobSetMetadata               | MNIUT | -     | update | W | new
BlobAcquireLease              | MNIUT | -     | update | L | same
BlobReleaseLease              | MNIUT | -     | update | L | same
BlobRenewLease                | MNIUT | -     | update | L | same
BlobChangeLease               | MNIUT | -     | update | L | same
BlobBreakLease                | MNIUT | -     | update | L | same
BlobCreateSnapshot            | MNIUT | -     | update | R | same
BlobStartCopyFromURL          | MNIUT | MNIUT | create | C | new
BlobCopyFromURL               | MNIUT | MNIU  | create | W | new
BlobAbortCopyFromURL          | -     | -     | exists | A | -
BlobSetTier                   | T     | -     | exists | W | -
BlobQuery                     | MNIUT | -     | read   | R | same
BlobGetTags                   | T     | -     | read   | R | -
BlobSetTags                   | T     | -     | exists | W | -
PageBlobCreate                | MNIUT | -     | create | W | new
PageBlobUploadPages           | MNIUT | -     | exists | W | new
PageBlobClearPages            | MNIUT | -     | exists | W | new
PageBlobUploadPagesFromURL    | MNIUT | MNIU  | exists | W | new
PageBlobGetPageRanges         | MNIUT | -     | read   | R | same
PageBlobGetPageRangesDiff     | MNIUT | -     | read   | R | same
PageBlobResize                | MNIUT | -     | update | W | new
PageBlobUpdateSequenceNumber  | MNIUT | -     | update | W | new
PageBlobCopyIncremental       | MNIUT | -     | create | W | new
AppendBlobCreate              | MNIUT | -     | create | W | new
AppendBlobAppendBlock         | MNIUT | -     | exists | W | new
AppendBlobAppendBlockFromUrl  | MNIUT | MNIU  | exists | W | new
AppendBlobSeal                | MNIU  | -     | exists | W | new
BlockBlobUpload               | MNIUT | -     | create | W | new
BlockBlobPutBlobFromUrl       | MNIUT | MNIUT | create | W | new
BlockBlobStageBlock           | -     | -     | create | W | -
BlockBlobStageBlockFromURL    | -     | MNIU  | create | W | -
BlockBlobCommitBlockList      | MNIUT | -     | create | W | new
BlockBlobGetBlockList         | T     | -     | read   | R | same
";

fn shown(operation: BlobOperation) -> String {
    let rules = operation.rules();
    let letters = |accepted: super::Accepted| match accepted.0 {
        "" => "-",
        letters => letters,
    };
    let form = match rules.form {
        ConditionForm::Read => "read",
        ConditionForm::Create => "create",
        ConditionForm::Update => "update",
        ConditionForm::UpdateExisting => "exists",
    };
    let lease = match rules.lease {
        LeaseClass::Ignored => "-",
        LeaseClass::Action => "L",
        LeaseClass::Read => "R",
        LeaseClass::Write => "W",
        LeaseClass::Delete => "D",
        LeaseClass::CopyTarget => "C",
        LeaseClass::AbortCopy => "A",
    };
    let etag = match rules.etag {
        EtagEffect::Moves => "new",
        EtagEffect::Returned => "same",
        EtagEffect::Absent => "-",
    };
    let (accepts, source) = (letters(rules.accepts), letters(rules.source));
    [operation.name(), accepts, source, form, lease, etag].join(" | ")
}

#[test]
fn every_operation_follows_the_table() {
    let rows: Vec<String> = TABLE
        .trim()
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>().join(" | "))
        .collect();
    for operation in BlobOperation::ALL {
        let shown = shown(*operation);
        let name = operation.name();
        let listed = rows.iter().find(|row| row.split(' ').next() == Some(name));
        match listed {
            Some(row) => assert_eq!(&shown, row),
            None => assert_eq!(shown, format!("{name} | - | - | read | - | -")),
        }
    }
    let known = |row: &&String| {
        BlobOperation::ALL.iter().any(|operation| row.split(' ').next() == Some(operation.name()))
    };
    assert_eq!(rows.iter().filter(known).count(), rows.len());
}

#[test]
fn there_are_74_operations() {
    assert_eq!(BlobOperation::ALL.len(), 74);
}

/// Every operation that moves the `ETag` of a blob is refused while the blob is archived or while
/// a copy to it is pending; lease actions, tags and tiers never move it.
#[test]
fn whatever_moves_the_etag_of_a_blob_changes_it() {
    for operation in BlobOperation::ALL {
        let rules = operation.rules();
        let of_blob = !operation.name().starts_with("Container");
        if of_blob && rules.etag == EtagEffect::Moves {
            assert!(rules.needs_content && rules.waits_for_copy, "{operation:?}");
        }
    }
}
