//! Causes that every service has: the database fails, metadata are not allowed.
//!
//! Decides their status and code. The other causes stand in the error table of their service.

use hyper::StatusCode;

use super::refusal::Refusal;
use crate::db::DbError;
use crate::rules::MetadataError;

/// The database could not. A client may try again only where waiting can help.
impl From<&DbError> for Refusal {
    fn from(error: &DbError) -> Self {
        match error {
            DbError::Busy(_)
            | DbError::Closed
            | DbError::TooManyFiles { .. }
            | DbError::Gone { .. } => Self::busy(error),
            DbError::Full { .. } => {
                Self::explained(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", error)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<MetadataError> for Refusal {
    fn from(error: MetadataError) -> Self {
        Self::bad_because(metadata_code(&error), error)
    }
}

/// The code of metadata that are not allowed, which are 400 in every service.
pub fn metadata_code(error: &MetadataError) -> &'static str {
    match error {
        MetadataError::EmptyName => "EmptyMetadataKey",
        MetadataError::InvalidName(_) | MetadataError::InvalidValue(_) => "InvalidMetadata",
        MetadataError::TooLarge(_) => "MetadataTooLarge",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_database_may_be_asked_again_and_a_full_or_damaged_one_not() {
        let status = |error: &DbError| Refusal::from(error).status;
        assert_eq!(status(&DbError::Busy("waiting".into())), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&DbError::Closed), StatusCode::SERVICE_UNAVAILABLE);
        let no_descriptor = DbError::TooManyFiles { file: "db".into() };
        assert_eq!(status(&no_descriptor), StatusCode::SERVICE_UNAVAILABLE);
        let gone = DbError::Gone { file: "db".into() };
        assert_eq!(status(&gone), StatusCode::SERVICE_UNAVAILABLE);
        let full = DbError::Full { file: "db".into() };
        assert_eq!(status(&full), StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(status(&DbError::Io("no".into())), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
