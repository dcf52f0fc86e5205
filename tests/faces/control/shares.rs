//! Shares as a whole, at the shell: which there are, their leases, their snapshots.

use std::fs;

use super::fixture::{Folder, error_text, json, text};
use crate::common::http::{Got, ask};
use crate::common::need;

const LEASE: &str = "11111111-2222-3333-4444-555555555555";

/// Takes the lease of a file or a share, through REST.
fn lease(folder: &Folder, target: &str) -> Got {
    let headers = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    ask(folder.listener(), "PUT", target, &headers, b"").is(201)
}

#[test]
fn shares_are_made_listed_and_deleted() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--share", "docs", "--no-auth"]);
    let control = folder.socket();
    let shares = |arguments: &[&str]| {
        let socket = ["--control", control.to_str().unwrap()];
        folder.run(&[&["shares"], arguments, &socket[..]].concat())
    };
    assert_eq!(text(&shares(&["list"])), "docs\t5120\t0\tavailable\t\n");
    assert_eq!(json(&shares(&["create", "more", "--quota", "7", "--json"]))["created"], "more");
    assert_eq!(json(&shares(&["list", "--json"]))[1]["quota_gib"], 7);
    let again = shares(&["create", "more"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(error_text(&again).contains("already exists"), "{}", error_text(&again));
    let misnamed = shares(&["create", "No"]);
    assert_eq!(misnamed.status.code(), Some(2));
    // A lease keeps it, and the exit status says that somebody else does.
    lease(&folder, "/more?restype=share&comp=lease");
    let leased = shares(&["delete", "more"]);
    assert_eq!(leased.status.code(), Some(16), "{}", error_text(&leased));
    let at = ["--share-name", "more", "--control", control.to_str().unwrap()];
    let broken = folder.run(&[&["lease", "break", "--period", "0"], &at[..]].concat());
    assert!(broken.status.success(), "{}", error_text(&broken));
    assert!(shares(&["delete", "more"]).status.success());
    assert_eq!(text(&shares(&["list"])).lines().count(), 1);
    let all = json(&shares(&["list", "--deleted", "--json"]));
    assert_eq!(all[1]["name"], "more");
    let version = all[1]["deleted"].as_str().unwrap();
    let row = format!("more\t7\t0\tavailable\t\t{version}");
    assert_eq!(text(&shares(&["list", "--deleted"])).lines().nth(1), Some(&*row));
    assert_eq!(shares(&["delete", "more"]).status.code(), Some(2));
}

#[test]
fn a_lease_is_shown_with_its_id_and_broken_without_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&["--no-auth"]);
    folder.file("a.txt", "hello");
    let show = || folder.run(&["lease", "show", "mnt/a.txt"]);
    assert_eq!(text(&show()), "docs:/a.txt: available\n");
    let none = folder.run(&["lease", "break", "mnt/a.txt"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(error_text(&none).contains("is not leased"), "{}", error_text(&none));
    lease(&folder, "/docs/a.txt?comp=lease");
    assert_eq!(text(&show()), format!("docs:/a.txt: leased, infinite, ID {LEASE}\n"));
    let why = folder.run(&["why", "mnt/a.txt"]);
    assert!(text(&why).contains("leased through REST"), "{}", text(&why));
    let broken = json(&folder.run(&["lease", "break", "mnt/a.txt", "--json"]));
    assert_eq!(broken["was_leased"], true);
    assert_eq!(json(&folder.run(&["lease", "show", "mnt/a.txt", "--json"]))["state"], "broken");
    assert_eq!(folder.run(&["lease", "break", "mnt/a.txt"]).status.code(), Some(1));
    // The root of the mount is the share.
    lease(&folder, "/docs?restype=share&comp=lease");
    assert_eq!(text(&folder.run(&["lease", "show", "mnt"])), "docs:/: leased, infinite\n");
    let missing = folder.run(&["lease", "show", "mnt/none.txt"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(error_text(&missing).contains("mnt/none.txt"), "{}", error_text(&missing));
}

#[test]
fn a_snapshot_is_taken_listed_read_through_rest_and_deleted() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&["--no-auth"]);
    let file = folder.file("a.txt", "before");
    let control = folder.socket();
    let snapshot = |arguments: &[&str]| {
        let socket = ["--control", control.to_str().unwrap()];
        folder.run(&[&["snapshot"], arguments, &socket[..]].concat())
    };
    let taken = snapshot(&["create"]);
    assert!(taken.status.success() && taken.stderr.is_empty(), "{}", error_text(&taken));
    let stamp = text(&taken).trim_end().to_owned();
    fs::write(&file, "after").unwrap();
    let target = format!("/docs/a.txt?sharesnapshot={stamp}");
    let read = || ask(folder.listener(), "GET", &target, &[], b"");
    assert_eq!(read().is(200).text(), "before");
    assert_eq!(text(&snapshot(&["list"])).trim_end(), stamp);
    assert_eq!(json(&snapshot(&["list", "--share-name", "docs", "--json"]))[0], stamp);
    let refused = folder.run(&["shares", "delete", "docs", "--control", control.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", error_text(&refused));
    assert!(error_text(&refused).contains("--snapshots"), "{}", error_text(&refused));
    assert!(snapshot(&["delete", &stamp]).status.success());
    read().is(404);
    let gone = snapshot(&["delete", &stamp]);
    assert_eq!(gone.status.code(), Some(2));
    let unknown = snapshot(&["list", "--share-name", "none"]);
    assert!(error_text(&unknown).contains("only docs"), "{}", error_text(&unknown));
}

#[test]
fn the_share_of_a_snapshot_is_named_as_commands_print_it() {
    let folder = Folder::new();
    let _server =
        folder.start(&["serve", "--no-mount", "--share", "docs", "--share", "more", "--no-auth"]);
    let which = folder.ask(&["snapshot", "create"]);
    assert!(error_text(&which).contains("name one, as in NAME:/PATH"), "{}", error_text(&which));
    let taken = json(&folder.ask(&["snapshot", "create", "docs:/", "--json"]));
    let stamp = taken["snapshot"].as_str().unwrap();
    assert_eq!(taken["share"], "docs");
    assert_eq!(text(&folder.ask(&["snapshot", "list", "docs:/"])).trim_end(), stamp);
    assert_eq!(text(&folder.ask(&["snapshot", "list", "more:/"])), "");
    assert_eq!(folder.ask(&["snapshot", "delete", stamp, "more:/"]).status.code(), Some(2));
    assert!(folder.ask(&["snapshot", "delete", stamp, "file:docs"]).status.success());
}
