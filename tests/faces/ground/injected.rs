//! System calls of the server that fail, one at a time: each call of the operations that publish
//! something, with one of ENOSPC, EIO and EMFILE, or with all three where everything is asked for.
//! strace makes them fail; it finds out first which calls an operation makes. A refused operation
//! has changed nothing, and one that was done is done.
//! Here are the operations of REST; those of the mount are in `injected_mount`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};

use crate::common::http::{Got, ask};
use crate::common::need;
use crate::common::served::{Served, wait_for};

/// Calls on files. Those that event loops and locks live by are not among them.
const CALLS: &str = "openat,openat2,statx,newfstatat,mkdir,mkdirat,linkat,rename,renameat,\
                     renameat2,unlink,unlinkat,rmdir,symlinkat,mknodat,fallocate,pwrite64,pwritev,\
                     pread64,preadv2,ftruncate,fsetxattr,setxattr,fgetxattr,getxattr,\
                     fremovexattr,removexattr,utimensat,fsync,fdatasync,copy_file_range,lseek,\
                     getdents64,fchmod,fchmodat,fchown,fchownat";

const ERRORS: [&str; 3] = ["ENOSPC", "EIO", "EMFILE"];

/// Which of so many equal system calls fail, and how: each with every error where `LATCHFS_FULL` is
/// set. Otherwise each of the first six with one error, which the number of the case turns over, so
/// that every operation meets all of them.
pub fn failures(count: usize, number: usize) -> Vec<(usize, &'static str)> {
    if std::env::var_os("LATCHFS_FULL").is_some() {
        return (1..=count.min(100)).flat_map(|nth| ERRORS.map(|error| (nth, error))).collect();
    }
    (1..=count.min(6)).map(|nth| (nth, ERRORS[(number + nth) % ERRORS.len()])).collect()
}

const LEASE: &str = "11111111-2222-3333-4444-555555555555";

/// strace on all threads of a process, until it is dropped.
pub struct Strace(Child);

impl Strace {
    pub fn attach(pid: u32, args: &[&str]) -> Self {
        let pid = pid.to_string();
        let mut child = Command::new("strace")
            .args(["-f", "-qq", "-p", &pid])
            .args(args)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("all threads to be traced", || {
            assert_eq!(child.try_wait().unwrap(), None, "strace has ended: {args:?}");
            let mut threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            let traced = threads.all(|thread| {
                let status = fs::read_to_string(thread.unwrap().path().join("status"));
                // A thread that has ended meanwhile needs no tracer.
                status.map_or(true, |status| !status.contains("TracerPid:\t0\n"))
            });
            traced.then_some(())
        });
        Self(child)
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        // Asked to, it lets go of the threads; killed, it would take them with it.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }
}

/// A file of its own for each case, with bytes, properties and metadata.
pub struct Case<'a> {
    pub served: &'a Served,
    pub name: String,
}

pub const BYTES: &[u8] = b"0123456789abcdef";

