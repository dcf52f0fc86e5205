//! `mount.latchfs`, called as mount(8) calls it: source, directory, flags, options.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use latchfs::file::mount::mounts;
use rustix::mount::UnmountFlags;

use super::{err, help, out, script};
use crate::common::need;
use crate::common::served::{LATCHFS, wait_for};

/// What would be run for these options.
fn shown(options: &str) -> Output {
    script("mount.latchfs").args(["/src", "/mnt", "-fv", "-o", options]).output().unwrap()
}

fn words(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", err(output));
    out(output).trim_end().split(' ').map(|word| word.trim_matches('\'').to_owned()).collect()
}

#[test]
fn options_of_mount_become_those_of_latchfs() {
    let plain = words(&shown("rw,defaults,noauto,nofail,_netdev,x-systemd.automount,nosuid"));
    assert_eq!(plain, [LATCHFS, "mount", "/src", "/mnt", "--daemon"]);
    let more = words(&shown("ro,allow_other,share-rule=*.xlsx=r,share_rule=*.db=none,no-rest"));
    let expected = [
        "--read-only",
        "--allow-other",
        "--share-rule",
        "*.xlsx=r",
        "--share-rule",
        "*.db=none",
        "--no-rest",
    ];
    assert_eq!(more[5..], expected);
    let share = words(&shown("share=docs,listen=127.0.0.1:0"));
    let expected = ["serve", "--data", "/src", "--share", "docs", "--mount", "docs=/mnt"];
    assert_eq!(share[1..8], expected);
    assert_eq!(share[8..], ["--until-unmounted", "--daemon", "--listen", "127.0.0.1:0"]);
}

#[test]
fn every_option_is_one_that_latchfs_has() {
    let all = "ro,allow-other,mandatory-locks,flock-as-share-mode,case-sensitive,no-rest,no-auth,\
               no-passthrough,expose,default-share=1,share-rule=1,unlink=1,uid=1,gid=1,\
               umask=1,workers=1,file=1,listen=1,sync=1,tls=1,oauth=1,copy-sources=1,\
               error-names=1,events=1,event-log=1,ready-file=1,admin=1,log-format=1,name=1,state=1";
    let help = help("mount");
    let words = words(&shown(all));
    let flags: Vec<_> = words.iter().filter(|word| word.starts_with("--")).collect();
    assert_eq!(flags.len(), all.split(',').count() + 1, "{words:?}");
    for flag in flags {
        let known = help.split([' ', '\n', ']', ',']).any(|word| word == flag.as_str());
        assert!(known, "{flag} is not in\n{help}");
    }
}

#[test]
fn a_key_is_kept_from_the_arguments_that_everybody_can_read() {
    let output = shown("account=me:c2VjcmV0");
    assert!(!words(&output).iter().any(|word| word.contains("c2VjcmV0")), "{}", out(&output));
}

#[test]
fn what_makes_no_sense_is_refused_as_mount_expects() {
    for options in ["colour=red", "noexec", "default-share", "loose", "share="] {
        let output = shown(options);
        assert_eq!(output.status.code(), Some(1), "{options}");
        let name = options.split('=').next().unwrap();
        assert!(err(&output).contains(name), "{}", err(&output));
    }
    let sloppy =
        script("mount.latchfs").args(["/src", "/mnt", "-sfv", "-o", "colour=red"]).output();
    assert_eq!(words(&sloppy.unwrap()).last().unwrap(), "--daemon");
    assert_eq!(script("mount.latchfs").arg("/src").output().unwrap().status.code(), Some(1));
    let nowhere = script("mount.latchfs").args(["/nowhere", "/nowhere"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(32), "{}", err(&nowhere));
}

/// A folder with a mount point, whose mount is taken away with it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mnt")).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if mounts::of_path(&self.path().join("mnt")).is_some_and(|mount| mount.origin().is_some()) {
            // Its server ends with it.
            let _ = rustix::mount::unmount(self.path().join("mnt"), UnmountFlags::DETACH);
        }
    }
}

/// Mounts `source` as mount(8) would, and gives the control socket of the server behind it.
fn mounted(folder: &Folder, source: &Path, options: &str) -> PathBuf {
    let mount = folder.path().join("mnt");
    let mut command = script("mount.latchfs");
    // As at the start of the system.
    command.env_remove("HOME").env("XDG_STATE_HOME", folder.path().join("state"));
    let output = command.args([source, &mount]).args(["-o", options]).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let origin = mounts::of_path(&mount).unwrap().origin().unwrap();
    assert_eq!(origin.share, "docs");
    origin.control.unwrap()
}

/// Unmounts as umount(8) does, and waits until the server is gone too.
fn unmount(folder: &Folder, socket: &Path) {
    let status =
        || Command::new(LATCHFS).args(["status", "--control"]).arg(socket).output().unwrap();
    assert!(status().status.success());
    let mount = folder.path().join("mnt");
    // A release may still be on its way.
    wait_for("the mount to be free", || rustix::mount::unmount(&mount, UnmountFlags::empty()).ok());
    wait_for("the end of the server", || (!status().status.success()).then_some(()));
}

#[test]
fn a_directory_is_mounted_as_it_is_and_umount_ends_its_server() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let source = folder.path().join("docs");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("a.txt"), "hello").unwrap();
    let socket = mounted(&folder, &source, "rw,default_share=none,listen=127.0.0.1:0,nofail");
    let file = folder.path().join("mnt/a.txt");
    let held = fs::File::open(&file).unwrap();
    assert_eq!(fs::File::open(&file).unwrap_err().raw_os_error(), Some(libc::EBUSY));
    drop(held);
    unmount(&folder, &socket);
    assert_eq!(fs::read_to_string(source.join("a.txt")).unwrap(), "hello");
}

#[test]
fn a_share_of_a_data_directory_is_mounted_read_only() {
    if !need::fuse() || !need::root() {
        return;
    }
    let folder = Folder::new();
    let (data, mount) = (folder.path().join("data"), folder.path().join("mnt"));
    let options = "ro,share=docs,listen=127.0.0.1:0,x-systemd.automount";
    let socket = mounted(&folder, &data, options);
    fs::write(data.join("devstoreaccount1/files/docs/a.txt"), "hello").unwrap();
    assert_eq!(fs::read_to_string(mount.join("a.txt")).unwrap(), "hello");
    let refused = fs::write(mount.join("b.txt"), "").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
    unmount(&folder, &socket);
}
