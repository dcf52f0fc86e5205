//! Ending: mounts in use, `unmount`, and what a dead server left.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::mount::UnmountFlags;
use rustix::process::Signal;

use super::fixture::{Folder, error_text, is_mounted, wait_for};
use crate::common::{http, need};

/// A process whose working directory is the mount. Killed when dropped.
struct User(std::process::Child);

impl User {
    fn of(folder: &Folder) -> Self {
        let child = Command::new("sleep")
            .arg("1000")
            .current_dir(folder.join("mnt"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_mount_in_use_at_the_stop_is_named_with_its_users_and_detached() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let user = User::of(&folder);
    assert!(server.stop().success());
    assert!(!is_mounted(&folder.join("mnt")));
    let named = format!("is in use by sleep (pid {})", user.0.id());
    assert!(server.log().contains(&named), "{}", server.log());
}

#[test]
fn unmount_says_who_is_in_the_way_and_the_services_go_on_without_a_mount() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&["--no-auth"]);
    folder.file("a", "a");
    let user = User::of(&folder);
    let busy = folder.run(&["unmount", "mnt"]);
    assert_eq!(busy.status.code(), Some(2));
    assert!(error_text(&busy).contains(&format!("pid {}", user.0.id())), "{}", error_text(&busy));
    assert!(is_mounted(&folder.join("mnt")));
    drop(user);
    let done = folder.run(&["unmount", "mnt"]);
    assert!(done.status.success(), "{}", error_text(&done));
    assert!(!is_mounted(&folder.join("mnt")));
    let again = folder.run(&["unmount", "mnt"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(error_text(&again).contains("is not a latchfs mount"));
    assert_eq!(http::ask(folder.listener(), "GET", "/docs/a", &[], b"").is(200).text(), "a");
    assert!(folder.join("ready").exists());
    assert!(server.stop().success());
}

#[test]
fn a_server_of_latchfs_mount_ends_with_its_mount_and_its_service_too() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.join("source")).unwrap();
    let mut server = folder.start(&["mount", "source", "mnt", "--state", "state"]);
    let listener = folder.listener();
    assert!(folder.run(&["unmount", "mnt"]).status.success());
    assert!(server.wait().success());
    assert!(std::net::TcpStream::connect(listener).is_err());
}

#[test]
fn a_server_without_services_or_until_unmounted_ends_when_umount_takes_its_last_mount_away() {
    if !need::fuse() || !need::root() {
        return;
    }
    for lasts in ["--no-rest", "--until-unmounted"] {
        check_that_the_server_ends_with_its_last_mount(lasts);
    }
}

fn check_that_the_server_ends_with_its_last_mount(lasts: &str) {
    let folder = Folder::new();
    fs::create_dir(folder.join("more")).unwrap();
    let more = format!("more={}", folder.join("more").display());
    let mut server = folder.serve(&["--mount", &more, lasts]);
    // A release may still be on its way.
    let umount = |name: &str| {
        let path = folder.join(name);
        wait_for(name, || rustix::mount::unmount(&path, UnmountFlags::empty()).ok());
    };
    umount("more");
    // The other one is served on.
    folder.file("a", "a");
    assert_eq!(server.child.try_wait().unwrap(), None);
    umount("mnt");
    assert!(server.wait().success());
    assert!(!folder.join("ready").exists());
}

#[test]
fn a_server_that_a_signal_stopped_is_named_and_not_waited_for() {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    server.signal(Signal::STOP);
    let asked = folder.ask(&["status"]);
    server.signal(Signal::CONT);
    assert_eq!(asked.status.code(), Some(2));
    let cure = format!("kill -CONT {}", server.child.id());
    assert!(error_text(&asked).contains(&cure), "{}", error_text(&asked));
    assert!(folder.ask(&["status"]).status.success(), "it goes on");
}

#[test]
fn a_lazy_unmount_does_not_wait_for_those_who_use_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&["--until-unmounted"]);
    let _user = User::of(&folder);
    assert!(folder.run(&["unmount", "--lazy", "mnt"]).status.success());
    assert!(!is_mounted(&folder.join("mnt")));
    assert!(server.wait().success());
}

