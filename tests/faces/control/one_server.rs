//! One directory, one server: the second is refused and told which server has it, by whatever path
//! it comes.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::Signal;

use super::fixture::{Folder, Server, error_text};
use crate::common::need;
use crate::common::user::USER;

/// A folder with a directory `source`, and a second mount point.
fn furnished() -> Folder {
    let folder = Folder::new();
    for name in ["source", "mnt2"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("source/file"), "0123456789").unwrap();
    folder
}

fn serve_source(folder: &Folder) -> Server {
    folder.start(&["mount", "source", "mnt", "--state", "state"])
}

fn mount_again(folder: &Folder, source: &Path) -> Output {
    folder.run(&["mount", source.to_str().unwrap(), "mnt2", "--state", "state2"])
}

/// Fails unless the start was refused in one line that names the server, and left nothing behind.
#[track_caller]
fn assert_refused(folder: &Folder, output: &Output, source: &Path, by: &Server) {
    let said = error_text(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let who = format!("{} is served by another latchfs (pid {}, ", source.display(), by.child.id());
    assert!(said.contains(&who) && said.contains(", since 20"), "{said}");
    assert!(said.lines().count() == 1, "{said}");
    assert!(!folder.join("state2").exists());
}

/// Mounts made by a test, unmounted when dropped.
#[derive(Default)]
struct Mounted(Vec<PathBuf>);

impl Mounted {
    fn bind(&mut self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        rustix::mount::mount_bind(from, to).unwrap();
        self.0.push(to.to_owned());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            let _ = rustix::mount::unmount(path, UnmountFlags::DETACH);
        }
    }
}

#[test]
fn a_directory_is_served_once_with_any_state_and_through_links_and_again_after_a_crash() {
    if !need::fuse() {
        return;
    }
    let folder = furnished();
    let source = folder.join("source").canonicalize().unwrap();
    symlink("source", folder.join("link")).unwrap();
    let mut server = serve_source(&folder);
    for path in [&source, &folder.join("link")] {
        let output = mount_again(&folder, path);
        assert_refused(&folder, &output, &source, &server);
        assert!(error_text(&output).contains("mount source mnt --state state` in "));
    }
    // With its own state the note in that folder is found.
    let output = folder.run(&["mount", "source", "mnt2", "--state", "state"]);
    let data = format!("data directory {}, since", source.display());
    assert!(error_text(&output).contains(&data), "{}", error_text(&output));
    server.signal(Signal::KILL);
    server.wait();
    fs::remove_file(folder.join("ready")).unwrap();
    let _server = folder.start(&["mount", "source", "mnt2", "--state", "state2"]);
    assert_eq!(fs::read(folder.join("mnt2/file")).unwrap(), b"0123456789");
}

#[test]
fn a_bind_mount_of_a_served_directory_is_refused_writable_or_not() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = furnished();
    let mut mounted = Mounted::default();
    let bound = folder.join("bound");
    mounted.bind(&folder.join("source"), &bound);
    let server = serve_source(&folder);
    assert_refused(&folder, &mount_again(&folder, &bound), &bound, &server);
    let read_only = MountFlags::BIND | MountFlags::RDONLY;
    rustix::mount::mount_remount(&bound, read_only, c"").unwrap();
    assert_refused(&folder, &mount_again(&folder, &bound), &bound, &server);
    drop(server);
    // The other way round: a source that cannot be written is locked too.
    let server = folder.start(&["mount", "bound", "mnt", "--state", "state"]);
    let source = folder.join("source");
    assert_refused(&folder, &mount_again(&folder, &source), &source, &server);
}

#[test]
fn a_directory_that_another_user_serves_is_refused() {
    if !need::fuse() || !need::root() || !need::client("setpriv") {
        return;
    }
    let folder = furnished();
    let source = folder.join("source").canonicalize().unwrap();
    let server = serve_source(&folder);
    // The program is copied to where everybody can reach it.
    let program = folder.join("latchfs");
    fs::copy(env!("CARGO_BIN_EXE_latchfs"), &program).unwrap();
    for path in [folder.path(), &source] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = Command::new("setpriv")
        .args(["--clear-groups", &format!("--reuid={USER}"), &format!("--regid={USER}"), "--"])
        .arg(program)
        .args(["mount", "source", "mnt2", "--state", "state2", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .env("RUST_LOG", "error")
        .output()
        .unwrap();
    assert_refused(&folder, &output, &source, &server);
}

#[test]
fn a_directory_of_an_overlay_is_served_once_by_any_path() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = furnished();
    let mut mounted = Mounted::default();
    let at = folder.path().display();
    for name in ["upper", "work", "merged"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let layers = format!("lowerdir={at}/source,upperdir={at}/upper,workdir={at}/work");
    let layers = CString::new(layers).unwrap();
    let merged = folder.join("merged").canonicalize().unwrap();
    let none = MountFlags::empty();
    if let Err(error) = rustix::mount::mount("overlay", &merged, "overlay", none, &*layers) {
        println!("SKIPPED: no overlayfs here: {error}");
        return;
    }
    mounted.0.push(merged.clone());
    let server = folder.start(&["mount", "merged", "mnt", "--state", "state"]);
    // Also after a file was copied to the upper layer, and the directory with it.
    fs::write(folder.join("mnt/file"), "x").unwrap();
    assert_refused(&folder, &mount_again(&folder, &merged), &merged, &server);
    let bound = folder.join("bound");
    mounted.bind(&merged, &bound);
    assert_refused(&folder, &mount_again(&folder, &bound), &bound, &server);
}

#[test]
fn the_directory_of_a_share_is_not_served_a_second_time_through_a_bind_mount() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = furnished();
    let mut server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    let mut mounted = Mounted::default();
    let share = folder.join("data/devstoreaccount1/files/docs");
    let bound = folder.join("bound");
    mounted.bind(&share, &bound);
    assert_refused(&folder, &mount_again(&folder, &bound), &bound, &server);
    // Nor as the share of another data directory.
    let other = folder.join("other/devstoreaccount1/files/docs");
    mounted.bind(&share, &other);
    let output = folder.run(&["serve", "--data", "other", "--no-mount"]);
    assert_refused(&folder, &output, &other, &server);
    // A data directory is one by any path too, and its note tells its data directory.
    let data = folder.join("data-again");
    mounted.bind(&folder.join("data"), &data);
    let output = folder.run(&["serve", "--data", "data-again", "--no-mount"]);
    assert_refused(&folder, &output, &data, &server);
    let note = format!("data directory {}, since", folder.join("data").display());
    assert!(error_text(&output).contains(&note), "{}", error_text(&output));
    assert!(server.stop().success());
    let _server = folder.start(&["serve", "--data", "other", "--no-mount"]);
}
