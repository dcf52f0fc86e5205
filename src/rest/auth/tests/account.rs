//! Accounts, keys and connection strings.

use super::*;

fn fault(text: &str) -> AccountError {
    text.parse::<Account>().unwrap_err()
}

#[test]
fn an_account_is_read_with_one_key_or_two() {
    let one: Account = "abc:a2V5".parse().unwrap();
    assert_eq!((one.name(), one.keys().len()), ("abc", 1));
    let two: Account = "abc:a2V5:b3RoZXI=".parse().unwrap();
    assert_eq!(two.keys().len(), 2);
    assert!(two.keys()[1].verifies("text", &two.keys()[1].sign("text")));
    assert!(!two.keys()[1].verifies("text", &two.keys()[0].sign("text")));
}

#[test]
fn what_is_no_account_is_refused_without_showing_the_key() {
    assert_eq!(fault("abc"), AccountError::NoKey);
    assert_eq!(fault(""), AccountError::NoKey);
    for name in ["", "ab", "Abc", "a-b", "äbc", &"a".repeat(25)] {
        assert_eq!(fault(&format!("{name}:a2V5")), AccountError::BadName);
    }
    assert!(format!("{}:a2V5", "a".repeat(24)).parse::<Account>().is_ok());
    for key in ["", "secret!", "a2V5:", "a2V", "a2V5:secret!"] {
        let error = fault(&format!("abc:{key}"));
        assert_eq!(error, AccountError::BadKey("abc".into()));
        assert!(!error.to_string().contains("secret"));
    }
    assert_eq!(fault("abc:a2V5:a2V5:a2V5"), AccountError::TooManyKeys("abc".into()));
}

#[test]
fn a_name_given_twice_is_refused() {
    let account: Account = "abc:a2V5".parse().unwrap();
    let error = Accounts::new([account.clone(), account.clone()]).unwrap_err();
    assert_eq!(error, AccountError::GivenTwice("abc".into()));
    let accounts = Accounts::new([account, Account::development()]).unwrap();
    let names: Vec<_> = accounts.iter().map(Account::name).collect();
    assert_eq!(names, ["abc", DEVELOPMENT_NAME]);
    assert!(accounts.get("ABC").is_none());
}

#[test]
fn the_published_key_is_known_as_such() {
    assert!(Account::development().has_development_key());
    assert!(
        format!("abc:a2V5:{DEVELOPMENT_KEY}").parse::<Account>().unwrap().has_development_key()
    );
    assert!(!"abc:a2V5".parse::<Account>().unwrap().has_development_key());
}

#[test]
fn debug_output_holds_no_key() {
    let shown = format!("{:?}", authorizer());
    assert!(shown.contains(DEVELOPMENT_NAME));
    assert!(!shown.contains("Eby8"), "{shown}");
}

#[test]
fn the_connection_string_says_where_the_file_service_is() {
    assert_eq!(
        Account::development().connection_string("http://127.0.0.1:10004"),
        format!(
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=\
             {DEVELOPMENT_KEY};FileEndpoint=http://127.0.0.1:10004/devstoreaccount1;"
        )
    );
    let secure = Account::development().connection_string("https://localhost:10004/");
    assert!(secure.starts_with("DefaultEndpointsProtocol=https;"), "{secure}");
    assert!(secure.ends_with("FileEndpoint=https://localhost:10004/devstoreaccount1;"), "{secure}");
}

/// RFC 4231, test case 2, in base64.
#[test]
fn a_key_signs_as_the_standard_says() {
    let account: Account = "abc:SmVmZQ==".parse().unwrap();
    let signature = account.key().sign("what do ya want for nothing?");
    assert_eq!(signature, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
}
