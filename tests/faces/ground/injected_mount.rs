//! System calls of the server that fail under a call on the mount: the call is refused with that
//! error and has changed nothing, or it is done.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use latchfs::client;
use rustix::fs::{FallocateFlags, FlockOperation, XattrFlags};

use super::errno;
use super::injected::{Case, Strace, calls_of, failures};
use crate::common::need;
use crate::common::served::{Served, wait_for};

/// A case on the mount, and what a call needs that was opened before.
struct Mounted<'a> {
    case: Case<'a>,
    open: Option<File>,
}

impl<'a> Mounted<'a> {
    fn new(served: &'a Served, number: usize, open: bool) -> Self {
        let case = Case::new(served, number);
        let at = Self { case, open: None };
        let open = open.then(|| {
            let path = at.path("");
            OpenOptions::new().read(true).write(true).open(path).unwrap()
        });
        Self { open, ..at }
    }

    /// A path beside the file of the case.
    fn path(&self, suffix: &str) -> PathBuf {
        self.case.served.mount().join(format!("{}{suffix}", self.case.name))
    }

    fn open(&self) -> &File {
        self.open.as_ref().unwrap()
    }

    /// What REST says, and what lies in the directory behind the mount.
    fn state(&self) -> Vec<String> {
        let mut state = self.case.state();
        for entry in fs::read_dir(self.case.served.data()).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name != self.case.name && !name.starts_with(&format!("{}-", self.case.name)) {
                continue;
            }
            let seen = fs::symlink_metadata(entry.path()).unwrap();
            let bytes = if seen.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            let mut value = [0; 64];
            let attribute = rustix::fs::lgetxattr(entry.path(), "user.a", &mut value[..]);
            // The time of the last change moves when a change is taken back.
            let times = if seen.mtime() < 1_000 { "set" } else { "" };
            state.push(format!(
                "{name}: {:o}, {} links, {attribute:?}, {bytes:?}, {} blocks {times}",
                seen.mode(),
                seen.nlink(),
                seen.blocks(),
            ));
        }
        state.sort();
        state
    }
}

/// A descriptor that the call made is closed when the server is no longer traced.
type Done = io::Result<Option<File>>;

/// What is called, whether the file is open before, the call.
type Call = (&'static str, bool, fn(&Mounted<'_>) -> Done);

fn none(done: io::Result<()>) -> Done {
    done.map(|()| None)
}

const CALLS: &[Call] = &[
    ("create", false, |at| File::create_new(at.path("-new")).map(Some)),
    ("overwrite", false, |at| File::create(at.path("")).map(Some)),
    ("write", true, |at| none(at.open().write_all_at(b"XYZ", 3))),
    ("write past the end", true, |at| none(at.open().write_all_at(b"XYZ", 100_000))),
    ("reserve", true, |at| {
        none(
            rustix::fs::fallocate(at.open(), FallocateFlags::empty(), 0, 200_000)
                .map_err(Into::into),
        )
    }),
    ("cut by descriptor", true, |at| none(at.open().set_len(3))),
    ("chmod", false, |at| {
        none(fs::set_permissions(at.path(""), fs::Permissions::from_mode(0o600)))
    }),
    ("set times", true, |at| {
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(100);
        none(at.open().set_times(fs::FileTimes::new().set_modified(then).set_accessed(then)))
    }),
    ("set an attribute", false, |at| {
        let set = rustix::fs::setxattr(at.path(""), "user.a", b"value", XattrFlags::empty());
        none(set.map_err(Into::into))
    }),
    ("mkdir", false, |at| none(fs::create_dir(at.path("-new")))),
    ("symlink", false, |at| none(std::os::unix::fs::symlink("target", at.path("-new")))),
    ("link", false, |at| none(fs::hard_link(at.path(""), at.path("-new")))),
    ("rename", false, |at| none(fs::rename(at.path(""), at.path("-new")))),
    ("unlink", false, |at| none(fs::remove_file(at.path("")))),
    ("unlink while open", true, |at| none(fs::remove_file(at.path("")))),
    ("mark", true, |at| none(client::set_delete(at.open(), true))),
    ("lock", true, |at| {
        let locked = rustix::fs::fcntl_lock(at.open(), FlockOperation::NonBlockingLockExclusive);
        none(locked.map_err(Into::into))
    }),
];

fn number_of(error: &str) -> i32 {
    match error {
        "ENOSPC" => libc::ENOSPC,
        "EIO" => libc::EIO,
        "EMFILE" => libc::EMFILE,
        other => unreachable!("{other} is not injected"),
    }
}

/// Each call with each of its system calls failing; what was refused, and what was odd.
fn inject(served: &Served, calls: &[Call]) -> (usize, String) {
    let (mut number, mut refused, mut odd) = (0, 0, String::new());
    for (what, open, call) in calls {
        number += 1;
        let at = Mounted::new(served, number, *open);
        let mut kept = None;
        let made = calls_of(served.pid(), || kept = call(&at).unwrap());
        drop(kept);
        for (name, count) in made {
            for (nth, error) in failures(count, number) {
                number += 1;
                let at = Mounted::new(served, number, *open);
                let before = at.state();
                let trace = format!("trace={name}");
                let inject = format!("inject={name}:error={error}:when={nth}");
                let args = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
                let tracing = Strace::attach(served.pid(), &args);
                let done = call(&at);
                drop(tracing);
                let after = at.state();
                let told = errno(done.as_ref().map(drop).map_err(copied));
                refused += usize::from(told != 0);
                let known = [0, number_of(error)].contains(&told);
                if !known || (told != 0) != (before == after) {
                    let _ = writeln!(
                        odd,
                        "{what}, {name} {nth} fails with {error}: {told}\n  {before:?}\n  {after:?}"
                    );
                }
            }
        }
    }
    (refused, odd)
}

fn copied(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error)
}

fn check(arguments: &[&str]) {
    if !need::fuse() || !need::root() || !need::client("strace") {
        return;
    }
    let served = Served::start(&[&["--no-auth"], arguments].concat());
    let (refused, odd) = inject(&served, CALLS);
    assert!(refused > 15, "only {refused} were refused: was anything injected?");
    assert!(odd.is_empty(), "{odd}");
    wait_for("no handle to be left", || {
        let output = served.latchfs(&["handles"]).output().unwrap();
        output.stdout.is_empty().then_some(())
    });
}

#[test]
fn a_call_one_of_whose_system_calls_fails_is_done_or_changes_nothing() {
    check(&[]);
}

#[test]
fn a_call_without_passthrough_one_of_whose_system_calls_fails_is_done_or_changes_nothing() {
    check(&["--no-passthrough"]);
}
