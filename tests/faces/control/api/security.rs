//! Who may call: no web page of another origin, and nobody without the token where one is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::fixture::{Api, NAME, body, refused, serve};
use crate::common::http::ask_as_it_is;
use crate::control::fixture::{Folder, json as told};

const CLOCK: &[u8] = br#"{"advance_ms":1}"#;

#[test]
fn a_request_that_names_another_host_is_refused() {
    let (_folder, _server, api) = serve(&["--host", "nas"]);
    let port = api.addr.port();
    let ask = |host: &str, path: &str| ask_as_it_is(api.addr, host, "GET", path, &[], b"");
    for host in ["localhost", "127.0.0.1", "nas", "NAS", "[::1]"] {
        ask(&format!("{host}:{port}"), "/api/v1/status").is(200);
        ask(host, "/").is(200);
    }
    for host in
        ["evil.example", "evil.example:10009", "nas.evil.example", "", "127.0.0.1.evil.example"]
    {
        for path in ["/api/v1/status", "/", "/page/page.js", "/metrics"] {
            refused(ask(host, path), 403, "forbidden");
        }
    }
    let twice = api.raw("GET", "/api/v1/status", &[("host", "localhost")], b"");
    refused(twice, 403, "forbidden");
}

#[test]
fn a_request_of_a_page_of_another_origin_is_refused() {
    let (_folder, _server, api) = serve(&[]);
    let own = format!("http://{}", api.addr);
    let sent = |origin: &str| {
        let headers = [("origin", origin), ("x-latchfs-client", NAME)];
        api.raw("POST", "/api/v1/clock", &headers, CLOCK)
    };
    sent(&own).is(200);
    let before = body(&api.get("clock"))["now"].clone();
    for origin in
        ["http://evil.example", "null", "http://localhost:1", &format!("{own}0"), "https://"]
    {
        refused(sent(origin), 403, "forbidden");
        refused(api.raw("GET", "/api/v1/status", &[("origin", origin)], b""), 403, "forbidden");
    }
    assert!(body(&api.get("clock"))["now"].as_str() >= before.as_str());
    // A browser asks first whether it may send the header: it is not told that it may.
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    let answer = api.raw("OPTIONS", "/api/v1/clock", &preflight, b"");
    assert!(answer.status >= 400, "{answer:?}");
    assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")), "{answer:?}");
}

#[test]
fn a_browser_gets_nothing_for_a_page_of_another_site_but_may_follow_its_links() {
    let (_folder, _server, api) = serve(&[]);
    let image = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
    let link = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    let frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    let ask = |site: &'static str, how: &[(&str, &str)], path: &str| {
        api.raw("GET", path, &[&[("sec-fetch-site", site)], how].concat(), b"")
    };
    for path in ["/", "/page/page.js", "/metrics", "/healthz", "/api/v1/events", "/api/v1/status"] {
        for site in ["same-origin", "none"] {
            ask(site, &image, path).is(200);
            ask(site, &link, path).is(200);
        }
        for site in ["cross-site", "same-site", "Cross-Site"] {
            for how in [&image[..], &frame, &[]] {
                refused(ask(site, how, path), 403, "forbidden");
            }
            let followed = ask(site, &link, path);
            assert_eq!(followed.status, if path.starts_with("/api") { 403 } else { 200 }, "{path}");
        }
    }
}

#[test]
fn a_call_that_changes_something_says_who_calls() {
    let (_folder, _server, api) = serve(&[]);
    let sent = |headers: &[(&str, &str)]| api.raw("POST", "/api/v1/clock", headers, CLOCK);
    let error = refused(sent(&[]), 403, "forbidden");
    assert!(error["message"].as_str().unwrap().contains("x-latchfs-client"), "{error}");
    for (length, status) in [(1, 200), (64, 200), (65, 400)] {
        assert_eq!(sent(&[("x-latchfs-client", &"n".repeat(length))]).status, status, "{length}");
    }
    refused(sent(&[("x-latchfs-client", "")]), 400, "bad_request");
    refused(sent(&[("x-latchfs-client", "nämlich")]), 400, "bad_request");
}

