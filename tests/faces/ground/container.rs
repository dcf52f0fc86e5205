//! What containers are like: few descriptors, little memory, hardly any programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::mount::{MountFlags, UnmountFlags};

use super::{create, rest, write};
use crate::common::http::ask;
use crate::common::need;
use crate::common::served::{LATCHFS, Served, wait_for};

/// Reads and writes on both faces, and asks the server how it is.
fn check_served(served: &Served) {
    for round in 0..10 {
        let name = format!("file-{round}");
        create(served, &name, 5).is(201);
        write(served, &name, b"bytes").is(201);
        let path = served.mount().join(&name);
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
        fs::write(&path, "more bytes").unwrap();
        assert_eq!(rest(served, "GET", &format!("/{name}"), &[]).is(200).text(), "more bytes");
    }
    let status = served.latchfs(&["status"]).output().unwrap();
    assert!(status.status.success(), "{status:?}");
}

#[test]
fn sixty_four_descriptors_are_enough_to_serve_and_the_doctor_says_that_they_are_few() {
    if !need::fuse() {
        return;
    }
    let few = "ulimit -n 64; exec \"$0\" \"$@\"";
    // The listener for SMB takes ten of its own.
    let served = Served::start_by(&["sh", "-c", few], &["--no-auth", "--smb", "off"]);
    check_served(&served);
    // Programs hold what there is left, and are told when it is too much.
    let mut held = Vec::new();
    for round in 0..100 {
        match fs::File::create(served.mount().join(format!("held-{round}"))) {
            Ok(file) => held.push(file),
            Err(error) => {
                let told = [libc::EMFILE, libc::ENFILE].map(Some);
                assert!(told.contains(&error.raw_os_error()), "{error}");
                break;
            }
        }
    }
    drop(held);
    check_served(&served);
    let doctor = Command::new("sh").args(["-c", few, LATCHFS, "doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("warn  descriptors: only 64 at once"), "{said}");
}

/// A control group with a limit of memory. Removed when dropped, which must be after its processes.
struct Group(PathBuf);

impl Group {
    /// None where this is not root, or the machine has no such groups to give.
    #[track_caller]
    fn of_memory(bytes: u64) -> Option<Self> {
        if !need::root() {
            return None;
        }
        let name = format!("latchfs-test-{}", std::process::id());
        let ways = [("memory", "memory.limit_in_bytes"), ("", "memory.max")];
        for (controller, limit) in ways {
            let group = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            if fs::create_dir(&group).is_ok() {
                let group = Self(group);
                if group.0.join("cgroup.procs").exists()
                    && fs::write(group.0.join(limit), bytes.to_string()).is_ok()
                {
                    return Some(group);
                }
            }
        }
        println!("SKIPPED: no control group of memory can be made here");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn sixty_four_megabytes_of_memory_are_enough_for_many_uploads_at_once() {
    if !need::fuse() {
        return;
    }
    let Some(group) = Group::of_memory(64 << 20) else { return };
    let join = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", group.0.display());
    let served = Served::start_by(&["sh", "-c", &join], &["--no-auth"]);
    check_served(&served);
    create(&served, "large", 32 << 20).is(201);
    let body = vec![b'x'; 4 << 20];
    std::thread::scope(|scope| {
        for part in 0..8_u64 {
            let (served, body) = (&served, &body);
            scope.spawn(move || {
                let start = part * (4 << 20);
                let range = format!("bytes={start}-{}", start + (4 << 20) - 1);
                let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
                let put =
                    ask(served.addr(), "PUT", "/share/large?comp=range", &headers, body.as_slice());
                assert!([201, 503].contains(&put.status), "{}", put.text());
            });
        }
    });
    assert_eq!(rest(&served, "GET", "/large", &[]).is(200).body.len(), 32 << 20);
    check_served(&served);
}

#[test]
fn a_name_made_by_hand_is_found_in_any_case() {
    if !need::fuse() {
        return;
    }
    let served = Served::start(&["--no-auth", "--no-mount"]);
    for round in 0..50 {
        create(&served, &format!("File-{round}"), 0).is(201);
    }
    rest(&served, "HEAD", "/FILE-49", &[]).is(200);
    fs::write(served.data().join("By-Hand"), "x").unwrap();
    rest(&served, "HEAD", "/by-hand", &[]).is(200);
    create(&served, "BY-HAND", 0).is(201);
    assert_eq!(fs::read_dir(served.data()).unwrap().count(), 51);
}

/// A root directory with the program and what it is linked with, and nothing else.
struct Bare {
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl Bare {
    #[track_caller]
    fn new() -> Option<Self> {
        let programs = ["chroot", "ldd", "mount", "mknod"];
        if !need::fuse() || !need::root() || !programs.into_iter().all(need::client) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["dev", "proc", "tmp", "place"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let linked = Command::new("ldd").arg(LATCHFS).output().unwrap();
        let linked = String::from_utf8(linked.stdout).unwrap();
        let libraries = linked.split_whitespace().filter(|word| word.starts_with('/'));
        for library in libraries {
            let place = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
        fs::copy(LATCHFS, root.join("latchfs")).unwrap();
        let device = |name: &str, minor: [&str; 2]| {
            let path = root.join("dev").join(name);
            let made = Command::new("mknod").arg(path).arg("c").args(minor).status();
            assert!(made.unwrap().success());
        };
        device("fuse", ["10", "229"]);
        device("null", ["1", "3"]);
        rustix::mount::mount("proc", root.join("proc"), "proc", MountFlags::empty(), c"").unwrap();
        Some(Self { folder, server: None })
    }

    fn latchfs(&self, args: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(self.folder.path()).arg("/latchfs").args(args).env("NO_COLOR", "1");
        command
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.kill());
            drop(server.wait());
        }
        for mount in ["place/mnt", "proc"] {
            let _ = rustix::mount::unmount(self.folder.path().join(mount), UnmountFlags::DETACH);
        }
    }
}

#[test]
fn in_a_root_directory_without_any_program_all_is_served_and_closed_by_force() {
    let Some(mut bare) = Bare::new() else { return };
    let root = bare.folder.path().to_owned();
    fs::create_dir(root.join("place/mnt")).unwrap();
    let args = ["serve", "--data", "/place/data", "--mount", "share=/place/mnt", "--no-auth"];
    let ports = ["--listen", "127.0.0.1:0", "--ready-file", "/place/ready"];
    let mut serve = bare.latchfs(&[&args[..], &ports[..]].concat());
    bare.server = Some(serve.stdout(Stdio::null()).spawn().unwrap());
    let ready: serde_json::Value = wait_for("the server", || {
        let ended = bare.server.as_mut().unwrap().try_wait().unwrap();
        assert!(ended.is_none(), "the server ended");
        serde_json::from_slice(&fs::read(root.join("place/ready")).ok()?).ok()
    });
    let host = ready["endpoint"].as_str().unwrap().split('/').nth(2).unwrap().parse().unwrap();
    let file = root.join("place/mnt/f");
    fs::write(&file, "bytes").unwrap();
    let held = fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let target = "/share/f?comp=forceclosehandles";
    let closed = ask(host, "PUT", target, &[("x-ms-handle-id", "*")], b"").is(200);
    assert_eq!(closed.header("x-ms-number-of-handles-closed"), "1");
    let written = std::os::unix::fs::FileExt::write_at(&held, b"late", 0);
    assert_eq!(super::errno(written), libc::EIO);
    assert_eq!(ask(host, "GET", "/share/f", &[], b"").is(200).text(), "bytes");
    drop(held);
    let doctor = bare.latchfs(&["doctor", "--data", "/place/data"]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("ok    /dev/fuse"), "{doctor:?}");
    let control = ready["control"].as_str().unwrap();
    let stopped = bare.latchfs(&["stop", "--control", control]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    bare.server.take().unwrap().wait().unwrap();
}
