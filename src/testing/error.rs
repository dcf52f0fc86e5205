//! The errors between a test and its server.

use crate::api::ApiFailure;
use crate::clock::SetBack;
use crate::file::rules::Denial;
use crate::file::service as file;
use crate::server::{HoldError, StartError};

/// Why a server did not do what a test wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A file cannot be opened or held.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The clock was to be set back.
    #[error(transparent)]
    SetBack(#[from] SetBack),
    /// The requests that the test waited for did not arrive in time.
    #[error("{waiting} of {wanted} requests wait at the gate")]
    TooFew {
        /// How many requests wait.
        waiting: usize,
        /// How many were waited for.
        wanted: usize,
    },
    /// A test that was explored fails in an order.
    #[error("{0}")]
    Race(Box<super::Race>),
    /// The server refused the call.
    #[error("{0}")]
    Failed(String),
}

impl From<ApiFailure> for Error {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure.message().to_owned())
    }
}

impl Error {
    /// The rule of the File service that refused; none if the error is another one.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Hold(HoldError::Open(file::FileError::Denied(denial))) => Some(denial),
            _ => None,
        }
    }
}
