//! The status, code and message of each refusal of the Table service.
//!
//! One table for single requests and for operations within a transaction. The form of the answer,
//! JSON or XML, is decided in [`crate::http::frame::refusal`].

use hyper::StatusCode;

use crate::http::frame::refusal::{Refusal, name_code};
use crate::rules::Timestamp;
use crate::table::rules::{TableDenial, TransactionDenial};
use crate::table::service::TableError;

/// The refusal of every request to a service that cannot be opened.
pub(crate) fn refusal_of_opening(error: &TableError) -> Refusal {
    refusal(error, Timestamp::default())
}

/// The refusal of an operation that failed at `now`.
pub(super) fn refusal(error: &TableError, now: Timestamp) -> Refusal {
    match error {
        TableError::Denied(denial) => denied(denial, now),
        TableError::Fault(TransactionDenial { index, denial }) => {
            within(*index, denied(denial, now))
        }
        TableError::Store(error) => Refusal::from(error),
    }
}

/// The refusal of a request whose form is wrong.
#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn refusal_of_form(denial: TableDenial) -> Refusal {
    denied(&denial, Timestamp::default())
}

/// A refusal as one of the operation with that index in a transaction.
pub(super) fn within(index: usize, refusal: Refusal) -> Refusal {
    Refusal { message: format!("{index}:{}", refusal.message).into(), ..refusal }
}

fn denied(denial: &TableDenial, now: Timestamp) -> Refusal {
    let (status, code) = spelled(denial);
    let mut message = denial.to_string();
    match denial {
        TableDenial::UpdateConditionNotSatisfied(Some(by))
        | TableDenial::EntityAlreadyExists(Some(by)) => {
            message = format!("{message} [latchfs: {}]", by.told_at(now));
        }
        _ => {}
    }
    Refusal::new(status, code, message).by_conflict(denial.conflict())
}

fn spelled(denial: &TableDenial) -> (StatusCode, &'static str) {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    match denial {
        TableDenial::TableAlreadyExists => (StatusCode::CONFLICT, "TableAlreadyExists"),
        TableDenial::TableNotFound => (StatusCode::NOT_FOUND, "TableNotFound"),
        TableDenial::ResourceNotFound => (StatusCode::NOT_FOUND, "ResourceNotFound"),
        TableDenial::EntityAlreadyExists(_) => (StatusCode::CONFLICT, "EntityAlreadyExists"),
        TableDenial::UpdateConditionNotSatisfied(_) => {
            (StatusCode::PRECONDITION_FAILED, "UpdateConditionNotSatisfied")
        }
        TableDenial::PropertiesNeedValue => (BAD, "PropertiesNeedValue"),
        TableDenial::InvalidInput(_) => (BAD, "InvalidInput"),
        TableDenial::Policy(_) => (BAD, "InvalidXmlDocument"),
        TableDenial::MissingIfMatch => (BAD, "MissingRequiredHeader"),
        TableDenial::Name(error) => (BAD, name_code(error)),
        TableDenial::KeyOutOfRange(..) | TableDenial::DateOutOfRange(_) => (BAD, "OutOfRangeInput"),
        TableDenial::KeyValueTooLarge(..) => (BAD, "KeyValueTooLarge"),
        TableDenial::TooManyProperties(_) => (BAD, "TooManyProperties"),
        TableDenial::PropertyNameTooLong => (BAD, "PropertyNameTooLong"),
        TableDenial::PropertyNameInvalid(_) => (BAD, "PropertyNameInvalid"),
        TableDenial::PropertyValueTooLarge(_) => (BAD, "PropertyValueTooLarge"),
        TableDenial::EntityTooLarge(_) => (BAD, "EntityTooLarge"),
        TableDenial::DuplicatePropertiesSpecified(_) => (BAD, "DuplicatePropertiesSpecified"),
        TableDenial::InvalidDuplicateRow => (BAD, "InvalidDuplicateRow"),
        TableDenial::CommandsInBatchActOnDifferentPartitions => {
            (BAD, "CommandsInBatchActOnDifferentPartitions")
        }
        TableDenial::NotImplemented(_) => (StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
    }
}
