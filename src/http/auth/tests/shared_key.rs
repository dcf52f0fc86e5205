//! Shared Key and Shared Key Lite: texts, orders, dates, headers that are none.

use super::super::shared_key::HeaderOrder;
use super::*;

fn plain() -> Sent {
    Sent::new("put", "/devstoreaccount1/demo/a%20b?timeout=5&Comp=range&include=b&include=a")
        .with("x-ms-date", DATE)
        .with("X-MS-Version", "  2026-10-06 ")
        .with("Content-Length", "5")
        .with("Content-Type", "text/plain")
        .with("x-ms-meta-b", "1")
        .with("x-ms-meta-B", "2")
        .with("x-ms-file-attributes", "")
        .with("Range", "bytes=0-4")
}

#[test]
fn the_text_of_shared_key_is_as_documented() {
    let text = plain().view(|view| string_to_sign(view, DEVELOPMENT_NAME, Scheme::SharedKey));
    assert_eq!(
        text,
        "PUT\n\n\n5\n\ntext/plain\n\n\n\n\n\nbytes=0-4\n\
         x-ms-date:Mon, 05 Jan 2026 10:00:00 GMT\nx-ms-file-attributes:\nx-ms-meta-b:1,2\n\
         x-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/demo/a%20b\n\
         comp:range\ninclude:a,b\ntimeout:5"
    );
}

#[test]
fn the_text_of_shared_key_lite_is_as_documented() {
    let text = plain().view(|view| string_to_sign(view, DEVELOPMENT_NAME, Scheme::SharedKeyLite));
    assert_eq!(
        text,
        "PUT\n\ntext/plain\n\nx-ms-date:Mon, 05 Jan 2026 10:00:00 GMT\nx-ms-file-attributes:\n\
         x-ms-meta-b:1,2\nx-ms-version:2026-10-06\n\
         /devstoreaccount1/devstoreaccount1/demo/a%20b?comp=range"
    );
}

#[test]
fn each_scheme_lets_in_what_it_signed_and_not_what_the_other_did() {
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let sent = plain().signed(scheme);
        assert!(sent.authorize(&DEMO).is_ok(), "{scheme:?}");
        let mut other = sent.clone();
        let value = &mut other.headers.last_mut().unwrap().1;
        *value = match scheme {
            Scheme::SharedKey => value.replace("SharedKey", "SharedKeyLite"),
            Scheme::SharedKeyLite => value.replace("SharedKeyLite", "SharedKey"),
        };
        string_signed(other.authorize(&DEMO));
    }
}

#[test]
fn lite_does_not_sign_the_query_but_for_comp() {
    let sent = plain().signed(Scheme::SharedKeyLite);
    let query = "timeout=6&comp=range".to_owned();
    assert!(Sent { query, ..sent.clone() }.authorize(&DEMO).is_ok());
    let query = "timeout=5&comp=lease".to_owned();
    string_signed(Sent { query, ..sent }.authorize(&DEMO));
}

/// A plus stands for itself, or for a blank in clients that encode a query like a form.
#[test]
fn a_plus_in_the_query_may_be_signed_as_a_plus_or_as_a_blank() {
    let request = |query: &str| {
        let sent = Sent::new("GET", &format!("/devstoreaccount1/demo?{query}"));
        sent.with("x-ms-date", DATE).with("x-ms-version", "2026-10-06")
    };
    for (sent, signed, taken) in [
        ("prefix=my+dir%2F", "prefix=my%20dir%2F", true),
        ("prefix=my+dir%2F", "prefix=my%2Bdir%2F", true),
        ("prefix=my%2Bdir", "prefix=my%2Bdir", true),
        ("prefix=my%2Bdir", "prefix=my%20dir", false),
        ("prefix=my%20dir", "prefix=my%2Bdir", false),
    ] {
        let by =
            request(signed).view(|view| sign(view, &Credential::development(), Scheme::SharedKey));
        let answer = request(sent).with("Authorization", &by).authorize(&DEMO);
        assert_eq!(answer.is_ok(), taken, "{sent} signed as {signed}");
    }
}

