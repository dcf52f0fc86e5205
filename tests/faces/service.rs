//! Listeners of services in the process of a test, and who they let in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use latchfs::clock::{SystemClock, TimeSource as _};
use latchfs::http::auth::{
    AccountSas, Admission, Authorizer, Credential, Credentials, RequestView, Scheme, sign,
};
use latchfs::http::frame::Service;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::rules::Timestamp;
use latchfs::rules::time::rfc1123;
use latchfs::server::Accounts;

use crate::common::http::{self, ACCOUNT, Got};

/// A listener that lets everyone in, with options as `choose` leaves them.
pub fn listen(
    accounts: &Arc<Accounts>,
    service: &'static Service,
    choose: impl FnOnce(&mut RestOptions),
) -> RestServer {
    let mut options = RestOptions::new(Admission::Everyone);
    choose(&mut options);
    RestServer::start(Arc::clone(accounts), service, options).unwrap()
}

/// Lets in only what is signed with the development key.
pub fn signed() -> Admission {
    let accounts = Credentials::new([Credential::development()]).unwrap();
    Admission::Signed(Authorizer { accounts, ..Authorizer::default() })
}

/// An account SAS that never expires.
pub fn account_sas(services: &str, levels: &str, permissions: &str) -> AccountSas {
    AccountSas {
        permissions: permissions.to_owned(),
        services: services.to_owned(),
        levels: levels.to_owned(),
        expiry: Timestamp(i64::MAX),
        ..AccountSas::default()
    }
}

/// The query of such a SAS of the development account.
pub fn account_token(services: &str, levels: &str, permissions: &str) -> String {
    account_sas(services, levels, permissions).token(&Credential::development())
}

/// A bearer token of that user.
pub fn token_of(user: &str) -> String {
    let claims = serde_json::json!({
        "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000001/",
        "aud": "https://storage.azure.com",
        "exp": 4_070_908_800_u64,
        "oid": user,
        "tid": "here",
    });
    format!("Bearer eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Sends a request that is signed with the development key (Shared Key).
pub fn ask_by_key(
    addr: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Got {
    let (now, length) = (SystemClock.now(), body.len().to_string());
    let date = rfc1123(now);
    let mut all = vec![("x-ms-date", date.as_str()), ("x-ms-version", "2024-11-04")];
    all.extend(headers);
    let path = format!("/{ACCOUNT}{target}");
    let (raw_path, raw_query) = path.split_once('?').unwrap_or((&path, ""));
    // A length of zero is not signed.
    let signed: Vec<_> = if body.is_empty() {
        all.clone()
    } else {
        all.iter().copied().chain([("content-length", length.as_str())]).collect()
    };
    let client_ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (headers, https) = (signed.as_slice(), false);
    let view =
        RequestView { method, raw_path, raw_query, headers, now, outside: now, https, client_ip };
    let authorization = sign(&view, &Credential::development(), Scheme::SharedKey);
    all.push(("authorization", &authorization));
    http::ask(addr, method, target, &all, body)
}
