//! Why the state of a server was not saved or replaced.

use super::STATES_MAX;
use crate::engine::DbError;
use crate::engine::blob::BlobError;
use crate::engine::file::FileServiceError;
use crate::engine::queue::QueueError;
use crate::engine::table::TableError;
use crate::store::StoreError;

/// Why the state of a server was not saved or replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// One existing directory is served: what is in it is not the server's.
    #[error(
        "this server serves an existing directory as it is, which is not saved, restored or \
         reset: start a server with a data directory instead"
    )]
    ExistingDirectory,
    /// No state can have that name.
    #[error(
        "'{0}' is not a valid state name: use 1 to 64 letters, digits, dots, hyphens and \
         underscores, not starting with a dot"
    )]
    Name(String),
    /// There is no state of that name.
    #[error("no state '{0}' is saved here: `latchfs state list` shows those that are")]
    NotFound(String),
    /// As many states as a server keeps.
    #[error("{STATES_MAX} states are saved, the most there may be: delete one first")]
    TooMany,
    /// The state has data of an account that is not served.
    #[error(
        "state '{name}' has data of account '{account}', which is not served: start the server \
         with that account"
    )]
    NoAccount {
        /// The state.
        name: String,
        /// The account.
        account: String,
    },
    /// An earlier process was ended while it replaced the data of an account that is not served
    /// now.
    #[error(
        "a reset or a restore of account '{account}' was cut off and has to be completed first: \
         start the server with that account too, or with --reset, which removes all data"
    )]
    CutOff {
        /// The account.
        account: String,
    },
    /// The state does not fit.
    #[error(
        "this needs {needed} bytes on the disk for a while, and {free} bytes are free: delete \
         something first"
    )]
    Full {
        /// So many bytes.
        needed: u64,
        /// So many are free.
        free: u64,
    },
    /// The shares of an account.
    #[error(transparent)]
    File(#[from] FileServiceError),
    /// A database.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The folder of the server.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The replacement failed half way. No request is acknowledged until a start has completed it.
    #[error("{0}")]
    HalfDone(String),
}

impl StateError {
    /// The replacement failed half way, because of this.
    pub(super) fn half_done(cause: &str) -> Self {
        Self::HalfDone(format!(
            "all data was to be replaced, and was in part: {cause}. Nothing is served. Remove the \
             cause and start the server again, which completes it; or start it with --reset, which \
             removes all data"
        ))
    }
}

impl From<BlobError> for StateError {
    fn from(error: BlobError) -> Self {
        DbError::Io(error.to_string()).into()
    }
}

impl From<QueueError> for StateError {
    fn from(error: QueueError) -> Self {
        DbError::Io(error.to_string()).into()
    }
}

impl From<TableError> for StateError {
    fn from(error: TableError) -> Self {
        DbError::Io(error.to_string()).into()
    }
}
