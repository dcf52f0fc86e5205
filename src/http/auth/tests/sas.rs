//! SAS tokens of our own making: time, address, protocol, service, policy, scope, letters.

use super::super::request::SignedQuery;
use super::*;
use crate::rules::service::ServiceKind;

fn account_sas() -> AccountSas {
    AccountSas {
        permissions: "rwdlc".into(),
        services: "f".into(),
        levels: "sco".into(),
        expiry: at("2026-01-05T11:00:00Z"),
        ..AccountSas::default()
    }
}

fn share_sas() -> ServiceSas {
    ServiceSas {
        share: "demo".into(),
        permissions: Some("rl".into()),
        expiry: Some(at("2026-01-05T11:00:00Z")),
        ..ServiceSas::default()
    }
}

fn sent(token: &str) -> Sent {
    Sent::new("GET", &format!("/devstoreaccount1/demo?restype=directory&{token}"))
}

fn by_account(sas: &AccountSas) -> Sent {
    sent(&sas.token(&Credential::development()))
}

fn by_share(sas: &ServiceSas) -> Sent {
    sent(&sas.token(&Credential::development()))
}

/// A token with these parameters, signed whatever they are; `text` is made of them decoded.
fn by_hand(pairs: &str, text: &str) -> Sent {
    let signature = Credential::development().key().sign(text);
    sent(&format!("{pairs}&sig={}", signature.replace('+', "%2B")))
}

/// A share's token that says `se` in this spelling.
fn expiring(expiry: &str) -> Sent {
    let text = format!("r\n\n{expiry}\n/file/devstoreaccount1/demo\n\n\n\n2026-10-06\n\n\n\n\n");
    by_hand(&format!("sr=s&sp=r&se={expiry}&sv=2026-10-06"), &text)
}

#[test]
fn a_token_holds_from_its_start_until_its_expiry() {
    let start = Some(at("2026-01-05T10:00:00Z"));
    let sent = by_account(&AccountSas { start, ..account_sas() });
    let answer = |now: &str| Sent { now: at(now), ..sent.clone() }.authorize(&DEMO);
    assert!(answer("2026-01-05T10:00:00Z").is_ok());
    assert!(answer("2026-01-05T10:59:59.9999999Z").is_ok());
    let early = answer("2026-01-05T09:59:59.9999999Z").unwrap_err();
    assert!(matches!(early, AuthError::SasTooEarly { .. }), "{early:?}");
    let late = answer("2026-01-05T11:00:00Z").unwrap_err();
    assert!(matches!(late, AuthError::SasExpired { .. }), "{late:?}");
    for refused in [early, late] {
        assert_eq!((refused.status(), refused.code()), (403, "AuthenticationFailed"));
        assert!(refused.detail().unwrap().contains("2026-01-05T"));
    }
}

#[test]
fn dates_are_read_in_three_forms() {
    for expiry in ["2026-01-05T10:00:01Z", "2026-01-05T10:01Z", "2026-01-06"] {
        assert!(expiring(expiry).authorize(&DEMO).is_ok(), "{expiry}");
    }
    for expiry in ["2026-01-05T10:00:00Z", "2026-01-05T10:00Z", "2026-01-05"] {
        let refused = expiring(expiry).authorize(&DEMO).unwrap_err();
        assert!(matches!(refused, AuthError::SasExpired { .. }), "{expiry}: {refused:?}");
    }
    for expiry in ["tomorrow", "2026-01-06T10", "2026-01-06T10Z", "2026-13-01", "2026-01-06Z"] {
        let value = expiry.to_owned();
        let unreadable = AuthError::SasUnreadable { field: "se", value };
        assert_eq!(expiring(expiry).authorize(&DEMO), Err(unreadable));
    }
}

