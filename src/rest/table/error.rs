//! The status, code and message of each refusal of the Table service.
//!
//! One table for single requests and for operations within a transaction. The form of the answer,
//! JSON or XML, is decided in [`crate::rest::refusal`].

use hyper::StatusCode;

use crate::core::Timestamp;
use crate::core::table::{Denial, Fault};
use crate::engine::table::TableError;
use crate::rest::refusal::Refusal;

/// The refusal of an operation that failed at `now`.
pub(super) fn refusal(error: &TableError, now: Timestamp) -> Refusal {
    match error {
        TableError::Denied(denial) => denied(denial, now),
        TableError::Fault(Fault { index, denial }) => within(*index, denied(denial, now)),
        TableError::Store(error) => Refusal::from(error),
    }
}

/// The refusal of a request whose form is wrong.
#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn refusal_of_form(denial: Denial) -> Refusal {
    denied(&denial, Timestamp::default())
}

/// A refusal as one of the operation with that index in a transaction.
pub(super) fn within(index: usize, refusal: Refusal) -> Refusal {
    Refusal { message: format!("{index}:{}", refusal.message).into(), ..refusal }
}

fn denied(denial: &Denial, now: Timestamp) -> Refusal {
    let (status, code) = spelled(denial);
    let mut message = denial.to_string();
    match denial {
        Denial::UpdateConditionNotSatisfied(Some(by)) | Denial::EntityAlreadyExists(Some(by)) => {
            message = format!("{message} [latchfs: {}]", by.told_at(now));
        }
        _ => {}
    }
    Refusal::new(status, code, message).by_conflict(denial.conflict())
}

fn spelled(denial: &Denial) -> (StatusCode, &'static str) {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    match denial {
        Denial::TableAlreadyExists => (StatusCode::CONFLICT, "TableAlreadyExists"),
        Denial::TableNotFound => (StatusCode::NOT_FOUND, "TableNotFound"),
        Denial::ResourceNotFound => (StatusCode::NOT_FOUND, "ResourceNotFound"),
        Denial::EntityAlreadyExists(_) => (StatusCode::CONFLICT, "EntityAlreadyExists"),
        Denial::UpdateConditionNotSatisfied(_) => {
            (StatusCode::PRECONDITION_FAILED, "UpdateConditionNotSatisfied")
        }
        Denial::PropertiesNeedValue => (BAD, "PropertiesNeedValue"),
        Denial::InvalidInput(_) => (BAD, "InvalidInput"),
        Denial::Policy(_) => (BAD, "InvalidXmlDocument"),
        Denial::MissingIfMatch => (BAD, "MissingRequiredHeader"),
        Denial::InvalidResourceName => (BAD, "InvalidResourceName"),
        Denial::NameLengthOutOfRange | Denial::KeyOutOfRange(..) | Denial::DateOutOfRange(_) => {
            (BAD, "OutOfRangeInput")
        }
        Denial::KeyValueTooLarge(..) => (BAD, "KeyValueTooLarge"),
        Denial::TooManyProperties(_) => (BAD, "TooManyProperties"),
        Denial::PropertyNameTooLong => (BAD, "PropertyNameTooLong"),
        Denial::PropertyNameInvalid(_) => (BAD, "PropertyNameInvalid"),
        Denial::PropertyValueTooLarge(_) => (BAD, "PropertyValueTooLarge"),
        Denial::EntityTooLarge(_) => (BAD, "EntityTooLarge"),
        Denial::DuplicatePropertiesSpecified(_) => (BAD, "DuplicatePropertiesSpecified"),
        Denial::InvalidDuplicateRow => (BAD, "InvalidDuplicateRow"),
        Denial::CommandsInBatchActOnDifferentPartitions => {
            (BAD, "CommandsInBatchActOnDifferentPartitions")
        }
        Denial::NotImplemented(_) => (StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
    }
}
