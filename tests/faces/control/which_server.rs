//! Which server a command asks that names none.

use std::path::Path;
use std::process::Output;

use rustix::process::Signal;

use super::fixture::{Folder, error_text, json, latchfs};

/// The list of the servers that tests here start is their own.
fn run(folder: &Path, runtime: &Path, arguments: &[&str]) -> Output {
    latchfs(folder).args(arguments).env("XDG_RUNTIME_DIR", runtime).output().unwrap()
}

#[test]
fn where_the_data_of_a_stopped_server_is_no_other_server_is_asked() {
    let (folder, elsewhere, runtime) = (Folder::new(), Folder::new(), tempfile::tempdir().unwrap());
    let variables = [("XDG_RUNTIME_DIR", runtime.path().to_str().unwrap())];
    let _server = folder.start_with(&["serve", "--no-mount"], &variables);
    assert!(run(elsewhere.path(), runtime.path(), &["status"]).status.success());
    std::fs::create_dir(elsewhere.join("latchfs-data")).unwrap();
    for command in ["status", "stop"] {
        let refused = run(elsewhere.path(), runtime.path(), &[command]);
        assert_eq!(refused.status.code(), Some(2), "{command}");
        let said = error_text(&refused);
        assert!(said.contains("no server runs on") && said.contains("--control"), "{said}");
    }
    assert!(folder.ask(&["status"]).status.success());
}

#[test]
fn a_server_that_was_killed_and_started_again_is_one_server() {
    let (folder, elsewhere, runtime) = (Folder::new(), Folder::new(), tempfile::tempdir().unwrap());
    let variables = [("XDG_RUNTIME_DIR", runtime.path().to_str().unwrap())];
    let mut killed = folder.start_with(&["serve", "--no-mount"], &variables);
    killed.signal(Signal::KILL);
    killed.wait();
    std::fs::remove_file(folder.join("ready")).unwrap();
    let _server = folder.start_with(&["serve", "--no-mount"], &variables);
    let status = run(elsewhere.path(), runtime.path(), &["status", "--json"]);
    assert_eq!(json(&status)["pid"], folder.ready()["pid"]);
    let entries = std::fs::read_dir(runtime.path().join("latchfs")).unwrap();
    assert_eq!(entries.count(), 1);
}
