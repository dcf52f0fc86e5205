//! The Python package: wheels, the five-line test, and what a run of pytest leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use super::sandbox::{Sandbox, binary, megabytes, said, show, succeeded};
use crate::common::need;

/// The environments that `tests/run` makes: the default Python, and the oldest and newest here.
pub const ENVIRONMENTS: [&str; 3] = ["packages", "packages-oldest", "packages-newest"];

/// The five lines, as the page for users has them.
pub const FIVE_LINES: &str = "\
import pytest
from azure.core.exceptions import ResourceExistsError


def test_busy(latchfs):
    f = latchfs.put(\"a.txt\", b\"x\")
    with latchfs.hold(\"a.txt\", access=\"rw\", share=\"none\"), pytest.raises(ResourceExistsError):
        f.download_file()
    assert f.download_file().readall() == b\"x\"
";

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python").join(path)
}

fn python(environment: &str) -> PathBuf {
    need::cache(environment).join("bin/python")
}

#[track_caller]
pub fn installed() -> bool {
    need::installed(&[&python(ENVIRONMENTS[0])])
}

/// Builds a wheel into a folder, in these circumstances.
fn build(folder: &Path, variables: &[(&str, &str)]) -> PathBuf {
    let mut pip = Command::new(python(ENVIRONMENTS[0]));
    let tools = need::cache(ENVIRONMENTS[0]).join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    pip.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"])
        .arg("--wheel-dir")
        .arg(folder)
        .arg(source(""))
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().copied());
    succeeded(pip);
    let built: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [wheel] = &*built else { panic!("one wheel, not {built:?}") };
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    let expected = format!("latchfs-{}-py3-none-linux_", env!("CARGO_PKG_VERSION"));
    assert!(name.starts_with(&expected), "{name}");
    wheel.clone()
}

/// The wheel with the program under test, built once.
fn wheel() -> &'static Path {
    static WHEEL: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, wheel) = WHEEL.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let wheel = build(folder.path(), &[("LATCHFS_BINARY", binary().to_str().unwrap())]);
        let took = began.elapsed();
        show(&format!("wheel of the debug build: {}, built in {took:.1?}", megabytes(&wheel)));
        (folder, wheel)
    });
    wheel
}

/// A project with a new environment that has the wheel, and that sees the SDK and pytest.
pub struct Project {
    pub sandbox: Sandbox,
    python: PathBuf,
}

impl Project {
    fn new(environment: &str) -> Self {
        let sandbox = Sandbox::new();
        let home = sandbox.project().join("venv");
        let mut make = sandbox.command(python(environment));
        make.args(["-m", "venv", "--without-pip"]).arg(&home);
        succeeded(make);
        let project = Self { sandbox, python: home.join("bin/python") };
        let places = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let mut ask = project.sandbox.command(python(environment));
        ask.args(["-c", places]);
        let theirs = ask.output().unwrap().stdout;
        let mut ask = project.python();
        ask.args(["-c", places]);
        let ours = String::from_utf8(ask.output().unwrap().stdout).unwrap();
        // What comes from a registry is there already; only the wheel is installed.
        fs::write(Path::new(ours.trim()).join("others.pth"), theirs).unwrap();
        project
    }

    fn python(&self) -> Command {
        self.sandbox.command(&self.python)
    }

    fn install(&self, environment: &str, wheel: &Path) {
        let mut pip = self.sandbox.command(python(environment));
        pip.args(["-m", "pip", "--python"]).arg(&self.python);
        pip.args(["install", "--quiet", "--no-deps", "--no-index"]).arg(wheel);
        succeeded(pip);
    }

    pub fn with_wheel(environment: &str) -> Self {
        let project = Self::new(environment);
        project.install(environment, wheel());
        project
    }

    pub fn pytest(&self, arguments: &[&str]) -> Command {
        let mut pytest = self.python();
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(arguments);
        pytest
    }
}

