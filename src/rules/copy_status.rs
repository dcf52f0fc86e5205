//! The status of a copy, for all services that copy: the values of `x-ms-copy-status`.
//!
//! When a copy has which status is decided by the service.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of `x-ms-copy-status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyStatus {
    /// Under way. A blob has no content yet and admits no write.
    Pending,
    Success,
    /// Ended by Abort Copy.
    Aborted,
    /// Ended by an error.
    Failed,
}

impl fmt::Display for CopyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        })
    }
}
