//! Calls that wait for the disk hold up nobody but their caller.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::clock::SystemClock;
use latchfs::file::mount::{Mount, MountOptions, WORKERS};
use latchfs::file::service::{Asking, Share, ShareOptions, TimeChange};
use latchfs::journal::AccountJournal;

use crate::common::ground::Ground;
use crate::common::need;
use crate::mount::fixture::{Fixture, SOON, share_path, somebody, soon};
use crate::mount::program::Program;

/// Fewer than there are workers: for calls that may keep one.
const CALLERS: usize = WORKERS / 2;

/// Starts a call that takes long by its kind in more programs than there are workers, and opens
/// and reads another file meanwhile.
fn others_are_served_during(call: &str) {
    others_are_served(call, WORKERS + 2, |_| {});
}

/// The same for so many programs, on a mount with the options that `change` leaves.
fn others_are_served(call: &str, callers: usize, change: impl FnOnce(&mut MountOptions)) {
    if !need::fuse() || !need::client("fsfreeze") {
        return;
    }
    let Some(ground) = Ground::image("ext4") else { return };
    let share = ShareOptions::default();
    let Some(at) = Fixture::in_dir(ground.path(), share, change) else { return };
    let path = at.make("other", "text");
    at.make("source", &"x".repeat(100_000));
    let mut programs: Vec<Program> = Vec::new();
    for n in 0..callers {
        let Some(mut program) = Program::start(&at.mnt) else { return };
        program.ok(&format!("fd = os.open('f{n}', os.O_CREAT | os.O_RDWR)"));
        program.ok(&format!("log = os.open('f{n}', os.O_WRONLY | os.O_APPEND)"));
        program.ok("origin = os.open('source', os.O_RDONLY)");
        programs.push(program);
    }
    let frozen = ground.freeze();
    for program in &mut programs {
        program.begin(call);
    }
    // Nothing tells that the calls have arrived; a pass before that proves less, and fails never.
    for program in &mut programs {
        assert!(program.answer_within(Duration::from_millis(20)).is_none(), "{call} did not wait");
    }
    let read = read_elsewhere(path);
    drop(frozen);
    for program in &mut programs {
        program.answer().unwrap_or_else(|| panic!("{call} never ended")).unwrap();
    }
    assert_eq!(read.as_deref(), Some("text"), "during {call}");
}

/// The text of a file, read on a thread of its own; none if that takes too long.
fn read_elsewhere(path: PathBuf) -> Option<String> {
    let (sender, read) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        File::open(path).unwrap().read_to_string(&mut text).unwrap();
        // Nobody waits any more if that took too long.
        let _ = sender.send(text);
    });
    read.recv_timeout(SOON).ok()
}

/// Has several programs make a call on a file while a request of REST holds its lock and waits for
/// the disk, and opens and reads another file meanwhile.
fn others_are_served_while_a_request_has_the_file(passthrough: bool, call: &str) {
    if !need::fuse() || !need::client("fsfreeze") {
        return;
    }
    let Some(ground) = Ground::image("ext4") else { return };
    let share = ShareOptions::default();
    let change = |options: &mut MountOptions| options.passthrough = passthrough;
    let Some(at) = Fixture::in_dir(ground.path(), share, change) else { return };
    let path = at.make("other", "text");
    at.make("f", "0123456789");
    let mut programs: Vec<Program> = Vec::new();
    for _ in 0..CALLERS {
        let Some(mut program) = Program::start(&at.mnt) else { return };
        program.ok("fd = os.open('f', os.O_RDONLY)");
        programs.push(program);
    }
    let name = share_path("f");
    let (who, frozen) = (somebody(), ground.freeze());
    let asking = || Asking { cx: &who, lease_id: None };
    let early: Vec<_> = thread::scope(|scope| {
        let put = scope.spawn(|| at.share.put_range(asking(), &name, 0, b"REST", TimeChange::Now));
        // Who asks about the file while the request has it gets no answer.
        let is_held = || {
            let (answer, answered) = mpsc::channel();
            let (at, name, who) = (&at, &name, &who);
            scope.spawn(move || {
                let asking = Asking { cx: who, lease_id: None };
                // Nobody may wait any more.
                let _ = answer.send(at.share.file_properties(asking, name).is_ok());
            });
            answered.recv_timeout(Duration::from_millis(100)).is_err()
        };
        soon("the request has the file", is_held);
        for program in &mut programs {
            program.begin(call);
        }
        // Nothing tells that the calls have arrived: a pass before that proves less.
        let in_time = |program: &mut Program| program.answer_within(Duration::from_millis(20));
        let early = programs.iter_mut().map(in_time).collect();
        let read = read_elsewhere(path);
        drop(frozen);
        put.join().unwrap().unwrap();
        assert_eq!(read.as_deref(), Some("text"), "during {call}, passthrough {passthrough}");
        early
    });
    for (program, early) in programs.iter_mut().zip(early) {
        let answer = early.or_else(|| program.answer());
        answer.unwrap_or_else(|| panic!("{call} never ended")).unwrap();
    }
    drop(programs);
    at.idle();
}