#[test]
fn the_mount_of_a_killed_server_can_be_unmounted() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    server.signal(Signal::KILL);
    server.wait();
    let done = folder.run(&["unmount", "mnt"]);
    assert!(done.status.success(), "{}", error_text(&done));
    assert!(!is_mounted(&folder.join("mnt")));
}

#[test]
fn a_file_deleted_while_it_was_open_is_gone_after_the_server_was_killed() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let path = folder.file("a.txt", "x");
    let open = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(path.exists());
    server.signal(Signal::KILL);
    server.wait();
    drop(open);
    fs::remove_file(folder.join("ready")).unwrap();
    let _server = folder.serve(&[]);
    wait_for("the promised deletion", || (!path.exists()).then_some(()));
}

#[test]
fn programs_that_a_killed_server_left_with_descriptors_are_named_at_the_next_start() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let start = |script: &str| {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
        User(child)
    };
    let user = start("exec 3>>mnt/held; echo in; exec sleep 1000");
    let bystander = start("cd mnt; echo in; exec sleep 1000");
    server.signal(Signal::KILL);
    server.wait();
    fs::remove_file(folder.join("ready")).unwrap();
    let server = folder.serve(&[]);
    let named = format!("sleep (pid {}) still hold descriptors of the dead mount", user.0.id());
    assert!(server.log().contains(&named), "{}", server.log());
    // A working directory is no way to write.
    let bystander = format!("pid {}", bystander.0.id());
    assert!(!server.log().contains(&bystander), "{}", server.log());
}

#[test]
fn the_bare_directory_is_not_seen_while_a_mount_takes_the_place_of_a_dead_one() {
    if !need::fuse() || !need::root() || !mounts_beneath() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let (busy, ended) = (folder.join("mnt/busy"), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (busy, ended) = (busy.clone(), Arc::clone(&ended));
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    drop(File::create(&busy));
                }
            })
        })
        .collect();
    for _ in 0..5 {
        server.signal(Signal::KILL);
        server.wait();
        fs::remove_file(folder.join("ready")).unwrap();
        server = folder.serve(&[]);
        assert_eq!(mounts_on(&folder.join("mnt")), 1);
    }
    ended.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().unwrap();
    }
    drop(server);
    assert_eq!(fs::read_dir(folder.join("mnt")).unwrap().count(), 0, "written beside the share");
}

/// The kernel mounts below another mount since Linux 6.5.
fn mounts_beneath() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(5))
}

fn mounts_on(path: &Path) -> usize {
    let (table, path) = (fs::read_to_string("/proc/self/mountinfo").unwrap(), path.to_str());
    table.lines().filter(|line| line.split(' ').nth(4) == path).count()
}

#[test]
fn a_dead_mount_stays_where_the_directory_below_has_files() {
    if !need::fuse() || !need::root() || !mounts_beneath() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    server.signal(Signal::KILL);
    server.wait();
    // Seen from elsewhere, as it is without the mount.
    let bare = folder.join("bare");
    fs::create_dir(&bare).unwrap();
    rustix::mount::mount_bind(folder.path(), &bare).unwrap();
    fs::write(bare.join("mnt/beside"), "kept").unwrap();
    rustix::mount::unmount(&bare, UnmountFlags::DETACH).unwrap();
    let mount = format!("docs={}", folder.join("mnt").display());
    let said = error_text(&folder.run(&["serve", "--mount", &mount]));
    assert!(said.contains("move away what programs wrote there while no server ran"), "{said}");
    assert!(is_mounted(&folder.join("mnt")), "programs get an error and write nothing more");
    assert!(folder.run(&["unmount", "mnt"]).status.success());
    assert_eq!(fs::read_to_string(folder.join("mnt/beside")).unwrap(), "kept");
}

