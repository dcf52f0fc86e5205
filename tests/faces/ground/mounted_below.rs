//! A file system that is mounted in the share: nothing of it is held longer than it is used.

use std::fs;
use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags};

use super::rest;
use crate::common::need;
use crate::common::served::{Served, wait_for};

/// Detached when dropped, if it is still mounted.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // It is gone if the test has passed.
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_file_system_in_the_share_can_be_unmounted_soon_after_its_last_use() {
    if !need::fuse() || !need::root() {
        return;
    }
    let served = Served::start(&["--no-auth"]);
    let below = Mounted(served.data().join("disk"));
    fs::create_dir(&below.0).unwrap();
    rustix::mount::mount("tmpfs", &below.0, "tmpfs", MountFlags::empty(), c"").unwrap();
    fs::create_dir(below.0.join("dir")).unwrap();
    fs::write(below.0.join("dir/file"), "bytes").unwrap();
    assert_eq!(fs::read(served.mount().join("disk/dir/file")).unwrap(), b"bytes");
    assert_eq!(rest(&served, "GET", "/disk/dir/file", &[]).is(200).text(), "bytes");
    wait_for("nothing of it to be in use", || {
        rustix::mount::unmount(&below.0, UnmountFlags::empty()).ok()
    });
}
