//! The status of a copy, for all services that copy: the values of `x-ms-copy-status`.
//!
//! When a copy has which status is decided by the service.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// The value of `x-ms-copy-status`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CopyStatus {
        /// Under way. A blob has no content yet and admits no write.
        Pending = "pending",
        Success = "success",
        /// Ended by Abort Copy.
        Aborted = "aborted",
        /// Ended by an error.
        Failed = "failed",
    }
}
