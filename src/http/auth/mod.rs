//! Authorisation: who sent a request, and what it may do.
//!
//! Pure: a request is a [`RequestView`], time and addresses are in it, answers are values. It
//! opens no share and knows no operation: the router says what is addressed ([`AuthTarget`]), an
//! operation asks the [`Grant`] for its level and letters, and `http/frame` writes the refusal.
//!
//! ```text
//!   request     the view of a request; its query decoded
//!   credential  accounts: names, keys, connection strings
//!   clients     names of clients, each with a further key of the account
//!   admission   whether a listener accepts every request or signed ones only
//!   shared_key  Shared Key and Shared Key Lite
//!   sas         account SAS and service SAS: the signed text, and its check
//!   signatures  what services sign differently
//!   delegation  user delegation keys
//!   bearer      tokens, with --oauth basic
//!   permission  the letters of a SAS, and its levels
//!   grant       the kind and permissions of an authorised request
//!   error       refusals, with code and status
//!   secrets     the parts of a request that are neither kept nor shown
//! ```
//!
//! What differs between services is in their [`Signatures`].

mod admission;
mod bearer;
mod clients;
mod credential;
pub mod delegation;
mod error;
mod grant;
mod permission;
mod request;
mod sas;
mod secrets;
mod shared_key;
mod signatures;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use admission::Admission;
pub use bearer::{OauthMode, is_for_storage, write_token};
pub use clients::{CLIENTS_MAX, ClientError, NamedClient, NamedClients, is_client_name};
pub use credential::{
    AccountKey, Credential, CredentialError, Credentials, DEVELOPMENT_KEY, DEVELOPMENT_NAME,
    KEYS_MAX, NAME_MAX, NAME_MIN,
};
pub use error::{AuthError, CHALLENGE, TokenFault};
pub use grant::{Grant, GrantedBy, Needs, Overrides, SasScope, TableScope};
pub use permission::{Permission, Permissions, ResourceLevel};
pub use request::{AuthTarget, RequestView, SignedQuery, signing_account};
pub use sas::{AccountSas, Policies, SAS_VERSION, ServiceSas, service_token};
pub use secrets::without_signature;
pub use shared_key::{CLOCK_SKEW_MAX, IsSigned, Scheme, sign, string_to_sign, texts};
pub use signatures::{
    BLOB as BLOB_SIGNATURES, FILE as FILE_SIGNATURES, QUEUE as QUEUE_SIGNATURES, Signatures,
    TABLE as TABLE_SIGNATURES,
};

/// Lets requests in, or not.
#[derive(Clone, Debug, Default)]
pub struct Authorizer {
    pub accounts: Credentials,
    /// Whether it takes bearer tokens.
    pub oauth: OauthMode,
}

impl Authorizer {
    /// The grant of the request on `target`. A header `Authorization` takes precedence over a
    /// signature in the query, except for a token: beside a SAS a token names the user of the SAS
    /// and permits no more than the SAS does.
    pub fn authorize(
        &self,
        request: &RequestView<'_>,
        target: &AuthTarget<'_>,
        policies: &dyn Policies,
    ) -> Result<Grant, AuthError> {
        let header = request.header("authorization");
        let shown = header.map(|header| self.by_header(request, target, header)).transpose()?;
        match &shown {
            None | Some(Grant { by: GrantedBy::Bearer { .. }, .. }) => {}
            Some(_) => return shown.ok_or(AuthError::NoCredentials),
        }
        let query = SignedQuery::of(request.raw_query);
        if query.get("sig").is_none() {
            return shown.ok_or(AuthError::NoCredentials);
        }
        let grant = sas::verify(request, target, self.account(target.account)?, &query, policies)?;
        delegation::check_user(&query, shown.as_ref().map(|shown| &shown.by))?;
        Ok(grant)
    }

    fn by_header(
        &self,
        request: &RequestView<'_>,
        target: &AuthTarget<'_>,
        header: &str,
    ) -> Result<Grant, AuthError> {
        let (name, rest) = header.split_once(' ').ok_or(AuthError::HeaderMalformed)?;
        let mut client = None;
        let by = if name.eq_ignore_ascii_case("Bearer") {
            if self.oauth == OauthMode::Off {
                return Err(AuthError::BearerOff);
            }
            self.account(target.account)?;
            bearer::verify(request, target, rest.trim())?
        } else {
            let scheme = Scheme::of_name(name).ok_or(AuthError::HeaderMalformed)?;
            let signed = rest.trim().split_once(':').ok_or(AuthError::HeaderMalformed)?;
            client = self.by_shared_key(request, target, scheme, signed)?;
            GrantedBy::SharedKey
        };
        Ok(Grant { client, ..Grant::new(target.account, by) })
    }

    /// The client whose key signed the request, if it was none of the account's own.
    fn by_shared_key(
        &self,
        request: &RequestView<'_>,
        target: &AuthTarget<'_>,
        scheme: Scheme,
        (signed, signature): (&str, &str),
    ) -> Result<Option<Arc<str>>, AuthError> {
        let account = self.account(signed)?;
        if signed != target.account {
            let addressed = target.account.to_owned();
            return Err(AuthError::OtherAccount { signed: signed.to_owned(), addressed });
        }
        let texts = |is_signed: IsSigned<'_>| {
            (target.signatures.shared_key)(request, signed, scheme, is_signed)
        };
        shared_key::verify(request, account, texts, signature)
    }

    fn account(&self, name: &str) -> Result<&Credential, AuthError> {
        self.accounts.get(name).ok_or_else(|| AuthError::UnknownAccount(name.to_owned()))
    }
}
