//! Errors of table operations: a refusal by a rule, or a failure of the database.
//!
//! REST decides statuses and spellings.

use crate::db::DbError;
use crate::table::rules::{TableDenial, TransactionDenial};

/// Why an operation was not done.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TableError {
    #[error(transparent)]
    Denied(#[from] TableDenial),
    /// A rule refused an operation of a transaction, and so all of it.
    #[error(transparent)]
    Fault(#[from] TransactionDenial),
    /// The database could not.
    #[error(transparent)]
    Store(#[from] DbError),
}

/// The result of an operation.
pub type TableResult<T> = Result<T, TableError>;

impl TableError {
    /// The refusal, if it is one.
    pub fn denial(&self) -> Option<&TableDenial> {
        match self {
            Self::Denied(denial) | Self::Fault(TransactionDenial { denial, .. }) => Some(denial),
            Self::Store(_) => None,
        }
    }

    /// The error as one of the operation with that index in a transaction.
    pub(super) fn at(self, index: usize) -> Self {
        match self {
            Self::Denied(denial) => Self::Fault(TransactionDenial { index, denial }),
            other => other,
        }
    }
}
