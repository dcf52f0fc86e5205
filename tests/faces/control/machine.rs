//! Commands that need no server, and what is said to wrong input.

use std::process::Command;

use super::fixture::{Folder, error_text, json, text};
use crate::common::need;

#[test]
fn the_doctor_looks_at_all_that_matters_and_asks_no_server() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let checks = json(&folder.run(&["doctor", "--json"]));
    let names: Vec<_> = checks.as_array().unwrap().iter().map(|check| &check["what"]).collect();
    let expected = [
        "/dev/fuse",
        "fusermount3",
        "user_allow_other",
        "kernel passthrough",
        "data directory",
        "descriptors",
        "ports",
    ];
    assert_eq!(names, expected);
    let plain = text(&folder.run(&["doctor"]));
    assert!(plain.starts_with("ok    /dev/fuse: ") && !plain.contains('\x1b'), "{plain}");
    let nowhere = folder.run(&["doctor", "--data", "/proc/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere).contains("choose another with --data"), "{}", text(&nowhere));
}

#[test]
fn shells_get_completions_with_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = folder.run(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        for command in ["close-handle", "connection-string", "doctor"] {
            assert!(text(&output).contains(command), "{shell}: {command}");
        }
    }
    if need::client("bash") {
        let script = format!("source <({} completions bash)", env!("CARGO_BIN_EXE_latchfs"));
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", error_text(&output));
    }
}

#[test]
fn a_key_is_shown_neither_in_a_complaint_nor_in_a_help() {
    let folder = Folder::new();
    for arguments in [
        ["sas", "--account", "demo:not*base64"],
        ["serve", "--account", "other:a2V5,demo:not*base64"],
    ] {
        let output = folder.run(&arguments);
        let said = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--account"), "{said}");
        assert!(said.contains("a key of account 'demo' is not"), "{said}");
        assert!(!said.contains("not*base64") && !said.contains("a2V5"), "{said}");
    }
    for (command, variable) in [("sas", "LATCHFS_ACCOUNT"), ("serve", "LATCHFS_ACCOUNTS")] {
        let mut help = Command::new(env!("CARGO_BIN_EXE_latchfs"));
        let output = help.args([command, "--help"]).env(variable, "demo:a2V5").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("--account") && !said.contains("a2V5"), "{said}");
    }
}

#[test]
fn wrong_input_gets_a_suggestion_and_never_a_backtrace() {
    let folder = Folder::new();
    for (arguments, part) in [
        (&["hodl", "a"][..], "'hold'"),
        (&["handles", "--jsno"], "'--json'"),
        (&["serve", "--mount", "docs"], "docs=/mnt/docs"),
        (&["serve", "--share-rule", "*.txt"], "*.xlsx=r"),
        (&["serve", "--listen", "localhost"], "IP:PORT, e.g. 127.0.0.1:10005"),
        (&["sas", "--permissions", "rz"], "none of racwdlupxytfi"),
        (&["sas", "--expires", "soon"], "as in 30s"),
        (&["completions", "cmd"], "possible values"),
        (&["lease", "break", "mnt", "--period", "61"], "0..=60"),
        (&["close-handle"], "name a handle, or --all"),
        (&["shares"], "Usage"),
        (&["why", "mnt/a"], "name a path on one, or a file of a share as NAME:/PATH"),
        (&["mount", "none", "mnt"], "none"),
    ] {
        let output = folder.run(arguments);
        let said = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(!said.contains("panicked") && !said.contains("backtrace"), "{said}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let script = format!("{} completions bash | true", env!("CARGO_BIN_EXE_latchfs"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", error_text(&output));
}
