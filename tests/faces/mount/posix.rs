//! `--unlink=posix`: names go at once, opens go on without one; and how files are shown.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};

use rustix::fs::CWD;

use latchfs::client;
use latchfs::file::mount::UnlinkMode;
use latchfs::file::rules::ShareMode;
use latchfs::file::service::{Case, ShareOptions};

use crate::mount::fixture::{Fixture, errno};

fn posix() -> Option<Fixture> {
    Fixture::with(|options| options.unlink = UnlinkMode::Posix)
}

#[test]
fn an_unlinked_name_is_free_at_once_and_its_open_file_goes_on() {
    let Some(at) = posix() else { return };
    let name = at.make("f", "old");
    let mut held = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    fs::remove_file(&name).unwrap();
    assert_eq!(errno(fs::metadata(&name)), libc::ENOENT);
    fs::write(&name, "new").unwrap();
    held.write_all(b"OLDER").unwrap();
    held.rewind().unwrap();
    let mut text = String::new();
    held.read_to_string(&mut text).unwrap();
    assert_eq!(text, "OLDER");
    assert_eq!(fs::read(&name).unwrap(), b"new");
    drop(held);
    at.idle();
    assert_eq!(fs::read(&name).unwrap(), b"new");
}

#[test]
fn an_open_file_shows_at_once_that_its_name_is_gone() {
    let Some(at) = posix() else { return };
    let name = at.make("f", "");
    let held = File::open(&name).unwrap();
    // The kernel knows its attributes.
    assert_eq!([held.metadata().unwrap().nlink(), fs::metadata(&name).unwrap().nlink()], [1, 1]);
    fs::remove_file(&name).unwrap();
    assert_eq!(held.metadata().unwrap().nlink(), 0);
}

#[test]
fn calls_on_the_descriptor_of_an_unlinked_file_reach_that_file() {
    let Some(at) = posix() else { return };
    let name = at.make("f", "0123456789");
    let held = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    fs::remove_file(&name).unwrap();
    fs::write(&name, "another").unwrap();
    held.set_len(4).unwrap();
    held.sync_all().unwrap();
    held.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    let seen = held.metadata().unwrap();
    assert_eq!((seen.len(), seen.mode() & 0o777, seen.nlink()), (4, 0o600, 0));
    rustix::fs::fallocate(&held, rustix::fs::FallocateFlags::empty(), 0, 100).unwrap();
    assert_eq!(held.metadata().unwrap().len(), 100);
    held.write_all_at(b"x", 99).unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"another");
    assert_eq!(fs::metadata(&name).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn calls_on_the_descriptor_of_a_removed_directory_reach_that_directory() {
    let Some(at) = posix() else { return };
    fs::create_dir(at.path("d")).unwrap();
    let held = File::open(at.path("d")).unwrap();
    fs::remove_dir(at.path("d")).unwrap();
    fs::create_dir(at.path("d")).unwrap();
    held.set_permissions(fs::Permissions::from_mode(0o700)).unwrap();
    held.sync_all().unwrap();
    assert_eq!(held.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(at.path("d")).unwrap().mode() & 0o777, 0o755);
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    assert_eq!(fs::read_dir(&name).unwrap().count(), 0);
    assert_eq!(errno(File::create(name + "/f")), libc::ENOENT);
}

#[test]
fn what_is_written_through_one_name_is_seen_through_the_other_before_the_close() {
    let Some(at) = posix() else { return };
    let (one, other) = (at.make("one", "1"), at.path("other"));
    fs::hard_link(&one, &other).unwrap();
    let held = OpenOptions::new().write(true).open(&one).unwrap();
    for size in 2..20 {
        assert_eq!(fs::metadata(&other).unwrap().len(), size - 1);
        held.write_all_at(b"x", size - 1).unwrap();
        assert_eq!(fs::metadata(&other).unwrap().len(), size);
    }
    // Nor after the name that it is written through is gone.
    fs::remove_file(&one).unwrap();
    for size in 20..40 {
        held.write_all_at(b"x", size - 1).unwrap();
        assert_eq!(fs::metadata(&other).unwrap().len(), size);
    }
}

#[test]
fn an_open_file_is_linked_by_its_descriptor_while_it_has_any_name() {
    let Some(at) = posix() else { return };
    let (one, other) = (at.make("one", "1"), at.path("other"));
    fs::hard_link(&one, &other).unwrap();
    let held = File::open(&one).unwrap();
    let by_descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    let link = |to| {
        let flags = rustix::fs::AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, &by_descriptor, CWD, at.path(to), flags)
    };
    // The kernel counts links for itself, and believes in one until it looks.
    assert_eq!(held.metadata().unwrap().nlink(), 2);
    fs::remove_file(&one).unwrap();
    link("third").unwrap();
    assert_eq!(fs::read(at.path("third")).unwrap(), b"1");
    fs::remove_file(&other).unwrap();
    fs::remove_file(at.path("third")).unwrap();
    assert_eq!(link("fourth"), Err(rustix::io::Errno::NOENT));
}