#[test]
fn files_are_opened_while_others_wait_for_a_file_that_a_request_holds() {
    for call in [
        "os.close(os.open('f', os.O_RDONLY))",
        "os.stat('F')",
        "os.listdir('.')",
        "lock(fd, GETLK, fcntl.F_RDLCK)",
        "lock(fd, SETLK, fcntl.F_RDLCK)",
        "lock(fd, SETLKW, fcntl.F_RDLCK)",
        "os.close(fd)",
        "os.close(os.open(f'/proc/self/fd/{fd}', os.O_RDONLY))",
    ] {
        others_are_served_while_a_request_has_the_file(true, call);
    }
}

#[test]
fn files_are_opened_while_reads_without_passthrough_wait_for_a_file_that_a_request_holds() {
    for call in ["os.pread(fd, 4, 0)", "os.lseek(fd, 0, os.SEEK_HOLE)", "os.close(fd)"] {
        others_are_served_while_a_request_has_the_file(false, call);
    }
}

#[test]
fn files_are_opened_while_others_wait_for_room_to_be_reserved() {
    others_are_served_during("os.posix_fallocate(fd, 0, 1 << 20)");
}

#[test]
fn files_are_opened_while_others_wait_for_a_copy() {
    others_are_served_during("os.copy_file_range(origin, fd, 100_000)");
}

#[test]
fn files_are_opened_while_writes_without_passthrough_wait_for_the_disk() {
    for call in ["os.pwrite(fd, b'text', 0)", "os.write(log, b'text')"] {
        others_are_served(call, CALLERS, |options| options.passthrough = false);
        others_are_served(call, CALLERS, |options| options.mandatory_locks = true);
    }
}

#[test]
fn a_mount_whose_workers_all_wait_for_their_disk_stops_no_other_and_can_be_taken_away() {
    if !need::fuse() || !need::client("fsfreeze") {
        return;
    }
    let Some(ground) = Ground::image("ext4") else { return };
    let change = |options: &mut MountOptions| options.passthrough = false;
    let Some(mut at) = Fixture::in_dir(ground.path(), ShareOptions::default(), change) else {
        return;
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let [root, state, mnt] = ["root", "state", "mnt"].map(|name| elsewhere.path().join(name));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&mnt).unwrap();
    let (clock, events) = (Arc::new(SystemClock), AccountJournal::default());
    let options = ShareOptions::default();
    let share = Share::open_directory("other", &root, &state, options, clock, events).unwrap();
    let other = Mount::start(Arc::new(share), &mnt, MountOptions::default()).unwrap();
    let mut programs: Vec<Program> = Vec::new();
    for n in 0..WORKERS + 2 {
        let Some(mut program) = Program::start(&at.mnt) else { return };
        program.ok(&format!("fd = os.open('f{n}', os.O_CREAT | os.O_RDWR)"));
        programs.push(program);
    }
    let frozen = ground.freeze();
    for program in &mut programs {
        program.begin("os.pwrite(fd, b'text', 0)");
    }
    for program in &mut programs {
        assert!(program.answer_within(Duration::from_millis(20)).is_none(), "it did not wait");
    }
    fs::write(mnt.join("f"), "text").unwrap();
    assert_eq!(read_elsewhere(mnt.join("f")).as_deref(), Some("text"));
    let began = Instant::now();
    at.unmount_lazily();
    let took = began.elapsed();
    drop(frozen);
    assert!(took < SOON, "{took:?}");
    for program in &mut programs {
        program.answer().expect("each call ends").expect_err("the mount is gone");
    }
    drop((programs, other));
}

#[test]
fn a_copy_of_many_bytes_is_done_in_parts_and_arrives_whole() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    let length = 40 << 20;
    let bytes: Vec<u8> =
        (0..length).map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    fs::write(at.path("from"), &bytes).unwrap();
    program.ok("origin = os.open('from', os.O_RDONLY)");
    program.ok("target = os.open('to', os.O_CREAT | os.O_RDWR)");
    program.ok("done = 0");
    program.ok("while n := os.copy_file_range(origin, target, 1 << 30): done += n");
    assert_eq!(program.ok("done"), serde_json::json!(length));
    assert!(fs::read(at.root.join("to")).unwrap() == bytes);
    program.ok("os.close(origin); os.close(target)");
    soon("no file is in use", || at.share.files_in_use() == 0);
}

#[test]
fn names_of_a_large_directory_that_was_not_read_before_are_found_made_moved_and_removed() {
    let Some(at) = Fixture::start() else { return };
    // Made behind the mount: nothing of it has been read.
    let big = |name: &str| {
        fs::create_dir(at.root.join(name)).unwrap();
        for n in 0..3000 {
            fs::write(at.root.join(name).join(format!("a-rather-long-name-{n}")), "").unwrap();
        }
    };
    for dir in ["looked-up", "listed", "made-in", "moved-to"] {
        big(dir);
    }
    assert!(at.path("looked-up/A-RATHER-LONG-NAME-77").exists());
    assert!(!at.path("looked-up/absent").exists());
    assert_eq!(fs::read_dir(at.path("listed")).unwrap().count(), 3000);
    fs::write(at.path("made-in/new"), "new").unwrap();
    let taken = File::options().write(true).create_new(true).open(at.path("made-in/NEW"));
    assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    fs::rename(at.path("made-in/new"), at.path("moved-to/A-rather-long-name-5")).unwrap();
    assert_eq!(fs::read(at.path("moved-to/a-rather-long-name-5")).unwrap(), b"new");
    fs::remove_file(at.path("looked-up/A-RATHER-long-name-77")).unwrap();
    assert_eq!(fs::read_dir(at.root.join("looked-up")).unwrap().count(), 2999);
}
