//! What a new user stumbles over: commands that end too early, names that cannot be typed, options
//! that contradict each other.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::fixture::{Folder, Holding, error_text, is_mounted, json, latchfs, text, wait_for};
use crate::common::{http, need};

fn rest_only(folder: &Folder, arguments: &[&str]) -> super::fixture::Server {
    folder.start(&[&["serve", "--no-mount", "--share", "docs"], arguments].concat())
}

fn control(folder: &Folder) -> String {
    folder.socket().to_str().unwrap().to_owned()
}

#[test]
fn a_hold_that_is_closed_by_force_says_so_and_exits_3() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    let mut child = latchfs(folder.path())
        .args(["hold", "docs:/a.txt", "--disposition", "open-if", "--control", &control])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the hold", || {
        let closed = folder.run(&["close-handle", "--all", "--control", &control]);
        closed.status.success().then_some(())
    });
    let status = wait_for("the end of the hold", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(3));
    let output = child.wait_with_output().unwrap();
    assert!(error_text(&output).contains("was closed by force"), "{}", error_text(&output));
}

#[test]
fn a_ready_file_of_an_earlier_server_is_removed_before_the_next_one_starts() {
    let folder = Folder::new();
    fs::write(folder.join("stale"), "{}").unwrap();
    let output =
        folder.run(&["serve", "--no-mount", "--data", "/proc/no", "--ready-file", "stale"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.join("stale").exists());
}

#[test]
fn a_start_that_fails_leaves_no_misspelt_share_behind() {
    let folder = Folder::new();
    let mount = format!("dcos={}", folder.join("mnt").display());
    let arguments = ["serve", "--data", "data", "--share", "docs", "--mount", &mount];
    let output = folder.run(&arguments);
    assert_eq!(output.status.code(), Some(2));
    let said = error_text(&output);
    assert!(said.contains("'dcos' is not among the shares given with --share: docs"), "{said}");
    assert!(!folder.join("data").exists());
}

#[test]
fn a_start_that_fails_leaves_no_data_directory_that_it_made() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let start = ["serve", "--no-mount", "--data", "new", "--file", &address];
    assert_eq!(folder.run(&start).status.code(), Some(2));
    assert!(!folder.join("new").exists());
    // A directory that was there before stays as it is.
    fs::create_dir(folder.join("new")).unwrap();
    fs::write(folder.join("new/file"), "kept").unwrap();
    assert_eq!(folder.run(&start).status.code(), Some(2));
    assert!(folder.join("new/file").exists());
}

#[test]
fn errors_of_usage_are_json_where_json_is_asked_for() {
    let folder = Folder::new();
    for arguments in [&["status", "--nope", "--json"][..], &["hold", "--json", "x", "--for", "3"]] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "usage", "{error}");
    }
    for arguments in [&["nonsense"][..], &["clock", "advance"]] {
        let output = latchfs(folder.path()).args(arguments).env("LATCHFS_JSON", "1").output();
        let error: serde_json::Value = serde_json::from_slice(&output.unwrap().stderr).unwrap();
        assert_eq!(error["error"]["kind"], "usage", "{error}");
    }
    // What only the command or the server can see.
    let _server = rest_only(&folder, &[]);
    for arguments in [
        &["gate", "add", "Put Blub"][..],
        &["gate", "add", "Put Blob", "--header", "if-match"],
        &["gate", "remove"],
        &["fault", "add", "Put Blob"],
        &["close-handle"],
        &["put", "blob:", "--from", "/dev/null"],
        &["why", "queue:"],
    ] {
        let output = folder.ask(&[arguments, &["--json"]].concat());
        let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "usage", "{arguments:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let refused = folder.run(&["get", "--json", "blob:none/a", "--control", "none"]);
    let error: serde_json::Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "failed", "{error}");
}

#[test]
fn handles_below_a_directory_are_hinted_at() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    let open = ["docs:/a.txt", "--disposition", "open-if", "--control", &control];
    let _held = Holding::start(&folder, &open);
    let root = folder.ask(&["handles", "docs:/"]);
    assert_eq!(text(&root), "");
    assert!(error_text(&root).contains("--recursive shows 1 below it"), "{}", error_text(&root));
    assert!(error_text(&folder.ask(&["handles", "docs:/", "-r"])).is_empty());
}

