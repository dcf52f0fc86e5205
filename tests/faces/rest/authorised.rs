//! Who gets in, through real HTTP: signatures before bodies, sources of copies, tokens, overrides.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use latchfs::http::auth::{
    Admission, Authorizer, Credential, Credentials, OauthMode, Overrides, SAS_VERSION, ServiceSas,
};
use latchfs::http::limits::Limits;
use latchfs::rules::Timestamp;
use latchfs::rules::time::{iso_seconds, rfc1123};

use crate::rest::fixture::{ACCOUNT, Fixture, Got, container_sas, sas};

const CREATE: [(&str, &str); 2] = [("x-ms-type", "file"), ("x-ms-content-length", "5")];

/// A server that knows the development key, with a file `a`.
fn with_file() -> Fixture {
    let fixture = Fixture::signed(|_| {});
    put(&fixture, "a");
    fixture
}

fn put(fixture: &Fixture, name: &str) {
    let target = format!("/docs/{name}?{}", sas("cw", false));
    fixture.ask("PUT", &target, &CREATE, b"bytes").is(201);
}

/// A server that takes bearer tokens too.
fn with_tokens() -> Fixture {
    Fixture::with(|options| {
        let accounts = Credentials::new([Credential::development()]).unwrap();
        let authorizer = Authorizer { accounts, oauth: OauthMode::Basic };
        options.admission = Admission::Signed(authorizer);
    })
}

