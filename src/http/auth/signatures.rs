//! The differences between services in the texts that are signed.
//!
//! Decides nothing about a request: the texts that a SAS of a service signs are built by the
//! service's own functions, and everything around them is the same for all.

use super::error::AuthError;
use super::grant::SasScope;
use super::permission::ResourceLevel;
use super::request::{AuthTarget, RequestView, SignedQuery};
use super::shared_key::{self, IsSigned, Scheme};
use crate::rules::service::ServiceKind;

/// The text of a SAS, and the resources that it reaches.
pub type SasText = Result<(SasScope, String), AuthError>;

/// The texts that requests to a service sign.
#[derive(Clone, Copy, Debug)]
pub struct Signatures {
    pub kind: ServiceKind,
    /// The text that a service SAS signs, and the resources that the SAS covers.
    pub service_sas: fn(&AuthTarget<'_>, &SignedQuery) -> SasText,
    /// The text that a service SAS signs if it is made with a user delegation key.
    pub delegation_sas: fn(&RequestView<'_>, &AuthTarget<'_>, &SignedQuery) -> SasText,
    /// Tries the texts of Shared Key and Shared Key Lite that known clients sign, the likeliest
    /// first; the first one is the one by the book.
    pub shared_key: fn(&RequestView<'_>, account: &str, Scheme, IsSigned<'_>) -> bool,
    /// Whether a bearer token at that level needs `x-ms-file-request-intent`.
    pub needs_intent: fn(ResourceLevel) -> bool,
}

impl PartialEq for Signatures {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Signatures {}

/// The File service: see [`super::sas`] for its texts.
pub static FILE: Signatures = Signatures {
    kind: ServiceKind::File,
    service_sas: super::sas::file_sas,
    delegation_sas: super::sas::file_delegation_sas,
    shared_key: shared_key::texts,
    // A bearer passes by the access control of files and directories, and must say that it means
    // to. Shares and the service have none.
    needs_intent: |level| matches!(level, ResourceLevel::Object),
};

/// The Blob service: see [`super::sas`] for its texts.
pub static BLOB: Signatures = Signatures {
    kind: ServiceKind::Blob,
    service_sas: super::sas::blob_sas,
    delegation_sas: super::sas::blob_delegation_sas,
    shared_key: shared_key::texts,
    needs_intent: |_| false,
};