#[test]
fn data_that_is_not_served_and_keys_that_others_can_read_are_noted() {
    let folder = Folder::new();
    drop(rest_only(&folder, &[]));
    fs::write(folder.join("accounts"), "second:a2V5\n").unwrap();
    fs::set_permissions(folder.join("accounts"), fs::Permissions::from_mode(0o644)).unwrap();
    let server = rest_only(&folder, &["--account-file", "accounts"]);
    let log = server.log();
    assert!(log.contains("accounts that are not served: devstoreaccount1"), "{log}");
    assert!(log.contains("chmod 600 accounts"), "{log}");
}

#[test]
fn a_lease_that_is_not_there_is_no_conflict() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &["--admin", "127.0.0.1:0"]);
    fs::write(folder.join("data/devstoreaccount1/files/docs/a.txt"), "x").unwrap();
    let control = control(&folder);
    let broken = folder.run(&["lease", "break", "docs:/a.txt", "--control", &control]);
    assert_eq!(broken.status.code(), Some(1), "{}", error_text(&broken));
    let admin = folder.ready()["admin"].as_str().unwrap().to_owned();
    let admin = admin.strip_prefix("http://").unwrap();
    let addr = admin.parse().unwrap();
    let metrics = http::ask_as_it_is(addr, admin, "GET", "/metrics", &[], b"").is(200).text();
    let line = r#"latchfs_conflicts_total{account="devstoreaccount1",rule="lease"} 0"#;
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("latchfs_build_info{version="), "{metrics}");
}

#[test]
fn options_that_contradict_each_other_are_refused_with_a_hint() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    for (arguments, part) in [
        (&["serve", "--in-memory", "--data", "x"][..], "--data cannot be used with --in-memory"),
        (&["serve", "--no-mount", "--no-rest", "--data", "x"], "nothing to serve"),
        (&["events", "--share-name", "nosuch", "--control", &control], "no share 'nosuch'"),
        (&["hold", "docs:/a.txt", "--for", "30"], "as in 30s"),
        (&["serve", "--no-mount", "--ready-file", "none/x"], "none is not a directory"),
        (&["serve", "--no-mount", "--file", "localhost"], "localhost:PORT"),
        (&["azurite", "--inMemoryPersistence", "--location", "x"], "--location cannot be used"),
        (&["close-handle"], "name a handle, or --all"),
        (&["close-handle", "abc"], "expected the number of a handle"),
        (&["status", "mnt"], "leads to no server"),
        (&["status", "--control", "mnt"], "is a directory without a server"),
        (&["snapshot", "list", "docs"], "the share itself as docs:/"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error_text(&output).contains(part), "{arguments:?}: {}", error_text(&output));
    }
    for variable in ["LATCHFS_RESET", "LATCHFS_SNAPSHOTS", "LATCHFS_LAZY"] {
        let inherited = latchfs(folder.path()).env(variable, "1").arg("serve").output().unwrap();
        assert_eq!(inherited.status.code(), Some(2), "{variable}");
        let said = error_text(&inherited);
        assert!(said.contains(variable) && said.contains("itself"), "{said}");
    }
    let misspelt = latchfs(folder.path()).env("LATCHFS_DTAA", "x").arg("status").output().unwrap();
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(error_text(&misspelt).contains("did you mean LATCHFS_DATA?"));
}

#[test]
fn what_is_printed_can_be_typed() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    let open = ["docs:/a.txt", "--disposition", "open-if", "--control", &control];
    let _held = Holding::start(&folder, &open);
    let printed = text(&folder.run(&["handles", "--control", &control]));
    let path = printed.split('\t').nth(1).unwrap().to_owned();
    assert_eq!(path, "docs:/a.txt");
    let why = folder.run(&["why", &path, "--control", &control]);
    assert_eq!(why.status.code(), Some(1), "{}", error_text(&why));
    assert!(text(&why).contains("docs:/a.txt is open"), "{}", text(&why));
    for command in [&["handles", &path][..], &["events", &path], &["lease", "show", &path]] {
        let output = folder.run(&[command, &["--control", &control]].concat());
        assert!(output.status.success(), "{command:?}: {}", error_text(&output));
    }
}

#[test]
fn the_only_server_of_a_user_is_found_wherever_the_command_is_run() {
    let (folder, elsewhere, home) = (Folder::new(), Folder::new(), tempfile::tempdir().unwrap());
    let runtime = home.path().to_str().unwrap();
    let _server = folder.start_with(&["serve", "--no-mount"], &[("XDG_RUNTIME_DIR", runtime)]);
    let run = |command: &str| {
        let mut asked = latchfs(elsewhere.path());
        asked.args([command, "--json"]).env("XDG_RUNTIME_DIR", runtime).output().unwrap()
    };
    assert_eq!(json(&run("status"))["pid"], folder.ready()["pid"]);
    assert_eq!(json(&run("connection-string"))["endpoint"], folder.ready()["endpoint"]);
    let second = Folder::new();
    let _second = second.start_with(&["serve", "--no-mount"], &[("XDG_RUNTIME_DIR", runtime)]);
    let several = run("status");
    assert_eq!(several.status.code(), Some(2));
    assert!(error_text(&several).contains("several servers run"), "{}", error_text(&several));
}

