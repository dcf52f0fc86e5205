//! Ending: mounts in use, `unmount`, and what a dead server left.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use rustix::mount::UnmountFlags;
use rustix::process::Signal;

use super::common::need;
use super::fixture::{Folder, error_text, is_mounted, wait_for};

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
fn unmount_says_who_is_in_the_way_and_the_server_ends_with_its_last_mount() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
    let user = User::of(&folder);
    let busy = folder.run(&["unmount", "mnt"]);
    assert_eq!(busy.status.code(), Some(2));
    assert!(error_text(&busy).contains(&format!("pid {}", user.0.id())), "{}", error_text(&busy));
    assert!(is_mounted(&folder.join("mnt")));
    drop(user);
    let done = folder.run(&["unmount", "mnt"]);
    assert!(done.status.success(), "{}", error_text(&done));
    assert!(!is_mounted(&folder.join("mnt")));
    assert!(server.wait().success());
    let again = folder.run(&["unmount", "mnt"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(error_text(&again).contains("no latchfs mount"));
}

#[test]
fn the_server_ends_when_umount_takes_its_last_mount_away() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.join("more")).unwrap();
    let more = format!("more={}", folder.join("more").display());
    let mut server = folder.serve(&["--mount", &more]);
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
fn a_lazy_unmount_does_not_wait_for_those_who_use_it() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let mut server = folder.serve(&[]);
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
