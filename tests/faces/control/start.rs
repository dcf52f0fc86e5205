//! What a start puts in, throws away and tells: seeds, data in memory, `--reset`, the ready file,
//! the start screen.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use latchfs::file::mount::mounts;
use rustix::process::Signal;

use super::fixture::{Folder, error_text, is_mounted, latchfs, text, wait_for};
use crate::common::need;

/// The folders of servers with their data in memory, of that process.
pub fn memory_of(pid: u32) -> Vec<std::path::PathBuf> {
    let source = format!("latchfs-memory-{pid}");
    let ours = mounts::all().into_iter().filter(|mount| *mount.source == *source);
    ours.map(|mount| mount.path).collect()
}

#[test]
fn the_ready_file_tells_scripts_all_they_need_and_is_its_owners() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let server = folder.serve(&[]);
    let ready = folder.ready();
    assert_eq!(ready["pid"], server.child.id());
    assert_eq!(ready["mounts"]["docs"], folder.join("mnt").to_str().unwrap());
    assert_eq!(ready["control"], folder.socket().to_str().unwrap());
    assert_eq!(ready["account"], "devstoreaccount1");
    let endpoint = ready["endpoint"].as_str().unwrap();
    assert!(endpoint.ends_with("/devstoreaccount1"), "{endpoint}");
    let connection = ready["connection_string"].as_str().unwrap();
    let key = ready["key"].as_str().unwrap();
    assert!(connection.contains(key) && connection.contains(endpoint), "{connection}");
    let mode = fs::metadata(folder.join("ready")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Runs the lines of the start screen as if they were pasted into another terminal.
fn pasted(screen: &str) -> std::process::Output {
    let lines: Vec<_> = screen
        .lines()
        .skip_while(|line| !line.contains("Try a conflict"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(lines.len() >= 4, "{screen}");
    let script = format!("{}\nkill $!", lines.join("\n"));
    // Somewhere else: the lines say where to go.
    Command::new("sh").args(["-c", &script]).current_dir("/").output().unwrap()
}

#[test]
fn the_first_conflict_on_the_start_screen_can_be_pasted() {
    if !need::fuse() || !need::client("curl") {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let shown = || server.log().contains("Ctrl-C").then(|| server.log());
    let screen = wait_for("the start screen", shown);
    assert!(!screen.contains('\x1b'), "{screen}");
    assert!(screen.contains(folder.ready()["connection_string"].as_str().unwrap()), "{screen}");
    let said = pasted(&screen);
    assert!(error_text(&said).contains("Device or resource busy"), "{}", error_text(&said));
    assert!(text(&said).contains("<Code>SharingViolation</Code>"), "{}", text(&said));
    assert!(text(&said).contains("latchfs hold (pid"), "{}", text(&said));
    assert!(server.stop().success());
}

#[test]
fn without_a_mount_the_start_screen_has_a_conflict_too() {
    if !need::client("curl") {
        return;
    }
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount"]);
    let shown = || server.log().contains("Ctrl-C").then(|| server.log());
    let said = pasted(&wait_for("the start screen", shown));
    assert!(text(&said).contains("<Code>SharingViolation</Code>"), "{}", error_text(&said));
    assert!(text(&said).contains("latchfs hold (pid"), "{}", text(&said));
}

#[test]
fn with_json_the_start_screen_is_what_the_ready_file_holds() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let server = folder.serve(&["--json"]);
    let line = || server.log().lines().find(|line| line.starts_with('{')).map(str::to_owned);
    let printed = wait_for("the start screen", line);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), folder.ready());
}

#[test]
fn a_seed_fills_a_share_once_and_a_reset_makes_room_for_it_again() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir_all(folder.join("seed/sub")).unwrap();
    fs::write(folder.join("seed/sub/a.txt"), "from the seed").unwrap();
    let file = folder.join("mnt/sub/a.txt");
    let mut server = folder.serve(&["--seed", "seed"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "from the seed");
    fs::write(&file, "changed").unwrap();
    assert!(server.stop().success());
    let mut server = folder.serve(&["--seed", "docs=seed"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "changed");
    assert!(server.log().contains("is not filled"), "{}", server.log());
    assert!(server.stop().success());
    let _server = folder.serve(&["--reset", "--seed", "seed"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "from the seed");
}

#[test]
fn a_seed_that_is_missing_and_a_reset_of_what_is_not_ours_are_refused_in_a_line() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("precious/docs")).unwrap();
    for (arguments, part) in [
        (["--data", "new", "--seed", "none"], "--seed: none does not exist"),
        (["--data", "precious", "--reset", "--json"], "is not a latchfs data directory"),
        (["--data", "inside", "--seed", "."], "lies within"),
    ] {
        let output = folder.run(&[&["serve", "--no-mount"], &arguments[..]].concat());
        let said = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    }
    assert!(folder.join("precious/docs").exists());
}

#[test]
fn data_in_memory_is_gone_at_the_end_and_what_a_killed_server_left_at_the_next_start() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let arguments = ["serve", "--in-memory"];
    let mut server = folder.start(&arguments);
    fs::write(folder.join("latchfs-mnt/a.txt"), "hello").unwrap();
    assert!(!folder.join("data").exists() && !folder.join("latchfs-data").exists());
    // Found by the mount in the working directory.
    let status = folder.run(&["status"]);
    assert!(text(&status).contains("share\" is mounted on"), "{}", error_text(&status));
    let places = memory_of(server.child.id());
    assert_eq!(places.len(), 1);
    assert!(server.stop().success());
    assert!(!places[0].exists() && !is_mounted(&places[0]));
    let mut server = folder.start(&arguments);
    assert!(!folder.join("latchfs-mnt/a.txt").exists());
    let pid = server.child.id();
    server.signal(Signal::KILL);
    server.wait();
    let places = memory_of(pid);
    assert_eq!(places.len(), 1);
    fs::remove_file(folder.join("ready")).unwrap();
    let _server = folder.start(&arguments);
    assert!(memory_of(pid).is_empty() && !places[0].exists());
}

