//! What those see who look after a server: `--admin` and `--log-format json`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use rustix::mount::UnmountFlags;
use serde_json::Value;

use crate::common::http::{self, Got};
use crate::common::need;
use crate::common::served::wait_for;
use crate::control::fixture::{Folder, error_text, is_busy, json, text};

fn told(folder: &Folder, key: &str) -> String {
    let text = fs::read_to_string(folder.join("ready")).unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    told[key].as_str().unwrap_or_else(|| panic!("no {key} in {told}")).to_owned()
}

/// The address in a URL.
fn address(url: &str) -> SocketAddr {
    url.split('/').nth(2).unwrap().parse().unwrap()
}

fn look(folder: &Folder, path: &str) -> Got {
    let admin = address(&told(folder, "admin"));
    http::ask_as_it_is(admin, &admin.to_string(), "GET", path, &[], b"")
}

/// The value of a line of the metrics.
fn metric(folder: &Folder, name: &str) -> u64 {
    let text = look(folder, "/metrics").is(200).text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

fn lease(rest: SocketAddr, action: &[(&str, &str)]) -> Got {
    http::ask(rest, "PUT", "/docs/a?comp=lease", action, b"")
}

#[test]
fn the_metrics_count_both_faces_and_show_what_is_held() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&["--admin", "127.0.0.1:0", "--no-auth", "--default-share", "none"]);
    let rest = address(&told(&folder, "endpoint"));
    let file = folder.file("a", "text");
    let opens = r#"latchfs_opens{account="devstoreaccount1",share="docs"}"#;
    wait_for("the writer's release", || (metric(&folder, opens) == 0).then_some(()));
    let held = fs::File::open(&file).unwrap();
    assert_eq!(metric(&folder, opens), 1);
    assert!(is_busy(&file));
    http::ask(rest, "GET", "/docs/a", &[], b"").refused(409, "SharingViolation");
    assert_eq!(
        metric(
            &folder,
            r#"latchfs_conflicts_total{account="devstoreaccount1",rule="sharing_violation"}"#
        ),
        2
    );
    let refused = r#"latchfs_requests_total{operation="FileDownload",status="409"}"#;
    assert_eq!(metric(&folder, refused), 1);
    let timed = r#"latchfs_request_duration_seconds_count{operation="FileDownload"}"#;
    assert_eq!(metric(&folder, timed), 1);
    drop(held);
    wait_for("the release", || (metric(&folder, opens) == 0).then_some(()));
    lease(rest, &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")]).is(201);
    assert_eq!(metric(&folder, r#"latchfs_leases{account="devstoreaccount1",share="docs"}"#), 1);
    assert_eq!(
        metric(&folder, r#"latchfs_pending_deletes{account="devstoreaccount1",share="docs"}"#),
        0
    );
}

#[test]
fn a_server_is_healthy_until_a_mount_is_gone_that_should_be_there() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let server = folder.serve(&["--admin", "127.0.0.1:0"]);
    let healthy = look(&folder, "/healthz").is(200);
    assert_eq!(healthy.text(), "ok\n");
    // Taken away under a file that is still open: so the mount has not ended, and the server lives.
    let file = fs::File::create(folder.join("mnt/open")).unwrap();
    rustix::mount::unmount(folder.join("mnt"), UnmountFlags::DETACH).unwrap();
    let sick = look(&folder, "/healthz").is(503).text();
    let place = folder.join("mnt");
    assert_eq!(sick, format!("share docs on {}: it is no longer mounted\n", place.display()));
    drop((file, server));
}

#[test]
fn metrics_and_health_are_for_this_machine_and_for_looking_only() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--admin", "127.0.0.1:0"]);
    let admin = address(&told(&folder, "admin"));
    let ask = |host: &str, method: &str, path: &str| {
        http::ask_as_it_is(admin, host, method, path, &[], b"").status
    };
    assert_eq!(ask("localhost", "GET", "/healthz"), 200);
    assert_eq!(ask("evil.example", "GET", "/metrics"), 403);
    assert_eq!(ask("localhost", "POST", "/metrics"), 405);
    assert_eq!(ask("localhost", "GET", "/nothing"), 404);
    let wide = folder.run(&["serve", "--no-mount", "--data", "other", "--admin", "0.0.0.0:0"]);
    assert_eq!(wide.status.code(), Some(2));
    assert!(error_text(&wide).contains("--expose"), "{}", error_text(&wide));
}

#[test]
fn an_admin_address_that_is_off_is_nowhere() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--admin", "off"]);
    let ready = fs::read_to_string(folder.join("ready")).unwrap();
    assert!(!ready.contains("admin"), "{ready}");
    let status = json(&folder.ask(&["status", "--json"]));
    assert!(status["admin"].is_null(), "{status}");
}

#[test]
fn the_admin_address_is_there_by_default_and_everybody_who_asks_is_told_it() {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount"]);
    let url = told(&folder, "admin");
    assert!(address(&url).ip().is_loopback(), "{url}");
    assert!(folder.ready()["admin_token"].is_null(), "the key is public");
    assert!(server.log().contains(&format!("{url}/")), "{}", server.log());
    assert_eq!(json(&folder.ask(&["status", "--json"]))["admin"], url);
    let words = text(&folder.ask(&["status"]));
    assert!(words.contains(&format!("page on {url}/")), "{words}");
    let page = look(&folder, "/").is(200);
    assert!(page.text().starts_with("<!doctype html>"), "{}", page.text());
    assert!(page.header("content-security-policy").starts_with("default-src 'self'"));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(look(&folder, "/page/page.css").is(200).header("cache-control"), "no-store");
}

/// The lines of the log that are objects.
fn objects(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_log_in_json_has_a_line_for_each_request_with_its_ids() {
    let folder = Folder::new();
    let _server = folder.start_with(
        &["serve", "--no-mount", "--share", "docs", "--no-auth", "--log-format", "json"],
        &[("RUST_LOG", "latchfs=debug")],
    );
    let rest = address(&told(&folder, "endpoint"));
    let headers =
        [("x-ms-client-request-id", "mine"), ("x-ms-content-length", "0"), ("x-ms-type", "file")];
    let made = http::ask(rest, "PUT", "/docs/a", &headers, b"").is(201);
    let gone = http::ask(rest, "GET", "/docs/none?sig=secret", &[], b"").is(404);
    let by_id = |id: &str| {
        let found = objects(&folder.join("log")).into_iter().find(|line| line["request_id"] == id);
        found.unwrap_or_else(|| panic!("no {id} in {:?}", objects(&folder.join("log"))))
    };
    let line = by_id(made.header("x-ms-request-id"));
    assert_eq!(line["client_request_id"], "mine");
    assert_eq!((&line["method"], &line["operation"]), (&"PUT".into(), &"FileCreate".into()));
    assert_eq!((&line["status"], &line["level"]), (&201.into(), &"debug".into()));
    assert!(line["took_us"].is_u64() && line["time"].is_string(), "{line}");
    let line = by_id(gone.header("x-ms-request-id"));
    assert_eq!((&line["status"], &line["level"]), (&404.into(), &"info".into()));
    assert_eq!(line["code"], "ResourceNotFound");
    let log = fs::read_to_string(folder.join("log")).unwrap();
    assert!(!log.contains("secret"), "{log}");
}
