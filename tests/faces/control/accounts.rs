//! Accounts share nothing: what one has, another cannot see, hold, lease, mount or copy.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::fixture::{Folder, Holding, Server, error_text, is_busy, json, text, wait_for};
use crate::common::{http, need};

const FIRST: &str = "devstoreaccount1";
const KEYS: &str = "devstoreaccount1:Zmlyc3Q=,second:c2Vjb25k";

fn serve(folder: &Folder, arguments: &[&str]) -> Server {
    let all = [&["serve", "--no-auth", "--share", "docs"], arguments].concat();
    folder.start_with(&all, &[("LATCHFS_ACCOUNTS", KEYS)])
}

/// Asks an account over HTTP.
fn ask(
    folder: &Folder,
    account: &str,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
) -> http::Got {
    let path = format!("/{account}{path}");
    http::ask_as_it_is(folder.listener(), "127.0.0.1", method, &path, more, b"")
}

#[test]
fn over_http_an_account_sees_and_copies_only_its_own() {
    let folder = Folder::new();
    let _server = serve(&folder, &["--no-mount"]);
    let size = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    ask(&folder, FIRST, "PUT", "/docs/a.txt", &size).is(201);
    let listed = ask(&folder, FIRST, "GET", "/?comp=list", &[]).is(200);
    assert!(listed.text().contains("<Name>docs</Name>"));
    let listed = ask(&folder, "second", "GET", "/?comp=list", &[]).is(200);
    assert!(!listed.text().contains("docs"), "{}", listed.text());
    ask(&folder, "second", "GET", "/docs/a.txt", &[]).refused(404, "ShareNotFound");
    // The same names in both do not meet.
    ask(&folder, "second", "PUT", "/docs?restype=share", &[]).is(201);
    ask(&folder, "second", "GET", "/docs/a.txt", &[]).is(404);
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    ask(&folder, FIRST, "PUT", "/docs/a.txt?comp=lease", &lease).is(201);
    ask(&folder, "second", "PUT", "/docs/a.txt", &size).is(201);
    ask(&folder, "second", "PUT", "/docs/a.txt?comp=lease", &lease).is(201);
}

#[test]
fn a_copy_from_another_account_needs_a_sas() {
    let folder = Folder::new();
    let _server = folder
        .start_with(&["serve", "--no-mount", "--share", "docs"], &[("LATCHFS_ACCOUNTS", KEYS)]);
    let control = folder.socket();
    let control = control.to_str().unwrap();
    let made =
        folder.run(&["shares", "create", "docs", "--account", "second", "--control", control]);
    assert!(made.status.success(), "{}", error_text(&made));
    fs::write(folder.join("data/devstoreaccount1/files/docs/a.txt"), "hello").unwrap();
    let sas = |account: &str, path: &str| {
        let all = ["--permissions", "rcw", "--account", account, "--control", control];
        text(&folder.run(&[&["sas", path], &all[..]].concat())).trim().to_owned()
    };
    let source = sas(FIRST, "docs:/a.txt");
    let target = sas("second", "docs:/b.txt");
    assert!(source.contains("/devstoreaccount1/docs/a.txt?") && target.contains("/second/docs/"));
    let copy = |source: &str| {
        let (_, path) = target.split_once("127.0.0.1:").unwrap();
        let (_, path) = path.split_once('/').unwrap();
        let headers = [("x-ms-copy-source", source), ("x-ms-version", "2024-11-04")];
        let path = format!("/{path}");
        http::ask_as_it_is(folder.listener(), "127.0.0.1", "PUT", &path, &headers, b"")
    };
    let unsigned = source.split('?').next().unwrap();
    let refused = copy(unsigned);
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    copy(&source).is(202);
}

