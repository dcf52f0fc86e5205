//! The scripts of `mount-scripts/`, run as their users run them.

mod image;
mod mount;
mod service;
mod testcontainers;
mod with_share;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::need;
use crate::common::served::LATCHFS;

/// A script of that name.
fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "mount-scripts", name].iter().collect()
}

/// The script, which is to run the program under test.
fn script(name: &str) -> Command {
    // A job in the background ignores Ctrl-C, and so would what the tests start there.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(path(name));
    command.env("LATCHFS", LATCHFS).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The help of a command.
fn help(command: &str) -> String {
    out(&Command::new(LATCHFS).args([command, "--help"]).output().unwrap())
}

#[test]
fn the_scripts_pass_shellcheck() {
    if !need::client("shellcheck") {
        return;
    }
    let scripts = ["mount.latchfs", "with-share", "check-host", "build-image", "dist"].map(path);
    let output = Command::new("shellcheck").args(scripts).output().unwrap();
    assert!(output.status.success(), "{}", out(&output));
}

#[test]
fn a_machine_without_latchfs_is_told_what_it_lacks_all_the_same() {
    let mut check = script("check-host");
    let output = check.env("LATCHFS", "/nowhere/latchfs").output().unwrap();
    let text = out(&output);
    assert!(text.contains("cargo: ") && text.contains("/dev/fuse: "), "{text}");
    let lacks = text.lines().any(|line| line.starts_with("missing"));
    assert_eq!(output.status.code(), Some(i32::from(lacks)), "{text}");
    let unknown = check.arg("--nothing").output().unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", err(&unknown));
}
