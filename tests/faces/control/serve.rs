//! Starting: mounts, what was there before, who is told, what goes wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use rustix::process::Signal;

use super::fixture::{Folder, error_text, is_mounted, latchfs, wait_for};
use crate::common::need;

#[test]
fn a_stop_by_signal_leaves_no_mount_and_the_next_start_finds_everything_again() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let file = folder.file("a.txt", "kept");
    assert!(is_mounted(&folder.join("mnt")));
    assert!(server.stop().success(), "{}", server.log());
    assert!(!is_mounted(&folder.join("mnt")));
    assert!(!folder.socket().exists() && !folder.join("ready").exists());
    assert!(!file.exists());
    let mut server = folder.serve(&[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert!(server.stop().success());
    let log = server.log();
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn the_mount_and_the_socket_of_a_killed_server_are_replaced_at_the_next_start() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let file = folder.file("a.txt", "kept");
    server.signal(Signal::KILL);
    server.wait();
    assert!(is_mounted(&folder.join("mnt")) && folder.socket().exists());
    assert_eq!(fs::read(&file).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    fs::remove_file(folder.join("ready")).unwrap();
    let _server = folder.serve(&[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert!(folder.run(&["handles", file.to_str().unwrap()]).status.success());
}

#[test]
fn a_mount_point_that_will_not_do_is_refused_in_a_line() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.join("full")).unwrap();
    fs::write(folder.join("full/file"), "").unwrap();
    fs::create_dir(folder.join("other")).unwrap();
    let _server = folder.serve(&[]);
    for (place, part) in [
        ("missing", "is not a directory: create it first"),
        ("full", "is not empty: choose an empty directory"),
        ("mnt", "is mounted on"),
    ] {
        let mount = format!("docs={}", folder.join(place).display());
        let output = folder.run(&["serve", "--data", "other", "--mount", &mount]);
        let text = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{place}: {text}");
        assert!(text.contains(part) && text.lines().count() == 1, "{place}: {text}");
    }
}

#[test]
fn data_that_is_served_already_is_refused_and_bad_options_too() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let output = folder.run(&["serve", "--data", "data", "--no-mount"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_text(&output).contains("served by another latchfs"), "{}", error_text(&output));
    for options in [
        ["--default-share", "x"],
        ["--share-rule", "*.txt"],
        ["--mount", "docs"],
        ["--umask", "9"],
        ["--workers", "0"],
        ["--share", "NO"],
    ] {
        let output =
            folder.run(&["serve", "--data", "other", "--no-mount", options[0], options[1]]);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn without_arguments_one_share_is_served_from_and_in_the_working_directory() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let ready = folder.join("ready");
    let mut child = latchfs(folder.path()).env("LATCHFS_READY_FILE", &ready).spawn().unwrap();
    wait_for("the server", || ready.exists().then_some(()));
    let mount = folder.join("latchfs-mnt");
    fs::write(mount.join("a.txt"), "hello").unwrap();
    assert_eq!(
        fs::read(folder.join("latchfs-data/devstoreaccount1/files/share/a.txt")).unwrap(),
        b"hello"
    );
    let status = folder.run(&["status"]);
    assert!(String::from_utf8_lossy(&status.stdout).contains("share\" is mounted on"));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert!(wait_for("the end", || child.try_wait().unwrap()).success());
    assert!(!is_mounted(&mount) && !mount.exists());
}

#[test]
fn two_shares_are_apart_and_are_told_apart() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.join("two")).unwrap();
    let second = format!("other={}", folder.join("two").display());
    let _server = folder.serve(&["--mount", &second]);
    let file = folder.file("a.txt", "one");
    fs::write(folder.join("two/a.txt"), "two").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    let output = folder.run(&["why", "two/a.txt"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("other:/a.txt"));
    let control = folder.socket();
    let by_name = |extra: &[&str]| {
        let socket = control.to_str().unwrap();
        folder.run(&[&["why", "a.txt", "--control", socket], extra].concat())
    };
    assert!(by_name(&["--share-name", "docs"]).status.success());
    let unknown = by_name(&["--share-name", "none"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(error_text(&unknown).contains("no share 'none'"));
}

#[test]
fn in_the_background_the_command_returns_with_usable_mounts_or_the_error() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mount = format!("docs={}", folder.join("mnt").display());
    let started = folder.run(&["serve", "--data", "data", "--mount", &mount, "--daemon"]);
    assert!(started.status.success(), "{}", error_text(&started));
    let file = folder.file("a.txt", "x");
    let refused = folder.run(&["serve", "--data", "data", "--no-mount", "--daemon"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error_text(&refused).contains("served by another"), "{}", error_text(&refused));
    let stopped = folder.run(&["stop", "--control", folder.socket().to_str().unwrap()]);
    assert!(stopped.status.success(), "{}", error_text(&stopped));
    assert!(!is_mounted(&folder.join("mnt")) && !file.exists());
}

#[test]
fn systemd_is_told_of_the_start_and_the_stop() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let socket = UnixDatagram::bind(folder.join("notify")).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let mut child = latchfs(folder.path())
        .args(["serve", "--no-mount"])
        .env("NOTIFY_SOCKET", folder.join("notify"))
        .spawn()
        .unwrap();
    let receive = || {
        let mut text = [0; 64];
        let count = socket.recv(&mut text).unwrap();
        String::from_utf8(text[..count].to_vec()).unwrap()
    };
    assert_eq!(receive(), "READY=1");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(receive(), "STOPPING=1");
    assert!(wait_for("the end", || child.try_wait().unwrap()).success());
}

#[test]
fn the_socket_is_its_owners_alone_and_asks_others_for_their_name() {
    if !need::fuse() || !need::root() || !need::client("setpriv") {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let hidden = folder.join("data/.latchfs");
    assert_eq!((mode(&folder.socket()), mode(&hidden)), (0o600, 0o700));
    // Shares lie below: whoever may not see the mount does not see its files either.
    assert_eq!(mode(&folder.join("data")), 0o700);
    // The program is copied to where nobody can reach it.
    let program = folder.join("latchfs");
    fs::copy(env!("CARGO_BIN_EXE_latchfs"), &program).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let ask = || {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["status", "--control"])
            .arg(folder.socket())
            .output()
            .unwrap()
    };
    let outside = ask();
    assert_eq!(outside.status.code(), Some(2));
    // Even with the doors open, the server knows who asks.
    let data = hidden.parent().unwrap().to_owned();
    for open in [&data, &hidden, &folder.socket()] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let inside = ask();
    assert_eq!(inside.status.code(), Some(2));
    assert!(error_text(&inside).contains("user 65534 may not ask"), "{}", error_text(&inside));
}

#[test]
fn where_no_server_is_the_error_says_what_to_do() {
    let folder = Folder::new();
    let here = folder.run(&["handles"]);
    assert_eq!(here.status.code(), Some(2));
    assert!(error_text(&here).contains("--control"), "{}", error_text(&here));
    let elsewhere = folder.run(&["why", "mnt"]);
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(error_text(&elsewhere).contains("not on a latchfs mount"));
    let dead = folder.run(&["status", "--control", "no.sock"]);
    assert!(error_text(&dead).contains("latchfs serve"), "{}", error_text(&dead));
}
