//! Bearer tokens for `--oauth basic`: for the owner of the server, and as Azure App Service gives
//! them to a managed identity, so that `DefaultAzureCredential` works without a network.
//!
//! Decides who is given a token. What a token says, and which are accepted, is decided in
//! `http/auth/bearer`.

use std::path::PathBuf;
use std::time::Duration;

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::body::{AdminResponse, json as json_answer};
use super::call::decoded;
use super::failure::ApiFailure;
use super::guard::Token;
use super::session::Session;
use crate::clock::{SystemClock, TimeSource};
use crate::http::auth::{is_for_storage, write_token};

/// Where a managed identity gets its tokens.
pub const IDENTITY_PATH: &str = "/msi/token";
/// The header with the secret of that path.
const IDENTITY_HEADER: &str = "x-identity-header";
/// How long the token of a managed identity is good, as in App Service.
const IDENTITY_TIME: Duration = Duration::from_hours(24);
/// The audience of a token where none is named.
const STORAGE: &str = "https://storage.azure.com";
/// The user whom a token names unless one is given.
const SUBJECT: &str = "latchfs";
/// The longest life of a token.
const TOKEN_TIME_MAX: u64 = 3_650 * 24 * 3_600;

/// The place and the secret of managed identities, for variables of these names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    pub endpoint: String,
    pub header: String,
}

/// Asks for a token that `--oauth basic` accepts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetToken {
    /// How long it is good; an hour without it
    pub seconds: Option<u64>,
    /// The user whom it names
    pub subject: Option<String>,
}

/// A token, and how programs get their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenGiven {
    pub access_token: String,
    /// The second of its end, since 1970.
    pub expires_on: String,
    pub resource: String,
    /// Absent without an admin address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The certificate that clients must trust, if it was made by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl Session {
    pub fn token(&self, wanted: GetToken) -> Result<TokenGiven, ApiFailure> {
        let about = self.serving.about();
        if !about.takes_tokens {
            let why = "this server accepts no tokens: start it with --oauth basic and --tls self";
            return Err(ApiFailure::not_found(why));
        }
        let seconds = wanted.seconds.unwrap_or(3_600);
        if seconds > TOKEN_TIME_MAX {
            Err(format!("a token is good for at most {TOKEN_TIME_MAX} seconds"))?;
        }
        let subject = wanted.subject.as_deref().unwrap_or(SUBJECT);
        let (access_token, expires_on) = fresh(STORAGE, subject, Duration::from_secs(seconds));
        let ca_file = self.serving.reached(self.account.name()).and_then(|told| told.info.ca_file);
        let resource = STORAGE.to_owned();
        Ok(TokenGiven { access_token, expires_on, resource, identity: about.identity, ca_file })
    }
}

/// A token, and the second of its end.
fn fresh(audience: &str, subject: &str, lifetime: Duration) -> (String, String) {
    let now = SystemClock.now();
    let (token, end) = write_token(now, lifetime, audience, subject);
    (token, end.to_string())
}

/// The answer to a managed identity. `secret` is what the header has to say.
pub fn of_managed_identity(head: &Parts, secret: &Token) -> Result<AdminResponse, ApiFailure> {
    if head.method != Method::GET {
        return Err(ApiFailure::method_not_allowed("GET"));
    }
    check_secret(&head.headers, secret)?;
    let query = head.uri.query().unwrap_or_default();
    let value = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| decoded(value)).transpose()
    };
    let resource = value("resource")?.unwrap_or_default();
    if !is_for_storage(&resource) {
        // The form of App Service: SDKs show these two fields.
        let message = format!("'resource' is '{resource}': only {STORAGE} has tokens here");
        let status = StatusCode::BAD_REQUEST;
        let told = json!({ "statusCode": status.as_u16(), "message": message });
        return Ok(json_answer(status, &told));
    }
    // The ways to name an identity that a user assigned.
    let (client, object) = (value("client_id")?, value("principal_id")?);
    let subject = client.or(object).unwrap_or_else(|| SUBJECT.to_owned());
    let (access_token, expires_on) = fresh(&resource, &subject, IDENTITY_TIME);
    Ok(json_answer(
        StatusCode::OK,
        &json!({
            "access_token": access_token,
            "expires_on": expires_on,
            "resource": resource,
            "token_type": "Bearer",
            "client_id": subject,
        }),
    ))
}

fn check_secret(headers: &HeaderMap, secret: &Token) -> Result<(), ApiFailure> {
    let mut sent = headers.get_all(IDENTITY_HEADER).iter().filter_map(|value| value.to_str().ok());
    if sent.next().is_some_and(|guess| secret.is(guess)) && sent.next().is_none() {
        return Ok(());
    }
    let message = "the header X-IDENTITY-HEADER has not the secret of this start: \
                   `latchfs token --env` prints it";
    Err(ApiFailure::new(StatusCode::UNAUTHORIZED, "unauthorized", message.to_owned()))
}
