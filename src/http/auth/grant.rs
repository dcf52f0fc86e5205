//! The grant of an authorised request: its kind and its permissions.
//!
//! Decides whether an operation is within the grant. The operation names its level and letters.

use std::sync::Arc;

use super::error::AuthError;
use super::permission::{Permission, Permissions, ResourceLevel};

/// A request that proved who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The account it may work on.
    pub account: String,
    /// How it proved itself.
    pub by: GrantedBy,
    /// Headers that the answer to Get File has in place of the file's own.
    pub overrides: Overrides,
    /// The client whose key signed the request or its SAS; none if it was the account's own.
    pub client: Option<Arc<str>>,
    /// `ses` of a SAS: the only encryption scope that blobs may be written with.
    pub encryption_scope: Option<String>,
}

/// How a request proved itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GrantedBy {
    /// With an account key: everything is permitted.
    SharedKey,
    /// With a shared access signature.
    Sas {
        /// The resources that the SAS covers.
        scope: SasScope,
        /// The permissions on them.
        permissions: Permissions,
    },
    /// With a bearer token: everything is permitted.
    Bearer {
        /// The user whom the token names.
        subject: String,
        tenant: String,
    },
    /// Not at all, since the server asks for no credentials: everything is permitted.
    Nothing,
    /// Not at all, since the container is public: reading and listing are permitted.
    Anonymous,
}

/// The resources that a SAS covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SasScope {
    /// An account SAS: the levels in `srt`.
    Account {
        /// `srt`.
        levels: String,
    },
    /// A service SAS of a container: what is in the addressed container.
    Container,
    /// A service SAS of one object: the addressed one.
    Object,
    Table(TableScope),
}

/// What a table SAS reaches, as it was signed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableScope {
    /// `tn`: the table.
    pub table: String,
    /// `spk` and `srk`: the first keys. Without a row key, all of the partition.
    pub first: [Option<String>; 2],
    /// `epk` and `erk`: the last keys, as above.
    pub last: [Option<String>; 2],
}

/// The requirements of an operation on a SAS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs<'a> {
    /// The level that an account SAS must reach.
    pub level: ResourceLevel,
    /// Another level that will do.
    pub or_level: Option<ResourceLevel>,
    /// The permissions, any one of which an account SAS must have.
    pub permissions: &'a [Permission],
    /// The permissions, any one of which a service SAS must have; `None` for operations that no
    /// service SAS reaches, such as those on a container as a whole.
    pub service_sas: Option<&'a [Permission]>,
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
    /// A grant without the terms that only a SAS has.
    pub fn new(account: &str, by: GrantedBy) -> Self {
        let overrides = Overrides::default();
        Self { account: account.to_owned(), by, overrides, client: None, encryption_scope: None }
    }

    /// Whether an operation that needs `needs` is permitted.
    pub fn check(&self, needs: &Needs<'_>) -> Result<(), AuthError> {
        let GrantedBy::Sas { scope, permissions } = &self.by else { return Ok(()) };
        let needed = match scope {
            SasScope::Account { levels } => {
                let reached = |level: ResourceLevel| levels.contains(level.letter());
                (reached(needs.level) || needs.or_level.is_some_and(reached))
                    .then_some(needs.permissions)
            }
            SasScope::Container | SasScope::Object | SasScope::Table(_) => needs.service_sas,
        };
        let Some(needed) = needed else {
            return Err(AuthError::ResourceTypeMismatch { level: needs.level });
        };
        if !needed.iter().any(|one| permissions.contains(*one)) {
            let granted = permissions.letters();
            return Err(AuthError::PermissionMismatch { granted, needed: needed.to_vec() });
        }
        Ok(())
    }

    /// Whether the request is permitted `needed`, whatever it is made with.
    pub fn permits(&self, needed: Permission) -> bool {
        match &self.by {
            GrantedBy::Sas { permissions, .. } => permissions.contains(needed),
            GrantedBy::SharedKey | GrantedBy::Bearer { .. } | GrantedBy::Nothing => true,
            GrantedBy::Anonymous => matches!(needed, Permission::Read | Permission::List),
        }
    }

    /// Whether one of `permissions` is granted on an object.
    pub fn check_letters(&self, permissions: &[Permission]) -> Result<(), AuthError> {
        let (level, service_sas) = (ResourceLevel::Object, Some(permissions));
        self.check(&Needs { level, or_level: None, permissions, service_sas })
    }
}