impl<'a> Case<'a> {
    pub fn new(served: &'a Served, number: usize) -> Self {
        let case = Self { served, name: format!("case{number}") };
        let length = BYTES.len().to_string();
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", &length),
            ("x-ms-content-type", "text/plain"),
            ("x-ms-meta-kept", "yes"),
        ];
        case.put("", &headers, b"").is(201);
        case.put_range(BYTES).is(201);
        case
    }

    fn ask(&self, method: &str, rest: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let target = format!("/share/{}{rest}", self.name);
        ask(self.served.addr(), method, &target, headers, body)
    }

    fn put(&self, rest: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        self.ask("PUT", rest, headers, body)
    }

    fn put_range(&self, bytes: &[u8]) -> Got {
        let range = format!("bytes=0-{}", bytes.len() - 1);
        let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
        self.put("?comp=range", &headers, bytes)
    }

    /// A URL of a file beside this one.
    fn url(&self, name: &str) -> String {
        format!("http://{}/devstoreaccount1/share/{name}", self.served.addr())
    }

    /// Everything that can be seen of the case: its file, the names beside it, snapshots. Not the
    /// times and the `ETag`, which move when a change is taken back.
    pub fn state(&self) -> Vec<String> {
        let got = self.ask("GET", "", &[], b"");
        let passing = [
            "date",
            "etag",
            "last-modified",
            "x-ms-request-id",
            "x-ms-file-last-access-time",
            "x-ms-file-last-write-time",
            "x-ms-file-change-time",
        ];
        let mut state: Vec<_> = got
            .headers
            .iter()
            .filter(|(name, _)| !passing.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        state.sort();
        state.push(format!("{} {}", got.status, got.text()));
        let beside = format!("/share?restype=directory&comp=list&prefix={}", self.name);
        let beside = ask(self.served.addr(), "GET", &beside, &[], b"").is(200).text();
        state.extend(beside.split("<Name>").skip(1).map(|name| name[..20].to_owned()));
        let shares = ask(self.served.addr(), "GET", "/?comp=list&include=snapshots", &[], b"");
        let snapshots = shares.is(200).text().matches("<Snapshot>").count();
        state.push(format!("{snapshots} snapshots"));
        state
    }
}

type Operation = (&'static str, fn(&Case<'_>) -> Got);

const OPERATIONS: &[Operation] = &[
    // First: it makes calls for each file there is.
    ("snapshot", |case| {
        ask(case.served.addr(), "PUT", "/share?restype=share&comp=snapshot", &[], b"")
    }),
    ("create", |case| {
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", "9"), ("x-ms-meta-a", "1")];
        case.put("-new", &headers, b"")
    }),
    ("overwrite", |case| {
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", "9"), ("x-ms-meta-a", "1")];
        case.put("", &headers, b"")
    }),
    ("overwrite with bytes", |case| {
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", "9"),
            ("x-ms-write", "update"),
            ("x-ms-range", "bytes=0-4"),
        ];
        case.put("", &headers, b"VWXYZ")
    }),
    ("put range", |case| case.put_range(b"XYZ")),
    ("clear range", |case| {
        case.put("?comp=range", &[("x-ms-write", "clear"), ("x-ms-range", "bytes=0-7")], b"")
    }),
    ("resize", |case| case.put("?comp=properties", &[("x-ms-content-length", "3")], b"")),
    ("copy over", |case| case.put("", &[("x-ms-copy-source", &case.url("source"))], b"")),
    ("copy", |case| case.put("-new", &[("x-ms-copy-source", &case.url("source"))], b"")),
    ("rename", |case| {
        case.put("-new?comp=rename", &[("x-ms-file-rename-source", &case.url(&case.name))], b"")
    }),
    ("metadata", |case| case.put("?comp=metadata", &[("x-ms-meta-b", "2")], b"")),
    ("lease", |case| {
        let headers = [
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", "-1"),
            ("x-ms-proposed-lease-id", LEASE),
        ];
        case.put("?comp=lease", &headers, b"")
    }),
    ("delete", |case| case.ask("DELETE", "", &[], b"")),
    ("mkdir", |case| case.put("-new?restype=directory", &[("x-ms-meta-a", "1")], b"")),
];

/// The calls that an operation makes, and how often a thread makes each at most.
pub fn calls_of(pid: u32, run: impl FnOnce()) -> BTreeMap<String, usize> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let (path, calls) = (log.path().to_str().unwrap(), format!("trace={CALLS}"));
    let tracing = Strace::attach(pid, &["-o", path, "-e", &calls]);
    run();
    drop(tracing);
    let mut by_thread = BTreeMap::<(String, String), usize>::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let mut words = line.splitn(2, ' ');
        let (thread, call) = (words.next().unwrap(), words.next().unwrap_or_default());
        // A call that another thread's line interrupted goes on as `<... statx resumed>`.
        let begun = call.trim_start();
        if let Some((name, _)) = begun.split_once('(').filter(|_| !begun.starts_with('<')) {
            *by_thread.entry((thread.to_owned(), name.to_owned())).or_default() += 1;
        }
    }
    let mut calls = BTreeMap::new();
    for ((_, name), count) in by_thread {
        let most: &mut usize = calls.entry(name).or_default();
        *most = count.max(*most);
    }
    calls
}

