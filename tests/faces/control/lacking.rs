//! Starts on machines that lack something: each lack is a line with its cure.
//!
//! The lack is made in a mount namespace of the server's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal};

use super::fixture::{Folder, error_text, json, text, wait_for};
use crate::common::need;

/// `/dev` has nothing in it but what every program takes for granted.
const NO_DEVICE: &str = r#"
    touch "$0.null" && mount --bind /dev/null "$0.null" && mount -t tmpfs none /dev &&
    touch /dev/null && mount --bind "$0.null" /dev/null && exec "$@"
"#;

/// `/dev/fuse` is root's, and the server is not root.
const NO_RIGHT: &str = r#"
    mknod -m 600 "$0.fuse" c 10 229 && mount --bind "$0.fuse" /dev/fuse &&
    exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
"#;

/// Root may not mount, as in a container.
const NO_CAPABILITY: &str = r#"exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@""#;

/// Another user than the one who runs the server.
const OTHER_USER: &str = "exec setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$@\"";

/// A command in a folder that everybody may enter, on a machine that lacks something.
fn lacking(folder: &Folder, lack: &str, arguments: &[&str]) -> Command {
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.join("latchfs");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_latchfs"), &program).unwrap();
    }
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", lack])
        .arg(folder.join("lack"))
        .arg(program)
        .args(arguments)
        .envs([("LATCHFS_LISTEN", "127.0.0.1:0"), ("RUST_LOG", "error")])
        .current_dir(folder.path())
        .stdin(Stdio::null());
    command
}

fn can_lack() -> bool {
    let programs = ["unshare", "mount", "mknod", "setpriv", "fusermount3"];
    need::fuse() && need::root() && programs.into_iter().all(need::client)
}

#[track_caller]
fn refused_in_a_line(output: &Output, parts: &[&str]) {
    let said = error_text(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.lines().count() == 1 && parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn without_the_device_rest_is_served_alone_and_the_screen_says_why() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    let mut child = lacking(&folder, NO_DEVICE, &["serve", "--ready-file", "ready"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the server", || folder.join("ready").exists().then_some(()));
    assert_eq!(folder.ready()["mounts"], serde_json::json!({}));
    assert!(folder.ready()["endpoint"].is_string());
    assert!(!folder.join("latchfs-mnt").exists());
    let shares = json(&folder.run(&["shares", "list", "--json"]));
    assert_eq!(shares[0]["name"], "share");
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(wait_for("the end", || child.try_wait().unwrap()).success());
    let screen = text(&child.wait_with_output().unwrap());
    assert!(screen.contains("no mount, REST only: /dev/fuse cannot be opened"), "{screen}");
}

#[test]
fn a_mount_that_was_asked_for_and_cannot_be_made_is_refused_with_the_cure() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    let cure = ["/dev/fuse cannot be opened", "load the fuse module", "--no-mount"];
    for arguments in [["serve", "--mount", "docs=mnt"], ["serve", "--no-rest", "--reset"]] {
        refused_in_a_line(&lacking(&folder, NO_DEVICE, &arguments).output().unwrap(), &cure);
    }
    fs::create_dir(folder.join("source")).unwrap();
    let mount = ["mount", "source", "mnt", "--state", "state"];
    refused_in_a_line(&lacking(&folder, NO_DEVICE, &mount).output().unwrap(), &cure);
}

#[test]
fn who_may_not_open_the_device_is_told_whom_to_ask() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    std::os::unix::fs::chown(folder.join("mnt"), Some(65534), Some(65534)).unwrap();
    let output = lacking(&folder, NO_RIGHT, &["serve", "--mount", "docs=mnt"]).output().unwrap();
    refused_in_a_line(&output, &["/dev/fuse", "ermission denied", "run as root", "--no-mount"]);
}

#[test]
fn who_may_not_write_the_data_is_told_to_choose_another_place() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.join("closed")).unwrap();
    fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = ["serve", "--no-mount", "--data", "closed/data"];
    let output = lacking(&folder, NO_RIGHT, &arguments).output().unwrap();
    refused_in_a_line(&output, &["may not be written", "--data", "to user 65534"]);
}

#[test]
fn root_without_the_right_to_mount_is_told_of_the_right() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    let serve = ["serve", "--mount", "docs=mnt"];
    let output = lacking(&folder, NO_CAPABILITY, &serve).output().unwrap();
    refused_in_a_line(&output, &["--cap-add SYS_ADMIN", "--no-mount"]);
    let doctor = lacking(&folder, NO_CAPABILITY, &["doctor"]).output().unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{}", text(&doctor));
    assert!(text(&doctor).contains("fail  CAP_SYS_ADMIN: missing"), "{}", text(&doctor));
}

#[test]
fn another_user_is_told_that_the_control_socket_is_its_owners() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount"]);
    let socket = folder.socket();
    let named = ["status", "--control", socket.to_str().unwrap()];
    let parts = [socket.to_str().unwrap(), "the user who runs the server", "as that user"];
    refused_in_a_line(&lacking(&folder, OTHER_USER, &named).output().unwrap(), &parts);
    // A data directory that cannot be looked into leads to its server all the same.
    let mut near = lacking(&folder, OTHER_USER, &["status"]);
    refused_in_a_line(&near.env("LATCHFS_DATA", "data").output().unwrap(), &parts);
}

#[test]
fn the_doctor_finds_what_is_missing_and_exits_1() {
    if !can_lack() {
        return;
    }
    let folder = Folder::new();
    let output = lacking(&folder, NO_DEVICE, &["doctor", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", error_text(&output));
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = lacking(&folder, NO_DEVICE, &["doctor"]).output().unwrap();
    assert!(text(&all).contains("work without one"), "{}", text(&all));
    let without = lacking(&folder, NO_DEVICE, &["doctor", "--no-mount"]).output().unwrap();
    assert_eq!(without.status.code(), Some(0), "{}", text(&without));
    assert!(!text(&without).contains("/dev/fuse"), "{}", text(&without));
    let device = &checks[0];
    assert_eq!((&device["what"], &device["verdict"]), (&"/dev/fuse".into(), &"fail".into()));
    assert!(device["cure"].as_str().unwrap().contains("modprobe fuse"));
    let output = lacking(&folder, NO_RIGHT, &["doctor"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(said.contains("chmod 666 /dev/fuse") && said.contains("user_allow_other"), "{said}");
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named_with_the_reason() {
    let folder = Folder::new();
    fs::write(folder.join("file"), "").unwrap();
    for (place, reason) in [("/proc/none", "No such file"), ("file/data", "Not a directory")] {
        let output = folder.run(&["serve", "--no-mount", "--data", place]);
        let expected = format!("cannot create data directory {place}: ");
        refused_in_a_line(&output, &[&expected, reason]);
    }
}
