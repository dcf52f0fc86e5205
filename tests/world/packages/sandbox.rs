//! A project of a user of the packages: a folder of its own, with a look at what it leaves behind.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use latchfs::file::mount::mounts;

use crate::common::need;
use crate::common::served::LATCHFS;

/// How long a runner may take to start its test, and what it left to go: interpreters start slowly
/// on a machine with other work.
const RUNNER_WAIT: Duration = Duration::from_mins(3);

/// A folder with a project, and places for temporary files that nobody else uses.
pub struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project", "temporary", "runtime"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::set_permissions(folder.path().join("runtime"), fs::Permissions::from_mode(0o700))
            .unwrap();
        Self { folder }
    }

    /// Where the project is.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("temporary")
    }

    /// Puts a file into the project.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program that runs in the project and whose temporary files are here.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        for (name, _) in std::env::vars_os() {
            // Python and Node are told nothing by the environment of the tests.
            let name = name.to_string_lossy().into_owned();
            if ["LATCHFS_", "PYTEST_", "PYTHON", "NODE_"].iter().any(|one| name.starts_with(one)) {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.project())
            .env("TMPDIR", self.temporary())
            .env("XDG_RUNTIME_DIR", self.folder.path().join("runtime"))
            .env("NODE_DISABLE_COMPILE_CACHE", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Processes that were started here, by whomever: they have our folder in their environment.
    fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}", self.temporary().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(format!("{name} {}", String::from_utf8_lossy(&line)));
            }
        }
        found
    }

    /// Waits until no process, mount or temporary file of ours is left. A process has no port when
    /// it is gone.
    #[track_caller]
    pub fn assert_clean(&self) {
        let left = || {
            let mut left = self.processes();
            let ours = |path: &Path| path.starts_with(self.folder.path());
            let mounted = mounts::all().into_iter().filter(|mount| ours(&mount.path));
            left.extend(mounted.map(|mount| format!("mount {}", mount.path.display())));
            for place in ["temporary", "runtime"] {
                let files = fs::read_dir(self.folder.path().join(place)).unwrap().flatten();
                let files = files.map(|entry| entry.path().display().to_string());
                left.extend(files.filter(|path| path.contains("latchfs")));
            }
            left
        };
        let end = Instant::now() + RUNNER_WAIT;
        while !left().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(left(), Vec::<String>::new(), "left behind");
    }

    /// Starts a runner that says in the file `started` that its test is on, and kills it with
    /// SIGKILL.
    #[track_caller]
    pub fn start_and_kill(&self, mut runner: Command) {
        let log = fs::File::create(self.project().join("log")).unwrap();
        runner.stdout(log.try_clone().unwrap()).stderr(log);
        let mut runner = Killed(runner.spawn().unwrap());
        let started = self.project().join("started");
        let log = || fs::read_to_string(self.project().join("log")).unwrap();
        let end = Instant::now() + RUNNER_WAIT;
        while !started.exists() {
            if let Some(status) = runner.0.try_wait().unwrap() {
                panic!("the runner ended with {status}: {}", log());
            }
            assert!(Instant::now() < end, "the test of the runner did not start: {}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!self.processes().is_empty());
    }
}

/// A runner, killed with SIGKILL when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What a command wrote, if it has succeeded.
#[track_caller]
pub fn succeeded(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    said(&output)
}

/// What a command wrote.
pub fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Shows a figure past the harness, which drops the output of tests that pass.
pub fn show(line: &str) {
    std::io::stderr().write_all(format!("MEASURED {line}\n").as_bytes()).unwrap();
}

/// The size of a file in MB, in words.
pub fn megabytes(path: &Path) -> String {
    let kilobytes = fs::metadata(path).unwrap().len() / 1_000;
    format!("{}.{} MB", kilobytes / 1_000, kilobytes % 1_000 / 100)
}

/// The program under test, without the symbols that make a debug build large.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let copy = need::cache("packages-binary");
        fs::create_dir_all(&copy).unwrap();
        // A name of its own: another run of the tests may be packing the last one.
        let path = copy.join(format!("latchfs-{}", std::process::id()));
        let stripped = Command::new("strip").arg("-o").arg(&path).arg(LATCHFS).output();
        if !stripped.is_ok_and(|done| done.status.success()) {
            fs::copy(LATCHFS, &path).unwrap();
        }
        path
    })
}
