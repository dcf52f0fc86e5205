//! Bearer tokens: what `--oauth basic` looks at.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::*;

fn good_claims() -> Value {
    let seconds = now().0 / 1_000_000_000;
    json!({
        "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "aud": "https://storage.azure.com",
        "nbf": seconds,
        "exp": seconds + 1,
        "oid": "somebody",
    })
}

fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = good_claims();
    claims[name] = value;
    claims
}

fn token(claims: &Value) -> String {
    let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
    format!("eyJhbGciOiJub25lIn0.{payload}.c2ln")
}

fn sent(token: &str) -> Sent {
    Sent::new("GET", "/devstoreaccount1/demo")
        .with("Authorization", &format!("Bearer {token}"))
        .with("x-ms-file-request-intent", "backup")
}

fn answer(claims: &Value) -> Result<Grant, AuthError> {
    sent(&token(claims)).authorize(&DEMO)
}

fn refused(fault: TokenFault) -> Result<Grant, AuthError> {
    Err(AuthError::TokenRefused(fault))
}

#[test]
fn a_good_token_permits_everything() {
    let grant = answer(&good_claims()).unwrap();
    assert_eq!(grant.by, GrantedBy::Bearer { subject: "somebody".into(), tenant: String::new() });
    assert!(grant.check_letters(&[Permission::Delete]).is_ok());
    let padded = token(&good_claims()).split('.').nth(1).map(str::to_owned).unwrap();
    let padded = URL_SAFE.encode(URL_SAFE_NO_PAD.decode(padded).unwrap());
    assert!(sent(&format!("h.{padded}.s")).authorize(&DEMO).is_ok());
}

#[test]
fn audiences_are_storage_and_the_account() {
    for audience in [
        json!("https://storage.azure.com/"),
        json!("https://devstoreaccount1.file.core.windows.net"),
        json!("https://devstoreaccount1.file.localhost:10004/"),
        json!(["https://graph.microsoft.com", "https://storage.azure.com"]),
    ] {
        assert!(answer(&claims_with("aud", audience.clone())).is_ok(), "{audience}");
    }
    for audience in [
        json!("https://graph.microsoft.com"),
        json!("https://storage.azure.com.evil.example"),
        json!("https://other.file.core.windows.net"),
        json!("https://devstoreaccount1.blob.core.windows.net"),
        json!("http://devstoreaccount1.file.core.windows.net"),
        json!("https://devstoreaccount1.file.core.windows.net/x/"),
        json!([]),
    ] {
        let claims = claims_with("aud", audience.clone());
        assert_eq!(answer(&claims), refused(TokenFault::Audience), "{audience}");
    }
}

#[test]
fn other_issuers_are_refused() {
    let claims = claims_with("iss", json!("https://issuer.example/"));
    assert_eq!(answer(&claims), refused(TokenFault::Issuer));
}

#[test]
fn a_token_holds_from_nbf_until_exp() {
    let seconds = now().0 / 1_000_000_000;
    let early = claims_with("nbf", json!(seconds + 1));
    assert_eq!(answer(&early), refused(TokenFault::TooEarly));
    let late = claims_with("exp", json!(seconds));
    assert_eq!(answer(&late), refused(TokenFault::Expired));
    let mut open = good_claims();
    open.as_object_mut().unwrap().remove("nbf");
    assert!(answer(&open).is_ok());
}

#[test]
fn what_is_no_token_is_refused_with_a_challenge() {
    let mut without_expiry = good_claims();
    without_expiry.as_object_mut().unwrap().remove("exp");
    for text in ["", "a", "a.b", "a.b.c", "a.e30.c", "..", "a.é.c", &token(&without_expiry)] {
        let error = sent(text).authorize(&DEMO).unwrap_err();
        let expected = if text.is_empty() {
            AuthError::HeaderMalformed
        } else {
            AuthError::TokenRefused(TokenFault::Unreadable)
        };
        assert_eq!(error, expected, "{text}");
    }
    let four = format!("{}.d", token(&good_claims()));
    let error = sent(&four).authorize(&DEMO).unwrap_err();
    assert_eq!((error.status(), error.code()), (401, "InvalidAuthenticationInfo"));
    assert_eq!(error.challenge(), Some(CHALLENGE));
    assert!(error.detail().is_some());
}

#[test]
fn the_intent_must_be_said_and_be_backup() {
    let mut without = sent(&token(&good_claims()));
    without.headers.pop();
    let error = without.authorize(&DEMO).unwrap_err();
    assert_eq!(error, AuthError::IntentMissing);
    assert_eq!((error.status(), error.code()), (400, "MissingRequiredHeader"));
    let other = without.clone().with("x-ms-file-request-intent", "restore");
    let error = other.authorize(&DEMO).unwrap_err();
    assert_eq!(error, AuthError::IntentUnknown("restore".into()));
    assert_eq!((error.status(), error.code()), (400, "InvalidHeaderValue"));
    assert!(without.with("x-ms-file-request-intent", "Backup").authorize(&DEMO).is_ok());
}

#[test]
fn tokens_are_off_unless_asked_for() {
    let authorizer = Authorizer { oauth: OauthMode::default(), ..authorizer() };
    let error = sent(&token(&good_claims()))
        .view(|view| authorizer.authorize(view, &DEMO, &policies))
        .unwrap_err();
    assert_eq!(error, AuthError::BearerOff);
    assert_eq!((error.status(), error.code()), (403, "AuthenticationFailed"));
}

#[test]
fn a_token_for_an_account_that_is_not_here_is_refused() {
    let error = sent(&token(&good_claims())).authorize(&AuthTarget { account: "none", ..DEMO });
    assert_eq!(error, Err(AuthError::UnknownAccount("none".into())));
}
