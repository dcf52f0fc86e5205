//! The refusals of authorisation: one variant per rule, with its documented code.
//!
//! Decides code, status and message of each refusal. The body is written in
//! [`crate::http::frame::refusal`]. No message contains a key or a signature that the server
//! computed, nor a secret of the request.

use crate::rules::service::ServiceKind;
use crate::rules::{Timestamp, time};

use super::permission::{Permission, ResourceLevel, letters};
use super::secrets::masked;

/// The header `WWW-Authenticate` of a 401. The Python SDK wants both fields, the JS SDK a GUID as
/// the tenant.
pub const CHALLENGE: &str = "Bearer \
    authorization_uri=https://login.microsoftonline.com/00000000-0000-0000-0000-000000000000/\
    oauth2/authorize \
    resource_id=https://storage.azure.com";

/// Why a request was not authorised.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthError {
    /// `NoAuthenticationInformation`: nothing is anonymous.
    #[error("the request carries neither an Authorization header nor a signature in its query")]
    NoCredentials,
    /// `InvalidAuthenticationInfo`, 400: a scheme that is none, or no `ACCOUNT:SIGNATURE`.
    #[error(
        "the Authorization header is none of 'SharedKey ACCOUNT:SIGNATURE', 'SharedKeyLite \
         ACCOUNT:SIGNATURE' and 'Bearer TOKEN'"
    )]
    HeaderMalformed,
    /// `AuthenticationFailed`: no such account here.
    #[error("there is no account '{0}' here")]
    UnknownAccount(String),
    /// `AuthenticationFailed`: signed by one account, sent to another.
    #[error("the request is signed by account '{signed}' and addressed to '{addressed}'")]
    OtherAccount {
        signed: String,
        /// Whose resource it is.
        addressed: String,
    },
    /// `AuthenticationFailed`: signed with another key, or another text.
    #[error(
        "the signature does not match; the server's string to sign is '{}'",
        masked(.string_to_sign)
    )]
    SignatureMismatch {
        /// The string to sign, as the server builds it.
        string_to_sign: String,
    },
    /// `AuthenticationFailed`: neither `x-ms-date` nor `Date`.
    #[error("a signed request needs the header x-ms-date or Date")]
    DateMissing,
    /// `AuthenticationFailed`: a date in another form than RFC 1123.
    #[error("the date '{0}' is not of the form 'Mon, 05 Jan 2026 10:00:00 GMT'")]
    DateBad(String),
    /// `AuthenticationFailed`: more than fifteen minutes off.
    #[error("the date '{sent}' is more than 15 minutes off: it is now {}", time::rfc1123(*.now))]
    DateSkewed {
        /// The date as sent.
        sent: String,
        now: Timestamp,
    },
    /// `AuthenticationFailed`: a SAS without something it must have.
    #[error("the SAS has no '{0}', and no stored policy supplies it")]
    SasIncomplete(&'static str),
    /// `AuthenticationFailed`: a SAS whose parameter cannot be read.
    #[error("the SAS has '{field}={value}', which cannot be read")]
    SasUnreadable {
        field: &'static str,
        /// The value in the request.
        value: String,
    },
    /// `AuthenticationFailed`: before `st`.
    #[error("the SAS is valid from {}; it is now {}", time::iso(*.start), time::iso(*.now))]
    SasTooEarly {
        /// From when it holds.
        start: Timestamp,
        now: Timestamp,
    },
    /// `AuthenticationFailed`: at `se` or after.
    #[error("the SAS expired at {}; it is now {}", time::iso(*.expiry), time::iso(*.now))]
    SasExpired {
        /// From when it held, if it said so.
        start: Option<Timestamp>,
        /// Until when it held.
        expiry: Timestamp,
        now: Timestamp,
    },
    /// `AuthenticationFailed`: `si` names no policy of the container, share, queue or table.
    #[error("what the SAS is for has no stored policy '{0}'")]
    PolicyMissing(String),
    /// `AuthenticationFailed`: said by the SAS and by the policy it names.
    #[error("'{0}' is given by the SAS and by its stored policy; only one of them may")]
    PolicyDoubled(&'static str),
    /// `AuthenticationFailed`: a SAS for one user, and no token of that user.
    #[error("the SAS is for the user '{0}': send a token of that user with it")]
    OtherUser(String),
    /// `AuthenticationFailed`: a SAS for requests with a header or parameter that is not there.
    #[error("the SAS is for requests with the header or parameter '{0}'")]
    SasRequestDiffers(String),
    /// `AuthorizationSourceIPMismatch`: `sip` does not hold the caller's address.
    #[error("the SAS is for callers from {allowed}")]
    SourceIpMismatch {
        /// `sip`.
        allowed: String,
    },
    /// `AuthorizationProtocolMismatch`: `spr=https`, asked over http.
    #[error("the SAS is for https only")]
    ProtocolMismatch,
    /// `AuthorizationServiceMismatch`: `ss` without this service.
    #[error("the SAS is for the services '{allowed}', not for the {service} service ({})",
        .service.letter())]
    ServiceMismatch {
        /// `ss`.
        allowed: String,
        /// The service that was asked.
        service: ServiceKind,
    },
    /// `AuthorizationResourceTypeMismatch`: the SAS is not for this kind of resource.
    #[error("the SAS does not reach {}", .level.noun())]
    ResourceTypeMismatch {
        /// The level of the resource in the request.
        level: ResourceLevel,
    },
    /// `AuthorizationFailure`: no service SAS of the Blob service reaches what is asked for.
    #[error("no service SAS reaches {}: use an account SAS or the key", .level.noun())]
    BeyondServiceSas {
        /// The level of the resource in the request.
        level: ResourceLevel,
    },
    /// `AuthorizationPermissionMismatch`: the letter is missing.
    #[error("the SAS has the permissions '{granted}'; this operation needs {}", wanted(.needed))]
    PermissionMismatch {
        /// The letters it has.
        granted: String,
        /// Of which one would do.
        needed: Vec<Permission>,
    },
    /// `AuthenticationFailed`: a bearer token, where none are taken.
    #[error("bearer tokens are taken with --oauth basic only")]
    BearerOff,
    /// `InvalidAuthenticationInfo`, 401: a token that is none, or not for us, or not now.
    #[error("the bearer token is refused: {0}")]
    TokenRefused(TokenFault),
    /// `MissingRequiredHeader`: a bearer must say that it means to pass by the file's ACL.
    #[error("a bearer token needs the header x-ms-file-request-intent")]
    IntentMissing,
    /// `InvalidHeaderValue`: an intent other than `backup`.
    #[error("x-ms-file-request-intent is '{0}', not 'backup'")]
    IntentUnknown(String),
}

