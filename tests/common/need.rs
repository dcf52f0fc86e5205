//! Decides what becomes of a test whose needs are not met on this machine: it is skipped by name,
//! or it fails where the run said that the need must be there.
//!
//! ```text
//! if !need::fuse() {
//!     return;
//! }
//! ```
//!
//! `LATCHFS_REQUIRE=fuse,clients` names the needs that must be there; `tests/run` sets it, so a
//! skip there is a failure and not a line that nobody reads.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The variable that lists what must be there.
pub const REQUIRE: &str = "LATCHFS_REQUIRE";

/// Something that a test cannot do without and that a machine may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A FUSE mount can be made.
    Fuse,
    /// Programs and SDKs of others: Python, Node, az, azcopy, rclone.
    Clients,
    /// The tests run as root.
    Root,
    /// Containers can be built and run with podman.
    Podman,
    /// A container engine answers the client `docker`.
    Docker,
}

impl Need {
    const ALL: [Self; 5] = [Self::Fuse, Self::Clients, Self::Root, Self::Podman, Self::Docker];

    fn word(self) -> &'static str {
        match self {
            Self::Fuse => "fuse",
            Self::Clients => "clients",
            Self::Root => "root",
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a test does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All it needs is there.
    Run,
    /// It returns, having said this.
    Skip(String),
    /// It fails with this.
    Fail(String),
}

/// Reads the list of `LATCHFS_REQUIRE`. An unknown word is an error: a misspelt need would
/// otherwise turn a failure back into a skip.
pub fn parse_required(list: &str) -> Result<Vec<Need>, String> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| {
            Need::ALL.into_iter().find(|need| need.word() == word).ok_or_else(|| {
                let known = Need::ALL.map(Need::word).join(", ");
                format!("{REQUIRE} names '{word}'; known are {known}")
            })
        })
        .collect()
}

/// The verdict on `test`, which asked for `need` and found `present`.
pub fn decide(test: &str, need: Need, present: Result<(), String>, required: &[Need]) -> Verdict {
    match present {
        Ok(()) => Verdict::Run,
        Err(why) if required.contains(&need) => {
            Verdict::Fail(format!("{test} needs {need}, which {REQUIRE} says is there: {why}"))
        }
        Err(why) => Verdict::Skip(format!("SKIPPED {test}: {why}")),
    }
}

/// True if the calling test may go on; false if it is to return. `probe` says what is missing.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn met(need: Need, probe: impl FnOnce() -> Result<(), String>) -> bool {
    let required = match parse_required(&env::var(REQUIRE).unwrap_or_default()) {
        Ok(required) => required,
        Err(why) => panic!("{why}"),
    };
    match decide(&test_name(Location::caller()), need, probe(), &required) {
        Verdict::Run => true,
        Verdict::Skip(line) => {
            say(&line);
            false
        }
        Verdict::Fail(line) => panic!("{line}"),
    }
}

/// A FUSE mount can be made.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn fuse() -> bool {
    met(Need::Fuse, || {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse cannot be opened: {error}"))?;
        if is_root() {
            return Ok(());
        }
        on_path("fusermount3").map_err(|why| format!("{why} (install fuse3)"))
    })
}

/// The client `program` is on the `PATH`.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn client(program: &str) -> bool {
    met(Need::Clients, || on_path(program))
}

/// Where `tests/run` puts a client.
pub fn cache(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.cache").join(path)
}

/// The Python that has the SDK.
pub fn python() -> PathBuf {
    cache("clients/bin/python")
}

/// All of these are there, where `tests/run` puts them.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn installed(files: &[&Path]) -> bool {
    met(Need::Clients, || match files.iter().find(|file| !file.exists()) {
        None => Ok(()),
        Some(file) => Err(format!("{} is not installed: tests/run does that", file.display())),
    })
}

/// The tests run as root.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn root() -> bool {
    met(Need::Root, || if is_root() { Ok(()) } else { Err("not running as root".to_owned()) })
}

/// Containers can be built and run.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn podman() -> bool {
    met(Need::Podman, || {
        on_path("podman")?;
        if is_root() { Ok(()) } else { Err("not running as root".to_owned()) }
    })
}

/// Containers can be run by libraries that call docker's API.
#[must_use = "the test is to return if the need is not met"]
#[track_caller]
pub fn docker() -> bool {
    met(Need::Docker, || {
        on_path("docker")?;
        let version = Command::new("docker").arg("version").output();
        let version = version.map_err(|error| format!("docker: {error}"))?;
        if version.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&version.stderr).into_owned();
        Err(said.lines().next().unwrap_or("docker fails and does not say why").to_owned())
    })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Looks for `program` in the directories of `PATH`.
pub fn on_path(program: &str) -> Result<(), String> {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|dir| is_program(&dir.join(program))) {
        Ok(())
    } else {
        Err(format!("{program} is not on the PATH"))
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The harness names each test's thread after the test. For a thread that it did not name the
/// place of the call must do.
fn test_name(caller: &Location<'_>) -> String {
    match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("the test at {}:{}", caller.file(), caller.line()),
    }
}

/// Writes past the harness: it captures what the print macros write and would drop it, since the
/// test passes. One write a line, so that lines of parallel tests do not mix.
fn say(line: &str) {
    let written = std::io::stderr().write_all(format!("{line}\n").as_bytes());
    if let Err(error) = written {
        panic!("a skip could not be shown ({error}): {line}");
    }
}