#[test]
fn an_address_outside_the_range_is_refused() {
    let answer = |allowed: &str, client: &str| {
        let sent = by_share(&ServiceSas { addresses: Some(allowed.into()), ..share_sas() });
        let client_ip = client.parse().unwrap();
        Sent { client_ip, ..sent }.authorize(&DEMO).map(|_| ())
    };
    for (allowed, client) in [
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.1-10.0.0.9", "10.0.0.9"),
        ("10.0.0.1-10.0.0.9", "::ffff:10.0.0.1"),
        ("::1", "::1"),
    ] {
        assert_eq!(answer(allowed, client), Ok(()), "{allowed} {client}");
    }
    for (allowed, client) in [
        ("10.0.0.1", "10.0.0.2"),
        ("10.0.0.2-10.0.0.9", "10.0.0.1"),
        ("10.0.0.1-10.0.0.9", "10.0.0.10"),
        ("10.0.0.9-10.0.0.1", "10.0.0.5"),
        ("10.0.0.1-::9", "::5"),
        ("0.0.0.0-255.255.255.255", "::1"),
    ] {
        let refused = answer(allowed, client).unwrap_err();
        assert_eq!(refused, AuthError::SourceIpMismatch { allowed: allowed.into() });
        assert_eq!(refused.code(), "AuthorizationSourceIPMismatch");
    }
    let value = "home".to_owned();
    assert_eq!(answer("home", "::1"), Err(AuthError::SasUnreadable { field: "sip", value }));
}

#[test]
fn https_alone_is_not_http() {
    let sent = by_account(&AccountSas { https_only: true, ..account_sas() });
    let refused = sent.authorize(&DEMO).unwrap_err();
    assert_eq!(refused, AuthError::ProtocolMismatch);
    assert_eq!((refused.status(), refused.code()), (403, "AuthorizationProtocolMismatch"));
    assert!(Sent { https: true, ..sent }.authorize(&DEMO).is_ok());
}

/// Whether the grant permits an operation at that level that takes any of these.
fn check(grant: &Grant, level: ResourceLevel, permissions: &[Permission]) -> Result<(), AuthError> {
    let service_sas = (level == ResourceLevel::Object).then_some(permissions);
    grant.check(&Needs { level, or_level: None, permissions, service_sas })
}

#[test]
fn an_account_token_must_be_for_files() {
    let sent = by_account(&AccountSas { services: "bqt".into(), ..account_sas() });
    let refused = sent.authorize(&DEMO).unwrap_err();
    assert_eq!(
        refused,
        AuthError::ServiceMismatch { allowed: "bqt".into(), service: ServiceKind::File }
    );
    assert_eq!((refused.status(), refused.code()), (403, "AuthorizationServiceMismatch"));
    let several = AccountSas { services: "bqtf".into(), ..account_sas() };
    assert!(by_account(&several).authorize(&DEMO).is_ok());
}

#[test]
fn an_account_token_reaches_the_levels_it_names() {
    let levels = [
        (ResourceLevel::Service, "s"),
        (ResourceLevel::Container, "c"),
        (ResourceLevel::Object, "o"),
    ];
    for (level, letter) in levels {
        let sas = AccountSas { levels: letter.into(), ..account_sas() };
        let grant = by_account(&sas).authorize(&DEMO).unwrap();
        for (asked, _) in levels {
            let answer = check(&grant, asked, &[Permission::Read]);
            let refused = AuthError::ResourceTypeMismatch { level: asked };
            assert_eq!(answer.err(), (asked != level).then_some(refused));
        }
    }
    let refused = AuthError::ResourceTypeMismatch { level: ResourceLevel::Container };
    assert_eq!((refused.status(), refused.code()), (403, "AuthorizationResourceTypeMismatch"));
}

