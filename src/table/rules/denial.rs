//! The refusals of the Table service: one variant per documented code.
//!
//! The text of a variant is the service's own message for that code, which clients compare and
//! people search for. REST decides statuses and the form of the answer.

use super::entity::{ENTITY_BYTES_MAX, PROPERTIES_MAX};
use super::key::KEY_UNITS_MAX;
use super::value::{BINARY_BYTES_MAX, STRING_UNITS_MAX};
use crate::rules::NameError;
use crate::rules::conflict::Conflict;
use crate::rules::policy::PolicyFault;
use crate::rules::writer::Writer;

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TableDenial {
    /// Create Table with a name that is taken, in any case.
    #[error("The table specified already exists.")]
    TableAlreadyExists,
    /// An entity, query or ACL call on a table that is not there.
    #[error("The table specified does not exist.")]
    TableNotFound,
    /// The entity is not there, or `Tables('name')` names no table.
    #[error("The specified resource does not exist.")]
    ResourceNotFound,
    /// Insert Entity with keys that are taken. Carries the request that changed the entity last.
    #[error("The specified entity already exists.")]
    EntityAlreadyExists(Option<Box<Writer>>),
    /// `If-Match` names another state than the entity's (S81). Carries the request that changed
    /// the entity last.
    #[error("The update condition specified in the request was not satisfied.")]
    UpdateConditionNotSatisfied(Option<Box<Writer>>),
    /// Insert Entity without one of its keys.
    #[error("The values are not specified for all properties in the entity.")]
    PropertiesNeedValue,
    /// Anything malformed: JSON, a value, an ETag, a filter, keys in a URL, a token, a batch.
    #[error("{0}")]
    InvalidInput(String),
    /// Stored access policies that are not allowed.
    #[error("XML specified is not syntactically valid. [latchfs: {0}]")]
    Policy(#[from] PolicyFault),
    /// Delete Entity without `If-Match` (S90), or an update of an old version without it (S80).
    #[error("An HTTP header that's mandatory for this request is not specified.")]
    MissingIfMatch,
    /// No table can have that name.
    #[error("{}", name_text(.0))]
    Name(#[from] NameError),
    /// A key with a character that keys may not have. Carries which key, and its value.
    #[error("The '{0}' parameter of value '{1}' is out of range.")]
    KeyOutOfRange(&'static str, String),
    /// A `DateTime` outside 1601 to 9999. Carries the property.
    #[error(
        "One of the request inputs is out of range. The property '{0}' is not a date between \
         1601 and 9999."
    )]
    DateOutOfRange(String),
    /// A key longer than [`KEY_UNITS_MAX`].
    #[error(
        "The property value exceeds the maximum allowed size of 1 KiB for a key. [latchfs: the \
         {0} has {1} UTF-16 units; {KEY_UNITS_MAX} are allowed]"
    )]
    KeyValueTooLarge(&'static str, usize),
    /// More properties than [`PROPERTIES_MAX`].
    #[error(
        "The entity contains more properties than allowed. Each entity can include up to 252 \
         properties to store data. Each entity also has 3 system properties. [latchfs: {0} \
         properties; {PROPERTIES_MAX} are allowed]"
    )]
    TooManyProperties(usize),
    /// A property name longer than 255 characters.
    #[error("The property name exceeds the maximum allowed length (255).")]
    PropertyNameTooLong,
    /// A property name that is no identifier.
    #[error(
        "The property name is invalid. [latchfs: '{0}': a letter or '_', then letters, digits \
         and '_']"
    )]
    PropertyNameInvalid(String),
    /// A string or binary value beyond 64 KiB.
    #[error(
        "The property value exceeds the maximum allowed size (64KB). If the property value is a \
         string, it is UTF-16 encoded and the maximum number of characters should be 32K or \
         less. [latchfs: property '{0}'; {STRING_UNITS_MAX} UTF-16 units or {BINARY_BYTES_MAX} \
         bytes are allowed]"
    )]
    PropertyValueTooLarge(String),
    /// An entity beyond 1 MiB, also as the result of a merge.
    #[error(
        "The entity is larger than the maximum allowed size (1MB). [latchfs: {0} bytes by the \
         service's formula; {ENTITY_BYTES_MAX} are allowed]"
    )]
    EntityTooLarge(usize),
    /// A property given twice in one entity.
    #[error("The property '{0}' is specified more than once.")]
    DuplicatePropertiesSpecified(String),
    /// One row twice in a transaction.
    #[error(
        "The batch request contains multiple changes with same row key. An entity can appear \
         only once in a batch request."
    )]
    InvalidDuplicateRow,
    /// A transaction across partitions or tables.
    #[error("All commands in a batch must operate on same entity group.")]
    CommandsInBatchActOnDifferentPartitions,
    /// A query option that the service does not have.
    #[error("The requested operation is not implemented on the specified resource. [latchfs: {0}]")]
    NotImplemented(String),
}

impl TableDenial {
    /// The conflict with another client that the refusal is about, if any.
    pub const fn conflict(&self) -> Option<Conflict> {
        match self {
            Self::UpdateConditionNotSatisfied(_) | Self::EntityAlreadyExists(_) => {
                Some(Conflict::Condition)
            }
            _ => None,
        }
    }

    /// A path that goes on after the name of a table. Clients look for the service's text and then
    /// suggest that the account URL ends with a table's name.
    pub fn beneath(table: &str) -> Self {
        Self::InvalidInput(format!(
            "The number of keys specified in the URI does not match number of key properties for \
             the resource. [latchfs: the path goes on after '{}': an account URL does not end with \
             the name of a table]",
            table.escape_debug()
        ))
    }

    /// A malformed input, in the service's words and ours.
    pub fn invalid(why: impl std::fmt::Display) -> Self {
        Self::InvalidInput(format!("One of the request inputs is not valid. [latchfs: {why}]"))
    }
}

/// The text about a wrong name. This service's own misspelling stays: clients compare it.
fn name_text(error: &NameError) -> String {
    let message = error.message();
    match error {
        NameError::Length { .. } => message,
        NameError::Character { .. } | NameError::Form { .. } => {
            message.replacen("specified", "specifed", 1)
        }
    }
}

/// A refusal within a transaction: which operation, counted from 0, and why.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{index}:{denial}")]
pub struct TransactionDenial {
    /// The operation that failed.
    pub index: usize,
    pub denial: TableDenial,
}