/// Starts a program as a user who is not root.
fn as_nobody(program: &std::path::Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
    command
}

#[test]
fn without_a_place_in_memory_the_data_is_in_a_temporary_folder_that_goes_too() {
    if !need::root() || !need::client("setpriv") {
        return;
    }
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, temporary) = (folder.join("latchfs"), folder.join("temporary"));
    fs::copy(env!("CARGO_BIN_EXE_latchfs"), &program).unwrap();
    fs::create_dir(&temporary).unwrap();
    std::os::unix::fs::chown(&temporary, Some(65534), Some(65534)).unwrap();
    let mut child = as_nobody(&program)
        .args(["serve", "--in-memory", "--no-mount", "--listen", "127.0.0.1:0", "--json"])
        .env("TMPDIR", &temporary)
        // It exists, and this user may not write to it.
        .env("XDG_RUNTIME_DIR", folder.path())
        .current_dir(&temporary)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(told["control"].as_str().unwrap().starts_with(temporary.to_str().unwrap()), "{told}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    assert!(wait_for("the end", || child.try_wait().unwrap()).success());
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn without_root_data_in_memory_is_a_folder_that_goes_too() {
    if !need::root() || !need::client("setpriv") {
        return;
    }
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, home) = (folder.join("latchfs"), folder.join("home"));
    fs::copy(env!("CARGO_BIN_EXE_latchfs"), &program).unwrap();
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let ready = home.join("ready");
    let mut child = as_nobody(&program)
        .args(["serve", "--in-memory", "--no-mount", "--listen", "127.0.0.1:0", "--ready-file"])
        .arg(&ready)
        .env("XDG_RUNTIME_DIR", &home)
        .current_dir(&home)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the server", || ready.exists().then_some(()));
    let entries = || fs::read_dir(&home).unwrap().count();
    // The data, the ready file, and the list of the user's servers.
    assert_eq!(entries(), 3);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    assert!(wait_for("the end", || child.try_wait().unwrap()).success());
    assert_eq!(entries(), 0);
}

#[test]
fn where_the_working_directory_may_not_be_written_rest_is_served_from_memory_alone() {
    if !need::root() || !need::client("setpriv") {
        return;
    }
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, home) = (folder.join("latchfs"), folder.join("home"));
    fs::copy(env!("CARGO_BIN_EXE_latchfs"), &program).unwrap();
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let ready = home.join("ready");
    let mut child = as_nobody(&program)
        .args(["serve", "--in-memory", "--listen", "127.0.0.1:0", "--ready-file"])
        .arg(&ready)
        .env("XDG_RUNTIME_DIR", &home)
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the server", || {
        assert_eq!(child.try_wait().unwrap(), None, "it ended");
        ready.exists().then_some(())
    });
    let told: serde_json::Value = serde_json::from_slice(&fs::read(&ready).unwrap()).unwrap();
    assert_eq!(told["mounts"], serde_json::json!({}));
    assert!(told["endpoint"].is_string(), "{told}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && text(&ended).contains("no mount, REST only"), "{ended:?}");
    assert!(text(&ended).contains("this user may write with --mount-dir"), "{}", text(&ended));
    assert!(text(&ended).ends_with("Ctrl-C stops.\n"), "{}", text(&ended));
}

#[test]
fn a_start_that_fails_leaves_no_mount_point_behind() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = latchfs(folder.path()).args(["serve", "--listen", &address]).output().unwrap();
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let named = said.contains(&address) && said.contains("--file 127.0.0.1:0");
    assert!(named && said.lines().count() == 1, "{said}");
    assert!(!folder.join("latchfs-mnt").exists());
}
