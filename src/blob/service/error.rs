//! Errors of blob operations: a refusal by a rule, or a failure of the database.
//!
//! A refusal may name the last writer. REST decides statuses and codes.

use crate::blob::rules::{BlobDenial, BlobOperation, BlobState};
use crate::db::DbError;
use crate::rules::conditions::ConditionFailure;
use crate::rules::conflict::Conflict;
use crate::rules::lease::LeaseDenial;
use crate::rules::{Etag, Timestamp, Writer};

/// Why an operation was not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlobError {
    #[error("{denial}")]
    Denied {
        denial: BlobDenial,
        /// The request that explains the refusal: the last that changed the object, or for a lease
        /// the last that had to do with the lease.
        writer: Option<Box<Writer>>,
        /// The version that the client has already, where that is why it gets nothing.
        unchanged: Option<(Etag, Timestamp)>,
    },
    /// The database could not.
    #[error(transparent)]
    Store(#[from] DbError),
}

/// The result of an operation.
pub type BlobResult<T> = Result<T, BlobError>;

impl BlobError {
    /// The refusal, if it is one.
    pub fn denial(&self) -> Option<&BlobDenial> {
        match self {
            Self::Denied { denial, .. } => Some(denial),
            Self::Store(_) => None,
        }
    }

    /// This error for the source of `operation`. Copy Blob answers as its source does; the
    /// operations that read a URL answer that the source cannot be verified.
    #[must_use]
    pub fn of_source(self, operation: BlobOperation) -> Self {
        match self.denial() {
            Some(denial)
                if operation != BlobOperation::BlobStartCopyFromURL && denial.refuses_reading() =>
            {
                BlobDenial::Source(Box::new(denial.clone())).into()
            }
            _ => self,
        }
    }

    /// A refusal that names the last writer if a condition failed, because that request changed
    /// what the client had seen, and the leaser if a lease refused.
    pub(super) fn by(denial: BlobDenial, writer: Option<&Writer>, leaser: Option<&Writer>) -> Self {
        let writer = match denial.conflict() {
            Some(Conflict::Lease) => leaser,
            Some(Conflict::Condition) => writer,
            Some(Conflict::CopyPending | Conflict::Receipt) | None => None,
        };
        let writer = writer.cloned().map(Box::new);
        Self::Denied { denial, writer, unchanged: None }
    }

    /// The same for a request about `state`, whose version an answer without content names.
    #[must_use]
    pub(super) fn of_state(mut self, state: &BlobState) -> Self {
        if let Self::Denied { denial, unchanged, .. } = &mut self
            && matches!(denial, BlobDenial::Condition(ConditionFailure::NotModified(_)))
        {
            *unchanged = Some((state.etag, state.modified));
        }
        self
    }
}

impl From<BlobDenial> for BlobError {
    fn from(denial: BlobDenial) -> Self {
        Self::Denied { denial, writer: None, unchanged: None }
    }
}

impl From<LeaseDenial> for BlobError {
    fn from(denial: LeaseDenial) -> Self {
        BlobDenial::from(denial).into()
    }
}
