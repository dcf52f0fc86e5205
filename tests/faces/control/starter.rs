//! `--until-stdin-closes`: a server that ends with the process that started it, however that ends,
//! and `--mount-dir`, a mount point that goes with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::fixture::{Folder, error_text, is_mounted, latchfs, wait_for};
use super::start::memory_of;
use crate::common::need;

/// A process that holds the other end of a server's standard input, as a test runner does. Killed
/// with SIGKILL when dropped.
struct Runner(Child);

impl Runner {
    fn start() -> Self {
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").stdin(Stdio::null()).stdout(Stdio::piped());
        Self(sleep.spawn().unwrap())
    }

    /// The end of the pipe that a server reads.
    fn pipe(&mut self) -> Stdio {
        self.0.stdout.take().unwrap().into()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a server with this input and reads the line that says where everything is.
fn serve(folder: &Folder, input: Stdio, arguments: &[&str]) -> (Child, serde_json::Value) {
    let mut child = latchfs(folder.path())
        .args(["serve", "--in-memory", "--json", "--until-stdin-closes"])
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line:?}"));
    (child, told)
}

#[test]
fn a_server_whose_starter_was_killed_ends_and_leaves_no_mount_and_no_data() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let mount = folder.join("at");
    let mut runner = Runner::start();
    let arguments = ["--mount-dir", "at", "--share", "share"];
    let (mut server, told) = serve(&folder, runner.pipe(), &arguments);
    assert_eq!(told["mounts"]["share"], mount.to_str().unwrap());
    fs::write(mount.join("a.txt"), "hello").unwrap();
    let memory = memory_of(server.id());
    assert_eq!(memory.len(), 1);
    assert_eq!(server.try_wait().unwrap(), None);
    drop(runner);
    assert!(wait_for("the server's end", || server.try_wait().unwrap()).success());
    assert!(!is_mounted(&mount) && !mount.exists());
    assert!(!is_mounted(&memory[0]) && !memory[0].exists());
}

#[test]
fn a_server_ends_when_its_starter_closes_the_pipe() {
    let folder = Folder::new();
    let (input, output) = std::io::pipe().unwrap();
    let (mut server, told) = serve(&folder, input.into(), &["--no-mount"]);
    assert!(told["connection_string"].is_string());
    drop(output);
    assert!(wait_for("the server's end", || server.try_wait().unwrap()).success());
    assert!(!std::path::Path::new(told["control"].as_str().unwrap()).exists());
}

#[test]
fn an_input_that_cannot_tell_of_its_starter_is_refused() {
    let folder = Folder::new();
    let refused = folder.run(&["serve", "--no-mount", "--until-stdin-closes"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = error_text(&refused);
    assert!(said.contains("neither a pipe nor a socket") && said.lines().count() == 1, "{said}");
    assert!(!folder.join("latchfs-data").exists());
    let refused = folder.run(&["serve", "--daemon", "--until-stdin-closes"]);
    assert!(error_text(&refused).contains("cannot be used with"), "{}", error_text(&refused));
}