#[test]
fn elsewhere_a_command_names_the_server_that_it_acts_on_and_one_that_deletes_is_refused() {
    let (folder, elsewhere, home) = (Folder::new(), Folder::new(), tempfile::tempdir().unwrap());
    let runtime = home.path().to_str().unwrap();
    let mut server = folder.start_with(&["serve", "--no-mount"], &[("XDG_RUNTIME_DIR", runtime)]);
    let run = |arguments: &[&str]| {
        let mut asked = latchfs(elsewhere.path());
        asked.args(arguments).env("XDG_RUNTIME_DIR", runtime).output().unwrap()
    };
    let data = folder.join("data").to_str().unwrap().to_owned();
    for deletes in [&["state", "reset"][..], &["state", "restore", "a"], &["rm", "-r", "blob:a"]] {
        let refused = run(deletes);
        assert_eq!(refused.status.code(), Some(2), "{deletes:?}");
        let said = error_text(&refused);
        assert!(said.contains("deletes data") && said.contains(&data), "{deletes:?}: {said}");
    }
    let stopped = run(&["stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(error_text(&stopped).trim(), format!("latchfs: using the server of {data}"));
    assert!(server.wait().success());
}

#[test]
fn status_stop_and_the_connection_string_take_a_path_on_a_mount() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let mount = folder.join("mnt");
    let mount = mount.to_str().unwrap();
    let elsewhere = Folder::new();
    assert_eq!(json(&elsewhere.run(&["status", mount, "--json"]))["pid"], folder.ready()["pid"]);
    assert!(elsewhere.run(&["connection-string", mount]).status.success());
    assert!(elsewhere.run(&["stop", mount]).status.success());
    assert!(server.wait().success() && !is_mounted(&folder.join("mnt")));
}

#[test]
fn errors_are_json_where_answers_are() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    let output = folder.run(&["why", "docs:/none", "--json", "--control", &control]);
    assert_eq!(output.status.code(), Some(2));
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["error"]["kind"], "not_found");
    let output = folder.run(&["status", "--json", "--control", "/nowhere/control.sock"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["error"]["kind"], "failed");
    assert!(said["error"]["message"].as_str().unwrap().contains("is gone"), "{said}");
}

#[test]
fn options_without_a_command_are_those_of_serve_and_help_is_a_command() {
    let folder = Folder::new();
    let mut server = folder.start(&["--no-mount", "--share", "docs"]);
    assert!(server.stop().success());
    let help = folder.run(&["help", "hold"]);
    assert!(help.status.success() && text(&help).contains("Hold a file open"), "{}", text(&help));
}

#[test]
fn a_name_with_control_characters_is_escaped_on_its_way_to_the_terminal() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    let name = "\u{1b}[2Ja.txt";
    fs::write(folder.join("data/devstoreaccount1/files/docs").join(name), "x").unwrap();
    let path = format!("docs:/{name}");
    let why = folder.run(&["why", &path, "--control", &control]);
    assert!(!text(&why).contains('\u{1b}') && !error_text(&why).contains('\u{1b}'));
}

