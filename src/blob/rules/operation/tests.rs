//! The rules of all operations, written out a second time as a table to compare with.

use super::BlobOperation;
use crate::rules::conditions::ConditionForm;
use crate::rules::lease::LeaseClass;

/// Operation, conditions, source conditions, form, lease class. Operations that are not
/// listed have none of these.
const TABLE: &str = "
ContainerCreate               | -     | -     | create | -
ContainerGetProperties        | -     | -     | read   | R
ContainerGetMetadata          | -     | -     | read   | R
ContainerDelete               | IU    | -     | exists | D
ContainerSetMetadata          | I     | -     | exists | R
ContainerGetAccessPolicy      | -     | -     | read   | R
ContainerSetAccessPolicy      | IU    | -     | exists | R
ContainerAcquireLease         | IU    | -     | exists | L
ContainerReleaseLease         | IU    | -     | exists | L
ContainerRenewLease           | IU    | -     | exists | L
ContainerBreakLease           | IU    | -     | exists | L
ContainerChangeLease          | IU    | -     | exists | L
BlobDownload                  | MNIUT | -     | read   | R
BlobGetProperties             | MNIUT | -     | read   | R
BlobGetMetadata               | MNIUT | -     | read   | R
BlobDelete                    | MNIUT | -     | update | W
BlobSetHttpHeaders            | MNIUT | -     | update | W
BlobSetImmutabilityPolicy     | U     | -     | exists | -
BlobDeleteImmutabilityPolicy  | -     | -     | exists | -
BlobSetLegalHold              | -     | -     | exists | -
BlobSetMetadata               | MNIUT | -     | update | W
BlobAcquireLease              | MNIUT | -     | update | L
BlobReleaseLease              | MNIUT | -     | update | L
BlobRenewLease                | MNIUT | -     | update | L
BlobChangeLease               | MNIUT | -     | update | L
BlobBreakLease                | MNIUT | -     | update | L
BlobCreateSnapshot            | MNIUT | -     | update | R
BlobStartCopyFromURL          | MNIUT | MNIUT | create | C
BlobCopyFromURL               | MNIUT | MNIU  | create | W
BlobAbortCopyFromURL          | -     | -     | exists | A
BlobSetTier                   | T     | -     | exists | W
BlobGetTags                   | T     | -     | read   | R
BlobSetTags                   | T     | -     | exists | W
PageBlobCreate                | MNIUT | -     | create | W
PageBlobUploadPages           | MNIUT | -     | exists | W
PageBlobClearPages            | MNIUT | -     | exists | W
PageBlobUploadPagesFromURL    | MNIUT | MNIU  | exists | W
PageBlobGetPageRanges         | MNIUT | -     | read   | R
PageBlobGetPageRangesDiff     | MNIUT | -     | read   | R
PageBlobResize                | MNIUT | -     | update | W
PageBlobUpdateSequenceNumber  | MNIUT | -     | update | W
AppendBlobCreate              | MNIUT | -     | create | W
AppendBlobAppendBlock         | MNIUT | -     | exists | W
AppendBlobAppendBlockFromUrl  | MNIUT | MNIU  | exists | W
AppendBlobSeal                | MNIU  | -     | exists | W
BlockBlobUpload               | MNIUT | -     | create | W
BlockBlobPutBlobFromUrl       | MNIUT | MNIUT | create | W
BlockBlobStageBlock           | -     | -     | create | W
BlockBlobStageBlockFromURL    | -     | MNIU  | create | W
BlockBlobCommitBlockList      | MNIUT | -     | create | W
BlockBlobGetBlockList         | T     | -     | read   | R
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
    let (accepts, source) = (letters(rules.accepts), letters(rules.source));
    [operation.name(), accepts, source, form, lease].join(" | ")
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
            None => assert_eq!(shown, format!("{name} | - | - | read | -")),
        }
    }
    let known = |row: &&String| {
        BlobOperation::ALL.iter().any(|operation| row.split(' ').next() == Some(operation.name()))
    };
    assert_eq!(rows.iter().filter(known).count(), rows.len());
}