#[test]
fn a_letter_that_is_missing_is_refused() {
    let grant = by_account(&account_sas()).authorize(&DEMO).unwrap();
    assert!(grant.check_letters(&[Permission::Create]).is_ok());
    let grant = by_share(&share_sas()).authorize(&DEMO).unwrap();
    assert!(grant.check_letters(&[Permission::Read]).is_ok());
    assert!(grant.check_letters(&[Permission::Write]).is_err());
    assert_eq!(
        check(&grant, ResourceLevel::Object, &[Permission::Write, Permission::List]),
        Ok(())
    );
    let refused =
        check(&grant, ResourceLevel::Object, &[Permission::Create, Permission::Write]).unwrap_err();
    assert_eq!((refused.status(), refused.code()), (403, "AuthorizationPermissionMismatch"));
    assert_eq!(
        refused.to_string(),
        "the SAS has the permissions 'rl'; this operation needs one of 'cw'"
    );
    assert_eq!(refused.detail(), None);
}

#[test]
fn every_letter_stands_for_itself_alone() {
    let all = "racwdlupxytfi";
    assert_eq!(Permissions::of_letters("iftyxpulwdcar").letters(), all);
    for letter in all.chars() {
        let set = Permissions::of_letters(&letter.to_string());
        assert_eq!(set.letters(), letter.to_string());
    }
    assert_eq!(Permissions::of_letters("zRé"), Permissions::default());
}

#[test]
fn a_share_token_reaches_what_is_in_its_share() {
    let sent = by_share(&share_sas());
    let grant = sent.authorize(&in_demo("dir/file")).unwrap();
    assert!(grant.check_letters(&[Permission::List]).is_ok());
    for level in [ResourceLevel::Container, ResourceLevel::Service] {
        let refused = AuthError::ResourceTypeMismatch { level };
        assert_eq!(check(&grant, level, &[Permission::Read]), Err(refused));
    }
    string_signed(sent.authorize(&AuthTarget { container: Some("other"), ..DEMO }));
    string_signed(sent.authorize(&AuthTarget { account: "other", ..DEMO }));
    let refused = AuthError::ResourceTypeMismatch { level: ResourceLevel::Service };
    assert_eq!(sent.authorize(&SERVICE), Err(refused));
}

#[test]
fn a_file_token_reaches_its_file_alone() {
    let sent = by_share(&ServiceSas { file: Some("dir/file".into()), ..share_sas() });
    assert!(sent.authorize(&in_demo("dir/file")).is_ok());
    let text = string_signed(sent.authorize(&in_demo("dir/other")));
    assert!(text.contains("\n/file/devstoreaccount1/demo/dir/other\n"), "{text}");
    string_signed(sent.authorize(&in_demo("dir")));
    let refused = AuthError::ResourceTypeMismatch { level: ResourceLevel::Container };
    assert_eq!(sent.authorize(&DEMO), Err(refused));
}

#[test]
fn a_stored_policy_supplies_what_the_token_leaves_out() {
    let readers = ServiceSas {
        policy: Some("readers".into()),
        permissions: None,
        expiry: None,
        ..share_sas()
    };
    let grant = by_share(&readers).authorize(&DEMO).unwrap();
    assert!(grant.check_letters(&[Permission::List]).is_ok());
    assert!(grant.check_letters(&[Permission::Write]).is_err());
    let now = at("2026-01-06T10:00:00Z");
    let late = Sent { now, ..by_share(&readers) }.authorize(&DEMO).unwrap_err();
    assert!(matches!(late, AuthError::SasExpired { .. }), "{late:?}");

    let lasting = ServiceSas { policy: Some("lasting".into()), ..readers.clone() };
    assert_eq!(by_share(&lasting).authorize(&DEMO), Err(AuthError::SasIncomplete("sp")));
    let complete = ServiceSas { permissions: Some("w".into()), ..lasting };
    let grant = by_share(&complete).authorize(&DEMO).unwrap();
    assert!(grant.check_letters(&[Permission::Write]).is_ok());
}

