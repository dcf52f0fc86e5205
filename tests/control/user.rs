//! Serving without root: `fusermount3` mounts, the kernel passes nothing through.
//!
//! Whether users may open `/dev/fuse` is the machine's affair, so the server runs in a mount
//! namespace where they may, which a keeper holds while servers come and go.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal};

use super::common::need;
use super::fixture::{error_text, wait_for};

const USER: u32 = 65534;

/// Opens the device to everyone, says so, and holds the namespace until its input ends.
const KEEPER: &str = r#"
    mknod -m 666 "$1" c 10 229 && mount --bind "$1" /dev/fuse && echo ready && exec cat
"#;

/// A folder of the user's, and the namespace in which it is served.
struct Place {
    keeper: Child,
    folder: tempfile::TempDir,
}

impl Place {
    /// None if something is missing here.
    #[track_caller]
    fn new() -> Option<Self> {
        let programs = ["fusermount3", "setpriv", "unshare", "nsenter", "mount", "mknod"];
        if !need::fuse() || !need::root() || !programs.into_iter().all(need::client) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The program is copied to where everybody can reach it.
        fs::copy(env!("CARGO_BIN_EXE_latchfs"), at("latchfs")).unwrap();
        for dir in ["home", "home/mnt"] {
            fs::create_dir(at(dir)).unwrap();
            std::os::unix::fs::chown(at(dir), Some(USER), Some(USER)).unwrap();
        }
        let mut keeper = Command::new("unshare")
            .args(["--mount", "sh", "-c", KEEPER, "keeper"])
            .arg(at("fuse"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = std::io::BufReader::new(keeper.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut { out }, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(Self { keeper, folder })
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A program, as the user, in the namespace.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([format!("--target={}", self.keeper.id()), "--mount".to_owned()])
            .args(["--", "setpriv", "--clear-groups"])
            .args([format!("--reuid={USER}"), format!("--regid={USER}"), "--".to_owned()])
            // Inside: a working directory from outside would be another mount's.
            .args(["env", "-C"])
            .arg(self.home())
            .arg(program)
            .stdin(Stdio::null());
        command
    }

    fn shell(&self, script: &str) -> Output {
        self.command("sh").args(["-c", script]).output().unwrap()
    }

    fn serve(&self) -> Server {
        let ready = self.home().join("ready");
        drop(fs::remove_file(&ready));
        let child = self
            .command(self.folder.path().join("latchfs"))
            .args(["serve", "--data", "data", "--mount", "docs=mnt", "--ready-file", "ready"])
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Server(Some(child));
        wait_for("the server", || {
            let ended = server.0.as_mut().unwrap().try_wait().unwrap().is_some();
            assert!(!ended, "it ended: {}", error_text(&server.wait()));
            ready.exists().then_some(())
        });
        server
    }

    fn is_mounted(&self) -> bool {
        let table = Path::new("/proc").join(self.keeper.id().to_string()).join("mountinfo");
        let point = self.home().join("mnt").display().to_string();
        fs::read_to_string(table).unwrap().contains(&point)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // With the keeper goes the namespace, and with that every mount in it.
        drop(self.keeper.stdin.take().map(|mut input| input.flush()));
        drop(self.keeper.wait());
    }
}

/// A server. Killed if the test has not ended it.
struct Server(Option<Child>);

impl Server {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.0.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn wait(&mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[test]
fn without_root_a_mount_is_made_by_the_helper_and_goes_with_the_server_without_a_word() {
    let Some(place) = Place::new() else { return };
    let mut server = place.serve();
    assert!(place.is_mounted());
    let used = place.shell("echo hello > mnt/a && exec 3< mnt/a && rm mnt/a && cat <&3");
    assert_eq!(String::from_utf8_lossy(&used.stdout), "hello\n", "{}", error_text(&used));
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert!(ended.status.success() && !place.is_mounted());
    assert_eq!(error_text(&ended), "");
    let told = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(told.matches("no kernel passthrough without root").count(), 1, "{told}");
}

#[test]
fn without_root_the_mount_of_a_killed_server_is_replaced_at_the_next_start() {
    let Some(place) = Place::new() else { return };
    let mut server = place.serve();
    assert!(place.shell("echo kept > mnt/a").status.success());
    server.signal(Signal::KILL);
    server.wait();
    assert!(place.is_mounted());
    assert!(!place.shell("cat mnt/a").status.success());
    let _server = place.serve();
    assert_eq!(place.shell("cat mnt/a").stdout, b"kept\n");
}

#[test]
fn without_root_a_mount_in_use_is_named_with_its_users_and_detached() {
    let Some(place) = Place::new() else { return };
    let mut server = place.serve();
    let script = "cd mnt && echo in && exec sleep 1000";
    let mut user = place.command("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 3];
    std::io::Read::read_exact(user.stdout.as_mut().unwrap(), &mut line).unwrap();
    server.signal(Signal::TERM);
    let ended = server.wait();
    user.kill().unwrap();
    user.wait().unwrap();
    assert!(ended.status.success() && !place.is_mounted());
    let named = format!("is in use by sleep (pid {})", user.id());
    assert!(error_text(&ended).contains(&named), "{}", error_text(&ended));
}
