//! What clients of the REST listener are given: the connection string and signed URLs, and the
//! conflicts they meet with them.

use super::fixture::{Folder, Holding, error_text, json, text};
use crate::common::http::{Got, ask_as_it_is};
use crate::common::need;

/// Asks by a URL and nothing else, as a browser would.
fn by_url(folder: &Folder, method: &str, url: &str, headers: &[(&str, &str)]) -> Got {
    let addr = folder.listener();
    let target = url.trim().splitn(4, '/').nth(3).unwrap();
    ask_as_it_is(addr, &addr.to_string(), method, &format!("/{target}"), headers, b"")
}

fn sas(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(&[&["sas"], arguments].concat());
    assert!(output.status.success(), "{}", error_text(&output));
    text(&output)
}

#[test]
fn the_connection_string_is_that_of_the_ready_file() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let control = folder.socket();
    let arguments = ["connection-string", "--control", control.to_str().unwrap()];
    let printed = folder.run(&arguments);
    assert_eq!(text(&printed).trim_end(), folder.ready()["connection_string"]);
    let parts = json(&folder.run(&[&arguments[..], &["--json"]].concat()));
    for part in ["account", "key", "endpoint", "connection_string"] {
        assert_eq!(parts[part], folder.ready()[part], "{part}");
    }
    let status = folder.run(&["status", "--control", control.to_str().unwrap()]);
    assert!(text(&status).contains(folder.ready()["endpoint"].as_str().unwrap()));
}

#[test]
fn without_a_listener_there_is_no_connection_string() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&["--no-rest"]);
    let output = folder.run(&["connection-string", "--control", folder.socket().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_text(&output).contains("--no-rest"), "{}", error_text(&output));
    assert!(folder.ready().get("endpoint").is_none());
}

#[test]
fn a_sas_url_lets_in_for_what_it_permits_and_nothing_else() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    folder.file("my file.txt", "hello");
    let url = sas(&folder, &["mnt/my file.txt"]);
    assert_eq!(by_url(&folder, "GET", &url, &[]).is(200).text(), "hello");
    by_url(&folder, "DELETE", &url, &[]).is(403);
    let changing = sas(&folder, &["mnt/my file.txt", "--permissions", "dr", "--expires", "5m"]);
    by_url(&folder, "DELETE", &changing, &[]).is(202);
    by_url(&folder, "GET", &url, &[]).is(404);
    let share = sas(&folder, &["mnt"]);
    let listing = share.trim().replacen('?', "?restype=directory&comp=list&", 1);
    by_url(&folder, "GET", &listing, &[]).is(200);
    let told = json(&folder.run(&["sas", "mnt", "--permissions", "lr", "--json"]));
    assert_eq!(told["permissions"], "rl");
    assert!(told["url"].as_str().unwrap().ends_with(told["token"].as_str().unwrap()));
}

#[test]
fn a_sas_url_can_be_made_with_a_key_and_no_server() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    folder.file("a.txt", "hello");
    let ready = folder.ready();
    let part = |name: &str| ready[name].as_str().unwrap().to_owned();
    let account = format!("{}:{}", part("account"), part("key"));
    let endpoint = part("endpoint");
    let arguments = ["a.txt", "--share-name", "docs", "--account", &account];
    let url = sas(&folder, &[&arguments[..], &["--endpoint", &endpoint]].concat());
    assert_eq!(by_url(&folder, "GET", &url, &[]).is(200).text(), "hello");
    let elsewhere = sas(&folder, &arguments);
    assert!(elsewhere.starts_with("http://127.0.0.1:10004/devstoreaccount1/docs/a.txt?"));
    let by_mount = sas(&folder, &["mnt/a.txt", "--account", &account, "--endpoint", &endpoint]);
    assert_eq!(by_url(&folder, "GET", &by_mount, &[]).is(200).text(), "hello");
    let no_share = folder.run(&["sas", "--account", &account]);
    assert_eq!(no_share.status.code(), Some(2));
    assert!(error_text(&no_share).contains("--share-name"), "{}", error_text(&no_share));
}

#[test]
fn a_new_user_meets_a_conflict_finds_the_holder_and_ends_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    folder.file("report.txt", "figures");
    let url = sas(&folder, &["mnt/report.txt", "--expires", "1d"]);
    let hold = Holding::start(&folder, &["mnt/report.txt", "--share", "none"]);
    let refused = by_url(&folder, "GET", &url, &[]).refused(409, "SharingViolation");
    let holder = format!("latchfs hold (pid {})", hold.child.id());
    let quoted = holder.replace("latchfs hold", "\"latchfs hold\"");
    assert!(refused.text().contains(&quoted), "{}", refused.text());
    assert!(text(&folder.run(&["why", "mnt/report.txt"])).contains(&holder));
    let handle = hold.handle.to_string();
    assert!(text(&folder.run(&["handles", "mnt/report.txt"])).starts_with(&handle));
    let control = folder.socket();
    let close = ["close-handle", &handle, "--json", "--control", control.to_str().unwrap()];
    assert_eq!(json(&folder.run(&close))["closed"], 1);
    assert_eq!(by_url(&folder, "GET", &url, &[]).is(200).text(), "figures");
    let file = folder.join("mnt/report.txt");
    let _open = std::fs::File::open(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    by_url(&folder, "GET", &url, &[]).refused(409, "SMBDeletePending");
    let undone = json(&folder.run(&["undelete", "mnt/report.txt", "--json"]));
    assert_eq!(undone["was_pending"], true);
    assert_eq!(by_url(&folder, "GET", &url, &[]).is(200).text(), "figures");
}
