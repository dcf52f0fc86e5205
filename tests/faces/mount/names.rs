//! unlink, rename, link, symlink.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};

use latchfs::file::rules::ShareMode;

use crate::mount::fixture::{Fixture, errno};
use crate::mount::program::{Program, sh};

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_rename_replaces_what_nobody_has_open() {
    let Some(at) = Fixture::start() else { return };
    at.make("new", "new");
    at.make("old", "old");
    fs::rename(at.path("new"), at.path("old")).unwrap();
    assert_eq!(read(at.path("old")), "new");
    assert_eq!(fs::read_dir(&at.root).unwrap().count(), 1);
    fs::create_dir(at.path("d")).unwrap();
    assert_eq!(errno(fs::rename(at.path("old"), at.path("d"))), libc::EISDIR);
    assert_eq!(errno(fs::rename(at.path("d"), at.path("old"))), libc::ENOTDIR);
    fs::create_dir(at.path("e")).unwrap();
    at.make("e/x", "");
    assert_eq!(errno(fs::rename(at.path("d"), at.path("e"))), libc::ENOTEMPTY);
    fs::rename(at.path("e"), at.path("d")).unwrap();
    assert!(at.root.join("d/x").exists());
}

#[test]
fn two_names_change_places_in_one_step_unless_one_is_held_without_share_delete() {
    let Some(at) = Fixture::start() else { return };
    at.make("a", "a");
    at.make("b", "b");
    let (a, b) = (at.path("a"), at.path("b"));
    let exchange = || rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE);
    exchange().unwrap();
    assert_eq!((read(&a), read(&b)), ("b".into(), "a".into()));
    let held = fs::File::open(&b).unwrap();
    latchfs::client::set_share(&held, ShareMode::RW).unwrap();
    assert_eq!(exchange(), Err(rustix::io::Errno::BUSY));
    assert_eq!((read(&a), read(&b)), ("b".into(), "a".into()));
}

#[test]
fn a_rename_that_changes_only_the_case_is_done() {
    let Some(at) = Fixture::start() else { return };
    at.make("foo", "x");
    fs::rename(at.path("foo"), at.path("Foo")).unwrap();
    let names = || -> Vec<_> {
        fs::read_dir(&at.root).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(), ["Foo"]);
    sh(&at.mnt, "mv Foo fOO").unwrap();
    assert_eq!(names(), ["fOO"]);
    let held = File::open(at.path("foo")).unwrap();
    fs::rename(at.path("fOO"), at.path("FOO")).unwrap();
    assert_eq!(names(), ["FOO"]);
    assert_eq!(held.metadata().unwrap().size(), 1);
    drop(held);
    assert_eq!(read(at.path("foo")), "x");
    at.idle();
    fs::create_dir(at.path("dir")).unwrap();
    at.make("dir/f", "below");
    fs::rename(at.path("dir"), at.path("DIR")).unwrap();
    assert_eq!(read(at.root.join("DIR/f")), "below");
    assert_eq!(read(at.path("dir/F")), "below");
}

#[test]
fn pipes_work_and_devices_cannot_be_made() {
    let Some(at) = Fixture::start() else { return };
    let said = sh(&at.mnt, "mkfifo p && { echo through > p & } && cat p && rm p");
    assert_eq!(said, Ok("through\n".into()));
    assert!(sh(&at.mnt, "mknod null c 1 3").is_err());
}

#[test]
fn a_socket_is_bound_found_and_removed() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = crate::mount::program::Program::start(&at.mnt) else { return };
    program.ok("import socket");
    program.ok("s = socket.socket(socket.AF_UNIX)");
    program.ok("s.bind('sock')");
    program.ok("s.listen(1)");
    program.ok("c = socket.socket(socket.AF_UNIX)");
    program.ok("c.connect('sock')");
    fs::remove_file(at.path("sock")).unwrap();
    assert_eq!(errno(fs::symlink_metadata(at.path("sock"))), libc::ENOENT);
}

#[test]
fn links_are_counted_and_sizes_seen_under_every_name_at_once() {
    let Some(at) = Fixture::start() else { return };
    at.make("one", "x");
    for n in 0..20 {
        let name = format!("link-{n}");
        fs::hard_link(at.path("one"), at.path(&name)).unwrap();
        assert_eq!(fs::metadata(at.path("one")).unwrap().nlink(), n + 2);
        assert_eq!(fs::metadata(at.path(&name)).unwrap().nlink(), n + 2);
        fs::write(at.path(&name), "x".repeat(usize::try_from(n).unwrap())).unwrap();
        assert_eq!(fs::metadata(at.path("one")).unwrap().size(), n);
    }
    for n in 0..20 {
        fs::remove_file(at.path(&format!("link-{n}"))).unwrap();
        assert_eq!(fs::metadata(at.path("one")).unwrap().nlink(), 20 - n);
    }
}

#[test]
fn a_device_cannot_be_made() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    for kind in ["S_IFCHR", "S_IFBLK"] {
        let make = format!("os.mknod('dev', 0o600 | stat.{kind}, os.makedev(1, 3))");
        assert_eq!(program.fails(&make), libc::EPERM, "{kind}");
    }
    program.ok("os.mkfifo('fifo')");
    assert_eq!(program.ok("os.listdir('.')"), serde_json::json!(["fifo"]));
}
