//! The errors of an operation: a refusal by a rule, or a failure of the store.
//!
//! The two are different types: a refusal is an answer, a store error means that there is none.
//! Store errors that are the rule's answer (no such name, name taken) are turned into refusals
//! here, once for all front ends.

use crate::disk::StoreError;
use crate::file::rules::{Denial, PathError};
use crate::rules::lease::LeaseDenial;

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error(transparent)]
    Store(StoreError),
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, FileError>;

impl FileError {
    /// The refusal, if a rule refused.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Denied(denial) => Some(denial),
            Self::Store(_) => None,
        }
    }
}

impl From<StoreError> for FileError {
    fn from(error: StoreError) -> Self {
        Self::Denied(match error {
            StoreError::NotFound => Denial::NotFound,
            StoreError::ParentNotFound => Denial::PathNotFound,
            StoreError::AlreadyExists => Denial::NameTaken,
            StoreError::NotADirectory => Denial::NotDirectory,
            StoreError::IsADirectory => Denial::IsDirectory,
            StoreError::NotEmpty => Denial::DirectoryNotEmpty,
            other => return Self::Store(other),
        })
    }
}

impl From<PathError> for FileError {
    fn from(_: PathError) -> Self {
        Denial::InvalidParameter("not a path within the share").into()
    }
}

impl From<LeaseDenial> for FileError {
    fn from(denial: LeaseDenial) -> Self {
        Denial::from(denial).into()
    }
}
