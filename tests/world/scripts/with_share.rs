//! `with-share`: what its command finds, how it exits, and that nothing is left.

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use latchfs::file::mount::mounts;
use rustix::process::{Pid, Signal};

use super::{err, out, path, script};
use crate::common::need;
use crate::common::served::{LATCHFS, wait_for};

/// Fails if the mount, or the folder that held it and the data, is still there.
#[track_caller]
fn is_gone(mount: &Path) {
    assert!(!mounts::all().iter().any(|other| other.path == mount), "{}", mount.display());
    assert!(!mount.parent().unwrap().exists(), "{}", mount.display());
}

#[test]
fn a_command_finds_its_share_by_mount_and_by_rest_and_its_exit_is_passed_on() {
    if !need::fuse() {
        return;
    }
    let commands = format!(
        r#"echo hello > "$LATCHFS_MOUNT/a.txt"
           echo "$LATCHFS_MOUNT"
           echo "$AZURE_STORAGE_CONNECTION_STRING"
           exec 3< "$LATCHFS_MOUNT/a.txt"
           "{LATCHFS}" handles
           cat <&3
           exit 7"#
    );
    let output = script("with-share").args(["sh", "-c", &commands]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", err(&output));
    let text = out(&output);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[1].contains("FileEndpoint=http://127.0.0.1:"), "{text}");
    assert!(lines[1].contains("AccountKey="), "{text}");
    assert!(text.contains("a.txt") && text.ends_with("hello\n"), "{text}");
    is_gone(Path::new(lines[0]));
}

#[test]
fn options_before_the_dashes_are_the_servers() {
    if !need::fuse() {
        return;
    }
    let commands = r#"echo "$LATCHFS_MOUNT"; exec 3> "$LATCHFS_MOUNT/a"; cat "$LATCHFS_MOUNT/a""#;
    let mut command = script("with-share");
    command.args(["--default-share", "none", "--", "sh", "-c", commands]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("busy"), "{}", err(&output));
    is_gone(Path::new(out(&output).trim_end()));
}

#[test]
fn without_a_mount_the_command_finds_rest_and_no_variable_for_the_mount() {
    let commands = r#"echo "${LATCHFS_MOUNT-unset}"; echo "$AZURE_STORAGE_CONNECTION_STRING""#;
    let mut command = script("with-share");
    command.args(["--no-mount", "--", "sh", "-c", commands]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(text.starts_with("unset\n") && text.contains("FileEndpoint="), "{text}");
}

#[test]
fn where_no_mount_can_be_made_the_command_finds_rest_alone() {
    let programs = ["unshare", "mount", "touch"];
    if !need::root() || !programs.into_iter().all(need::client) {
        return;
    }
    // In a mount namespace of its own, `/dev` has nothing but what every program needs.
    let no_device = r#"
        null=$(mktemp) && mount --bind /dev/null "$null" && mount -t tmpfs none /dev &&
        touch /dev/null && mount --bind "$null" /dev/null && exec "$0" "$@"
    "#;
    let script = path("with-share");
    let commands =
        r#"echo "${LATCHFS_MOUNT-unset}"; echo "$AZURE_STORAGE_CONNECTION_STRING"; exit 7"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", no_device]).arg(script).args(["sh", "-c", commands]);
    command.env("LATCHFS", LATCHFS).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", err(&output));
    let text = out(&output);
    assert!(text.starts_with("unset\n") && text.contains("FileEndpoint="), "{text}");
    let (why, line) = (err(&output), "with-share: no mount, LATCHFS_MOUNT is unset: /dev/fuse");
    assert!(why.starts_with(line) && why.lines().count() == 1, "{why}");
}

#[test]
fn ctrl_c_ends_the_command_and_leaves_nothing_behind() {
    if !need::fuse() {
        return;
    }
    let mut child = script("with-share")
        .args(["sh", "-c", r#"echo "$LATCHFS_MOUNT"; exec sleep 1000"#])
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut mount = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut mount).unwrap();
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let status = wait_for("its end", || child.try_wait().unwrap());
    let ended = status.code() == Some(130) || status.signal() == Some(Signal::INT.as_raw());
    assert!(ended, "{status}");
    is_gone(Path::new(mount.trim_end()));
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let mut command = script("with-share");
    let output = command.args(["--default-share", "x", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(err(&output).contains("--default-share"), "{}", err(&output));
    let missing = script("with-share").env("LATCHFS", "/nowhere/latchfs").arg("true").output();
    let missing = missing.unwrap();
    assert_eq!(missing.status.code(), Some(125));
    assert!(err(&missing).contains("not on the PATH"), "{}", err(&missing));
    assert_eq!(script("with-share").output().unwrap().status.code(), Some(125));
}
