//! The held second client, and the commands that look at what it holds and end it.

use std::fs::{self, File};
use std::process::Command;

use super::fixture::{Folder, Holding, error_text, is_busy, wait_for};
use crate::common::need;

#[test]
fn a_hold_with_share_none_keeps_programs_out_until_it_is_killed() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    let hold = Holding::start(&folder, &["mnt/a.txt", "--access", "rw", "--share", "none"]);
    let cat = Command::new("cat").arg(&file).output().unwrap();
    assert!(!cat.status.success() && error_text(&cat).contains("busy"), "{}", error_text(&cat));
    drop(hold);
    wait_for("the end of the hold", || (!is_busy(&file)).then_some(()));
}

#[test]
fn a_refused_hold_exits_16_and_names_the_holder() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    folder.file("a.txt", "hello");
    let hold = Holding::start(&folder, &["mnt/a.txt", "--share", "none"]);
    let refused = folder.run(&["hold", "mnt/a.txt", "--share", "rwd"]);
    assert_eq!(refused.status.code(), Some(16));
    let text = error_text(&refused);
    let named = format!("latchfs hold (pid {})", hold.child.id());
    assert!(text.contains(&named) && text.contains(&hold.handle.to_string()), "{text}");
    assert!(refused.stdout.is_empty());
    let missing = folder.run(&["hold", "mnt/none.txt"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(error_text(&missing).contains("no such file"));
}

#[test]
fn a_hold_ends_with_its_time_its_input_and_its_server() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    let mut timed = Holding::start(&folder, &["mnt/a.txt", "--for", "100ms"]);
    assert!(timed.wait().success());
    let mut piped = Holding::start(&folder, &["mnt/a.txt"]);
    assert!(is_busy(&file));
    drop(piped.child.stdin.take());
    assert!(piped.wait().success());
    let mut left = Holding::start(&folder, &["mnt/a.txt"]);
    assert!(server.stop().success());
    assert_eq!(left.wait().code(), Some(2));
}

#[test]
fn programs_and_holds_are_listed_with_their_names_and_can_be_closed() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    let open = File::open(&file).unwrap();
    let hold = Holding::start(&folder, &["mnt/a.txt", "--access", "w", "--share", "r"]);
    let listed = folder.run(&["handles", "mnt/a.txt", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let own = rows.iter().find(|row| row["pid"] == std::process::id()).unwrap();
    let comm = fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(own["program"], comm.trim_end());
    assert_eq!((&own["access"], &own["share_mode"]), (&"r".into(), &"rwd".into()));
    assert!(rows.iter().any(|row| row["handle"] == hold.handle));
    let plain = folder.run(&["handles", "mnt", "-r"]);
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        plain
            .lines()
            .any(|line| line.starts_with(&format!("{}\tdocs:/a.txt\tw\tr\t", hold.handle)))
    );
    let why = folder.run(&["why", "mnt/a.txt"]);
    assert_eq!(why.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&why.stdout).contains("latchfs hold (pid"));
    let control = folder.socket();
    let close =
        |which: &str| folder.run(&["close-handle", which, "--control", control.to_str().unwrap()]);
    assert!(close(&hold.handle.to_string()).status.success());
    assert_eq!(close(&hold.handle.to_string()).status.code(), Some(1));
    drop(open);
    wait_for("the release", || folder.run(&["why", "mnt/a.txt"]).status.success().then_some(()));
    assert_eq!(close("--all").status.code(), Some(1));
}

#[test]
fn a_deleted_file_that_is_held_can_be_undeleted() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    let hold = Holding::start(&folder, &["mnt/a.txt", "--share", "rwd"]);
    fs::remove_file(&file).unwrap();
    assert!(is_busy(&file));
    let why = folder.run(&["why", "mnt/a.txt"]);
    assert!(String::from_utf8_lossy(&why.stdout).contains("marked for deletion"));
    assert!(folder.run(&["undelete", "mnt/a.txt"]).status.success());
    assert_eq!(folder.run(&["undelete", "mnt/a.txt"]).status.code(), Some(1));
    assert!(!is_busy(&file));
    drop(hold);
    wait_for("the release", || folder.run(&["why", "mnt/a.txt"]).status.success().then_some(()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello");
}

#[test]
fn a_hold_can_ask_for_what_open_cannot() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let arguments =
        ["mnt/new.txt", "--access", "d", "--share", "rwd", "--delete-on-close", "--disposition"];
    let hold = Holding::start(&folder, &[&arguments[..], &["create"]].concat());
    let file = folder.join("mnt/new.txt");
    assert!(!is_busy(&file));
    drop(hold);
    wait_for("the deletion", || (!file.exists()).then_some(()));
    folder.file("a.txt", "");
    let _quiet = Holding::start(&folder, &["mnt/a.txt", "--access", "none", "--share", "none"]);
    assert!(!is_busy(&folder.join("mnt/a.txt")));
}
