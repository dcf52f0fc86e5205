//! What a request was let in with, and what that permits.
//!
//! Decides whether an operation is within the grant. The operation says its level and letters.

use super::error::AuthError;
use super::permission::{Level, Permission, Permissions};

/// A request that proved who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The account it may work on.
    pub account: String,
    /// How it proved itself.
    pub by: GrantedBy,
    /// Headers that the answer to Get File has in place of the file's own (FILEREST 3.2).
    pub overrides: Overrides,
}

/// How a request proved itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GrantedBy {
    /// With an account key: everything is permitted.
    SharedKey,
    /// With a shared access signature.
    Sas {
        /// What it reaches.
        scope: SasScope,
        /// What it permits there.
        permissions: Permissions,
    },
    /// With a bearer token and the backup intent: everything is permitted.
    Bearer {
        /// Whom the token names.
        subject: String,
    },
}

/// What a SAS reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SasScope {
    /// An account SAS: the levels in `srt`.
    Account {
        /// `srt`.
        levels: String,
    },
    /// A service SAS of a share: what is in the addressed share.
    Share,
    /// A service SAS of a file: the addressed file.
    File,
}

/// Response headers that a service SAS asks for. Free of control characters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overrides {
    /// `rscc`.
    pub cache_control: Option<String>,
    /// `rscd`.
    pub content_disposition: Option<String>,
    /// `rsce`.
    pub content_encoding: Option<String>,
    /// `rscl`.
    pub content_language: Option<String>,
    /// `rsct`.
    pub content_type: Option<String>,
}

impl Grant {
    /// Whether an operation at `level` that takes any one of `needed` is permitted.
    ///
    /// A service SAS reaches what is in its share, never the share as a whole: its properties,
    /// ACL and lease take an account SAS.
    pub fn check(&self, level: Level, needed: &[Permission]) -> Result<(), AuthError> {
        let GrantedBy::Sas { scope, permissions } = &self.by else { return Ok(()) };
        let reached = match scope {
            SasScope::Account { levels } => levels.contains(level.letter()),
            SasScope::Share | SasScope::File => level == Level::Entry,
        };
        if !reached {
            return Err(AuthError::ResourceTypeMismatch { level });
        }
        if !needed.iter().any(|one| permissions.contains(*one)) {
            let granted = permissions.letters();
            return Err(AuthError::PermissionMismatch { granted, needed: needed.to_vec() });
        }
        Ok(())
    }

    /// Whether an operation at `level` that takes `needed` is permitted.
    pub fn allows(&self, level: Level, needed: Permission) -> bool {
        self.check(level, &[needed]).is_ok()
    }
}