#[test]
fn the_five_lines_pass_with_the_wheel_on_the_oldest_and_the_newest_python() {
    if !installed() {
        return;
    }
    let wheel = wheel();
    for environment in ENVIRONMENTS.iter().filter(|name| python(name).exists()) {
        let project = Project::new(environment);
        project.sandbox.write("test_busy.py", FIVE_LINES);
        let began = Instant::now();
        project.install(environment, wheel);
        let install = began.elapsed();
        let passed = succeeded(project.pytest(&["test_busy.py"]));
        assert!(passed.contains("1 passed"), "{passed}");
        let mut version = project.python();
        version.arg("--version");
        let version = String::from_utf8(version.output().unwrap().stdout).unwrap();
        let (version, all) = (version.trim(), began.elapsed());
        show(&format!("{version}: wheel installed in {install:.1?}, with its test {all:.1?}"));
        project.sandbox.assert_clean();
    }
}

#[test]
fn maturin_builds_the_same_wheel_from_the_repository() {
    if !installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The profile and the folder of this build: the binary is there, and nothing is compiled twice.
    let target = Path::new(crate::common::served::LATCHFS).parent().unwrap().parent().unwrap();
    let arguments = ("MATURIN_PEP517_ARGS", "--profile dev --strip false");
    let offline = ("CARGO_NET_OFFLINE", "true");
    let began = Instant::now();
    let built =
        build(folder.path(), &[arguments, offline, ("CARGO_TARGET_DIR", target.to_str().unwrap())]);
    show(&format!("wheel by maturin: {} in {:.1?}", megabytes(&built), began.elapsed()));
    let names = |wheel: &Path| {
        let mut list = Command::new(python(ENVIRONMENTS[0]));
        list.args(["-m", "zipfile", "-l"]).arg(wheel);
        let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
        let mut names: Vec<_> = listed
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            // maturin adds a bill of materials and the licences.
            .filter(|name| !name.contains("/sboms/") && !name.contains("/licenses/"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&built), names(wheel()));
    let project = Project::new(ENVIRONMENTS[0]);
    project.install(ENVIRONMENTS[0], &built);
    project.sandbox.write("test_busy.py", FIVE_LINES);
    let passed = succeeded(project.pytest(&["test_busy.py"]));
    assert!(passed.contains("1 passed"), "{passed}");
}

#[test]
fn the_tests_of_the_package_pass_and_its_types_are_strict() {
    if !installed() {
        return;
    }
    let project = Project::with_wheel(ENVIRONMENTS[0]);
    let tests = source("tests");
    let passed = succeeded(project.pytest(&[tests.to_str().unwrap()]));
    assert!(passed.contains(" passed") && !passed.contains("skipped"), "{passed}");
    let mut mypy = project.sandbox.command(python(ENVIRONMENTS[0]));
    mypy.args(["-m", "mypy", "--strict", "--cache-dir", "/dev/null", "--config-file"]);
    mypy.arg(source("pyproject.toml")).arg("--python-executable").arg(&project.python);
    mypy.current_dir(source(""));
    succeeded(mypy);
    project.sandbox.assert_clean();
}

const MANY: &str = r#"
import os, pathlib, pytest
from azure.core.exceptions import ResourceExistsError

seen = {}

@pytest.mark.parametrize("round", range(200))
def test_round(latchfs, round):
    f = latchfs.file("a.txt")
    assert not f.exists()
    latchfs.put("a.txt", b"x")
    hold = latchfs.hold("a.txt", access="rw", share="none")
    with pytest.raises(ResourceExistsError):
        f.download_file()
    latchfs.gate("Get Blob", "c/*")
    latchfs.fault("Get Blob", "c/*", drop="before")
    latchfs.clock.advance(60)
    descriptors = len(os.listdir(f"/proc/{latchfs.pid}/fd"))
    own = len(os.listdir("/proc/self/fd"))
    files = sum(1 for _ in pathlib.Path(os.environ["TMPDIR"]).rglob("*"))
    threads = len(os.listdir(f"/proc/{latchfs.pid}/task"))
    now = dict(pid=latchfs.pid, descriptors=descriptors, own=own, files=files, threads=threads)
    if round == 20:
        seen.update(now)
    if round == 199:
        assert now["pid"] == seen["pid"]
        for name in ("descriptors", "own", "files", "threads"):
            assert now[name] <= seen[name] + 10, (name, seen, now)
"#;

#[test]
fn two_hundred_tests_in_one_process_start_from_nothing_and_leave_nothing() {
    if !installed() {
        return;
    }
    let project = Project::with_wheel(ENVIRONMENTS[0]);
    project.sandbox.write("test_many.py", MANY);
    let began = Instant::now();
    let passed = succeeded(project.pytest(&["test_many.py"]));
    assert!(passed.contains("200 passed"), "{passed}");
    show(&format!("200 tests of pytest with a reset each: {:.1?}", began.elapsed()));
    project.sandbox.assert_clean();
}

const WORKERS: &str = r#"
import os, pathlib, pytest
from azure.core.exceptions import ResourceExistsError

@pytest.mark.parametrize("round", range(80))
def test_round(latchfs, round):
    worker = os.environ["PYTEST_XDIST_WORKER"]
    with pathlib.Path("servers").open("a") as out:
        out.write(f"{worker} {latchfs.pid}\n")
    f = latchfs.file("a.txt")
    assert not f.exists()
    latchfs.put("a.txt", worker.encode())
    with latchfs.hold("a.txt", share="none"), pytest.raises(ResourceExistsError):
        f.download_file()
    assert f.download_file().readall() == worker.encode()
"#;

#[test]
fn each_worker_of_xdist_has_a_server_of_its_own() {
    if !installed() {
        return;
    }
    let project = Project::with_wheel(ENVIRONMENTS[0]);
    project.sandbox.write("test_workers.py", WORKERS);
    let began = Instant::now();
    let passed = succeeded(project.pytest(&["-n", "4", "test_workers.py"]));
    assert!(passed.contains("80 passed"), "{passed}");
    show(&format!("80 tests of pytest-xdist in 4 workers: {:.1?}", began.elapsed()));
    let lines = fs::read_to_string(project.sandbox.project().join("servers")).unwrap();
    let pairs: std::collections::BTreeSet<_> =
        lines.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let count = |which: fn(&(&str, &str)) -> String| {
        pairs.iter().map(which).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(count(|pair| pair.0.to_owned()), 4, "{pairs:?}");
    assert_eq!(count(|pair| pair.1.to_owned()), 4, "{pairs:?}");
    assert_eq!(pairs.len(), 4, "{pairs:?}");
    project.sandbox.assert_clean();
}

const ENDLESS: &str = r#"
import pathlib, signal, subprocess, sys, threading

def test_endless(latchfs):
    if latchfs.mount is not None:
        (latchfs.mount / "b.txt").write_bytes(b"x")
    f = latchfs.put("a.txt", b"x")
    latchfs.hold("a.txt", share="none")
    gate = latchfs.gate("Get File Properties", "**")
    threading.Thread(target=f.get_file_properties, daemon=True).start()
    gate.wait()
    with open("started", "x"):
        signal.pause()
"#;

#[test]
fn a_runner_that_is_killed_leaves_no_server_mount_or_file() {
    if !installed() {
        return;
    }
    let project = Project::with_wheel(ENVIRONMENTS[0]);
    project.sandbox.write("test_endless.py", ENDLESS);
    let mounts = Path::new("/dev/fuse").exists();
    let mount = format!("latchfs_mount={mounts}");
    project.sandbox.start_and_kill(project.pytest(&["-o", &mount, "test_endless.py"]));
    project.sandbox.assert_clean();
    fs::remove_file(project.sandbox.project().join("started")).unwrap();
    project.sandbox.start_and_kill(project.pytest(&["-n", "2", "test_endless.py"]));
    project.sandbox.assert_clean();
}

#[test]
fn a_server_that_cannot_be_found_or_started_is_an_error_in_one_line() {
    if !installed() {
        return;
    }
    let project = Project::with_wheel(ENVIRONMENTS[0]);
    let script = "import latchfs\ntry: latchfs.Server()\nexcept latchfs.StartError as e: print(e)";
    let mut run = project.python();
    run.args(["-c", script]).env("LATCHFS_BINARY", "/nowhere/latchfs");
    let output = run.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text.trim(),
        "LATCHFS_BINARY=/nowhere/latchfs: no program there",
        "{}",
        said(&output)
    );
}