#[test]
fn a_content_length_of_zero_is_signed_as_nothing() {
    let with = Sent::new("PUT", "/a").with("x-ms-date", DATE).with("Content-Length", "0");
    let without = Sent::new("PUT", "/a").with("x-ms-date", DATE);
    let text =
        |sent: &Sent| sent.view(|view| string_to_sign(view, DEVELOPMENT_NAME, Scheme::SharedKey));
    assert_eq!(text(&with), text(&without));
}

#[test]
fn the_date_header_serves_where_x_ms_date_is_not_sent() {
    let sent = Sent::new("GET", "/devstoreaccount1/demo").with("Date", DATE);
    let text = sent.view(|view| string_to_sign(view, DEVELOPMENT_NAME, Scheme::SharedKey));
    assert!(text.starts_with(&format!("GET\n\n\n\n\n\n{DATE}\n")), "{text}");
    assert!(sent.signed(Scheme::SharedKey).authorize(&DEMO).is_ok());
}

#[test]
fn a_clock_may_be_fifteen_minutes_off_and_no_more() {
    let sent = Sent::new("GET", "/devstoreaccount1/demo").with("x-ms-date", DATE);
    let sent = sent.signed(Scheme::SharedKey);
    for (now, good) in [
        ("2026-01-05T10:15:00Z", true),
        ("2026-01-05T10:15:00.0000001Z", false),
        ("2026-01-05T09:45:00Z", true),
        ("2026-01-05T09:44:59.9999999Z", false),
    ] {
        let answer = Sent { now: at(now), ..sent.clone() }.authorize(&DEMO);
        let skewed = AuthError::DateSkewed { sent: DATE.into(), now: at(now) };
        assert_eq!(answer.err(), (!good).then_some(skewed), "{now}");
    }
}

#[test]
fn a_date_that_is_missing_or_none_is_refused() {
    let sent = Sent::new("GET", "/devstoreaccount1/demo").signed(Scheme::SharedKey);
    assert_eq!(sent.authorize(&DEMO), Err(AuthError::DateMissing));
    let sent = Sent::new("GET", "/devstoreaccount1/demo").with("x-ms-date", "now");
    let refused = sent.signed(Scheme::SharedKey).authorize(&DEMO);
    assert_eq!(refused, Err(AuthError::DateBad("now".into())));
}

#[test]
fn either_key_of_an_account_signs() {
    let first: Credential = "other:b25l".parse().unwrap();
    let second: Credential = "other:dHdv".parse().unwrap();
    let both: Credential = "other:b25l:dHdv".parse().unwrap();
    let authorizer =
        Authorizer { accounts: Credentials::new([both]).unwrap(), oauth: OauthMode::Off };
    let target = AuthTarget { account: "other", ..DEMO };
    for signer in [first, second] {
        let sent = Sent::new("GET", "/other/demo").with("x-ms-date", DATE);
        let value = sent.view(|view| sign(view, &signer, Scheme::SharedKey));
        let sent = sent.with("authorization", &value);
        let grant = sent.view(|view| authorizer.authorize(view, &target, &policies));
        assert_eq!(grant.map(|grant| grant.account), Ok("other".into()));
    }
}

#[test]
fn an_account_signs_for_itself_alone() {
    let sent = Sent::new("GET", "/other/demo").with("x-ms-date", DATE).signed(Scheme::SharedKey);
    let refused = sent.authorize(&AuthTarget { account: "other", ..DEMO });
    let (signed, addressed) = (DEVELOPMENT_NAME.into(), "other".into());
    assert_eq!(refused, Err(AuthError::OtherAccount { signed, addressed }));
    let sent = Sent::new("GET", "/none/demo").with("Authorization", "SharedKey none:c2ln");
    let refused = sent.authorize(&AuthTarget { account: "none", ..DEMO });
    assert_eq!(refused, Err(AuthError::UnknownAccount("none".into())));
}