#[test]
fn a_reader_of_the_event_log_that_stalls_loses_events_and_stops_nobody() {
    if !need::client("mkfifo") {
        return;
    }
    let folder = Folder::new();
    let fifo = folder.join("events");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    // Open for reading, and not read before the end.
    let mut reader = fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let mut server = rest_only(&folder, &["--no-auth", "--event-log", fifo.to_str().unwrap()]);
    let addr = folder.listener();
    // Many times what the pipe holds.
    for _ in 0..1_000 {
        let got = http::ask(addr, "GET", "/docs/none", &[], b"");
        assert_eq!(got.status, 404);
    }
    assert!(server.stop().success());
    assert!(server.log().contains("its last events are lost"), "{}", server.log());
    // The pipe was full, of refusals.
    let mut held = vec![0; 1 << 12];
    std::io::Read::read_exact(&mut reader, &mut held).unwrap();
    assert!(String::from_utf8_lossy(&held).contains(r#""event":"refused""#));
}

#[test]
fn an_error_names_its_cause_once() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fs::create_dir(folder.join("others")).unwrap();
    fs::write(folder.join("others/file"), "").unwrap();
    for (arguments, cause) in [
        (["--in-memory", "--file", &address], "Address already in use"),
        (["--reset", "--data", "others"], "is not a latchfs data directory"),
        (["--in-memory", "--event-log", "/nodir/x"], "No such file or directory"),
        (["--in-memory", "--ready-file", "/nodir/x"], "/nodir is not a directory"),
    ] {
        let output = folder.run(&[&["serve", "--no-mount"], &arguments[..]].concat());
        let said = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.matches(cause).count(), 1, "{said}");
        assert!(!said.contains(".tmp") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_command_that_deletes_finds_a_server_in_memory_where_it_was_started() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let _server = folder.start(&["serve", "--no-mount", "--in-memory", "--share", "docs"]);
    assert!(folder.run(&["mk", "docs:/dir"]).status.success());
    let runtime = folder.join("runtime");
    let reset = |from: &Folder| {
        let mut command = latchfs(from.path());
        command.args(["state", "reset"]).env("XDG_RUNTIME_DIR", &runtime).output().unwrap()
    };
    let far = reset(&elsewhere);
    assert_eq!(far.status.code(), Some(2));
    assert!(error_text(&far).contains("name it with --control /"), "{}", error_text(&far));
    let near = reset(&folder);
    assert!(near.status.success(), "{}", error_text(&near));
    assert_eq!(error_text(&near), "");
    let left = folder.run(&["ls", "file:docs"]);
    assert!(left.status.success() && text(&left).is_empty(), "{}", text(&left));
}

#[test]
fn a_command_that_deletes_takes_no_server_that_nothing_leads_to() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    // Other commands find the only server of the user.
    assert!(folder.run(&["mk", "docs:/dir"]).status.success());
    for command in [
        &["state", "reset"][..],
        &["state", "restore", "x"],
        &["rm", "-r", "file:docs"],
        &["rm", "--recursive", "docs:/dir"],
        &["shares", "delete", "docs"],
    ] {
        let output = folder.run(command);
        let said = error_text(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.contains("deletes data") && said.contains(&control), "{said}");
    }
    let mut near = latchfs(folder.path());
    let near = near.args(["rm", "-r", "docs:/dir"]).env("LATCHFS_DATA", "data").output().unwrap();
    assert!(near.status.success(), "{}", error_text(&near));
    assert!(folder.ask(&["state", "reset"]).status.success());
}

#[test]
fn the_directory_of_a_server_leads_to_it() {
    let folder = Folder::new();
    let server = rest_only(&folder, &[]);
    let pid = server.child.id();
    let elsewhere = Folder::new();
    let data = folder.join("data");
    let data = data.to_str().unwrap();
    for arguments in [&["status", data, "--json"][..], &["status", "--control", data, "--json"]] {
        assert_eq!(json(&elsewhere.run(arguments))["pid"], pid, "{arguments:?}");
    }
    drop(server);
    let gone = error_text(&elsewhere.run(&["status", "--control", &control(&folder)]));
    assert!(gone.trim_end().ends_with("start it with `latchfs serve`"), "{gone}");
}

#[test]
fn the_usage_in_an_error_is_that_of_the_help() {
    let folder = Folder::new();
    let output = latchfs(folder.path())
        .args(["clock", "advance"])
        .env("LATCHFS_CONTROL", "somewhere")
        .output()
        .unwrap();
    let said = error_text(&output);
    assert!(said.contains("Usage: latchfs clock advance [OPTIONS] <BY>"), "{said}");
}

#[test]
fn the_log_of_events_names_commands_that_have_ended() {
    let folder = Folder::new();
    let _server = rest_only(&folder, &[]);
    let control = control(&folder);
    let open = ["docs:/a.txt", "--disposition", "open-if", "--control", &control];
    let _held = Holding::start(&folder, &open);
    assert!(folder.ask(&["close-handle", "--all"]).status.success());
    let events = text(&folder.ask(&["events"]));
    assert!(events.contains("force-closed") && events.contains("latchfs close-handle"), "{events}");
}

#[test]
fn a_start_removes_the_entries_of_servers_that_were_killed() {
    let folder = Folder::new();
    let list = folder.join("runtime/latchfs");
    fs::create_dir_all(&list).unwrap();
    fs::set_permissions(&list, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(list.join("1"), "/nowhere/control.sock").unwrap();
    let _server = rest_only(&folder, &[]);
    assert!(!list.join("1").exists());
}