#[test]
fn on_the_control_socket_a_request_means_one_account() {
    let folder = Folder::new();
    let _server = serve(&folder, &["--no-mount"]);
    let control = folder.socket();
    let control = control.to_str().unwrap();
    let run = |arguments: &[&str]| folder.run(&[arguments, &["--control", control]].concat());
    let shares = |account: &str| json(&run(&["shares", "list", "--json", "--account", account]));
    assert_eq!(shares(FIRST)[0]["name"], "docs");
    assert_eq!(shares("second").as_array().unwrap().len(), 0);
    let unknown = run(&["shares", "list", "--account", "third"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(error_text(&unknown).contains("no account 'third' is served here"));
    assert!(run(&["shares", "create", "docs", "--account", "second"]).status.success());
    let open = ["--disposition", "open-if", "--control", control];
    let held = Holding::start(&folder, &[&["docs:/a.txt"], &open[..]].concat());
    let handles = |account: &str| json(&run(&["handles", "--json", "--account", account]));
    assert_eq!(handles(FIRST)[0]["handle"], held.handle);
    assert_eq!(handles(FIRST)[0]["account"], FIRST);
    assert_eq!(handles("second").as_array().unwrap().len(), 0);
    let none = run(&["handles", "--account", "second"]);
    let hint = format!("this is account second; --account asks {FIRST}");
    assert!(error_text(&none).contains(&hint), "{}", error_text(&none));
    let none = run(&["close-handle", "--all", "--account", "second"]);
    assert!(error_text(&none).contains(&hint), "{}", error_text(&none));
    assert!(text(&run(&["handles"])).contains(&format!("\t{FIRST}/docs:/a.txt\t")));
    // The same name in the other account is free.
    let _other = Holding::start(&folder, &[&["second/docs:/a.txt"], &open[..]].concat());
    let busy = folder.run(&[&["hold", "docs:/a.txt"], &open[..]].concat());
    assert_eq!(busy.status.code(), Some(16), "{}", error_text(&busy));
    let events = |account: &str| text(&run(&["events", "--account", account])).lines().count();
    assert_eq!((events(FIRST), events("second")), (1, 0));
    let string = text(&run(&["connection-string", "--account", "second"]));
    assert!(string.contains("AccountName=second;AccountKey=c2Vjb25k;"), "{string}");
}

#[test]
fn a_share_of_another_account_is_mounted_by_its_full_name_and_leads_back_to_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.join("two")).unwrap();
    let first = format!("docs={}", folder.join("mnt").display());
    let second = format!("second/docs={}", folder.join("two").display());
    let _server = serve(&folder, &["--mount", &first, "--mount", &second]);
    let file = folder.file("a.txt", "one");
    let other = folder.join("two/a.txt");
    assert!(!other.exists());
    fs::write(&other, "two").unwrap();
    assert!(folder.join("data/second/files/docs/a.txt").exists());
    let held = Holding::start(&folder, &["two/a.txt", "--share", "none"]);
    assert!(is_busy(&other) && !is_busy(&file));
    let why = json_of(&folder.run(&["why", "two/a.txt", "--json"]));
    assert_eq!((&why["account"], &why["share"]), (&"second".into(), &"docs".into()));
    assert_eq!(why["opens"][0]["handle"], held.handle);
    // What is printed can be typed, and names the account.
    let why = text(&folder.run(&["why", "two/a.txt"]));
    assert!(why.starts_with("second/docs:/a.txt is open: "), "{why}");
    assert_eq!(
        text(&folder.run(&["why", "second/docs:/a.txt"])).lines().next(),
        why.lines().next()
    );
    let of_mount = text(&folder.run(&["connection-string", "two"]));
    assert!(of_mount.contains("AccountName=second;"), "{of_mount}");
    for command in ["connection-string", "why", "ls"] {
        let both = folder.run(&[command, "two", "--account", FIRST]);
        assert_eq!(both.status.code(), Some(2), "{command}");
        assert!(error_text(&both).contains("is of the account second"), "{}", error_text(&both));
    }
    drop(held);
    wait_for("the release", || (!is_busy(&other)).then_some(()));
    assert_eq!(folder.ready()["mounts"]["second/docs"], folder.join("two").to_str().unwrap());
}

fn json_of(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", error_text(output)))
}

#[test]
fn accounts_come_from_a_file_and_no_private_key_is_shown_off_a_terminal() {
    let folder = Folder::new();
    let file = folder.join("accounts");
    fs::write(&file, "# ours\nfirst:Zmlyc3Q=\n\nsecond:c2Vjb25k\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let mut server = folder.start(&["serve", "--no-mount", "--account-file", file]);
    assert_eq!(folder.ready()["account"], "first");
    let log = server.log();
    assert!(!log.contains("Zmlyc3Q") && log.contains("`latchfs connection-string`"), "{log}");
    assert!(!log.contains("list of processes"), "{log}");
    assert!(server.stop().success());
    let mut server = folder.start(&["serve", "--no-mount", "--account", "first:Zmlyc3Q="]);
    assert!(server.log().contains("list of processes"), "{}", server.log());
    assert!(server.stop().success());
    fs::write(folder.join("bad"), "first:Zmlyc3Q=\nsecond:not*base64\n").unwrap();
    let refused = folder.run(&["serve", "--no-mount", "--account-file", "bad"]);
    let said = error_text(&refused);
    assert!(said.contains("bad:2: a key of account 'second' is not base64"), "{said}");
    assert!(!said.contains("not*base64"), "{said}");
}

#[test]
fn a_mount_of_an_account_that_is_not_served_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    let mount = format!("third/docs={}", folder.join("mnt").display());
    let output = folder.run(&["serve", "--data", "data", "--mount", &mount]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_text(&output).contains("no account 'third'"), "{}", error_text(&output));
    assert!(!folder.join("data").exists());
}

#[test]
fn shares_of_every_account_are_made_and_filled_at_the_start() {
    let folder = Folder::new();
    fs::create_dir(folder.join("seed")).unwrap();
    fs::write(folder.join("seed/a.txt"), "hello").unwrap();
    let named = ["--no-mount", "--share", "second/logs", "--seed", "second/more=seed"];
    let _server = serve(&folder, &named);
    let shares = text(&folder.ask(&["shares", "list", "--account", "second"]));
    let names: Vec<_> = shares.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(names, ["logs", "more"]);
    assert_eq!(text(&folder.ask(&["get", "file:more/a.txt", "--account", "second"])), "hello");
    let first = text(&folder.ask(&["shares", "list"]));
    assert!(first.starts_with("docs\t") && first.lines().count() == 1, "{first}");
    // A reset makes them again.
    assert!(folder.ask(&["state", "reset"]).status.success());
    let shares = text(&folder.ask(&["shares", "list", "--account", "second"]));
    assert_eq!(shares.lines().count(), 2, "{shares}");
    for (option, name) in [("--share", "third/docs"), ("--seed", "third/docs=seed")] {
        let output = folder.run(&["serve", "--no-mount", "--data", "new", option, name]);
        assert_eq!(output.status.code(), Some(2));
        assert!(error_text(&output).contains("no account 'third'"), "{}", error_text(&output));
        assert!(!folder.join("new").exists());
    }
}
