//! The log of events as its users meet it: through the command, and through the file.
mod file;
mod services;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::common::http::ask;
use crate::common::need;
use crate::common::served::{Served, wait_for};
use serde_json::Value;

/// All that `latchfs events` shows, as JSON.
fn events(served: &Served, more: &[&str]) -> Vec<Value> {
    let mut args = vec!["events", "--json", "--control", served.told("control")];
    args.extend(more);
    let output = served.latchfs(&args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The newest event of that kind.
fn newest<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    let found = events.iter().rev().find(|event| event["event"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}

/// A `latchfs hold` that was granted. Ends when dropped.
struct Holding(Child);

impl Holding {
    fn start(served: &Served, path: &str, share: &str) -> Self {
        let mut command = served.latchfs(&["hold", path, "--share", share]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("handle"), "not granted: {line:?}");
        Self(child)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_refusal_on_the_mount_says_who_asked_who_held_and_by_which_rule() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let path = served.mount().join("a.txt");
    fs::write(&path, "hello").unwrap();
    let holding = Holding::start(&served, "latchfs-mnt/a.txt", "none");
    assert_eq!(File::open(&path).unwrap_err().raw_os_error(), Some(libc::EBUSY));
    let all = events(&served, &[]);
    let refused = newest(&all, "refused");
    assert_eq!(refused["path"], "/a.txt");
    assert_eq!(refused["share"], "share");
    assert_eq!(refused["operation"], "open");
    assert_eq!(refused["rule"], "sharing_violation");
    assert_eq!(refused["code"], "SharingViolation");
    assert_eq!(refused["status"], 409);
    assert_eq!(refused["errno"], "EBUSY");
    assert_eq!(refused["pid"], std::process::id());
    let holder = &refused["holder"];
    assert_eq!(holder["pid"], holding.0.id());
    assert_eq!(holder["program"], "latchfs hold");
    assert_eq!(holder["share_mode"], "none");
    assert!(refused["message"].as_str().unwrap().contains("latchfs hold"));
    assert!(refused["time"].as_str().unwrap().ends_with('Z'));
    assert!(all.iter().all(|event| event["event"] != "granted"), "grants were not asked for");
}

#[test]
fn a_program_that_was_refused_is_named_after_it_has_ended() {
    if !need::fuse() || !need::client("cat") {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let path = served.mount().join("a.txt");
    fs::write(&path, "hello").unwrap();
    let _holding = Holding::start(&served, "latchfs-mnt/a.txt", "none");
    let refused = std::process::Command::new("cat").arg(&path).output().unwrap();
    assert!(!refused.status.success());
    let all = events(&served, &[]);
    assert_eq!(newest(&all, "refused")["program"], "cat");
}

#[test]
fn a_refusal_by_rest_carries_the_id_that_the_client_gave_its_request() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth", "--error-names", "service"]);
    fs::write(served.mount().join("a.txt"), "hello").unwrap();
    let _holding = Holding::start(&served, "latchfs-mnt/a.txt", "none");
    let id = [("x-ms-client-request-id", "my-request-7")];
    ask(served.addr(), "GET", "/share/a.txt", &id, b"").refused(409, "SharingViolation");
    let all = events(&served, &[]);
    let refused = newest(&all, "refused");
    let client = refused["client"].as_str().unwrap();
    assert!(client.starts_with("REST 127.0.0.1:") && client.ends_with(", request my-request-7"));
    assert_eq!(refused["code"], "SharingViolation");
    // A deletion that waits has two names, and the log tells the one that is sent.
    let kept = File::create(served.mount().join("b.txt")).unwrap();
    fs::remove_file(served.mount().join("b.txt")).unwrap();
    ask(served.addr(), "GET", "/share/b.txt", &[], b"").refused(409, "DeletePending");
    let all = events(&served, &[]);
    assert_eq!(newest(&all, "refused")["code"], "DeletePending");
    assert_eq!(newest(&all, "delete-pending")["path"], "/b.txt");
    drop(kept);
}

#[test]
fn a_forced_close_and_a_refused_lock_are_told_of() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let path = served.mount().join("a.txt");
    fs::write(&path, "hello").unwrap();
    let _holding = Holding::start(&served, "latchfs-mnt/a.txt", "none");
    let closed = served.latchfs(&["close-handle", "--all"]).output().unwrap();
    assert!(closed.status.success(), "{closed:?}");
    let all = events(&served, &[]);
    let forced = newest(&all, "force-closed");
    assert_eq!(forced["path"], "/a.txt");
    assert_eq!(forced["client"], "the control socket");
    assert!(forced["handle"].as_u64().unwrap() > 0);

    if !need::client("python3") {
        return;
    }
    let lock = |script| {
        let mut command = std::process::Command::new("python3");
        command.args(["-c", script]).current_dir(served.mount()).status().unwrap().success()
    };
    let held = "import fcntl, subprocess, sys; f = open('a.txt', 'r+'); \
                fcntl.lockf(f, fcntl.LOCK_EX); \
                ask = \"import fcntl; fcntl.lockf(open('a.txt', 'r+'), fcntl.LOCK_EX | \
                fcntl.LOCK_NB)\"; \
                sys.exit(0 if subprocess.run([sys.executable, '-c', ask], \
                stderr=subprocess.DEVNULL).returncode else 1)";
    assert!(lock(held), "the second lock was granted");
    let all = events(&served, &[]);
    let refused = newest(&all, "refused");
    assert_eq!(
        (&refused["operation"], &refused["rule"]),
        (&"lock".into(), &"lock_not_granted".into())
    );
    assert_eq!(
        (&refused["code"], &refused["errno"]),
        (&"FileLockConflict".into(), &"EAGAIN".into())
    );
}

#[test]
fn a_path_shows_what_happened_to_it_and_below_it_alone() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    fs::create_dir(served.mount().join("d")).unwrap();
    for name in ["a", "d/b", "d/c"] {
        File::open(served.mount().join(name)).unwrap_err();
        // The mount's kernel finds nothing and asks nothing: REST asks.
        ask(served.addr(), "GET", &format!("/share/{name}"), &[], b"").is(404);
    }
    let paths = |more: &[&str]| -> Vec<String> {
        let all = events(&served, more);
        all.iter().map(|event| event["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&[]), ["/a", "/d/b", "/d/c"]);
    assert_eq!(paths(&["latchfs-mnt/d"]), ["/d/b", "/d/c"]);
    assert_eq!(paths(&["--share-name", "share", "D/B"]), ["/d/b"]);
}

#[test]
fn off_a_terminal_an_event_is_a_line_with_tabs() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    ask(served.addr(), "GET", "/share/a", &[], b"").is(404);
    let output = served.latchfs(&["events"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let cells: Vec<_> = text.trim_end().split('\t').collect();
    assert_eq!(cells.len(), 6, "{text:?}");
    assert_eq!((cells[0], cells[2], cells[3]), ("1", "refused", "share:/a"));
    assert!(cells[5].ends_with("[ResourceNotFound, ENOENT]"), "{text:?}");
}

#[test]
fn a_follower_sees_what_happens_as_it_happens_and_ends_with_the_server() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth", "--events", "all"]);
    let mut command = served.latchfs(&["events", "--json", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    fs::write(served.mount().join("a.txt"), "hello").unwrap();
    let granted = next();
    assert_eq!((&granted["event"], &granted["path"]), (&"granted".into(), &"/a.txt".into()));
    assert_eq!((&granted["access"], &granted["share_mode"]), (&"w".into(), &"rwd".into()));
    let closed = next();
    assert_eq!(closed["event"], "closed");
    assert_eq!((&closed["handle"], &closed["file"]), (&granted["handle"], &granted["file"]));
    ask(served.addr(), "GET", "/share/none", &[], b"").is(404);
    assert_eq!(next()["event"], "refused");
    drop(served);
    let status = wait_for("the follower's end", || child.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

#[test]
fn what_the_log_no_longer_holds_is_counted() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth", "--default-share", "none"]);
    let path = served.mount().join("a.txt");
    drop(File::create(&path).unwrap());
    // Another process: what this one holds looks like closed when another test starts a program,
    // and each refusal would wait for its release.
    let _held = Holding::start(&served, path.to_str().unwrap(), "none");
    let most = latchfs::journal::ring::LASTING_MAX;
    for _ in 0..most {
        File::open(&path).unwrap_err();
    }
    // At the bound all are there, past it the oldest is gone, and that is said.
    let all = events(&served, &[]);
    assert_eq!(all.len(), most);
    let first = all[0]["seq"].as_u64().unwrap();
    File::open(&path).unwrap_err();
    let all = events(&served, &[]);
    assert_eq!(all[0], serde_json::json!({ "lost": 1 }));
    assert_eq!((all.len(), &all[1]["seq"]), (most + 1, &(first + 1).into()));
    let output = served.latchfs(&["events"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 older events"), "{output:?}");
}
