//! Decides which requests a listener accepts: every one, or signed ones only.
//!
//! Also decides what a request is granted on the resource that it addresses. The permissions that
//! an operation needs are in the tables of operations; signatures are made and checked in
//! [`super`].

use hyper::StatusCode;
use hyper::header::AUTHORIZATION;

use super::{
    AuthError, AuthTarget, Authorizer, Credential, Grant, GrantedBy, RequestView, SasScope,
};
use crate::http::frame::host::HostedAccount;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::{Operation, Service};
use crate::http::request::Request;
use crate::rules::service::ServiceKind;

/// Which requests are accepted.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Everyone: for quick tests.
    Everyone,
    /// Requests that carry a good signature or token.
    Signed(Authorizer),
}

impl Admission {
    /// The name and keys of an account, where keys are asked for.
    pub fn credential(&self, account: &str) -> Option<&Credential> {
        match self {
            Self::Everyone => None,
            Self::Signed(authorizer) => authorizer.accounts.get(account),
        }
    }

    /// Whether anybody can make a request to the account that is accepted: no credentials are asked
    /// for, or one of its keys is the published one.
    pub fn is_open_to_all(&self, account: &str) -> bool {
        match self {
            Self::Everyone => true,
            Self::Signed(authorizer) => {
                authorizer.accounts.get(account).is_some_and(Credential::has_development_key)
            }
        }
    }

    /// Whether data of the service decides about the request, which [`Admission::grant`] then reads
    /// and may wait for: a stored access policy, or for a request without credentials whether
    /// anybody may read.
    pub fn reads_service(&self, request: &Request) -> bool {
        let stored_policy = request.query.get("si").is_some();
        let credentials =
            request.headers.contains_key(AUTHORIZATION) || request.query.get("sig").is_some();
        matches!(self, Self::Signed(_)) && (stored_policy || !credentials)
    }

    /// Grants the request what its signature permits, or refuses `operation`.
    pub fn grant(
        &self,
        service: &Service,
        account: &dyn HostedAccount,
        request: &Request,
        operation: &Operation,
    ) -> Result<Grant, Refusal> {
        let (Self::Signed(authorizer), Some(needs)) = (self, &operation.needs) else {
            return Ok(Grant::new(account.name(), GrantedBy::Nothing));
        };
        // Headers that are not text are not seen by authorisation: without this check a request
        // with a broken header would count as one without any.
        let sent = request.headers.get_all(AUTHORIZATION).iter();
        if sent.into_iter().any(|value| std::str::from_utf8(value.as_bytes()).is_err()) {
            return Err(AuthError::HeaderMalformed.into());
        }
        let headers = request.header_pairs();
        let view = request.view(&headers);
        let (container, path) = (service.target)(&request.address, needs.level);
        let target = AuthTarget {
            signatures: service.signatures,
            account: account.name(),
            container,
            path: &path,
            level: needs.level,
        };
        let policies =
            |_: &str, container: &str, id: &str| (service.policy)(account, container, id);
        let granted = match authorizer.authorize(&view, &target, &policies) {
            // Without any credentials a public container can be read; with bad ones nothing can.
            Err(AuthError::NoCredentials) if (service.anonymous)(account, request, operation) => {
                return Ok(Grant::new(account.name(), GrantedBy::Anonymous));
            }
            granted => granted.and_then(|grant| {
                let checked = grant.check(needs);
                checked.map_err(|error| spelled(error, service, &grant)).map(|()| grant)
            }),
        };
        granted.map_err(Refusal::from)
    }

    /// The grant of a source that a request names by its URL; `view` is a request for that URL.
    pub fn source_grant(
        &self,
        service: &Service,
        account: &dyn HostedAccount,
        view: &RequestView<'_>,
        target: &AuthTarget<'_>,
    ) -> Result<Grant, AuthError> {
        let Self::Signed(authorizer) = self else {
            return Ok(Grant::new(account.name(), GrantedBy::Nothing));
        };
        let policies =
            |_: &str, container: &str, id: &str| (service.policy)(account, container, id);
        authorizer.authorize(view, target, &policies)
    }
}

/// The Blob service has a code of its own for what no service SAS reaches.
fn spelled(error: AuthError, service: &Service, grant: &Grant) -> AuthError {
    let by_account = matches!(grant.by, GrantedBy::Sas { scope: SasScope::Account { .. }, .. });
    match error {
        AuthError::ResourceTypeMismatch { level }
            if service.kind == ServiceKind::Blob && !by_account =>
        {
            AuthError::BeyondServiceSas { level }
        }
        error => error,
    }
}

/// The wire form of a failed authorisation.
impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::FORBIDDEN);
        let mut refusal = Self::explained(status, error.code(), &error);
        if let Some(detail) = error.detail() {
            refusal = refusal.with("AuthenticationErrorDetail", detail);
        }
        refusal.challenge = error.challenge();
        refusal.sender_only = error.repeats_request();
        refusal
    }
}