#[test]
fn a_request_without_credentials_gets_a_challenge() {
    let refused = Sent::new("GET", "/devstoreaccount1/demo").authorize(&DEMO).unwrap_err();
    assert_eq!(refused, AuthError::NoCredentials);
    assert_eq!((refused.status(), refused.code()), (401, "NoAuthenticationInformation"));
    assert_eq!(refused.challenge(), Some(CHALLENGE));
    assert_eq!(refused.detail(), None);
}

#[test]
fn an_authorization_header_that_is_none_is_a_bad_request() {
    for value in ["", "SharedKey", "SharedKey ", "SharedKey abc", "Basic a:b", "a:b", "Bearer"] {
        let sent = Sent::new("GET", "/devstoreaccount1/demo").with("Authorization", value);
        let refused = sent.authorize(&DEMO).unwrap_err();
        assert_eq!(refused, AuthError::HeaderMalformed, "{value:?}");
        assert_eq!((refused.status(), refused.code()), (400, "InvalidAuthenticationInfo"));
    }
}

#[test]
fn a_refused_signature_says_what_was_signed_and_nothing_secret() {
    let good = plain().signed(Scheme::SharedKey);
    let good = good.headers.last().unwrap().1.clone();
    let sent = plain().with("Authorization", "SharedKey devstoreaccount1:bm90IHNv");
    let refused = sent.authorize(&DEMO).unwrap_err();
    assert_eq!((refused.status(), refused.code()), (403, "AuthenticationFailed"));
    let detail = refused.detail().unwrap();
    assert!(detail.contains("\ncomp:range\n"), "{detail}");
    assert!(!detail.contains(good.split_once(':').unwrap().1), "{detail}");
    assert!(!detail.contains(DEVELOPMENT_KEY), "{detail}");
}

#[test]
fn the_account_that_signed_is_known_before_routing() {
    assert_eq!(signing_account("SharedKey abc:c2ln"), Some("abc"));
    assert_eq!(signing_account("sharedkeylite abc:c2ln"), Some("abc"));
    for other in ["Bearer abc:c2ln", "SharedKey abc", "SharedKey", ""] {
        assert_eq!(signing_account(other), None, "{other}");
    }
}

/// Sorted by the `compare` of `azure-storage-file-share` 12.27.1, `_shared/authentication.py`.
#[test]
fn hyphens_count_last_in_the_order_of_the_service() {
    let sorted = [
        "x-msdate",
        "x-ms-date",
        "x-ms-da-te",
        "x-ms-meta",
        "x-ms-meta-~",
        "x-ms-meta-+",
        "x-ms-meta-1",
        "x-ms-metaa",
        "x-ms-meta-a",
        "x-ms-meta-a-",
        "x-ms-meta-'a",
        "x-ms-meta--a",
        "x-ms-meta-a.b",
        "x-ms-meta-a_b",
        "x-ms-meta-a1",
        "x-ms-meta-ab",
        "x-ms-meta-a-b",
        "x-ms-meta-b",
    ];
    for (index, one) in sorted.iter().enumerate() {
        for (place, other) in sorted.iter().enumerate() {
            let order = HeaderOrder::HyphenLight.compare(one, other);
            assert_eq!(order, index.cmp(&place), "{one} {other}");
        }
    }
    assert!(HeaderOrder::Bytes.compare("x-ms-meta-a-b", "x-ms-meta-ab").is_lt());
}

#[test]
fn the_language_may_be_signed_before_the_encoding() {
    let sent = plain().with("Content-Encoding", "gzip").with("Content-Language", "en");
    let text = sent.view(|view| string_to_sign(view, DEVELOPMENT_NAME, Scheme::SharedKey));
    let swapped = text.replacen("\ngzip\nen\n", "\nen\ngzip\n", 1);
    assert_ne!(text, swapped);
    let tried_of = |sent: &Sent| {
        let mut all = Vec::new();
        sent.view(|view| {
            texts(view, DEVELOPMENT_NAME, Scheme::SharedKey, &mut |text| {
                all.push(text);
                false
            })
        });
        all
    };
    let tried = tried_of(&sent);
    assert!(tried.contains(&text) && tried.contains(&swapped), "{tried:?}");
    // Without either header no other text is tried.
    assert_eq!(tried_of(&plain()).len() * 2, tried.len());
}