#[test]
fn an_operation_one_of_whose_system_calls_fails_is_done_or_changes_nothing() {
    if !need::root() || !need::client("strace") {
        return;
    }
    let served = Served::start(&["--no-auth", "--no-mount"]);
    let length = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    ask(served.addr(), "PUT", "/share/source", &length, b"").is(201);
    let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
    ask(served.addr(), "PUT", "/share/source?comp=range", &range, b"54321").is(201);
    let (mut number, mut refused, mut odd) = (0, 0, Vec::new());
    for (operation, run) in OPERATIONS {
        number += 1;
        let case = Case::new(&served, number);
        let done = || {
            let got = run(&case);
            assert!(got.status < 300, "{got:?}");
        };
        for (call, count) in calls_of(served.pid(), done) {
            for (nth, error) in failures(count, number) {
                number += 1;
                let case = Case::new(&served, number);
                let before = case.state();
                let trace = format!("trace={call}");
                let inject = format!("inject={call}:error={error}:when={nth}");
                let args = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
                let tracing = Strace::attach(served.pid(), &args);
                let got = run(&case);
                drop(tracing);
                let after = case.state();
                let what = format!("{operation}, {call} {nth} fails with {error}");
                if got.status >= 300 {
                    refused += 1;
                }
                if (got.status >= 300) != (before == after) {
                    let told = format!("{} {}", got.status, got.code());
                    odd.push(format!("{what}: {told}\n  {before:?}\n  {after:?}"));
                }
            }
        }
    }
    assert!(
        refused > number / 4,
        "only {refused} of {number} were refused: was anything injected?"
    );
    assert!(odd.is_empty(), "{} of {number}:\n{}", odd.len(), odd.join("\n"));
}

#[test]
fn a_change_of_a_name_whose_flush_fails_is_undone_or_told_as_done() {
    if !need::root() || !need::client("strace") {
        return;
    }
    let served = Served::start(&["--no-auth", "--no-mount", "--sync", "always"]);
    let ask = |method: &str, target: &str, headers: &[(&str, &str)]| {
        ask(served.addr(), method, &format!("/share/{target}"), headers, b"")
    };
    let file = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    for name in ["gone", "old"] {
        ask("PUT", name, &file).is(201);
    }
    ask("PUT", "gone-dir?restype=directory", &[]).is(201);
    let url = format!("http://{}/devstoreaccount1/share/old", served.addr());
    let calls = "fsync,fdatasync";
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:error=EIO"));
    let failing = Strace::attach(served.pid(), &["-o", "/dev/null", "-e", &trace, "-e", &inject]);
    // A new name is taken back.
    ask("PUT", "new", &file).refused(500, "InternalError");
    ask("PUT", "new-dir?restype=directory", &[]).refused(500, "InternalError");
    // A name that is gone or moved stays so.
    ask("DELETE", "gone", &[]).is(202);
    ask("DELETE", "gone-dir?restype=directory", &[]).is(202);
    ask("PUT", "moved?comp=rename", &[("x-ms-file-rename-source", &url)]).is(200);
    drop(failing);
    for name in ["new", "gone", "old"] {
        ask("GET", name, &[]).refused(404, "ResourceNotFound");
    }
    for name in ["new-dir", "gone-dir"] {
        let got = ask("GET", &format!("{name}?restype=directory"), &[]);
        got.refused(404, "ResourceNotFound");
    }
    ask("GET", "moved", &[]).is(200);
    let events = served.latchfs(&["events", "--json"]).output().unwrap();
    let events = String::from_utf8(events.stdout).unwrap();
    let removed: Vec<_> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["event"] == "removed")
        .map(|event| event["path"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(removed, ["/gone", "/gone-dir"], "{events}");
}
