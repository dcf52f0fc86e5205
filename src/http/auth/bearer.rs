//! Bearer tokens under `--oauth basic`.
//!
//! Writes tokens, and checks issuer, audience, lifetime and intent. A token's signature is **not**
//! checked, so a token proves nothing: the option exists to exercise a client's code for tokens.
//! Accepted over http too, since TLS may have ended at a proxy.

use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{AuthError, TokenFault};
use super::grant::GrantedBy;
use super::request::{AuthTarget, RequestView};
use crate::rules::Timestamp;
use crate::rules::service::ServiceKind;

/// Which bearer tokens are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum OauthMode {
    /// None
    #[default]
    Off,
    /// Tokens with the right issuer, audience and time; signatures are not checked
    Basic,
}

/// How the issuer of a token of the directory begins, in its clouds and both its versions.
const ISSUERS: [&str; 5] = [
    "https://sts.windows.net/",
    "https://login.microsoftonline.com/",
    "https://sts.chinacloudapi.cn/",
    "https://login.partner.microsoftonline.cn/",
    "https://login.microsoftonline.us/",
];

/// Storage as a whole: by address, and by the number under which the directory knows it.
const AUDIENCES: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];

const SECOND_NANOS: i64 = 1_000_000_000;

const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    exp: i64,
    #[serde(default = "always")]
    nbf: i64,
    #[serde(default)]
    oid: String,
    #[serde(default)]
    sub: String,
    #[serde(default)]
    tid: String,
}

const fn always() -> i64 {
    i64::MIN
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// The tenant of the tokens that are written here.
const TENANT: &str = "00000000-0000-0000-0000-000000000001";
/// How long before now such a token is good, for clients whose clock is behind.
const EARLY: Duration = Duration::from_mins(5);

/// Whether tokens for this audience are taken by a service of some account.
pub fn is_for_storage(audience: &str) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    let host = audience.strip_prefix("https://").filter(|host| !host.contains('/'));
    let service = host.and_then(|host| host.split('.').nth(1));
    let kinds = ServiceKind::ALL.map(ServiceKind::label);
    AUDIENCES.contains(&audience) || service.is_some_and(|service| kinds.contains(&service))
}

/// A token for `audience` that names `subject`, without a signature; and its end, in seconds since
/// 1970. `now` is the system's time.
pub fn write_token(
    now: Timestamp,
    lifetime: Duration,
    audience: &str,
    subject: &str,
) -> (String, i64) {
    let seconds = |time: Timestamp| time.0.div_euclid(SECOND_NANOS);
    let end = seconds(now.after(lifetime));
    let claims = json!({
        "iss": format!("https://sts.windows.net/{TENANT}/"),
        "aud": audience,
        "nbf": seconds(now) - EARLY.as_secs().cast_signed(),
        "iat": seconds(now),
        "exp": end,
        "oid": subject,
        "sub": subject,
        "tid": TENANT,
    });
    let part = |value: &Value| BASE64URL.encode(value.to_string());
    let head = json!({ "alg": "none", "typ": "JWT" });
    (format!("{}.{}.unsigned", part(&head), part(&claims)), end)
}

/// The user whom the token names, if the token and the intent of the request are good.
pub(super) fn verify(
    request: &RequestView<'_>,
    target: &AuthTarget<'_>,
    token: &str,
) -> Result<GrantedBy, AuthError> {
    let claims = claims(token).ok_or(AuthError::TokenRefused(TokenFault::Unreadable))?;
    check_claims(request, target, &claims).map_err(AuthError::TokenRefused)?;
    if (target.signatures.needs_intent)(target.level) {
        match request.header("x-ms-file-request-intent") {
            None | Some("") => return Err(AuthError::IntentMissing),
            Some(intent) if !intent.eq_ignore_ascii_case("backup") => {
                return Err(AuthError::IntentUnknown(intent.to_owned()));
            }
            Some(_) => {}
        }
    }
    let subject = if claims.oid.is_empty() { claims.sub } else { claims.oid };
    Ok(GrantedBy::Bearer { subject, tenant: claims.tid })
}

/// The middle one of three parts.
fn claims(token: &str) -> Option<Claims> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice(&BASE64URL.decode(payload).ok()?).ok()
}

fn check_claims(
    request: &RequestView<'_>,
    target: &AuthTarget<'_>,
    claims: &Claims,
) -> Result<(), TokenFault> {
    if !ISSUERS.iter().any(|known| claims.iss.starts_with(known)) {
        return Err(TokenFault::Issuer);
    }
    let for_us = match &claims.aud {
        Audience::One(one) => is_ours(one, target),
        Audience::Several(several) => several.iter().any(|one| is_ours(one, target)),
    };
    if !for_us {
        return Err(TokenFault::Audience);
    }
    let now = request.outside.0.div_euclid(SECOND_NANOS);
    if now < claims.nbf {
        return Err(TokenFault::TooEarly);
    }
    if now >= claims.exp {
        return Err(TokenFault::Expired);
    }
    Ok(())
}

/// Storage as a whole, or `https://ACCOUNT.SERVICE.` and any suffix; a slash may end it.
fn is_ours(audience: &str, target: &AuthTarget<'_>) -> bool {
    let audience = audience.strip_suffix('/').unwrap_or(audience);
    let host = audience.strip_prefix("https://").and_then(|host| host.strip_prefix(target.account));
    let service = format!(".{}.", target.signatures.kind.label());
    let own_host = host.is_some_and(|rest| rest.starts_with(&service) && !rest.contains('/'));
    own_host || AUDIENCES.contains(&audience)
}
