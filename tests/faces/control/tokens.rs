//! `latchfs token`, and the endpoint where a managed identity gets its tokens.

use std::net::SocketAddr;

use serde_json::Value;

use super::fixture::{Folder, Server, error_text, json, text, wait_for};
use crate::common::http::{Got, ask_as_it_is};

const SERVE: [&str; 6] = ["serve", "--no-mount", "--oauth", "basic", "--admin", "127.0.0.1:0"];
const STORAGE: &str =
    "/msi/token?resource=https%3A%2F%2Fstorage.azure.com%2F&api-version=2019-08-01";

fn serve() -> (Folder, Server) {
    let folder = Folder::new();
    let server = folder.start(&SERVE);
    (folder, server)
}

fn admin(folder: &Folder) -> SocketAddr {
    folder.ready()["admin"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap()
}

fn secret(folder: &Folder) -> String {
    folder.ready()["identity"]["header"].as_str().unwrap().to_owned()
}

fn get(folder: &Folder, target: &str, headers: &[(&str, &str)]) -> Got {
    let admin = admin(folder);
    ask_as_it_is(admin, &admin.to_string(), "GET", target, headers, b"")
}

/// The status of a listing of containers with this token.
fn listed(folder: &Folder, token: &str) -> u16 {
    let (blob, bearer) = (folder.service("blob"), format!("Bearer {token}"));
    let headers = [("authorization", &*bearer), ("x-ms-version", "2025-11-05")];
    let target = "/devstoreaccount1?comp=list";
    ask_as_it_is(blob, &blob.to_string(), "GET", target, &headers, b"").status
}

#[test]
fn a_managed_identity_that_knows_the_secret_gets_a_token_that_storage_accepts() {
    let (folder, server) = serve();
    let secret = secret(&folder);
    let answer = get(&folder, STORAGE, &[("X-IDENTITY-HEADER", &*secret)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let given: Value = answer.json();
    assert_eq!(
        (&given["token_type"], &given["resource"]),
        (&"Bearer".into(), &"https://storage.azure.com/".into())
    );
    given["expires_on"].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(listed(&folder, given["access_token"].as_str().unwrap()), 200);
    // The secret is on no screen that may be a log.
    let log = wait_for("the screen", || Some(server.log()).filter(|log| log.contains("Ctrl-C")));
    assert!(log.contains("latchfs token --env") && !log.contains(&secret), "{log}");
}

#[test]
fn tokens_are_refused_to_who_lacks_the_secret_to_other_pages_and_for_other_resources() {
    let (folder, _server) = serve();
    let secret = secret(&folder);
    let secret = ("X-IDENTITY-HEADER", &*secret);
    for headers in [&[][..], &[("X-IDENTITY-HEADER", "guess")], &[secret, secret]] {
        assert_eq!(get(&folder, STORAGE, headers).status, 401, "{headers:?}");
    }
    let other = [secret, ("origin", "http://evil.example")];
    assert_eq!(get(&folder, STORAGE, &other).status, 403);
    let admin = admin(&folder);
    let named = ask_as_it_is(admin, "evil.example", "GET", STORAGE, &[secret], b"");
    assert_eq!(named.status, 403);
    let posted = ask_as_it_is(admin, &admin.to_string(), "POST", STORAGE, &[secret], b"");
    assert_eq!(posted.status, 405);
    for target in ["/msi/token", "/msi/token?resource=https://vault.azure.net"] {
        let refused = get(&folder, target, &[secret]);
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("only https://storage.azure.com"), "{}", refused.text());
    }
}

#[test]
fn the_command_prints_a_token_or_the_variables_of_the_endpoint() {
    let (folder, mut server) = serve();
    let token = text(&folder.ask(&["token"]));
    assert_eq!(listed(&folder, token.trim()), 200);
    let named = json(&folder.ask(&["token", "--subject", "A", "--expires", "2h", "--json"]));
    assert_eq!(listed(&folder, named["access_token"].as_str().unwrap()), 200);
    let variables = text(&folder.ask(&["token", "--env"]));
    let secret = secret(&folder);
    let endpoint = format!("export IDENTITY_ENDPOINT=http://{}/msi/token\n", admin(&folder));
    assert_eq!(variables, format!("{endpoint}export IDENTITY_HEADER={secret}\n"));
    assert!(server.stop().success());
    let mut server = folder.start(&["serve", "--no-mount", "--oauth", "basic", "--admin", "off"]);
    let output = folder.ask(&["token", "--env"]);
    assert!(error_text(&output).contains("has no admin address"), "{}", error_text(&output));
    assert!(server.stop().success());
    let _server = folder.start(&["serve", "--no-mount", "--admin", "127.0.0.1:0"]);
    let output = folder.ask(&["token"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_text(&output).contains("start it with --oauth basic"), "{}", error_text(&output));
    assert!(folder.ready().get("identity").is_none());
    assert_eq!(get(&folder, STORAGE, &[]).status, 404);
}