/// A server whose account has a private key.
fn private(folder: &Folder, arguments: &[&str]) -> (crate::control::fixture::Server, Api) {
    let all = [
        &["serve", "--no-mount", "--share", "docs", "--account", "private:c2VjcmV0IGtleQ=="],
        arguments,
    ]
    .concat();
    let server = folder.start(&all);
    (server, Api::of(folder))
}

#[test]
fn a_server_with_a_private_key_wants_its_token() {
    let folder = Folder::new();
    let (server, api) = private(&folder, &[]);
    let token = api.token.clone().unwrap();
    assert!(token.len() >= 32, "{token}");
    api.get("status").is(200);
    let mode = fs::metadata(folder.join("ready")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(told(&folder.ask(&["status", "--json"]))["admin_token"], token);
    assert!(body(&api.get("status"))["admin_token"].is_null());
    let wrong = Api { token: Some(format!("{}0", &token[1..])), ..Api::of(&folder) };
    let none = Api { token: None, ..Api::of(&folder) };
    let empty = Api { token: Some(String::new()), ..Api::of(&folder) };
    for stranger in [&wrong, &none, &empty] {
        let got = stranger.get("status");
        assert_eq!(got.header("www-authenticate"), "Bearer");
        refused(got, 401, "unauthorized");
        refused(stranger.post("clock", &json!({ "advance_ms": 1 })), 401, "unauthorized");
        refused(stranger.raw("GET", "/", &[], b""), 401, "unauthorized");
        // What holds no secret, and what monitors ask for.
        for path in ["/page/page.css", "/page/page.js", "/metrics", "/healthz"] {
            stranger.raw("GET", path, &[], b"").is(200);
        }
    }
    let told = |api: &Api| refused(api.get("status"), 401, "unauthorized")["message"].to_string();
    assert!(told(&wrong).contains("not the token of this server"), "{}", told(&wrong));
    assert!(told(&none).contains("needs a token"), "{}", told(&none));
    none.raw("GET", &format!("/?token={token}"), &[], b"").is(200);
    refused(none.get(&format!("status?token={token}")), 401, "unauthorized");
    assert!(!server.log().contains(&token), "the token is in the log");
}

#[test]
fn a_container_is_reached_from_outside_with_the_token() {
    let folder = Folder::new();
    let all =
        ["serve", "--no-mount", "--share", "docs", "--admin", "0.0.0.0:0", "--host", "latchfs"];
    let refusal = folder.run(&[&all[..], &["--data", "other"]].concat());
    assert_eq!(refusal.status.code(), Some(2));
    let server = folder.start(&[&all[..], &["--expose"]].concat());
    // The address that clients are told is the name of the container.
    let ready = folder.ready();
    let url = ready["admin"].as_str().unwrap();
    let port: u16 = url.strip_prefix("http://latchfs:").unwrap().parse().unwrap();
    let addr = ([127, 0, 0, 1], port).into();
    let api = Api { addr, token: ready["admin_token"].as_str().map(str::to_owned) };
    assert!(api.token.is_some(), "{ready}");
    let bearer = format!("Bearer {}", api.token.as_ref().unwrap());
    let ask = |host: &str, path: &str, bearer: &str| {
        ask_as_it_is(addr, host, "GET", path, &[("authorization", bearer)], b"")
    };
    for host in ["latchfs:10009", "localhost:10009", "192.0.2.1:10009", "host.docker.internal"] {
        ask(host, "/api/v1/status", &bearer).is(200);
    }
    refused(ask("latchfs", "/api/v1/status", "Bearer x"), 401, "unauthorized");
    refused(ask("other", "/api/v1/status", &bearer), 403, "forbidden");
    // Monitors call the server by a name of their own, and know no token.
    ask("other", "/metrics", "").is(200);
    assert!(!server.log().contains(api.token.as_ref().unwrap()), "the token is in the log");
}

#[test]
fn a_server_without_services_has_no_address_unless_one_is_asked_for() {
    if !crate::common::need::fuse() {
        return;
    }
    let folder = Folder::new();
    let server = folder.serve(&["--no-rest"]);
    assert!(folder.ready()["admin"].is_null());
    drop(server);
    let _server = folder.serve(&["--no-rest", "--admin", "127.0.0.1:0"]);
    let api = Api::of(&folder);
    assert!(api.token.is_some(), "nobody but the owner has access otherwise");
    api.get("status").is(200);
    refused(api.get("connection"), 404, "not_found");
}
