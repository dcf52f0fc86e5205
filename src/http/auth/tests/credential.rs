//! Credentials, keys and connection strings.

use super::*;
use crate::rules::service::ServiceKind;

fn fault(text: &str) -> CredentialError {
    text.parse::<Credential>().unwrap_err()
}

#[test]
fn an_account_is_read_with_one_key_or_two() {
    let one: Credential = "abc:a2V5".parse().unwrap();
    assert_eq!((one.name(), one.keys().len()), ("abc", 1));
    let two: Credential = "abc:a2V5:b3RoZXI=".parse().unwrap();
    assert_eq!(two.keys().len(), 2);
    assert!(two.keys()[1].verifies("text", &two.keys()[1].sign("text")));
    assert!(!two.keys()[1].verifies("text", &two.keys()[0].sign("text")));
}

#[test]
fn what_is_no_account_is_refused_without_showing_the_key() {
    assert_eq!(fault("abc"), CredentialError::NoKey);
    assert_eq!(fault(""), CredentialError::NoKey);
    for name in ["", "ab", "Abc", "a-b", "äbc", &"a".repeat(25)] {
        assert_eq!(fault(&format!("{name}:a2V5")), CredentialError::BadName);
    }
    assert!(format!("{}:a2V5", "a".repeat(24)).parse::<Credential>().is_ok());
    // SDKs do not insist on padding.
    assert!("abc:a2V".parse::<Credential>().is_ok());
    for key in ["", "secret!", "a2V5:", "a2V5:secret!"] {
        let error = fault(&format!("abc:{key}"));
        assert_eq!(error, CredentialError::BadKey("abc".into()));
        assert!(!error.to_string().contains("secret"));
    }
    assert_eq!(fault("abc:a2V5:a2V5:a2V5"), CredentialError::TooManyKeys("abc".into()));
}

#[test]
fn a_name_given_twice_is_refused() {
    let account: Credential = "abc:a2V5".parse().unwrap();
    let error = Credentials::new([account.clone(), account.clone()]).unwrap_err();
    assert_eq!(error, CredentialError::GivenTwice("abc".into()));
    let accounts = Credentials::new([account, Credential::development()]).unwrap();
    let names: Vec<_> = accounts.iter().map(Credential::name).collect();
    assert_eq!(names, ["abc", DEVELOPMENT_NAME]);
    assert!(accounts.get("ABC").is_none());
}

#[test]
fn the_published_key_is_known_as_such() {
    assert!(Credential::development().has_development_key());
    assert!(
        format!("abc:a2V5:{DEVELOPMENT_KEY}").parse::<Credential>().unwrap().has_development_key()
    );
    assert!(!"abc:a2V5".parse::<Credential>().unwrap().has_development_key());
}

#[test]
fn debug_output_holds_no_key() {
    let shown = format!("{:?}", authorizer());
    assert!(shown.contains(DEVELOPMENT_NAME));
    assert!(!shown.contains("Eby8"), "{shown}");
}

#[test]
fn the_connection_string_names_every_endpoint() {
    let account = Credential::development();
    let endpoint = |kind, origin: &str| (kind, account.endpoint(origin));
    let file = endpoint(ServiceKind::File, "http://127.0.0.1:10004");
    assert_eq!(
        account.connection_string(std::slice::from_ref(&file)),
        format!(
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=\
             {DEVELOPMENT_KEY};FileEndpoint=http://127.0.0.1:10004/devstoreaccount1;"
        )
    );
    let both = account.connection_string(&[file, endpoint(ServiceKind::Blob, "http://nas:1/")]);
    assert!(both.ends_with(";BlobEndpoint=http://nas:1/devstoreaccount1;"), "{both}");
    let secure = endpoint(ServiceKind::File, "https://localhost:10004/");
    let secure = account.connection_string(&[secure]);
    assert!(secure.starts_with("DefaultEndpointsProtocol=https;"), "{secure}");
    assert!(secure.ends_with("FileEndpoint=https://localhost:10004/devstoreaccount1;"), "{secure}");
}

/// RFC 4231, test case 2, in base64.
#[test]
fn a_key_signs_as_the_standard_says() {
    let account: Credential = "abc:SmVmZQ==".parse().unwrap();
    let signature = account.key().sign("what do ya want for nothing?");
    assert_eq!(signature, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
}