/// Why a bearer token is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenFault {
    /// Not three parts of base64url with JSON in the second.
    #[error("it is not a JSON web token")]
    Unreadable,
    /// The issuer is not the expected directory.
    #[error("its issuer is not known")]
    Issuer,
    #[error("its audience is not this account, nor storage as a whole")]
    Audience,
    /// Before `nbf`.
    #[error("it does not hold yet")]
    TooEarly,
    /// At `exp` or after.
    #[error("it has expired")]
    Expired,
}

impl AuthError {
    pub(super) fn unreadable(field: &'static str, value: &str) -> Self {
        Self::SasUnreadable { field, value: value.to_owned() }
    }

    /// The value of `x-ms-error-code`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoCredentials => "NoAuthenticationInformation",
            Self::HeaderMalformed | Self::TokenRefused(_) => "InvalidAuthenticationInfo",
            Self::UnknownAccount(_)
            | Self::OtherAccount { .. }
            | Self::SignatureMismatch { .. }
            | Self::DateMissing
            | Self::DateBad(_)
            | Self::DateSkewed { .. }
            | Self::SasIncomplete(_)
            | Self::SasUnreadable { .. }
            | Self::SasTooEarly { .. }
            | Self::SasExpired { .. }
            | Self::PolicyMissing(_)
            | Self::PolicyDoubled(_)
            | Self::OtherUser(_)
            | Self::SasRequestDiffers(_)
            | Self::BearerOff => "AuthenticationFailed",
            Self::SourceIpMismatch { .. } => "AuthorizationSourceIPMismatch",
            Self::ProtocolMismatch => "AuthorizationProtocolMismatch",
            Self::ServiceMismatch { .. } => "AuthorizationServiceMismatch",
            Self::ResourceTypeMismatch { .. } => "AuthorizationResourceTypeMismatch",
            Self::BeyondServiceSas { .. } => "AuthorizationFailure",
            Self::PermissionMismatch { .. } => "AuthorizationPermissionMismatch",
            Self::IntentMissing => "MissingRequiredHeader",
            Self::IntentUnknown(_) => "InvalidHeaderValue",
        }
    }

    pub const fn status(&self) -> u16 {
        match self {
            Self::HeaderMalformed | Self::IntentMissing | Self::IntentUnknown(_) => 400,
            Self::NoCredentials | Self::TokenRefused(_) => 401,
            _ => 403,
        }
    }

    /// Whether the message repeats parts of the request.
    pub const fn repeats_request(&self) -> bool {
        matches!(self, Self::SignatureMismatch { .. })
    }

    /// The text of `<AuthenticationErrorDetail>`, for the codes that have one: those that say
    /// the caller did not prove who he is.
    pub fn detail(&self) -> Option<String> {
        if let Self::SasExpired { start: None, expiry, now } = self {
            // The wording of the service, which names the time of the request as the start.
            let (expiry, now) = (time::rfc1123(*expiry), time::rfc1123(*now));
            return Some(format!(
                "Signed expiry time [{expiry}] must be after signed start time [{now}]"
            ));
        }
        let has_one = matches!(self.code(), "AuthenticationFailed" | "InvalidAuthenticationInfo");
        has_one.then(|| self.to_string())
    }

    /// The value of `WWW-Authenticate`, for a 401.
    pub const fn challenge(&self) -> Option<&'static str> {
        if self.status() == 401 { Some(CHALLENGE) } else { None }
    }
}

fn wanted(needed: &[Permission]) -> String {
    match needed {
        [one] => format!("'{}'", one.letter()),
        any => format!("one of '{}'", letters(any)),
    }
}