#[test]
fn a_rename_replaces_an_open_target_and_moves_a_directory_with_opens_below() {
    let Some(at) = posix() else { return };
    let (from, to) = (at.make("from", "1"), at.make("to", "2"));
    let mut held = File::open(&to).unwrap();
    fs::rename(&from, &to).unwrap();
    assert_eq!(fs::read(&to).unwrap(), b"1");
    let mut text = String::new();
    held.read_to_string(&mut text).unwrap();
    assert_eq!(text, "2");
    fs::create_dir(at.path("d")).unwrap();
    fs::write(at.path("d/f"), "below").unwrap();
    let below = OpenOptions::new().write(true).open(at.path("d/f")).unwrap();
    fs::rename(at.path("d"), at.path("e")).unwrap();
    below.write_all_at(b"BELOW", 0).unwrap();
    below.sync_all().unwrap();
    assert_eq!(fs::read(at.path("e/f")).unwrap(), b"BELOW");
    let handles = at.share.all_handles(&crate::mount::fixture::share_path("e"), true).unwrap();
    assert_eq!(handles[0].path.as_str(), "e/f");
}

#[test]
fn directories_with_opens_below_change_places_and_the_opens_follow() {
    let Some(at) = posix() else { return };
    for dir in ["d", "e"] {
        fs::create_dir(at.path(dir)).unwrap();
        fs::write(at.path(dir).join("f"), dir).unwrap();
    }
    let [d, e] = ["d/f", "e/f"].map(|name| OpenOptions::new().write(true).open(at.path(name)));
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(CWD, at.path("d"), CWD, at.path("e"), flags).unwrap();
    // By descriptor, and through the driver: it must find them where they are now.
    d.unwrap().set_len(0).unwrap();
    rustix::fs::fallocate(e.unwrap(), rustix::fs::FallocateFlags::empty(), 0, 9).unwrap();
    let sizes = ["d/f", "e/f"].map(|name| fs::metadata(at.path(name)).unwrap().len());
    assert_eq!(sizes, [9, 0]);
}

#[test]
fn where_case_counts_a_rename_replaces_a_name_that_differs_by_case_alone() {
    let share = ShareOptions { case: Case::Sensitive, ..ShareOptions::default() };
    let Some(at) = Fixture::of(share, |options| options.unlink = UnlinkMode::Posix) else { return };
    let (lower, upper) = (at.make("f", "lower"), at.make("F", "upper"));
    fs::rename(&lower, &upper).unwrap();
    assert_eq!(fs::read(&upper).unwrap(), b"lower");
    assert_eq!(errno(fs::metadata(&lower)), libc::ENOENT);
}

#[test]
fn whoever_does_not_share_d_keeps_the_name_there_too() {
    let Some(at) = posix() else { return };
    let (name, other) = (at.make("f", "x"), at.make("g", "y"));
    let held = File::open(&name).unwrap();
    client::set_share(&held, ShareMode::RW).unwrap();
    assert_eq!(errno(fs::remove_file(&name)), libc::EBUSY);
    assert_eq!(errno(fs::rename(&other, &name)), libc::EBUSY);
    client::set_share(&held, ShareMode::RWD).unwrap();
    fs::remove_file(&name).unwrap();
}

#[test]
fn files_are_shown_with_the_owner_and_bits_that_the_mount_names() {
    let Some(at) = Fixture::with(|options| {
        (options.uid, options.gid, options.umask) = (Some(1234), Some(5678), Some(0o027));
    }) else {
        return;
    };
    let name = at.make("f", "x");
    let seen = fs::metadata(&name).unwrap();
    assert_eq!((seen.uid(), seen.gid(), seen.mode() & 0o777), (1234, 5678, 0o750));
    let behind = fs::metadata(at.root.join("f")).unwrap();
    assert_eq!(behind.uid(), rustix::process::geteuid().as_raw());
}
