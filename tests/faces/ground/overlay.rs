//! The data directory on overlayfs, as in a container: a file is copied to the upper layer at its
//! first opening for writing, and must stay the same file to every rule.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags};

use crate::common::http::ask;
use crate::common::need;
use crate::common::served::Served;
use crate::common::user::{Place, USER};
use crate::ground::{errno, rest, write};

/// An overlay whose lower layer has the share `share` with these files. Unmounted when dropped.
struct Overlay(tempfile::TempDir);

impl Overlay {
    /// None where the kernel has no overlayfs, or this is not root.
    fn mount(files: &[&str]) -> Option<Self> {
        if !need::fuse() || !need::root() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path().join("lower/devstoreaccount1/files/share");
        fs::create_dir_all(&share).unwrap();
        for file in files {
            fs::write(share.join(file), "0123456789").unwrap();
        }
        for name in ["upper", "work", "data"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let at = folder.path().display();
        let layers = format!("lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work");
        let layers = CString::new(layers).unwrap();
        let data = folder.path().join("data");
        match rustix::mount::mount("overlay", &data, "overlay", MountFlags::empty(), &*layers) {
            Ok(()) => Some(Self(folder)),
            Err(error) => {
                println!("SKIPPED: no overlayfs here: {error}");
                None
            }
        }
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// True if the file was copied to the upper layer.
    fn is_copied_up(&self, file: &str) -> bool {
        self.0.path().join("upper/devstoreaccount1/files/share").join(file).exists()
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.data(), UnmountFlags::DETACH);
    }
}

#[test]
fn without_root_conflicts_outlive_the_first_write_on_overlayfs() {
    let Some(place) = Place::new() else { return };
    let upper = place.overlay_data(|lower| {
        let files = lower.join("devstoreaccount1/files");
        let share = files.join("docs");
        fs::create_dir_all(&share).unwrap();
        for file in ["leased", "held.none", "plain"] {
            fs::write(share.join(file), "0123456789").unwrap();
            chown(&share.join(file));
        }
        for dir in [&share, &files, &lower.join("devstoreaccount1")] {
            chown(dir);
        }
    });
    let Some(upper) = upper else { return };
    let is_copied = |file: &str| upper.join("devstoreaccount1/files/docs").join(file).exists();
    let _server = place.serve(&["--no-auth", "--share-rule", "*.none=none"]);
    let ready = fs::read(place.home().join("ready")).unwrap();
    let ready: serde_json::Value = serde_json::from_slice(&ready).unwrap();
    let addr = ready["endpoint"].as_str().unwrap().split('/').nth(2).unwrap().parse().unwrap();
    let put = |name: &str, more: &[(&str, &str)]| {
        let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-0")];
        let target = format!("/docs/{name}?comp=range");
        ask(addr, "PUT", &target, &[&range, more].concat(), b"x")
    };
    let acquire = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    ask(addr, "PUT", "/docs/leased?comp=lease", &acquire, b"").is(201);
    put("leased", &[]).refused(412, "LeaseIdMissing");
    assert!(!is_copied("leased"), "a refusal copied the file");
    put("leased", &[("x-ms-lease-id", LEASE)]).is(201);
    assert!(is_copied("leased"));
    put("leased", &[]).refused(412, "LeaseIdMissing");

    // The first open for writing copies the file; the conflict stays.
    let (Some(mut one), Some(mut other)) = (place.program("mnt"), place.program("mnt")) else {
        return;
    };
    one.ok("fd = os.open('held.none', os.O_RDWR)");
    assert_eq!(other.fails("os.open('held.none', os.O_RDWR)"), libc::EBUSY);
    one.ok("os.pwrite(fd, b'x', 0)");
    assert!(is_copied("held.none"));
    assert_eq!(other.fails("os.open('held.none', os.O_RDONLY)"), libc::EBUSY);
    put("held.none", &[]).refused(409, "SharingViolation");
    one.ok("os.close(fd)");
    one.ok("fd = os.open('plain', os.O_RDWR); os.pwrite(fd, b'p', 0); os.close(fd)");
    assert_eq!(ask(addr, "GET", "/docs/plain", &[], b"").is(200).text(), "p123456789");
}

fn chown(path: &std::path::Path) {
    std::os::unix::fs::chown(path, Some(USER), Some(USER)).unwrap();
}

const LEASE: &str = "11111111-2222-3333-4444-555555555555";

#[test]
fn conflicts_outlive_the_first_write_on_overlayfs() {
    let Some(overlay) = Overlay::mount(&["leased", "held.none", "locked", "plain"]) else { return };
    let data = overlay.data();
    let args = ["--no-auth", "--share-rule", "*.none=none", "--data", data.to_str().unwrap()];
    let mut served = Served::start(&args);
    let acquire = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    rest(&served, "PUT", "/leased?comp=lease", &acquire).is(201);
    write(&served, "leased", b"x").refused(412, "LeaseIdMissing");
    assert!(!overlay.is_copied_up("leased"), "a refusal copied the file");
    let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-0"), ("x-ms-lease-id", LEASE)];
    ask(served.addr(), "PUT", "/share/leased?comp=range", &range, b"x").is(201);
    assert!(overlay.is_copied_up("leased"));
    write(&served, "leased", b"y").refused(412, "LeaseIdMissing");

    // A reader that shares nothing, then a writer: the first open for writing copies the file.
    let mount = served.mount();
    let reader = fs::File::open(mount.join("held.none")).unwrap();
    write(&served, "held.none", b"x").refused(409, "SharingViolation");
    assert!(!overlay.is_copied_up("held.none"));
    drop(reader);
    let open = || OpenOptions::new().read(true).write(true).open(mount.join("held.none"));
    let writer = open().unwrap();
    assert_eq!(errno(open()), libc::EBUSY);
    write(&served, "held.none", b"x").refused(409, "SharingViolation");
    drop(writer);

    // The lease is the file's after a restart too, and goes with the file.
    served.crash_and_restart(&args);
    write(&served, "leased", b"z").refused(412, "LeaseIdMissing");
    let mine = [("x-ms-lease-id", LEASE)];
    rest(&served, "DELETE", "/leased", &mine).is(202);
    write(&served, "plain", b"p").is(201);
    assert_eq!(rest(&served, "GET", "/plain", &[]).is(200).text(), "p123456789");
}
