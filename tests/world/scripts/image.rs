//! The container image: built by `build-image`, and run as users of containers run it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::mount::UnmountFlags;

use super::{err, out, script};
use crate::common::http::ask;
use crate::common::need;
use crate::common::served::{LATCHFS, wait_for};

/// The most bytes that the image of a release may have.
const SIZE_MAX: u64 = 25_000_000;

/// An image of the program under test. Removed when dropped.
struct Image {
    tag: String,
}

/// A running container. Removed when dropped.
struct Container(String);

fn podman(arguments: &[&str]) -> Output {
    let mut command = Command::new("podman");
    // The other runtime does not know machines with both versions of cgroups.
    if need::on_path("runc").is_ok() {
        command.args(["--runtime", "runc"]);
    }
    command.args(arguments).output().unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", out(output), err(output));
    out(output).trim_end().to_owned()
}

impl Image {
    /// Builds it; none where there is no podman, or no right to use it.
    fn build(name: &str) -> Option<Self> {
        if !need::podman() {
            return None;
        }
        let tag = format!("latchfs-test-{name}-{}", std::process::id());
        let mut build = script("build-image");
        build.args(["--tag", &tag, "--program", LATCHFS]);
        done(&build.output().unwrap());
        Some(Self { tag })
    }

    /// Starts a container with options of `podman run`, and arguments of the image.
    fn run(&self, options: &[&str], arguments: &[&str]) -> Container {
        // Limits that every machine allows; health checks by themselves need systemd.
        let limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
        let common = ["run", "--detach", "--health-interval", "disable"];
        let id = done(&podman(&[&common, &limits, options, &[&self.tag], arguments].concat()));
        Container(id.lines().last().unwrap().to_owned())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        podman(&["rmi", "--force", &self.tag]);
    }
}

impl Container {
    /// Waits until the health check of the image says yes.
    fn wait(&self) {
        wait_for("a healthy container", || {
            let running = podman(&["inspect", "--format", "{{.State.Running}}", &self.0]);
            assert_eq!(out(&running).trim_end(), "true", "{}", self.log());
            podman(&["healthcheck", "run", &self.0]).status.success().then_some(())
        });
    }

    fn log(&self) -> String {
        let output = podman(&["logs", &self.0]);
        out(&output) + &err(&output)
    }

    /// Where a port of the container is on this machine.
    fn port(&self, port: u16) -> SocketAddr {
        done(&podman(&["port", &self.0, &port.to_string()])).parse().unwrap()
    }

    fn latchfs(&self, arguments: &[&str]) -> Output {
        podman(&[&["exec", &self.0, "latchfs"], arguments].concat())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        podman(&["rm", "--force", "--volumes", &self.0]);
    }
}

/// A directory that mounts made in a container reach. Unmounted when dropped.
struct Shared {
    folder: tempfile::TempDir,
}

impl Shared {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("share")).unwrap();
        let shared = Self { folder };
        for arguments in [&["--bind"][..], &["--make-shared"][..]] {
            let mut mount = Command::new("mount");
            mount.args(arguments).args(
                [shared.path(), shared.path()].into_iter().take(if arguments == ["--bind"] {
                    2
                } else {
                    1
                }),
            );
            assert!(mount.status().unwrap().success());
        }
        shared
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn share(&self) -> PathBuf {
        self.path().join("share")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for path in [self.share(), self.path().to_owned()] {
            let _ = rustix::mount::unmount(path, UnmountFlags::DETACH);
        }
    }
}

#[test]
#[ignore = "builds a container image"]
fn the_image_serves_rest_without_root_and_its_health_check_passes() {
    let Some(image) = Image::build("rest") else { return };
    let size: u64 =
        done(&podman(&["inspect", "--format", "{{.Size}}", &image.tag])).parse().unwrap();
    println!("the image has {size} bytes");
    assert!(cfg!(debug_assertions) || size < SIZE_MAX, "{size}");
    let user = done(&podman(&["inspect", "--format", "{{.User}}", &image.tag]));
    assert_eq!(user, "65532:65532");
    let ports = ["--publish", "127.0.0.1::10000", "--publish", "127.0.0.1::10009"];
    let container = image.run(&ports, &["--no-auth"]);
    container.wait();
    ask(container.port(10000), "PUT", "/photos?restype=container", &[], b"").is(201);
    let status = done(&container.latchfs(&["status"]));
    assert!(status.contains("http://127.0.0.1:10004/"), "{status}");
    assert!(done(&container.latchfs(&["ls", "blob:"])).contains("photos"));
    let stopped = podman(&["stop", "--time", "10", &container.0]);
    assert!(stopped.status.success(), "{}", err(&stopped));
    let code = done(&podman(&["inspect", "--format", "{{.State.ExitCode}}", &container.0]));
    assert_eq!(code, "0", "{}", container.log());
}

#[test]
#[ignore = "builds a container image"]
fn the_image_stands_in_for_that_of_azurite() {
    let Some(image) = Image::build("azurite") else { return };
    // As a library starts Azurite for tests, and as a compose file does.
    let hosts = ["--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0"];
    let by_name = image.run(&["--entrypoint", "azurite"], &hosts);
    let by_argument = image.run(&[], &["azurite-blob", "--blobHost", "0.0.0.0", "--loose"]);
    for container in [&by_name, &by_argument] {
        container.wait();
    }
    for service in ["Blob", "Queue", "Table"] {
        let line =
            format!("Azurite {service} service is successfully listening at http://0.0.0.0:");
        assert!(by_name.log().contains(&line), "{}", by_name.log());
    }
    let line = "Azurite Blob service successfully listens on http://0.0.0.0:10000";
    assert!(by_argument.log().contains(line), "{}", by_argument.log());
}

#[test]
#[ignore = "builds a container image"]
fn with_the_device_a_container_mounts_a_share_that_the_host_sees() {
    if !need::fuse() || !need::root() {
        return;
    }
    let Some(image) = Image::build("mount") else { return };
    let shared = Shared::new();
    let volume = format!("{}:/mnt:rshared", shared.path().display());
    let mount =
        ["--user", "0", "--device", "/dev/fuse", "--cap-add", "SYS_ADMIN", "--volume", &volume];
    let container = image.run(&mount, &["--in-memory", "--mount", "share=/mnt/share"]);
    container.wait();
    let file = shared.share().join("a.txt");
    fs::write(&file, "hello").unwrap();
    let get = ["get", "file:share/a.txt"];
    assert_eq!(done(&container.latchfs(&get)), "hello");
    // A program on the host and a client in the container meet in one table.
    let arguments = ["hold", "share:/a.txt", "--share", "none", "--for", "60s"];
    let mut command = Command::new("podman");
    if need::on_path("runc").is_ok() {
        command.args(["--runtime", "runc"]);
    }
    command.args(["exec", &container.0, "latchfs"]).args(arguments).stdout(Stdio::piped());
    let mut hold = command.spawn().unwrap();
    // Its first line says that it holds. A look at the file until it is refused would refuse it.
    let mut said = BufReader::new(hold.stdout.take().unwrap());
    assert_ne!(said.read_line(&mut String::new()).unwrap(), 0, "{}", container.log());
    assert_eq!(fs::read(&file).unwrap_err().raw_os_error(), Some(libc::EBUSY));
    assert_eq!(container.latchfs(&get).status.code(), Some(16));
    // Its data is in memory: no directory leads to the server.
    done(&container.latchfs(&["state", "reset"]));
    wait_for("an empty share", || (!file.exists()).then_some(()));
    drop(container);
    // The client of podman ends with the container.
    hold.wait().unwrap();
    assert!(!file.exists());
}
