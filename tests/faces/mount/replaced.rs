//! Names that are replaced while programs open them, and files that are opened by no name at all.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::file::mount::{MountOptions, UnlinkMode};
use latchfs::file::rules::ShareMode;

use crate::mount::fixture::{Fixture, errno, rounds};

/// Opens a name again and again while another thread renames new files over it.
fn open_what_is_replaced(change: impl FnOnce(&mut MountOptions)) {
    let Some(at) = Fixture::with(change) else { return };
    let (name, new) = (at.make("f", "0"), at.path("new"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                fs::write(&new, round.to_string()).unwrap();
                // Refused while the reader has it open, without `--unlink=posix`.
                let renamed = errno(fs::rename(&new, &name));
                assert!([0, libc::EBUSY].contains(&renamed), "{renamed}");
            }
        });
        let opens = (0..rounds(4_000)).map(|_| {
            let mut text = String::new();
            let mut at_call = "open";
            let read = File::open(&name).and_then(|mut file| {
                at_call = "read";
                file.read_to_string(&mut text)?;
                at_call = "stat";
                Ok(file.metadata()?.len())
            });
            // Whatever was read is a whole number, and the size is that file's.
            let fits = read.as_ref().is_ok_and(|size| *size == text.len() as u64);
            if fits && text.parse::<u64>().is_ok() { Ok(()) } else { Err((at_call, read, text)) }
        });
        let odd: Vec<_> = opens.filter_map(Result::err).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(odd.is_empty(), "{} opens, the first: {:?}", odd.len(), odd[0]);
    });
    at.idle();
}

#[test]
fn a_name_that_is_replaced_all_the_time_can_always_be_opened() {
    open_what_is_replaced(|_| {});
}

#[test]
fn a_name_that_is_replaced_under_its_opens_can_always_be_opened() {
    open_what_is_replaced(|options| options.unlink = UnlinkMode::Posix);
}

#[test]
fn a_name_that_comes_and_goes_is_there_or_missing() {
    let Some(at) = Fixture::start() else { return };
    let (name, stop) = (at.path("f"), AtomicBool::new(false));
    let known = [0, libc::ENOENT, libc::EBUSY, libc::EEXIST];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Each may meet an open of another thread, or find its work done.
                    let done = [errno(fs::write(&name, "0")), errno(fs::remove_file(&name))];
                    assert!(done.iter().all(|errno| known.contains(errno)), "{done:?}");
                }
            });
        }
        let link = at.path("link");
        let round = |_| {
            let linked = fs::hard_link(&name, &link).and_then(|()| fs::remove_file(&link));
            [errno(File::open(&name)), errno(linked)]
        };
        let calls: Vec<[i32; 2]> = (0..rounds(8_000)).map(round).collect();
        stop.store(true, Ordering::Relaxed);
        for (at, call) in ["open", "link"].into_iter().enumerate() {
            let odd: Vec<_> =
                calls.iter().map(|call| call[at]).filter(|it| !known.contains(it)).collect();
            assert!(odd.is_empty(), "{call}: {odd:?}");
        }
        let met = |errno| calls.iter().flatten().any(|met| *met == errno);
        assert!(known[..2].iter().all(|errno| met(*errno)), "nothing met");
    });
    at.idle();
}

/// A file without a name, held by a descriptor, and the way to it.
fn unlinked(at: &Fixture) -> (File, String) {
    let name = at.make("f", "0123");
    let held = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    fs::remove_file(&name).unwrap();
    fs::write(&name, "another").unwrap();
    let way = format!("/proc/self/fd/{}", held.as_raw_fd());
    (held, way)
}

fn check_unlinked_is_opened_again(change: impl FnOnce(&mut MountOptions)) {
    let posix = |options: &mut MountOptions| {
        options.unlink = UnlinkMode::Posix;
        change(options);
    };
    let Some(at) = Fixture::with(posix) else { return };
    let (held, way) = unlinked(&at);
    assert_eq!(fs::read(&way).unwrap(), b"0123");
    let again = OpenOptions::new().read(true).write(true).open(&way).unwrap();
    again.write_all_at(b"xy", 4).unwrap();
    assert_eq!(again.metadata().unwrap().ino(), held.metadata().unwrap().ino());
    assert_eq!(fs::read(&way).unwrap(), b"0123xy");
    // Cut by `O_TRUNC`, and written.
    fs::write(&way, "new").unwrap();
    let mut bytes = [0; 9];
    assert_eq!(held.read_at(&mut bytes, 0).unwrap(), 3);
    drop((held, again));
    at.idle();
    assert_eq!(fs::read(at.path("f")).unwrap(), b"another");
}

#[test]
fn an_unlinked_file_is_opened_again_by_its_descriptor() {
    check_unlinked_is_opened_again(|_| {});
}

#[test]
fn an_unlinked_file_is_opened_again_by_its_descriptor_without_passthrough() {
    check_unlinked_is_opened_again(|options| options.passthrough = false);
}

#[test]
fn an_unlinked_file_is_opened_again_only_as_its_opens_share() {
    let posix = |options: &mut MountOptions| {
        options.unlink = UnlinkMode::Posix;
        options.default_share = ShareMode::R | ShareMode::D;
    };
    let Some(at) = Fixture::with(posix) else { return };
    let name = at.make("f", "0123");
    let held = File::open(&name).unwrap();
    fs::remove_file(&name).unwrap();
    let way = format!("/proc/self/fd/{}", held.as_raw_fd());
    assert_eq!(errno(OpenOptions::new().write(true).open(&way)), libc::EBUSY);
    assert_eq!(fs::read(&way).unwrap(), b"0123");
}

#[test]
fn a_pending_file_is_opened_by_nobody_not_even_by_its_descriptor() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "0123");
    let held = File::open(&name).unwrap();
    fs::remove_file(&name).unwrap();
    let way = format!("/proc/self/fd/{}", held.as_raw_fd());
    assert_eq!(errno(File::open(way)), libc::EBUSY);
}

#[test]
fn all_names_of_a_file_show_one_number() {
    let Some(at) = Fixture::start() else { return };
    let one = at.make("one", "1");
    let others = ["two", "three"].map(|name| at.path(name));
    for other in &others {
        fs::hard_link(&one, other).unwrap();
    }
    let number = |path| fs::metadata(path).unwrap().ino();
    let own = fs::metadata(at.root.join("one")).unwrap().ino();
    assert_eq!([number(&one), number(&others[0]), number(&others[1])], [own; 3]);
    assert_eq!(File::open(&others[0]).unwrap().metadata().unwrap().ino(), own);
    // It stays the number of a name whose sibling is gone, whoever asks.
    fs::remove_file(&one).unwrap();
    fs::remove_file(&others[1]).unwrap();
    assert_eq!(number(&others[0]), own);
}
