//! Who may do what with a shared access signature.

use latchfs::http::auth::{AccountSas, Credential};
use latchfs::rules::Timestamp;

use super::fixture::{Fixture, Got, START, document, queue_sas};
use crate::service;

const LATER: &str = "2027-01-01T00:00:00Z";
const DENIED: &str = "AuthorizationPermissionMismatch";

/// Each operation, and the letter of a service SAS that permits it.
const OPERATIONS: [(&str, &str, Option<char>); 14] = [
    ("GET", "/queue/messages?peekonly=true", Some('r')),
    ("GET", "/queue?comp=metadata", Some('r')),
    ("POST", "/queue/messages", Some('a')),
    ("PUT", "/queue/messages/id?popreceipt=x&visibilitytimeout=0", Some('u')),
    ("GET", "/queue/messages", Some('p')),
    ("DELETE", "/queue/messages/id?popreceipt=x", Some('p')),
    ("DELETE", "/queue/messages", None),
    ("PUT", "/queue", None),
    ("PUT", "/queue?comp=metadata", None),
    ("GET", "/queue?comp=acl", None),
    ("PUT", "/queue?comp=acl", None),
    ("DELETE", "/queue", None),
    ("HEAD", "/queue?comp=metadata", Some('r')),
    ("HEAD", "/queue?comp=acl", None),
];

fn ask(queue: &Fixture, method: &str, target: &str, sas: &str) -> Got {
    let joint = if target.contains('?') { '&' } else { '?' };
    let body = if method == "POST" { document("x") } else { String::new() };
    queue.ask(method, &format!("{target}{joint}{sas}"), &[], body.as_bytes())
}

fn account_sas(levels: &str, permissions: &str) -> AccountSas {
    service::account_sas("q", levels, permissions)
}

fn token(sas: &AccountSas) -> String {
    sas.token(&Credential::development())
}

#[test]
fn q36_each_letter_of_a_service_sas_permits_its_operations_alone() {
    let queue = Fixture::signed();
    for letter in "raupwdl".chars() {
        let sas = queue_sas(&letter.to_string(), LATER, "");
        for (method, target, permitted) in OPERATIONS {
            let got = ask(&queue, method, target, &sas);
            if permitted == Some(letter) {
                // A made-up message is not found, which only the permitted learn.
                let expected = matches!(got.status, 200..=204) || got.code() == "MessageNotFound";
                assert!(expected, "{letter} {method} {target}: {} {}", got.status, got.text());
            } else {
                assert_eq!((got.status, got.code()), (403, DENIED), "{letter} {method} {target}");
            }
        }
    }
}

#[test]
fn q37_a_stored_policy_fills_in_what_a_sas_leaves_out_and_revokes_it() {
    let mut queue = Fixture::signed();
    let policy = |queue: &Fixture, body: &str| {
        let sas = token(&account_sas("sco", "rwdlacup"));
        // Policies are out of reach of every SAS.
        let got = queue.ask("PUT", &format!("/queue?comp=acl&{sas}"), &[], body.as_bytes());
        got.refused(403, DENIED);
    };
    let body = format!(
        "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
         <Expiry>{LATER}</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>\
         </SignedIdentifiers>"
    );
    policy(&queue, &body);
    queue.open_to_all(|queue| {
        queue.ask("PUT", "/queue?comp=acl", &[], body.as_bytes()).is(204);
    });
    let sas = queue_sas("", "", "readers");
    ask(&queue, "GET", "/queue/messages?peekonly=true", &sas).is(200);
    ask(&queue, "GET", "/queue/messages", &sas).refused(403, DENIED);
    // Said in both places, a field is refused.
    let doubled = queue_sas("r", "", "readers");
    ask(&queue, "GET", "/queue/messages?peekonly=true", &doubled)
        .refused(403, "AuthenticationFailed");
    queue.open_to_all(|queue| {
        queue.put("/queue?comp=acl", &[]).is(204);
    });
    ask(&queue, "GET", "/queue/messages?peekonly=true", &sas).refused(403, "AuthenticationFailed");
}

#[test]
fn q38_an_account_sas_is_held_to_service_level_time_and_protocol() {
    let queue = Fixture::signed();
    let good = account_sas("sco", "rl");
    ask(&queue, "GET", "/?comp=list", &token(&good)).is(200);
    let expiry = Timestamp(START.0 - 1);
    for (sas, code) in [
        (AccountSas { services: "bft".to_owned(), ..good.clone() }, "AuthorizationServiceMismatch"),
        (account_sas("o", "rl"), "AuthorizationResourceTypeMismatch"),
        (AccountSas { expiry, ..good.clone() }, "AuthenticationFailed"),
        (AccountSas { https_only: true, ..good.clone() }, "AuthorizationProtocolMismatch"),
        (
            AccountSas { addresses: Some("192.0.2.1".to_owned()), ..good.clone() },
            "AuthorizationSourceIPMismatch",
        ),
        (account_sas("sco", "r"), DENIED),
    ] {
        ask(&queue, "GET", "/?comp=list", &token(&sas)).refused(403, code);
    }
    for (levels, permissions, method, target) in [
        ("o", "p", "GET", "/queue/messages"),
        ("o", "a", "POST", "/queue/messages"),
        ("o", "r", "GET", "/queue/messages?peekonly=true"),
        ("c", "r", "GET", "/queue?comp=metadata"),
        ("c", "d", "DELETE", "/queue/messages"),
        ("o", "d", "DELETE", "/queue/messages"),
        ("c", "w", "PUT", "/queue?comp=metadata"),
        ("c", "c", "PUT", "/queue"),
        ("c", "d", "DELETE", "/queue"),
    ] {
        let got = ask(&queue, method, target, &token(&account_sas(levels, permissions)));
        assert!(got.status < 300, "{levels} {permissions} {method} {target}: {}", got.text());
    }
}

#[test]
fn q39_no_sas_reaches_the_policies_of_a_queue() {
    let queue = Fixture::signed();
    let every = token(&account_sas("sco", "rwdlacupyxtfi"));
    for sas in [every, queue_sas("raup", LATER, "")] {
        for method in ["GET", "PUT"] {
            ask(&queue, method, "/queue?comp=acl", &sas).refused(403, DENIED);
        }
    }
}

#[test]
fn a_request_without_credentials_or_with_a_bad_signature_is_refused() {
    let queue = Fixture::signed();
    let got = queue.get("/queue/messages");
    assert!(matches!(got.status, 401 | 403), "{}", got.text());
    let forged = queue_sas("r", LATER, "").replace("sp=r", "sp=p");
    ask(&queue, "GET", "/queue/messages", &forged).refused(403, "AuthenticationFailed");
    let late = queue_sas("r", "2025-01-01T00:00:00Z", "");
    ask(&queue, "GET", "/queue/messages?peekonly=true", &late).refused(403, "AuthenticationFailed");
}

/// To get messages is a change: it hides them.
#[test]
fn an_image_of_another_site_takes_no_message() {
    let queue = Fixture::signed();
    let get = |query: &str, headers: &[(&str, &str)]| {
        let sas = token(&account_sas("sco", "rp"));
        queue.ask("GET", &format!("/queue/messages?{query}{sas}"), headers, b"")
    };
    // A page on another port of this host is of the same site.
    for site in ["cross-site", "same-site"] {
        let image = [("sec-fetch-site", site), ("sec-fetch-dest", "image")];
        get("", &image).refused(403, "AuthorizationFailure");
        get("peekonly=true&", &image).is(200);
    }
    get("", &[("sec-fetch-site", "none")]).is(200);
}