#[test]
fn a_policy_that_is_missing_or_said_twice_is_refused() {
    let none = ServiceSas { policy: Some("none".into()), ..share_sas() };
    let refused = by_share(&none).authorize(&DEMO).unwrap_err();
    assert_eq!(refused, AuthError::PolicyMissing("none".into()));
    assert_eq!((refused.status(), refused.code()), (403, "AuthenticationFailed"));

    let letters = ServiceSas { policy: Some("readers".into()), expiry: None, ..share_sas() };
    assert_eq!(by_share(&letters).authorize(&DEMO), Err(AuthError::PolicyDoubled("sp")));
    let expiry = ServiceSas { policy: Some("readers".into()), permissions: None, ..share_sas() };
    assert_eq!(by_share(&expiry).authorize(&DEMO), Err(AuthError::PolicyDoubled("se")));
}

#[test]
fn what_a_token_must_have_is_asked_for() {
    for (query, missing) in [
        ("sig=a", "sv"),
        ("sig=a&sv=2026-10-06", "sr"),
        ("sig=a&sv=2026-10-06&ss=f", "srt"),
        ("sig=a&sv=2026-10-06&srt=o", "ss"),
    ] {
        assert_eq!(sent(query).authorize(&DEMO), Err(AuthError::SasIncomplete(missing)), "{query}");
    }
    for query in
        ["sig=a&sv=new&sr=s", "sig=a&sv=2026-10-06T00:00:00Z&sr=s", "sig=a&sv=2026-10-06&sr=b"]
    {
        let refused = sent(query).authorize(&DEMO).unwrap_err();
        assert!(matches!(refused, AuthError::SasUnreadable { .. }), "{query}: {refused:?}");
    }
    let nameless = sent("sig=a&sv=2026-10-06&sr=s&skoid=b").authorize(&DEMO);
    assert_eq!(nameless, Err(AuthError::SasIncomplete("sktid")));
    let endless = ServiceSas { expiry: None, ..share_sas() };
    assert_eq!(by_share(&endless).authorize(&DEMO), Err(AuthError::SasIncomplete("se")));
}

#[test]
fn before_2020_12_06_an_account_token_signs_one_line_less() {
    let pairs = |version: &str| format!("sv={version}&ss=f&srt=o&sp=r&se=2026-01-06");
    let text = |version: &str| format!("devstoreaccount1\nr\nf\no\n\n2026-01-06\n\n\n{version}\n");
    let old = by_hand(&pairs("2020-12-05"), &text("2020-12-05"));
    assert!(old.authorize(&DEMO).is_ok());
    let new = by_hand(&pairs("2020-12-06"), &text("2020-12-06"));
    string_signed(new.authorize(&DEMO));
    let new = by_hand(&pairs("2020-12-06"), &format!("{}\n", text("2020-12-06")));
    assert!(new.authorize(&DEMO).is_ok());
}

#[test]
fn a_line_feed_in_a_parameter_cannot_move_the_fields() {
    let shifted = "sv=2026-10-06&sr=s&sp=r%0A&se=2026-01-06";
    let text = "r\n\n\n2026-01-06\n/file/devstoreaccount1/demo\n\n\n\n2026-10-06\n\n\n\n\n";
    let value = "r\n".to_owned();
    let refused = by_hand(shifted, text).authorize(&DEMO);
    assert_eq!(refused, Err(AuthError::SasUnreadable { field: "sp", value }));
}

#[test]
fn an_account_token_carries_no_response_headers() {
    let mut sent = by_account(&account_sas());
    sent.query.push_str("&rsct=text/html");
    assert_eq!(sent.authorize(&DEMO).unwrap().overrides, Overrides::default());
}

#[test]
fn a_query_is_decoded_once_and_a_plus_stays() {
    let query = SignedQuery::of("A=1%2525&b=x+y&&c&d=%zz%4&e=%C3%A9%FF&=v");
    let pairs: Vec<_> =
        query.pairs().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        pairs,
        [("a", "1%25"), ("b", "x+y"), ("c", ""), ("d", "%zz%4"), ("e", "é\u{FFFD}"), ("", "v")]
    );
}

#[test]
fn a_header_goes_before_a_token() {
    let sent = by_account(&account_sas()).with("Authorization", "Basic abc");
    assert_eq!(sent.authorize(&DEMO), Err(AuthError::HeaderMalformed));
}
