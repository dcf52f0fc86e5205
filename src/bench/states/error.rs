//! Why the state of a server was not saved or replaced.

use super::STATES_MAX;
use crate::disk::StoreError;
use crate::disk::part::PartError;

/// A saved state that cannot be restored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("state '{name}' cannot be restored: {why}")]
pub struct DamagedState {
    pub name: String,
    /// The file that is damaged, and how.
    pub why: String,
}

impl DamagedState {
    pub(super) fn new(name: &str, why: &impl ToString) -> Self {
        Self { name: name.to_owned(), why: why.to_string() }
    }
}

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
    NoAccount { name: String, account: String },
    /// An earlier process was ended while it replaced the data of an account that is not served
    /// now.
    #[error(
        "a reset or a restore of account '{account}' was cut off and has to be completed first: \
         start the server with that account too, or with --reset, which removes all data"
    )]
    CutOff { account: String },
    /// The state lost a part, or a part of it is damaged.
    #[error(transparent)]
    Damaged(#[from] DamagedState),
    /// All data was removed, and what the server has at a start could not be made.
    #[error("all data was removed, but {0}")]
    Refill(String),
    /// The state does not fit.
    #[error(
        "this needs {needed} bytes on the disk for a while, and {free} bytes are free: delete \
         something first"
    )]
    Full {
        needed: u64,
        /// So many are free.
        free: u64,
    },
    /// Nor for a reset, which frees space at its end only.
    #[error(
        "a reset needs {needed} bytes on the disk for a while, and {free} bytes are free: delete a \
         blob or a file first, or stop the server and start it with --reset, which needs none"
    )]
    NoRoomToReset {
        needed: u64,
        /// So many are free.
        free: u64,
    },
    /// The data of a service.
    #[error(transparent)]
    Part(#[from] PartError),
    /// The folder of the server.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data could not be removed while it is served. It is as it was.
    #[error(
        "nothing was removed: {0}. Stop the server and start it with latchfs serve --reset, which \
         removes all data without reading it"
    )]
    NotReset(Box<Self>),
    /// The replacement failed half way. No request is acknowledged until a start has completed it.
    #[error("{0}")]
    HalfDone(String),
}

impl StateError {
    /// True if the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } | Self::NoRoomToReset { .. } => true,
            Self::Store(error) => matches!(error, StoreError::NoSpace),
            Self::Part(error) => error.is_full(),
            Self::NotReset(cause) => cause.is_full(),
            _ => false,
        }
    }

    /// This error for a reset: one that `--reset` does not meet names it.
    pub(super) fn of_reset(self) -> Self {
        match self {
            cause @ (Self::Part(_) | Self::Store(_)) => Self::NotReset(Box::new(cause)),
            other => other,
        }
    }

    /// The replacement failed half way, because of this.
    pub(super) fn half_done(cause: &str) -> Self {
        Self::HalfDone(format!(
            "all data was to be replaced, and was in part: {cause}. Nothing is served. Remove the \
             cause and start the server again, which completes it; or start it with --reset, which \
             removes all data"
        ))
    }
}