fn bearer() -> String {
    let claims = r#"{"iss":"https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "aud":"https://storage.azure.com","nbf":0,"exp":99999999999,
        "oid":"somebody","tid":"here"}"#;
    format!("Bearer eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

#[test]
fn an_unsigned_request_is_refused_by_its_head_and_its_body_is_not_waited_for() {
    let limits = Limits { body_wait: Duration::from_millis(200), ..Limits::default() };
    let fixture = Fixture::signed(|options| options.limits = limits);
    let mut stream = TcpStream::connect(fixture.server.addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "PUT /{ACCOUNT}/docs/a?comp=range HTTP/1.1\r\nHost: localhost\r\n\
         Content-Length: 4194304\r\nx-ms-version: 2026-10-06\r\n\
         x-ms-range: bytes=0-4194303\r\nx-ms-write: update\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("NoAuthenticationInformation"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[test]
fn the_challenge_names_a_tenant_that_is_a_guid() {
    let fixture = Fixture::signed(|_| {});
    let got = fixture.get("/docs?restype=share").refused(401, "NoAuthenticationInformation");
    let challenge = got.header("www-authenticate");
    let (_, rest) = challenge.split_once("https://login.microsoftonline.com/").unwrap();
    let tenant = rest.split('/').next().unwrap();
    assert_eq!(tenant.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    assert!(challenge.contains("resource_id=https://storage.azure.com"), "{challenge}");
    assert!(got.text().contains("<Message>Server failed to authenticate the request."));
}

#[test]
fn a_range_from_a_url_needs_a_signed_source_and_tells_what_the_source_said() {
    let fixture = with_file();
    put(&fixture, "b");
    let target = format!("/docs/b?comp=range&{}", sas("w", false));
    let copy = |url: &str| {
        let headers =
            [("x-ms-copy-source", url), ("x-ms-range", "bytes=0-4"), ("x-ms-write", "update")];
        fixture.put(&target, &headers)
    };
    let got = copy(&fixture.url("a")).refused(401, "CannotVerifyCopySource");
    assert_eq!(got.header("x-ms-copy-source-status-code"), "401");
    assert_eq!(got.header("x-ms-copy-source-error-code"), "NoAuthenticationInformation");
    let got = copy(&format!("{}?{}", fixture.url("a"), sas("w", false)));
    let got = got.refused(403, "CannotVerifyCopySource");
    assert_eq!(got.header("x-ms-copy-source-status-code"), "403");
    assert_eq!(got.header("x-ms-copy-source-error-code"), "AuthorizationPermissionMismatch");
    copy(&format!("{}?{}", fixture.url("a"), sas("r", false))).is(201);
}

#[test]
fn a_source_for_https_alone_is_not_read_over_http_whatever_its_url_says() {
    let fixture = with_file();
    for scheme in ["http", "https"] {
        let url = format!("{}?{}", fixture.url("a"), sas("r", true)).replacen("http", scheme, 1);
        let target = format!("/docs/b?{}", sas("cw", false));
        let got = fixture.put(&target, &[("x-ms-copy-source", &url)]);
        let got = got.refused(403, "CannotVerifyCopySource");
        let code = got.header("x-ms-copy-source-error-code");
        assert_eq!(code, "AuthorizationProtocolMismatch", "{scheme}");
    }
}

#[test]
fn a_rename_by_sas_needs_a_sas_of_its_source_that_reads_writes_or_deletes() {
    let fixture = with_file();
    let directory = format!("/docs/dir-a?restype=directory&{}", sas("cw", false));
    fixture.put(&directory, &[]).is(201);
    let rename = |from: &str, to: &str, source: &str, target: &str| {
        let url = format!("{}?{source}", fixture.url(from));
        let kind = if from.starts_with("dir") { "restype=directory&" } else { "" };
        let target = format!("/docs/{to}?{kind}comp=rename&{target}");
        fixture.put(&target, &[("x-ms-file-rename-source", &url)])
    };
    for (a, b) in [("a", "b"), ("dir-a", "dir-b")] {
        for letters in ["c", "l", "cl"] {
            let got = rename(a, b, &sas(letters, false), &sas("w", false));
            got.refused(403, "CannotVerifyCopySource");
        }
        // Of the share, as the SDKs' own tests have it, and of the account.
        let (reads, writes) = (container_sas("docs", "r"), container_sas("docs", "w"));
        rename(a, b, &reads, &reads).refused(403, "AuthorizationPermissionMismatch");
        rename(a, b, &reads, &writes).is(200);
        for (from, to, letters) in [(b, a, "r"), (a, b, "d"), (b, a, "w")] {
            rename(from, to, &sas(letters, false), &sas("w", false)).is(200);
        }
    }
}

#[test]
fn a_rename_whose_target_lacks_the_account_means_the_only_one() {
    let fixture = with_file();
    let url = format!("{}?{}", fixture.url("a"), sas("rwd", false));
    let target = format!("/docs/b?comp=rename&{}", sas("rwd", false));
    let host = fixture.server.addr().to_string();
    let headers = [("x-ms-file-rename-source", &*url)];
    fixture.ask_host(&host, "PUT", &target, &headers, b"").is(200);
    fixture.get(&format!("/docs/b?{}", sas("r", false))).is(200);
}

#[test]
fn a_sas_overrides_content_headers_of_get_and_head() {
    let fixture = with_file();
    let signed = ServiceSas {
        share: "docs".to_owned(),
        file: Some("a".to_owned()),
        permissions: Some("r".to_owned()),
        expiry: Some(Timestamp(i64::MAX)),
        overrides: Overrides {
            content_disposition: Some("attachment; filename=x".to_owned()),
            content_type: Some("text/x-shown".to_owned()),
            ..Overrides::default()
        },
        ..ServiceSas::default()
    };
    let target = format!("/docs/a?{}", signed.token(&Credential::development()));
    for got in [fixture.get(&target), fixture.head(&target)] {
        let got = got.is(200);
        assert_eq!(got.header("content-type"), "text/x-shown");
        assert_eq!(got.header("content-disposition"), "attachment; filename=x");
    }
}

#[test]
fn an_expired_sas_without_a_start_is_told_of_in_the_service_s_words() {
    let fixture = with_file();
    let expiry = Timestamp(1_600_000_000_000_000_000);
    let signed = ServiceSas {
        share: "docs".to_owned(),
        permissions: Some("r".to_owned()),
        expiry: Some(expiry),
        ..ServiceSas::default()
    };
    let target = format!("/docs/a?{}", signed.token(&Credential::development()));
    let got = fixture.get(&target).refused(403, "AuthenticationFailed").text();
    let detail = format!(
        "<AuthenticationErrorDetail>Signed expiry time [{}] must be after signed start time [",
        rfc1123(expiry)
    );
    assert!(got.contains(&detail), "{got}");
}

#[test]
fn a_token_needs_the_intent_on_files_and_directories_only() {
    let fixture = with_tokens();
    let token = bearer();
    let ask = |method: &str, target: &str, more: &[(&str, &str)]| -> Got {
        let mut headers = vec![("authorization", token.as_str())];
        headers.extend_from_slice(more);
        fixture.ask(method, target, &headers, b"")
    };
    ask("GET", "/?comp=list", &[]).is(200);
    ask("GET", "/docs?restype=share", &[]).is(200);
    let listing = "/docs?restype=directory&comp=list";
    ask("GET", listing, &[]).refused(400, "MissingRequiredHeader");
    ask("GET", listing, &[("x-ms-file-request-intent", "backup")]).is(200);
    ask("PUT", "/docs/a", &CREATE).refused(400, "MissingRequiredHeader");
}

#[test]
fn a_request_has_one_authorization() {
    let fixture = with_tokens();
    let token = bearer();
    let twice = [("authorization", token.as_str()), ("authorization", "Bearer other")];
    fixture.ask("GET", "/?comp=list", &twice, b"").refused(400, "InvalidHeaderValue");
    fixture.ask("GET", "/?comp=list", &twice[..1], b"").is(200);
}

#[test]
fn a_user_delegation_key_signs_a_sas() {
    let fixture = with_tokens();
    let token = bearer();
    let auth = [("authorization", token.as_str()), ("x-ms-file-request-intent", "backup")];
    fixture.ask("PUT", "/docs/a", &[auth[0], auth[1], CREATE[0], CREATE[1]], b"bytes").is(201);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let day = i64::try_from(now.as_nanos()).unwrap() + 86_400_000_000_000;
    let expiry = iso_seconds(Timestamp(day));
    let body = format!("<KeyInfo><Expiry>{expiry}</Expiry></KeyInfo>");
    let target = "/?restype=service&comp=userdelegationkey";
    let got = fixture.ask("POST", target, &auth[..1], body.as_bytes()).is(200).text();
    let field = |name: &str| {
        let (_, rest) = got.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{got}"));
        rest.split('<').next().unwrap().to_owned()
    };
    let key: Credential = format!("{ACCOUNT}:{}", field("Value")).parse().unwrap();
    let names = ["SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService"];
    let mut fields = names.map(field).to_vec();
    fields.push(field("SignedVersion"));
    assert_eq!(fields[0], "somebody");
    let signed = |letters: &str, path: &str| {
        let resource = format!("/file/{ACCOUNT}/docs{path}");
        let mut text = vec![letters, "", &expiry, &resource];
        text.extend(fields.iter().map(String::as_str));
        text.extend(["", "", "", "", SAS_VERSION, "", "", "", "", ""]);
        let signature = key.key().sign(&text.join("\n"));
        let names = ["skoid", "sktid", "skt", "ske", "sks", "skv"];
        let pairs = names.into_iter().zip(fields.iter().map(String::as_str));
        let kind = if path.is_empty() { "s" } else { "f" };
        let more = [
            ("sp", letters),
            ("se", &*expiry),
            ("sr", kind),
            ("sv", SAS_VERSION),
            ("sig", &signature),
        ];
        let encode = |value: &str| {
            value.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D").replace(':', "%3A")
        };
        let query: Vec<_> =
            pairs.chain(more).map(|(name, value)| format!("{name}={}", encode(value))).collect();
        format!("/docs/a?{}", query.join("&"))
    };
    assert_eq!(fixture.get(&signed("r", "/a")).is(200).text(), "bytes");
    assert_eq!(fixture.get(&signed("r", "")).is(200).text(), "bytes");
    fixture.get(&signed("w", "/a")).refused(403, "AuthorizationPermissionMismatch");
    fixture.get(&signed("r", "/b")).refused(403, "AuthenticationFailed");
    fixture.ask("POST", target, &[], body.as_bytes()).refused(401, "NoAuthenticationInformation");
}
