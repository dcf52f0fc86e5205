//! What `mount-scripts/dist` makes, installed and used on a Debian that has Python and Node and no
//! Rust, by a user who is not root. The packages themselves are tested by [`super::python`] and
//! [`super::node`], the image in podman by `scripts::image`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::sandbox::{megabytes, show, succeeded};
use super::{node, python};
use crate::common::need;
use crate::common::ports::free_address;
use crate::common::served::wait_for;

/// The most bytes that the program may have.
const PROGRAM_MAX: u64 = 25_000_000;

/// The user of the Debian, and the one that the image is made for.
const USER: u32 = 1000;
const IMAGE_USER: u32 = 65532;

/// Where the artefacts are in the Debian.
const ARTEFACTS: &str = "/srv/artefacts";

/// The lines of the package's page for jest, with a test.
const JEST: &str = r#"
let latchfs;
beforeAll(async () => { latchfs = await Server.start(); });
afterEach(() => latchfs.reset());
afterAll(() => latchfs.close());

test("busy", async () => {
  const file = await latchfs.put("a.txt", "x");
  await latchfs.holding("a.txt", { access: "rw", share: "none" }, () =>
    expect(file.download()).rejects.toMatchObject({ code: "SharingViolation" }));
  expect((await file.downloadToBuffer()).toString()).toBe("x");
});
"#;

/// What works in jest's default mode, which cannot load Azure's SDK.
const JEST_WITHOUT_SDK: &str = r#"const { Server } = require("latchfs");

jest.mock("@azure/storage-file-share", () => {
  throw new SyntaxError("Cannot use import statement outside a module");
});

test("loads", async () => {
  const latchfs = await Server.start();
  await latchfs.hold("a.txt", { disposition: "open-if" });
  expect(await latchfs.handles()).toHaveLength(1);
  await expect(latchfs.put("a.txt", "x")).rejects.toThrow("--experimental-vm-modules");
  await latchfs.close();
});
"#;

/// A command with another root directory and user, and processes of its own, which end with it.
fn in_root(root: &Path, user: u32) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc"]);
    command.arg(format!("--root={}", root.display()));
    command.args([format!("--setuid={user}"), format!("--setgid={user}")]);
    for (name, _) in std::env::vars_os() {
        // What leads to the registries stays.
        let name = name.to_string_lossy().into_owned();
        if ["LATCHFS_", "PYTEST_", "PYTHON", "CARGO", "RUST"]
            .iter()
            .any(|one| name.starts_with(one))
        {
            command.env_remove(name);
        }
    }
    command.env("PATH", "/usr/bin:/bin").env("HOME", "/srv/user").env("TMPDIR", "/tmp");
    command.env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
    command
}

/// A copy of the Debian that `tests/run --all` makes, with the artefacts in it.
struct Debian {
    folder: tempfile::TempDir,
}

impl Debian {
    fn with(artefacts: &Path) -> Self {
        let debian = Self { folder: tempfile::tempdir().unwrap() };
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(need::cache("debian")).arg(debian.root());
        succeeded(copy);
        // The registries are reached as from this machine.
        for file in ["etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"] {
            fs::copy(Path::new("/").join(file), debian.root().join(file)).unwrap();
        }
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(artefacts).arg(debian.root().join(&ARTEFACTS[1..]));
        succeeded(copy);
        let home = debian.root().join("srv/user");
        fs::create_dir(&home).unwrap();
        chown(home, Some(USER), Some(USER)).unwrap();
        debian
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("debian")
    }

    /// Puts a file into the user's directory.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.root().join("srv/user").join(name), text).unwrap();
    }

    /// Runs lines of the shell as the user.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        let mut command = in_root(&self.root(), USER);
        command.args(["--wd=/srv/user", "sh", "-euc", script]);
        succeeded(command)
    }
}

/// The image, unpacked as an engine does, and what its configuration asks for.
struct Unpacked {
    root: PathBuf,
    config: Value,
}

impl Unpacked {
    fn new(tar: &Path, folder: &Path) -> Self {
        let layout = folder.join("layout");
        let root = folder.join("image");
        // An engine mounts something on the last two.
        for name in [&layout, &root.join("proc"), &root.join("dev")] {
            fs::create_dir_all(name).unwrap();
        }
        let unpack = |tar: &Path, to: &Path| {
            let mut unpack = Command::new("tar");
            unpack.arg("-xf").arg(tar).arg("-C").arg(to);
            succeeded(unpack);
        };
        unpack(tar, &layout);
        let read = |path: &Path| -> Value {
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
        };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let path = layout.join("blobs").join(digest.replace(':', "/"));
            assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"], "{digest}");
            path
        };
        let manifest = read(&blob(&read(&layout.join("index.json"))["manifests"][0]));
        unpack(&blob(&manifest["layers"][0]), &root);
        Self { config: read(&blob(&manifest["config"]))["config"].clone(), root }
    }

    /// A command of the image, with the variables that it has and then these.
    fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        assert_eq!(self.config["User"], format!("{IMAGE_USER}:{IMAGE_USER}"));
        let mut command = in_root(&self.root, IMAGE_USER);
        for variable in self.config["Env"].as_array().unwrap() {
            let (name, value) = variable.as_str().unwrap().split_once('=').unwrap();
            command.env(name, value);
        }
        command.envs(variables.iter().copied());
        command.arg(self.config["Entrypoint"][0].as_str().unwrap()).args(arguments);
        command
    }
}