/// A process that has a copy of the mount in a mount namespace of its own. Killed when dropped.
fn copy_of_the_mounts(script: &str) -> User {
    let mut child = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"in\n");
    User(child)
}

#[test]
fn the_server_ends_though_another_mount_namespace_has_a_copy_of_the_mount() {
    if !need::fuse() || !need::root() || !need::client("unshare") {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let _copy = copy_of_the_mounts("echo in; exec sleep 1000");
    assert!(server.stop().success());
    assert!(!is_mounted(&folder.join("mnt")));
}

#[test]
fn what_others_mounted_over_the_mount_is_not_taken_away_with_it() {
    if !need::fuse() || !need::root() {
        return;
    }
    for below in ["mnt", "mnt/d"] {
        let folder = Folder::new();
        let mut server = folder.serve(&[]);
        fs::create_dir(folder.join("mnt/d")).unwrap();
        let over = folder.join(below);
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("none", &over, "tmpfs", flags, c"").unwrap();
        fs::write(over.join("theirs"), "theirs").unwrap();
        // On top of it, the path no longer leads to a mount of ours.
        let refused = folder.run(&["unmount", "mnt"]);
        assert_eq!(refused.status.code(), Some(2), "{below}");
        let named = error_text(&refused).contains("something else is mounted");
        assert_eq!(named, below == "mnt/d", "{}", error_text(&refused));
        assert!(server.stop().success(), "{below}");
        // It can be reached no more where its parent is dead, but it is still mounted.
        let kept = |mount: &latchfs::file::mount::mounts::Mounted| {
            mount.path == over && mount.kind == "tmpfs"
        };
        assert!(latchfs::file::mount::mounts::all().iter().any(kept), "{below}");
        let _ = fs::remove_file(folder.join("ready"));
    }
}

#[test]
fn a_descriptor_from_before_a_stop_writes_nothing_after_it() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let path = folder.file("held", "before");
    let mut held = File::options().write(true).open(&path).unwrap();
    let other = folder.file("other", "before");
    let also = File::options().read(true).write(true).open(&other).unwrap();
    assert!(server.stop().success());
    assert!(server.log().contains("is in use by"), "{}", server.log());
    assert!(held.write_all(b"after!").is_err());
    assert!(also.set_len(0).is_err());
    for name in ["held", "other"] {
        assert_eq!(fs::read(find(&folder.join("data"), name)).unwrap(), b"before");
    }
}

/// The file of that name below a directory.
fn find(dir: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    panic!("no file {name}");
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    const ROUNDS: usize = 5;
    let at_once = (0..ROUNDS).any(|_| {
        let folder = Folder::new();
        let mut server = folder.start(&["serve", "--no-mount", "--no-auth", "--share", "docs"]);
        let file = [("x-ms-type", "file"), ("x-ms-content-length", "10")];
        http::ask(folder.listener(), "PUT", "/docs/a", &file, b"").is(201);
        // A request whose body never comes: the stop waits for it, for some seconds.
        let mut upload = std::net::TcpStream::connect(folder.listener()).unwrap();
        let head = format!(
            "PUT /{}/docs/a?comp=range HTTP/1.1\r\nhost: localhost\r\nx-ms-write: update\r\n\
             x-ms-range: bytes=0-9\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n",
            http::ACCOUNT
        );
        upload.write_all(head.as_bytes()).unwrap();
        let mut begun = [0; 12];
        upload.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"HTTP/1.1 100");
        server.signal(Signal::INT);
        wait_for("the first signal to be taken", || (!folder.join("ready").exists()).then_some(()));
        server.signal(Signal::TERM);
        let ended = server.wait();
        // On a busy machine the first stop may be through before the second signal is sent.
        let second = ended.code() == Some(128 + Signal::TERM.as_raw());
        assert!(second || ended.success(), "{ended}");
        second
    });
    assert!(at_once, "the second signal was never heeded");
}
