//! Whatever is sent, the answer is an answer.

use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;

/// Texts of which some get past the first checks.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[%&=?+:,;.a-f0-9A-F /-]{0,40}",
        Just(DATE.to_owned()),
        Just("2026-01-05T10:00:00Z".to_owned()),
        Just("%".to_owned()),
        Just("%C3%".to_owned()),
    ]
}

fn header() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        Just("Authorization".to_owned()),
        Just("x-ms-date".to_owned()),
        Just("x-ms-meta-a-b".to_owned()),
        Just("Date".to_owned()),
        text(),
    ];
    let scheme = prop_oneof![
        Just("SharedKey devstoreaccount1:"),
        Just("SharedKeyLite "),
        Just("Bearer a."),
        Just("")
    ];
    (name, scheme, text()).prop_map(|(name, scheme, rest)| (name, format!("{scheme}{rest}")))
}

fn parameter() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "sig", "sv", "sr", "ss", "srt", "sp", "st", "se", "sip", "spr", "si", "skoid", "comp",
        ])
        .prop_map(str::to_owned),
        text(),
    ];
    (name, text()).prop_map(|(name, value)| format!("{name}={value}"))
}

proptest! {
    #[test]
    fn no_request_panics_and_none_without_a_key_is_let_in(
        method in text(),
        path in text(),
        parameters in prop::collection::vec(parameter(), 0..8),
        headers in prop::collection::vec(header(), 0..6),
        now in any::<i64>(),
        https in any::<bool>(),
        share in prop::option::of(text()),
        entry in text(),
    ) {
        let sent = Sent {
            method,
            path,
            query: parameters.join("&"),
            headers,
            now: Timestamp(now),
            https,
            client_ip: Ipv6Addr::LOCALHOST.into(),
        };
        let target = AuthTarget { container: share.as_deref(), path: &entry, ..DEMO };
        let refused = sent.authorize(&target).unwrap_err();
        prop_assert!((400..404).contains(&refused.status()));
        prop_assert!(!refused.to_string().is_empty());
    }

    #[test]
    fn no_account_text_panics(
        text in prop_oneof![any::<String>(), "[a-z]{0,5}:[a-zA-Z=:/]{0,12}"],
    ) {
        let _ = text.parse::<Credential>();
    }

    #[test]
    fn a_sas_that_was_made_is_good_whatever_is_in_it(
        path in "[^\\p{C}/]{1,20}",
        disposition in "[^\\p{C}]{0,20}",
        policy in prop_oneof![Just(None), Just(Some("lasting".to_owned()))],
        millis in 1..1_000_000_i64,
    ) {
        let overrides =
            Overrides { content_disposition: Some(disposition.clone()), ..Overrides::default() };
        let later = Timestamp(now().0 + 1_000_000_000 + millis * 1_000_000);
        let sas = ServiceSas {
            share: "demo".into(),
            file: Some(path.clone()),
            permissions: Some("r".into()),
            expiry: policy.is_none().then_some(later),
            policy,
            overrides,
            ..ServiceSas::default()
        };
        let token = sas.token(&Credential::development());
        let sent = Sent::new("GET", &format!("/devstoreaccount1/demo/x?{token}"));
        let grant = sent.authorize(&in_demo(&path)).unwrap();
        prop_assert_eq!(grant.overrides.content_disposition.unwrap_or_default(), disposition);
    }
}
