//! Descriptors that a forced close or the end of the mount cuts off, by whatever name they were
//! opened and wherever that name is by then.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use latchfs::file::mount::UnlinkMode;
use latchfs::file::service::{ForceClosed, WhichHandles};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::common::need;
use crate::mount::fixture::{Fixture, errno, share_path, somebody, soon};

fn writer(path: &Path) -> File {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(b"before", 0).unwrap();
    file
}

/// Closes the handles of a file by force.
fn close(at: &Fixture, name: &str) -> ForceClosed {
    let path = share_path(name);
    at.share.force_close_handles(&somebody(), &path, WhichHandles::All, false).unwrap()
}

#[track_caller]
fn is_closed(at: &Fixture, name: &str, writers: &[File]) {
    assert_eq!(close(at, name), ForceClosed { closed: writers.len() as u64, failed: 0 });
    for writer in writers {
        assert_eq!(errno(writer.write_at(b"after!", 0)), libc::EIO);
    }
    assert_eq!(fs::read(at.root.join(name)).unwrap(), b"before");
    // The file is there for the next one.
    writer(&at.path(name)).write_all_at(b"before", 0).unwrap();
    at.idle();
}

#[test]
fn a_file_that_was_moved_behind_the_mount() {
    let Some(at) = Fixture::start() else { return };
    let held = writer(&at.make("f", "012345"));
    fs::rename(at.root.join("f"), at.root.join("g")).unwrap();
    assert!(!at.path("f").exists());
    let of_file =
        at.share.force_close_handles(&somebody(), &share_path("f"), WhichHandles::All, false);
    // The engine may know it by either name: what counts is that no close is claimed in vain.
    let closed = of_file.unwrap_or_default().closed + close(&at, "g").closed;
    let refused = errno(held.write_at(b"after!", 0));
    assert_eq!((closed, refused), (1, libc::EIO));
}

#[test]
fn a_file_of_two_names_whose_opened_name_was_removed() {
    let Some(at) = Fixture::with(|options| options.unlink = UnlinkMode::Posix) else { return };
    let name = at.make("one", "012345");
    fs::hard_link(&name, at.path("two")).unwrap();
    let held = [writer(&name), writer(&at.path("two"))];
    fs::remove_file(&name).unwrap();
    is_closed(&at, "two", &held);
}

#[test]
fn a_file_whose_other_spelling_was_renamed() {
    let Some(at) = Fixture::start() else { return };
    let held = [writer(&at.make("file", "012345")), writer(&at.path("FILE"))];
    fs::rename(at.path("File"), at.path("other")).unwrap();
    is_closed(&at, "other", &held);
}

#[test]
fn a_file_below_a_directory_that_something_is_mounted_on() {
    if !need::root() {
        return;
    }
    let Some(at) = Fixture::start() else { return };
    fs::create_dir(at.path("d")).unwrap();
    let held = writer(&at.make("d/f", "012345"));
    let over = at.path("d");
    rustix::mount::mount("none", &over, "tmpfs", MountFlags::empty(), c"").unwrap();
    let closed = close(&at, "d/f");
    let refused = errno(held.write_at(b"after!", 0));
    rustix::mount::unmount(&over, UnmountFlags::empty()).unwrap();
    assert_eq!((closed, refused), (ForceClosed { closed: 1, failed: 0 }, libc::EIO));
}

#[test]
fn a_file_of_a_mount_that_no_path_leads_to_is_counted_as_not_closed() {
    if !need::root() {
        return;
    }
    let Some(at) = Fixture::start() else { return };
    let held = writer(&at.make("f", "012345"));
    rustix::mount::unmount(&at.mnt, UnmountFlags::DETACH).unwrap();
    assert_eq!(close(&at, "f"), ForceClosed { closed: 0, failed: 1 });
    drop(held);
}

#[test]
fn a_program_that_goes_on_opening_files_while_the_mount_ends_writes_nothing_afterwards() {
    const FILES: usize = 16;
    const OPENS_MAX: usize = 2_000;
    let Some(mut at) = Fixture::start() else { return };
    let names: Vec<_> = (0..FILES).map(|n| at.make(&format!("f{n}"), "before")).collect();
    let opened = AtomicUsize::new(0);
    let held = thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let open = |name| File::options().write(true).open(name).ok();
            let count = |_: &File| {
                opened.fetch_add(1, Ordering::Relaxed);
            };
            names.iter().cycle().map_while(open).inspect(count).take(OPENS_MAX).collect::<Vec<_>>()
        });
        soon("some are open", || opened.load(Ordering::Relaxed) >= 2 * FILES);
        at.unmount_lazily();
        opener.join().unwrap()
    });
    let written = held.iter().filter(|file| file.write_at(b"after!", 0).is_ok()).count();
    assert_eq!(written, 0, "of {}", held.len());
    for n in 0..FILES {
        assert_eq!(fs::read(at.root.join(format!("f{n}"))).unwrap(), b"before");
    }
}
