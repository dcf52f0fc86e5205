//! The errors of queue operations: a refusal by a rule, or a failure of the store.
//!
//! Statuses and codes are decided by `queue/rest`.

use crate::db::DbError;
use crate::queue::rules::QueueDenial;
use crate::rules::{MetadataError, NameError};

/// Why an operation was not carried out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueueError {
    /// A rule refused it. Nothing was changed.
    #[error(transparent)]
    Denied(#[from] QueueDenial),
    /// The store could not. Nothing was changed.
    #[error(transparent)]
    Store(#[from] DbError),
}

/// The result of a queue operation.
pub type QueueResult<T> = Result<T, QueueError>;

impl From<MetadataError> for QueueError {
    fn from(error: MetadataError) -> Self {
        Self::Denied(error.into())
    }
}

impl From<NameError> for QueueError {
    fn from(error: NameError) -> Self {
        Self::Denied(error.into())
    }
}

impl QueueError {
    /// The refusal, if it is one.
    pub fn denial(&self) -> Option<&QueueDenial> {
        match self {
            Self::Denied(denial) => Some(denial),
            Self::Store(_) => None,
        }
    }
}
