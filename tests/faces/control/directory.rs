//! `latchfs mount`: a directory that is there already, served as it is.

use std::fs;

use super::fixture::{Folder, Holding, error_text, is_busy, is_mounted, json, text, wait_for};
use crate::common::need;

fn entries(path: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_is_mounted_as_it_is_and_nothing_of_ours_appears_in_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let source = folder.join("Reports");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("old.txt"), "old").unwrap();
    let mut server = folder.start(&["mount", "Reports", "mnt", "--state", "state"]);
    let file = folder.join("mnt/old.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    folder.file("new.txt", "new");
    assert_eq!(entries(&source), ["new.txt", "old.txt"]);
    // Both faces: the mount's share mode, and REST's name for the share.
    let hold = Holding::start(&folder, &["mnt/old.txt", "--share", "none"]);
    assert!(is_busy(&file));
    drop(hold);
    wait_for("the end of the hold", || (!is_busy(&file)).then_some(()));
    let url = text(&folder.run(&["sas", "mnt/new.txt"]));
    assert!(url.contains("/devstoreaccount1/reports/new.txt?"), "{url}");
    assert_eq!(folder.ready()["mounts"]["reports"], folder.join("mnt").to_str().unwrap());
    let control = folder.ready()["control"].as_str().unwrap().to_owned();
    assert_eq!(control, folder.join("state/control.sock").to_str().unwrap());
    let snapshot = json(&folder.run(&["snapshot", "create", "--control", &control, "--json"]));
    let refused = folder.run(&["shares", "create", "more", "--control", &control]);
    assert_eq!(refused.status.code(), Some(2), "{}", error_text(&refused));
    assert!(folder.run(&["unmount", "mnt"]).status.success());
    assert!(server.wait().success() && !is_mounted(&folder.join("mnt")));
    // The next start finds its state again.
    let _server = folder.start(&["mount", "Reports", "mnt", "--state", "state"]);
    let listed = json(&folder.run(&["snapshot", "list", "--control", &control, "--json"]));
    assert_eq!(listed[0], snapshot["snapshot"]);
    assert_eq!(entries(&source), ["new.txt", "old.txt"]);
}

#[test]
fn a_mount_point_or_a_state_within_the_directory_is_refused() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir_all(folder.join("source/inside")).unwrap();
    for (arguments, part) in [
        (["source", "source/inside", "--state", "state"], "must not contain each other"),
        (["source", "mnt", "--state", "source/state"], "lies within the share"),
        (["source", "mnt", "--name", "NO"], "share name 'NO'"),
    ] {
        let output = folder.run(&[&["mount"], &arguments[..]].concat());
        let said = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    }
}
