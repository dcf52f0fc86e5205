//! `latchfs run`: whom the policy covers, when it ends, how the command's end is passed on.

use std::fs;
use std::process::{Child, Output, Stdio};

use rustix::process::Signal;

use super::fixture::{Folder, error_text, is_busy, latchfs, wait_for};
use crate::common::need;

fn run(folder: &Folder, script: &str) -> Output {
    let mut command = latchfs(folder.path());
    command.args(["run", "--share", "none", "--mount", "mnt", "--", "sh", "-c", script]);
    command.output().unwrap()
}

struct Running(Child);

impl Running {
    fn start(folder: &Folder, script: &str) -> Self {
        let mut command = latchfs(folder.path());
        command.args(["run", "--share", "none", "--mount", "mnt", "--", "sh", "-c", script]);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn children_and_grandchildren_open_with_the_share_mode_and_others_do_not() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    folder.file("a.txt", "hello");
    let child = run(&folder, "exec 3<mnt/a.txt; cat mnt/a.txt");
    assert_eq!(child.status.code(), Some(1));
    assert!(error_text(&child).contains("busy"), "{}", error_text(&child));
    let nested = "sh -c 'exec 3<mnt/a.txt; sh -c \"cat mnt/a.txt\"'";
    assert!(error_text(&run(&folder, nested)).contains("busy"));
    let outside = std::process::Command::new("sh")
        .args(["-c", "exec 3<mnt/a.txt; cat mnt/a.txt"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(outside.stdout, b"hello");
}

#[test]
fn an_orphan_of_the_tree_is_covered() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    fs::write(
        folder.join("orphan.sh"),
        "while [ -e orphan.sh ] && [ \"$(cut -d' ' -f4 /proc/$$/stat)\" != \"$RUN\" ]; do :; done\n\
         exec 3<mnt/a.txt\n\
         touch opened\n\
         while [ -e orphan.sh ] && [ ! -e go ]; do sleep 0.01; done\n",
    )
    .unwrap();
    // The subshell ends at once: what it started is left to `latchfs run`.
    let script = "export RUN=$PPID; (sh orphan.sh &); \
                  while [ -e orphan.sh ] && [ ! -e go ]; do sleep 0.01; done";
    let running = Running::start(&folder, script);
    wait_for("the orphan's open", || folder.join("opened").exists().then_some(()));
    assert!(is_busy(&file));
    fs::write(folder.join("go"), "").unwrap();
    drop(running);
    wait_for("the orphan's end", || (!is_busy(&file)).then_some(()));
}

#[test]
fn the_policy_ends_with_the_command_that_asked_for_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    let file = folder.file("a.txt", "hello");
    // It outlives `run`, and ends when the file `up` is gone, with the folder at the latest.
    let script = "touch up; while [ -e up ] && [ ! -e go ]; do sleep 0.01; done; \
                  exec 3<mnt/a.txt; touch opened; while [ -e up ]; do sleep 0.01; done";
    let mut running = Running::start(&folder, script);
    wait_for("the command", || folder.join("up").exists().then_some(()));
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    fs::write(folder.join("go"), "").unwrap();
    wait_for("the open", || folder.join("opened").exists().then_some(()));
    assert!(!is_busy(&file));
    fs::remove_file(folder.join("up")).unwrap();
}

#[test]
fn the_command_s_end_is_passed_on() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let _server = folder.serve(&[]);
    assert_eq!(run(&folder, "exit 7").status.code(), Some(7));
    assert_eq!(run(&folder, "exit 0").status.code(), Some(0));
    assert_eq!(run(&folder, "kill -9 $$").status.code(), Some(137));
    let arguments = ["run", "--share", "none", "--mount", "mnt", "--", "no-such-program"];
    assert_eq!(folder.run(&arguments).status.code(), Some(127));
    let no_mode = folder.run(&["run", "--share", "q", "--mount", "mnt", "--", "true"]);
    assert_eq!(no_mode.status.code(), Some(2));
    let mut running = Running::start(&folder, "touch up; while [ -e up ]; do sleep 0.01; done");
    wait_for("the command", || folder.join("up").exists().then_some(()));
    let pid = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(wait_for("the end", || running.0.try_wait().unwrap()).code(), Some(143));
}
