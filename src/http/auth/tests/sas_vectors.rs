//! SAS tokens made by the SDKs, with the development account's key.
//!
//! Python: `generate_account_sas`, `generate_share_sas`, `generate_file_sas` of
//! `azure-storage-file-share` 12.27.1. JS: `generateAccountSASQueryParameters`,
//! `generateFileSASQueryParameters` of `@azure/storage-file-share` 12.31.0. All start at
//! 2026-01-05T09:00:00Z, if they do, and end at 2026-01-06T10:00:00Z.

use super::*;

const PYTHON_ACCOUNT: &str = "st=2026-01-05T09%3A00%3A00Z&se=2026-01-06T10%3A00%3A00Z&sp=rwl&\
    sip=127.0.0.1-127.0.0.9&spr=https%2Chttp&sv=2026-10-06&ss=f&srt=so&\
    sig=Fho2vaAuUoJgrRiojBTioYDoL3tfj8Z6xcuRnc5xRH0%3D";
const PYTHON_SHARE: &str = "st=2026-01-05T09%3A00%3A00Z&se=2026-01-06T10%3A00%3A00Z&sp=rl&\
    spr=https&sv=2026-10-06&sr=s&sig=fLKAp/5aTDaMjwLHOx0dfCiFs5BR5LLW%2BbyW2DQQ7AI%3D";
const PYTHON_POLICY: &str = "sv=2026-10-06&si=readers&sr=s&\
    sig=MspS1X3svOfMUztpjCw2upHDQHnKu91wowlv33Y8gMY%3D";
const PYTHON_FILE: &str = "se=2026-01-06T10%3A00Z&sp=rd&sip=127.0.0.1&sv=2026-10-06&sr=f&\
    rscc=no-cache&rscd=attachment%3B%20filename%3D%22a.txt%22&rsce=gzip&rscl=en&\
    rsct=text/plain%3B%20charset%3Dutf-8&sig=VxRQDVI%2B6FOqLexznqO60fNvT0%2BDiimb2%2Bjt5mEcH40%3D";
const JS_ACCOUNT: &str = "sv=2026-04-06&ss=bf&srt=sco&spr=https%2Chttp&\
    st=2026-01-05T09%3A00%3A00Z&se=2026-01-06T10%3A00%3A00Z&sp=rwdlc&\
    sig=80RkdYjN%2BWQFS%2B2Z9iVdy7t7lcNC1W1FWXZ8NMTLSmQ%3D";
const JS_FILE: &str = "sv=2026-04-06&se=2026-01-06T10%3A00%3A00Z&sr=f&sp=rcwd&\
    sig=Mj9zyrwIDZZIY4Wmnst4TfUZheILI860TDeOYYY%2BjYM%3D";
const JS_SHARE: &str = "sv=2026-04-06&se=2026-01-06T10%3A00%3A00Z&sip=10.0.0.1-10.0.0.9&sr=s&\
    sp=rl&sig=WERDIn96W%2BiREUR8hucHVwV64KobGf4mSocxkW0kmNw%3D";

/// Each token, with what it was made for, the caller's address, its scope and its letters.
fn all() -> [(&'static str, AuthTarget<'static>, IpAddr, SasScope, &'static str); 7] {
    let local = IpAddr::from(Ipv4Addr::LOCALHOST);
    let account = |levels: &str| SasScope::Account { levels: levels.into() };
    [
        (PYTHON_ACCOUNT, DEMO, local, account("so"), "rwl"),
        (PYTHON_SHARE, DEMO, local, SasScope::Container, "rl"),
        (PYTHON_POLICY, in_demo("any/where"), local, SasScope::Container, "rl"),
        (PYTHON_FILE, in_demo("Dir A/café.txt"), local, SasScope::Object, "rd"),
        (JS_ACCOUNT, SERVICE, local, account("sco"), "cwrdl"),
        (JS_FILE, in_demo("Dir A/a.txt"), local, SasScope::Object, "rcwd"),
        (JS_SHARE, in_demo("a"), Ipv4Addr::new(10, 0, 0, 9).into(), SasScope::Container, "rl"),
    ]
}

fn sent(token: &str, client_ip: IpAddr) -> Sent {
    Sent { https: true, client_ip, ..Sent::new("GET", &format!("/devstoreaccount1?{token}")) }
}

#[test]
fn tokens_of_the_sdks_are_let_in() {
    for (token, target, client_ip, scope, letters) in all() {
        let grant = sent(token, client_ip).authorize(&target).unwrap();
        let permissions = Permissions::of_letters(letters);
        assert_eq!(grant.by, GrantedBy::Sas { scope, permissions }, "{token}");
    }
}

#[test]
fn a_change_to_any_parameter_of_a_token_is_noticed() {
    for (token, target, client_ip, _, _) in all() {
        let pieces: Vec<&str> = token.split('&').collect();
        for (index, piece) in pieces.iter().enumerate() {
            let (name, value) = piece.split_once('=').unwrap();
            // `sr` and `sv` are checked before the signature; others of their values are legal.
            let other = match name {
                "sr" => if value == "s" { "f" } else { "s" }.to_owned(),
                "sv" => "2026-10-07".to_owned(),
                "sig" => format!("A{value}"),
                _ => format!("{value}0"),
            };
            let changed = format!("{name}={other}");
            let mut spoilt = pieces.clone();
            spoilt[index] = &changed;
            let refused = sent(&spoilt.join("&"), client_ip).authorize(&target).unwrap_err();
            let share_itself = AuthError::ResourceTypeMismatch { level: ResourceLevel::Container };
            let as_file = name == "sr" && other == "f" && refused == share_itself;
            let mismatch = matches!(refused, AuthError::SignatureMismatch { .. });
            assert!(mismatch || as_file, "{changed}: {refused:?}");

            spoilt.remove(index);
            let refused = sent(&spoilt.join("&"), client_ip).authorize(&target).unwrap_err();
            assert_ne!(refused.status(), 400, "without {name}");
        }
    }
}

#[test]
fn response_headers_of_a_token_are_handed_on() {
    let sent = sent(PYTHON_FILE, Ipv4Addr::LOCALHOST.into());
    let overrides = sent.authorize(&in_demo("Dir A/café.txt")).unwrap().overrides;
    let expected = Overrides {
        cache_control: Some("no-cache".into()),
        content_disposition: Some("attachment; filename=\"a.txt\"".into()),
        content_encoding: Some("gzip".into()),
        content_language: Some("en".into()),
        content_type: Some("text/plain; charset=utf-8".into()),
    };
    assert_eq!(overrides, expected);
}

/// The maker writes `sv=2026-10-06`, as this Python SDK does, so signatures can be compared.
#[test]
fn tokens_made_here_are_those_of_the_sdk() {
    let (start, expiry) = (Some(at("2026-01-05T09:00:00Z")), at("2026-01-06T10:00:00Z"));
    let share = ServiceSas {
        share: "demo".into(),
        permissions: Some("rl".into()),
        start,
        expiry: Some(expiry),
        https_only: true,
        ..ServiceSas::default()
    };
    let policy = ServiceSas {
        share: "demo".into(),
        policy: Some("readers".into()),
        ..ServiceSas::default()
    };
    for (made, sdk) in [(share, PYTHON_SHARE), (policy, PYTHON_POLICY)] {
        let sorted = |token: &str| {
            let mut pieces: Vec<_> =
                token.replace("%2F", "/").split('&').map(str::to_owned).collect();
            pieces.sort();
            pieces
        };
        assert_eq!(sorted(&made.token(&Credential::development())), sorted(sdk));
    }
}