/// A server and what it started, killed when dropped. The death of `unshare` alone would leave a
/// server that changed its user.
struct Running(Child);

impl Running {
    fn start(mut server: Command) -> Self {
        Self(server.process_group(0).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        drop(self.0.wait());
    }
}

/// Runs the script; its artefacts by the ends of their names, which are checked against their sums.
fn artefacts(folder: &Path) -> impl Fn(&str) -> PathBuf {
    let began = Instant::now();
    let mut dist = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/mount-scripts/dist"));
    dist.arg("--output").arg(folder);
    succeeded(dist);
    show(&format!("mount-scripts/dist: {:.0?}, less what was compiled before", began.elapsed()));
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder);
    assert_eq!(succeeded(check).matches(": OK").count(), 4);
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    move |end| {
        let found = files.iter().find(|path| path.to_str().unwrap().ends_with(end));
        let found = found.unwrap_or_else(|| panic!("{end} is not among {files:?}"));
        show(&format!("{}: {}", found.file_name().unwrap().display(), megabytes(found)));
        found.clone()
    }
}

/// How long the work takes.
fn timed(what: &str, work: impl FnOnce() -> String) -> String {
    let began = Instant::now();
    let said = work();
    show(&format!("{what}: {:.1?}", began.elapsed()));
    said
}

#[test]
#[ignore = "builds a release and installs it on a Debian: tests/run --all makes that"]
fn what_dist_makes_works_on_a_debian_without_rust() {
    if !need::root() || !need::installed(&[&need::cache("debian")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let artefact = artefacts(folder.path());
    let debian = Debian::with(folder.path());
    debian.run("! command -v cargo rustc cc");

    debian.run(&format!("tar -xzf {ARTEFACTS}/latchfs-*-linux.tar.gz"));
    let program = artefact("-linux.tar.gz");
    let said = debian.run("latchfs-*/latchfs --version; stat -c 'size %s' latchfs-*/latchfs");
    assert!(said.contains(env!("CARGO_PKG_VERSION")), "{said} {}", program.display());
    let size = said.lines().find_map(|line| line.strip_prefix("size ")).unwrap();
    show(&format!("the program: {size} bytes"));
    assert!(size.parse::<u64>().unwrap() < PROGRAM_MAX, "{size}");

    artefact("_x86_64.whl");
    debian.write("test_busy.py", python::FIVE_LINES);
    let passed = timed("wheel, with pytest and the SDK, to the first passing test", || {
        debian.run(&format!(
            "python3 -m venv venv
             venv/bin/pip install --quiet {ARTEFACTS}/*.whl pytest==9.2.0 \\
                 azure-storage-file-share==12.27.1
             venv/bin/pytest test_busy.py"
        ))
    });
    assert!(passed.contains("1 passed"), "{passed}");
    debian.run("test -e venv/lib/python3*/site-packages/latchfs-*.dist-info/licenses/LICENSE-MIT");

    artefact("-node.tgz");
    debian.write("busy.test.mjs", node::FIVE_LINES);
    let passed = timed("npm package, with the SDK, to the first passing test", || {
        debian.run(&format!(
            "npm install --silent {ARTEFACTS}/*-node.tgz @azure/storage-file-share@12.31.0
             node --test busy.test.mjs"
        ))
    });
    assert!(passed.contains("pass 1") && passed.contains("fail 0"), "{passed}");
    debian.run("test -e node_modules/latchfs/LICENSE-MIT");
    debian.write("busy.test.mjs", &format!("import {{ Server }} from 'latchfs';\n{JEST}"));
    debian.write("busy.test.cjs", &format!("const {{ Server }} = require('latchfs');\n{JEST}"));
    debian.write("loads.test.cjs", JEST_WITHOUT_SDK);
    let passed = debian.run(
        "npm install --silent jest@30.2.0
         npx jest loads.test.cjs
         NODE_OPTIONS=--experimental-vm-modules npx jest busy",
    );
    assert!(passed.contains("1 passed, 1 total"), "{passed}");
    assert!(passed.contains("2 passed, 2 total"), "{passed}");

    let tar = artefact("-image.tar");
    let admin = free_address().to_string();
    let variables = [("LATCHFS_FILE", "127.0.0.1:0"), ("LATCHFS_ADMIN", &*admin)];
    let passed = timed("image, in the environment of the wheel, to the passing test", || {
        let image = Unpacked::new(&tar, debian.folder.path());
        assert!(image.root.join("licenses/LICENSE-MIT").exists());
        let _server = Running::start(image.command(&variables, &[]));
        wait_for("a healthy image", || {
            let health = image.command(&variables, &["health"]).output().unwrap();
            health.status.success().then_some(())
        });
        debian.write("test_busy.py", python::FIVE_LINES);
        debian.run(&format!("venv/bin/pytest --latchfs-url http://{admin} test_busy.py"))
    });
    assert!(passed.contains("1 passed"), "{passed}");
}
